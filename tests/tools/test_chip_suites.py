"""The tool that runs published packet tests: how it reads PTF's output, and the programs that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.errors import UserError
from tools.chip_suites import find_suites, verdicts

SAID = """\
Seed is: 1
test.First ... Subscribe attempt #1
ok
Ran 1 test in 3.530s

OK
test.Second
a sentence of its docstring ... Sending packet on port 8
FAIL
FAIL: test.Second
Ran 1 test in 0.016s

FAILED (errors=1)
test.Third ... Subscribe attempt #1
"""


def test_a_test_that_has_not_ended_has_failed() -> None:
    assert verdicts(SAID) == {"test.First": "ok", "test.Second": "FAIL", "test.Third": "ERROR"}


def test_programs_with_tests_are_found_with_their_chip(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected programs with test\.py"):
        find_suites(tmp_path)
    programs = tmp_path / "pkgsrc/p4-examples/p4_16_programs"
    for name in ("tna_one", "t2na_two", "tna_many/a", "tna_many/b"):
        (programs / name).mkdir(parents=True)
        (programs / name / "test.py").touch()
    (programs / "tna_one/tna_one.p4").touch()
    for each in "ab":
        (programs / f"tna_many/{each}/tna_many_{each}.p4").touch()
        (programs / f"tna_many/{each}/test.py").unlink()
    many_tests = programs / "tna_many/test.py"
    many_tests.touch()
    (programs / "tna_many/ports.json").write_text('{"PortToVeth": [{"device_port": 129, "veth1": 4, "veth2": 5}]}')
    (programs / "tna_many/custom_model_options").write_text("--int-port-loop 0xa\n")
    (programs / "tna_none").mkdir()
    two, many, one = find_suites(tmp_path)
    assert (one.programs, one.chip.arch) == ([programs / "tna_one/tna_one.p4"], "tna")
    assert (two.chip.arch, min(two.pairs()), len(two.pairs())) == ("t2na", 2, 18)
    assert (sorted(one.pairs()), one.pipes) == ([*range(17), 64], 1)
    assert [program.stem for program in many.programs] == ["tna_many_a", "tna_many_b"]
    assert (many.pairs(), many.pipes, many.looped_pipes()) == ({129: 2}, 4, [1, 3])
