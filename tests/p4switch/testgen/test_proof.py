"""What is proven to be out of reach is, and what packets reach is never proven to be."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3 is not installed")

from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.midend.v1model import lower
from p4switch.testgen import generate
from p4switch.testgen.code import Code
from p4switch.testgen.proof import Prover

PROGRAM = Path(__file__).with_name("unreachable.p4")


def proven(program: Path, stable: bool = False) -> dict[int, str]:
    """Lines that cannot be reached, with the reasons."""
    code = Code(lower(parse_and_check(program)))
    found = Prover(code, time.monotonic() + 300, stable).unreachable(code.all)
    return {one.place.line: one.reason for one in found}


def marked(word: str) -> set[int]:
    lines = PROGRAM.read_text().splitlines()
    return {number for number, line in enumerate(lines, start=1) if f"// {word}" in line}


def test_what_is_marked_is_proven_and_nothing_else() -> None:
    assert set(proven(PROGRAM)) == marked("never:")
    assert set(proven(PROGRAM, stable=True)) == marked("never:") | marked("never, if")


def test_reasons_name_the_decision() -> None:
    reasons = proven(PROGRAM)
    lines = PROGRAM.read_text().splitlines()
    known = {lines[number - 1].partition("// never: ")[2]: reason for number, reason in reasons.items()}
    place = next(number for number, line in enumerate(lines, start=1) if "meta.left == 7" in line)
    assert known["metadata"] == f"the condition is never true at line {place}"
    assert known["action"] == "nothing leads there"


def test_nothing_that_tests_reach_is_proven_unreachable() -> None:
    """Of a program with resubmission, recirculation, clones, groups, checksums, a stack and a loop in its parser."""
    program = Path(__file__).with_name("program.p4")
    assert proven(program) == {}
    code = Code(lower(parse_and_check(PROGRAM)))
    _, result = generate(PROGRAM, most=40, seconds=60)
    reached = 0
    for test in result.tests:
        reached |= test.run.covered
    assert Prover(code, time.monotonic() + 300, True).unreachable(reached) == []


def test_a_proof_that_takes_too_long_is_none() -> None:
    with pytest.raises(TimeoutError):
        Prover(Code(lower(parse_and_check(PROGRAM))), time.monotonic() - 1)
