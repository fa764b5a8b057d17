"""Tests and proofs of packages with two sides, ingress and egress, which pass packets to each other as bytes.

Each side has a parser, a control and a deparser, and its own headers and metadata, which are initially zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import z3

from p4switch.bits.domain import width
from p4switch.bits.formulas import resize
from p4switch.testgen.values import ZERO, Scalar, as_bits
from p4switch.testgen.walk import Walk

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine
    from p4switch.testgen.proof import Prover, State

Place = tuple[str, str]


class TwoSidedWalk(Walk):
    """Walk of one packet, and of its copies, through two sides."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._types = {(m.name, name): t for m in machine.program.metadata for name, t in m.fields}

    def begin(self, metadata: Mapping[Place, Scalar] | None = None) -> None:
        """Begin a side with the metadata that accompanies the packet."""
        m = self.machine
        m.valid, m.next, m.length = set(), {}, m.length_in
        m.store.clear()
        m.store |= metadata or {}

    def put(self, instance: str, /, **fields: Scalar) -> None:
        """Set those fields of the target's metadata that the program has."""
        for name, value in fields.items():
            t = self._types.get((instance, name))
            if t is not None and value.formula is None:
                self.machine.store[instance, name] = value
            elif t is not None:
                bits = width(t)
                z = resize(as_bits(value.formula), bits)
                self.machine.store[instance, name] = Scalar(value.number & (1 << bits) - 1, z)

    def intrinsic(self, instance: str, name: str) -> Scalar:
        """Return the value that the program has written to a field of the target's metadata."""
        return self.machine.store.get((instance, name), ZERO)

    def asked(self, instance: str, name: str) -> int:
        """Fix the value that the program has written to a field for the rest of the run, and return it."""
        return self.machine.pin(self.intrinsic(instance, name))

    def asks(self, instance: str, name: str) -> bool:
        """Return whether the program has written a number other than 0. The opposite is an alternative."""
        value = self.intrinsic(instance, name)
        z = None if value.formula is None else as_bits(value.formula) != 0
        self.machine.flip((instance, name), Scalar(int(value.number != 0), z), 0, self.machine.code.all)
        return value.number != 0

    def first_parsed(self, left: int) -> None:
        """Record how much of the arriving packet the first parser consumed; `left` bytes remain."""
        m = self.machine
        if m.passes == 1:
            m.out.parsed_bytes = len(m.out.packet) - left
            m.assumed()

    def wrong_checksum(self, wrong: Scalar) -> None:
        """Do nothing, because the package has no block that verifies checksums."""


def octets(value: Scalar, bits: int) -> list[Scalar]:
    """Return a number of `bits` bits, which are whole bytes, as the bytes of a packet."""
    whole = list(value.number.to_bytes(bits // 8, "big"))
    if value.formula is None:
        return [Scalar(octet) for octet in whole]
    z = resize(as_bits(value.formula), bits)
    return [Scalar(octet, z3.Extract(bits - 8 * i - 1, bits - 8 * i - 8, z)) for i, octet in enumerate(whole)]


def prove_sides(
    prover: Prover, *errors: Place | None, narrow: Callable[[Prover, State], None] | None = None
) -> None:
    """Compute which packets reach which statements. All values that the target gives the program are free.

    `errors` are the fields with the parser's error in ingress and in egress. `narrow` restricts the
    state after a parser to packets that can occur.
    """
    for side, error in zip(("ingress", "egress"), errors, strict=True):
        prover.parser_error = error
        state = prover.fresh()
        prover.free_metadata(state)
        prover.carry_over(state, prover.always)
        state = prover.parsed(f"{side}_parser", state)
        parser_error = None if error is None else state.store.get(error)
        prover.free_metadata(state)
        if error is not None and parser_error is not None:
            state.store[error] = parser_error
        if narrow is not None:
            narrow(prover, state)
        prover.through(prover.code.blocks[f"{side}_deparser"], prover.through(prover.code.blocks[side], state))
