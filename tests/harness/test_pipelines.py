"""p4c in the place of the built-in compiler. What stands in for it here is the built-in one with p4c's command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness import pipelines, programs
from p4switch.errors import UserError

STAND_IN = """#!{python}
import sys
from pathlib import Path
from google.protobuf import text_format
from p4switch.compiler import compile_program
import json
source, o, out, files, p4info = sys.argv[1:]
assert (o, files) == ("-o", "--p4runtime-files")
made = compile_program(source)
Path(out).write_text(json.dumps(made.json))
Path(p4info).write_text(text_format.MessageToString(made.p4info))
"""


@pytest.fixture
def p4c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where p4c would be; nothing else is in PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pipelines.compiled.cache_clear()
    return tmp_path / pipelines.P4C


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_what_p4c_writes_is_what_runs(p4c: Path) -> None:
    source = programs.program("ecn").source
    write(p4c, STAND_IN.format(python=sys.executable))
    config, p4info = pipelines.compiled(source, "p4c")
    assert config["pipelines"]
    assert (config, p4info) == pipelines.compiled(source, "builtin")


def test_p4c_is_not_there(p4c: Path) -> None:
    with pytest.raises(UserError, match=r"p4c-bm2-ss is not in PATH: install p4c"):
        pipelines.compiled(programs.program("ecn").source, "p4c")


def test_p4c_refuses(p4c: Path) -> None:
    write(p4c, "#!/bin/sh\necho '[--Wwarn] a warning' >&2\necho 'x.p4(3): [--Werror] error: no' >&2\nexit 1\n")
    with pytest.raises(UserError, match=r"^p4c-bm2-ss: x\.p4\(3\): \[--Werror\] error: no$"):
        pipelines.compiled(programs.program("ecn").source, "p4c")
