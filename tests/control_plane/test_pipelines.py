"""p4c instead of the built-in compiler. The stand-in for p4c is the built-in compiler with p4c's command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from control_plane import pipelines, programs
from control_plane.pipelines import Build
from harness.measure.results import load_all
from p4switch.errors import UserError
from tests.e2e.runs import p4cc

STAND_IN = """#!{python}
import sys
from pathlib import Path
from google.protobuf import text_format
from p4switch.compiler import compile_program
import json
source, o, out, files, p4info, include, folder, *defines = sys.argv[1:]
assert (o, files, include) == ("-o", "--p4runtime-files", "-I")
made = compile_program(source, [folder], dict(text.removeprefix("-D").split("=") for text in defines))
Path(out).write_text(json.dumps(made.json))
Path(p4info).write_text(text_format.MessageToString(made.p4info))
"""


@pytest.fixture
def p4c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path at which p4c is found before others."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pipelines.compiled.cache_clear()
    return tmp_path / pipelines.P4C


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_what_p4c_writes_is_what_runs(p4c: Path) -> None:
    what = Build(programs.program("int").source, defines=(("INT_MAX_HOPS", "3"),))
    write(p4c, STAND_IN.format(python=sys.executable))
    theirs, own, other = (
        pipelines.compiled(what, "p4c"), pipelines.compiled(what), pipelines.compiled(Build(what.source))
    )
    assert theirs.json["pipelines"]
    assert (theirs.json, theirs.p4info) == (own.json, own.p4info)
    assert (theirs.json, theirs.p4info) != (other.json, other.p4info)


def test_a_run_with_p4c(p4c: Path, tmp_path: Path) -> None:
    write(p4c, STAND_IN.format(python=sys.executable))
    scenario = tmp_path / "two.toml"
    scenario.write_text(
        '[topology]\nname = "single-switch"\nhosts = 3\n[workload]\nname = "incast"\nsize_bytes = 2000\n'
    )
    out = tmp_path / "out"
    done = p4cc("run", str(scenario), "--cc", "dcqcn", "--compiler", "p4c", "--out", str(out))
    assert done.returncode == 0, done.stderr
    (result,) = load_all(out)
    assert result.summary["compiler"] == "p4c"
    assert result.summary["variant"] == "dcqcn, p4c"


def test_p4c_is_not_there(p4c: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(p4c.parent))
    with pytest.raises(UserError, match=r"p4c-bm2-ss is not in PATH: install p4c"):
        pipelines.compiled(Build(programs.program("ecn").source), "p4c")


def test_p4c_refuses(p4c: Path) -> None:
    write(p4c, "#!/bin/sh\necho '[--Wwarn] a warning' >&2\necho 'x.p4(3): [--Werror] error: no' >&2\nexit 1\n")
    with pytest.raises(UserError, match=r"^p4c-bm2-ss: x\.p4\(3\): \[--Werror\] error: no$"):
        pipelines.compiled(Build(programs.program("ecn").source), "p4c")


PROGRAM = """#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers {{ h_t h; }}
struct meta_t {{ }}
parser Parse(packet_in packet, out headers hdr, inout meta_t meta,
             inout standard_metadata_t standard) {{
    state start {{ packet.extract(hdr.h); transition accept; }}
}}
control Check(inout headers hdr, inout meta_t meta) {{ apply {{ }} }}
control In(inout headers hdr, inout meta_t meta,
           inout standard_metadata_t standard) {{
    action unused() {{ random(hdr.h.b, 0, 9); }}
    apply {{ {statement} standard.egress_spec = 2; }}
}}
control Out(inout headers hdr, inout meta_t meta,
            inout standard_metadata_t standard) {{ apply {{ }} }}
control Deparse(packet_out packet, in headers hdr) {{ apply {{ packet.emit(hdr.h); }} }}
V1Switch(Parse(), Check(), In(), Out(), Check(), Deparse()) main;
"""


@pytest.mark.parametrize(
    ("statement", "draws"),
    [
        ("", False),
        ("random(hdr.h.b, 0, 255);", True),
        ("hash(hdr.h.b, HashAlgorithm.random, 8w0, {hdr.h.a}, 9w256);", True),
        ("hash(hdr.h.b, HashAlgorithm.crc32, 8w0, {hdr.h.a}, 9w256);", False),
    ],
)
def test_a_pipeline_draws_if_equal_packets_leave_it_as_different_ones(
    tmp_path: Path, statement: str, draws: bool
) -> None:
    source = tmp_path / "draws.p4"
    source.write_text(PROGRAM.format(statement=statement))
    made = pipelines.pipeline(Build(source))
    switch = made.switch(0, seed=1)
    different = len({switch.process(1, bytes(2))[0][1] for _ in range(50)}) > 1
    assert (made.draws, different) == (draws, draws)


@pytest.mark.parametrize("architecture", ["v1model", "tna", "t2na"])
@pytest.mark.parametrize(("program", "draws"), [("ecn", True), ("int", False)])
def test_programs_draw_on_every_architecture_alike(
    architecture: str, program: str, draws: bool
) -> None:
    what = Build(programs.program(program).source, architecture=architecture)
    assert pipelines.pipeline(what).draws is draws


@pytest.mark.parametrize("edited", ["draws.p4", "part.p4"])
def test_a_file_that_is_edited_is_compiled_anew(tmp_path: Path, edited: str) -> None:
    """Notebooks run a program several times in one process."""
    source, part = tmp_path / "draws.p4", tmp_path / "part.p4"
    source.write_text(PROGRAM.format(statement='\n#include "part.p4"\n'))
    part.write_text("hdr.h.b = 1;\n")
    before = pipelines.pipeline(Build(source)).switch(0, seed=1).process(1, bytes(2))
    file = tmp_path / edited
    text = file.read_text().replace("hdr.h.b = 1;", "hdr.h.b = 2;")
    file.write_text(text.replace('#include "part.p4"', "hdr.h.b = 2;"))
    after = pipelines.pipeline(Build(source)).switch(0, seed=1).process(1, bytes(2))
    assert [frame[1] for frame, *_ in (before, after)] == [bytes([0, 1]), bytes([0, 2])]
