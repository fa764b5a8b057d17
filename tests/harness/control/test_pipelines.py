"""p4c in the place of the built-in compiler. What stands in for it here is the built-in one with p4c's command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.control import pipelines, programs
from harness.control.pipelines import Build
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
    """Return the path at which p4c is found first."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
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
