"""Soundness of proofs: packets never reach a statement that is proven unreachable."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("z3", reason="z3 is not installed")

from p4switch import ir
from p4switch.architectures.v1model.externs.log_msg import LogMsg
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.passes import lowered
from p4switch.ir.graph import reverse_postorder
from p4switch.testgen import generate
from p4switch.testgen.code import Code
from p4switch.testgen.machine import Machine
from p4switch.testgen.proof import Prover

if TYPE_CHECKING:
    from p4switch.bmv2.arguments import Arguments
    from p4switch.engine.statements import Statements

PROGRAM = Path(__file__).with_name("unreachable.p4")
LOOPS = Path(__file__).with_name("loops.p4")
ROOT = Path(__file__).parents[3]


def proven(program: Path, stable: bool = False) -> dict[int, str]:
    """Return the lines that cannot be reached, with the reasons."""
    code = Code(lowered(parse_and_check(program)))
    found = Prover(code, time.monotonic() + 300, stable).reached.unreachable(code.all)
    return {one.place.line: one.reason for one in found}


def marked(word: str, program: Path = PROGRAM) -> set[int]:
    lines = program.read_text().splitlines()
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
    """The program has resubmission, recirculation, clones, groups, checksums, a stack and a loop in its parser."""
    program = Path(__file__).with_name("program.p4")
    assert proven(program) == {}
    code = Code(lowered(parse_and_check(PROGRAM)))
    _, result = generate(PROGRAM, most=40, seconds=60)
    reached = 0
    for test in result.tests:
        reached |= test.run.covered
    assert Prover(code, time.monotonic() + 300, True).reached.unreachable(reached) == []


def variant(tmp_path: Path, old: str, new: str) -> Path:
    text = PROGRAM.read_text()
    assert text.count(old) == 1
    path = tmp_path / "variant.p4"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize("stable", [False, True])
def test_what_later_rounds_of_a_loop_reach_is_not_proven_unreachable(stable: bool) -> None:
    assert set(proven(LOOPS, stable)) == marked("never:", LOOPS)


@pytest.mark.parametrize(
    ("program", "most"),
    [(LOOPS, 15), (ROOT / "p4src/ecn.p4", 6), (ROOT / "p4src/expresspass.p4", 6), (ROOT / "p4src/int.p4", 6)],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_no_generated_test_reaches_what_is_proven_unreachable(program: Path, most: int) -> None:
    code, result = generate(program, most=most, seconds=300)
    reached = 0
    for test in result.tests:
        reached |= test.run.covered
    assert reached
    assert Prover(code, time.monotonic() + 300, True).reached.unreachable(reached) == []


@pytest.mark.parametrize(
    ("kind", "least", "most", "test"),
    [
        ("bit<16>", "20", "10", "drawn == 15"),  # empty
        ("int<16>", "-5", "5", "drawn == 0"),
        ("int<16>", "5", "-5", "drawn == 0"),
        ("bit<128>", "1", "1 << 64", "drawn == 0"),  # BMv2 draws from 64 bits
    ],
)
def test_a_random_number_whose_range_is_not_defined_may_be_anything(
    tmp_path: Path, kind: str, least: str, most: str, test: str
) -> None:
    path = variant(tmp_path, "bit<16> drawn;", f"{kind} drawn;")
    text = path.read_text().replace("random(drawn, 10, 20);", f"random(drawn, {least}, {most});")
    path.write_text(text.replace("drawn > 20", test))
    assert set(proven(path)) == marked("never:") - marked("never: range")


def test_nothing_is_said_of_what_was_not_followed() -> None:
    code = Code(lowered(parse_and_check(PROGRAM)))
    prover = Prover(code, time.monotonic() + 300)
    elsewhere = code.bit(0)  # a place where no statement is
    assert elsewhere > code.all
    assert prover.reached.unreachable(elsewhere) == []


@dataclass(slots=True, eq=False)
class Touch(ir.ExternOperation):
    """An operation that declares its targets, but not the values that it writes."""

    places: tuple[ir.Written, ...]
    span: int | None = None
    primitive = "touch"
    effects = ir.NOTHING
    reads = ()
    arguments = []

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return self.places

    @classmethod
    def read(cls, arguments: Arguments) -> Touch:
        raise NotImplementedError

    def emit(self, to: Statements) -> None:
        raise NotImplementedError

    def run(self, machine: Machine) -> None:
        raise NotImplementedError


def test_what_an_operation_writes_may_be_anything_and_nothing_else_may(tmp_path: Path) -> None:
    path = variant(tmp_path, "        if (meta.left == 7) {", '        log_msg("here");\n        if (meta.left == 7) {')
    code = Code(lowered(parse_and_check(path)))
    blocks = reverse_postorder(code.blocks["ingress"])
    block = next(b for b in blocks if any(isinstance(op, LogMsg) for op in b.ops))
    metadata = next(n for n, line in enumerate(path.read_text().splitlines(), start=1) if "// never: metadata" in line)
    assert isinstance(block.end, ir.Branch)
    assert isinstance(block.end.condition, ir.Op)
    left = block.end.condition.args[0]
    assert isinstance(left, ir.FieldRef)

    def lines() -> set[int]:
        return {one.place.line for one in Prover(code, time.monotonic() + 300).reached.unreachable(code.all)}

    block.ops[-1] = Touch((ir.FieldRef(left.header, left.name + " of another", left.type),))
    assert metadata in lines()
    block.ops[-1] = Touch((left,))
    assert metadata not in lines()


def test_a_proof_that_takes_too_long_is_none() -> None:
    with pytest.raises(TimeoutError):
        Prover(Code(lowered(parse_and_check(PROGRAM))), time.monotonic() - 1)
