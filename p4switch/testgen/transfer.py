"""Effects of the operations of P4-16 itself on the packets of a `State`, as formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.testgen.proof import Prover, State

SHORT = "PacketTooShort"


class Transfer(ir.OperationVisitor[None]):
    def __init__(self, prover: Prover, state: State) -> None:
        self._prover, self._state = prover, state

    def assign(self, op: ir.Assign) -> None:
        if isinstance(op.src, ir.Lookahead):
            self._prover.may_fail(self._state, SHORT, "ParserInvalidArgument")
        self._prover.assign(op.dst, self._prover.value(op.src, self._state), self._state)

    def set_valid(self, op: ir.SetValid) -> None:
        self._prover.each(op.header, self._state, self._prover.make_valid)

    def set_invalid(self, op: ir.SetInvalid) -> None:
        self._prover.each(op.header, self._state, self._prover.make_invalid)

    def copy_header(self, op: ir.CopyHeader) -> None:
        if op.dst.stack or op.src.stack:
            self._prover.each(op.dst, self._state, lambda header, state: self._prover.forget(state, header))
        else:
            self._prover.copy(op.dst.name, op.src.name, self._state)

    def copy_union(self, op: ir.CopyUnion) -> None:
        self._copy_all(op.dst, op.src)

    def copy_stack(self, op: ir.CopyStack) -> None:
        self._copy_all(op.dst, op.src)

    def _copy_all(self, dst: ir.Reference, src: ir.Reference) -> None:
        for target, source in zip(self._prover.headers_of(dst), self._prover.headers_of(src), strict=True):
            self._prover.copy(target, source, self._state)

    def move_stack(self, op: ir.MoveStack) -> None:
        self._prover.anything_in(op, self._state)

    def exit(self, op: ir.Exit) -> None:
        self._prover.leave(self._state)

    def extract(self, op: ir.Extract) -> None:
        length = [] if op.length is None else ["HeaderTooShort", "ParserInvalidArgument"]
        self._prover.may_fail(self._state, SHORT, *length, *(["StackOutOfBounds"] if op.header.stack else []))
        self._prover.each(op.header, self._state, self._prover.extract)

    def advance(self, op: ir.Advance) -> None:
        self._prover.may_fail(self._state, SHORT, "ParserInvalidArgument")

    def verify(self, op: ir.Verify) -> None:
        self._prover.fail_unless(op.condition, op.error, self._state)

    def extern(self, op: ir.ExternOperation) -> None:
        op.prove(self._prover, self._state)
