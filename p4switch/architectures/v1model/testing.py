"""Path of a packet through v1model's blocks in the test generator and the prover, as simple_switch documents it.

The path is parser, checksums, ingress, packet replication, egress and deparser, with at most `MAX_PASSES` resubmissions
and recirculations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.ports import DROP_PORT, MAX_PORT
from p4switch.architectures.v1model.metadata import STANDARD
from p4switch.bits.formulas import resize
from p4switch.testgen.run import StopError
from p4switch.testgen.values import ZERO, Scalar
from p4switch.testgen.walk import MAX_PASSES, Walk

if TYPE_CHECKING:
    from p4switch.testgen.proof import Prover
    from p4switch.testgen.proof import State as ProofState

_NORMAL, _INGRESS_CLONE, _EGRESS_CLONE, _RECIRCULATED, _REPLICA, _RESUBMITTED = 0, 1, 2, 4, 5, 6
_CLOCKS = ("ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp", "deq_timedelta")
_DEPTHS = ("enq_qdepth", "deq_qdepth")


@dataclass(slots=True)
class State:
    """State of a packet between two pipelines. `rest` is the part of the packet that the parser did not extract."""

    store: dict[tuple[str, str], Scalar]
    valid: set[str]
    next: dict[str, int]
    length: Scalar
    rest: list[Scalar]
    truncate: int | None


@dataclass(slots=True)
class Marks:
    """Requests of externs that are executed at the end of a pipeline."""

    clone: tuple[int, int] | None = None  # session, field list
    again: int | None = None  # field list of resubmit or recirculate
    truncate: int | None = None


class V1Walk(Walk):
    """Path of one packet and of its copies through `machine`."""

    def arrive(self, data: list[Scalar]) -> None:
        """Add the first step of a packet that arrives."""
        m = self.machine
        self.waiting.append(partial(self._ingress, data, m.length_in, {"ingress_port": m.port_in}, {}))

    @staticmethod
    def marks() -> Marks:
        """Return an empty set of requests of externs."""
        return Marks()

    def loaded(self, header: str, name: str) -> None:
        """Record that the program reads a metadata field, so that the test has to set its value."""
        out, numbers = self.machine.out, self.machine.inputs.numbers
        if header != STANDARD:
            return
        if name == "packet_length":
            out.length_read = True
        elif name in _CLOCKS:
            out.clock = numbers["clock"]
        elif name in _DEPTHS:
            out.depth = numbers.get("depth")

    def wrong_checksum(self, wrong: Scalar) -> None:
        """Set the program's flag for a wrong checksum."""
        self.machine.store[STANDARD, "checksum_error"] = wrong

    def _parsed(self, data: list[Scalar]) -> list[Scalar]:
        rest, error = self.machine.parse("parser", data)
        self.machine.store[STANDARD, "parser_error"] = Scalar(error)
        return rest

    def _fresh(self, standard: dict[str, Scalar], kept: dict[tuple[str, str], Scalar]) -> None:
        """Set metadata to its values at the arrival of a packet."""
        m = self.machine
        m.store = {k: v for k, v in m.store.items() if k[0] in m.headers}
        m.store |= kept
        m.store |= {(STANDARD, name): value for name, value in standard.items()}

    def _ingress(
        self, data: list[Scalar], length: Scalar, standard: dict[str, Scalar], kept: dict[tuple[str, str], Scalar]
    ) -> None:
        m = self.machine
        first = m.passes == 1
        m.valid, m.next, m.length, m.marks = set(), {}, length, Marks()
        m.store.clear()
        self._fresh({**standard, "packet_length": length}, kept)
        if first:  # as in simple_switch, a resubmitted or recirculated packet has no arrival time
            m.store[STANDARD, "ingress_global_timestamp"] = m.input("clock", 48)
        rest = self._parsed(data)
        if first:
            m.out.parsed_bytes = len(data) - len(rest)
            m.assumed()
        m.checksums.verify(rest)
        m.control("ingress")
        marks, m.marks = m.marks, Marks()
        if marks.clone is not None:
            self._clone_ingress(data, length, marks.clone)
        if marks.again is not None:
            again = {"instance_type": Scalar(_RESUBMITTED)}
            self.waiting.append(partial(self._ingress, data, length, again, self._listed(marks.again)))
            return
        group = m.pin(m.store.get((STANDARD, "mcast_grp"), ZERO))
        if group:  # as in simple_switch, a truncation in ingress does not apply to replicas
            self._replicate(group, self._state(rest))
            return
        spec = m.store.get((STANDARD, "egress_spec"), ZERO)
        if spec.number != DROP_PORT:
            m.below(spec, MAX_PORT + 1, 9, f"a port above {MAX_PORT}")
        port = m.pin(spec)
        if port != DROP_PORT:
            state = self._state(rest, marks.truncate)
            self.waiting.append(partial(self._egress, port, {"instance_type": Scalar(_NORMAL)}, state))

    def _state(self, rest: list[Scalar], truncate: int | None = None) -> State:
        m = self.machine
        return State(dict(m.store), set(m.valid), dict(m.next), m.length, rest, truncate)

    def _enter(self, state: State) -> None:
        m = self.machine
        m.store, m.valid, m.next = dict(state.store), set(state.valid), dict(state.next)
        m.length = state.length

    def _listed(self, index: int) -> dict[tuple[str, str], Scalar]:
        m = self.machine
        kept: dict[tuple[str, str], Scalar] = {}
        for element in m.program.field_lists[index - 1].elements:
            if isinstance(element, ir.FieldRef):
                kept[element.header, element.name] = m.value(element)
        return kept

    def _clone_ingress(self, data: list[Scalar], length: Scalar, clone: tuple[int, int]) -> None:
        """Parse the packet again, without metadata except that of a field list."""
        m = self.machine
        session, fields = clone
        kept = self._listed(fields)
        before = self._state([])
        m.valid, m.next, m.length = set(), {}, length
        m.store = {(STANDARD, "ingress_port"): m.port_in}
        rest = self._parsed(data)
        self._fresh({}, kept)
        self._mirror(session, self._state(rest), _INGRESS_CLONE)
        self._enter(before)

    def _mirror(self, session: int, state: State, instance: int) -> None:
        self.waiting.append(partial(self._egress, self.session(session), {"instance_type": Scalar(instance)}, state))

    def _replicate(self, group: int, state: State) -> None:
        for port, rid in self.replicas(group):
            standard = {"instance_type": Scalar(_REPLICA), "egress_rid": rid}
            self.waiting.append(partial(self._egress, port, standard, state))

    def _egress(self, port: int, standard: dict[str, Scalar], state: State) -> None:
        m = self.machine
        self._enter(state)
        rest = state.rest
        clock, depth = m.input("clock", 48), m.input("depth", 19, lambda rng: 0)
        m.store |= {
            (STANDARD, name): value
            for name, value in {
                **standard, "egress_port": Scalar(port), "egress_spec": ZERO, "packet_length": m.length,
                "enq_qdepth": depth, "deq_qdepth": depth, "deq_timedelta": ZERO,
                "enq_timestamp": _low_32(clock), "egress_global_timestamp": clock,
            }.items()
        }  # fmt: skip
        m.marks = Marks(truncate=state.truncate)
        m.control("egress")
        marks, m.marks = m.marks, Marks()
        if marks.clone is not None:
            session, fields = marks.clone
            kept = self._listed(fields)
            before = self._state(rest)
            self._fresh({}, kept)
            self._mirror(session, self._state(rest), _EGRESS_CLONE)
            self._enter(before)
        if m.pin(m.store.get((STANDARD, "egress_spec"), ZERO)) == DROP_PORT:
            return
        m.checksums.update(rest)
        m.control("deparser")
        data = [*m.deparsed("deparser"), *rest]
        if marks.again is not None:
            if m.passes > MAX_PASSES:
                raise StopError(f"more than {MAX_PASSES} passes of the pipeline")
            length = m.grown(m.length_in, len(data) - m.length_in.number)
            again = {"instance_type": Scalar(_RECIRCULATED)}
            self.waiting.append(partial(self._ingress, data, length, again, self._listed(marks.again)))
            return
        octets = bytes(s.number for s in data)
        m.out.outputs.append((port, octets if marks.truncate is None else octets[: marks.truncate]))


class Proof:
    """Path of all packets through the switch, as formulas of `prover`."""

    def __init__(self, prover: Prover) -> None:
        self._prover = prover

    def packet(self) -> None:
        """Compute which packets reach which statements."""
        p = self._prover
        p.parser_error = STANDARD, "parser_error"
        effects = p.code.effects
        kinds = [
            _NORMAL,
            *([_RESUBMITTED] if ir.Effect.RESUBMIT in effects else []),
            *([_RECIRCULATED] if ir.Effect.RECIRCULATE in effects else []),
        ]
        state = p.fresh()
        again = p.one_of(kinds, (STANDARD, "instance_type"), state)
        for name in ("ingress_port", "packet_length", "ingress_global_timestamp"):
            p.free_field(state, STANDARD, name)
        p.carry_over(state, None if again.formula is None else again.formula != 0)
        parsed = p.parsed("parser", state)
        if any(c.verify for c in p.program.checksums):
            p.free_field(parsed, STANDARD, "checksum_error")
        p.checksums(parsed, verify=True)
        arrived = p.through(p.code.blocks["ingress"], parsed.under(p.always))
        states = [self._leaving(arrived, [*kinds, _REPLICA])]
        if ir.Effect.CLONE_INGRESS in effects:
            copy = parsed.under(p.always)
            copy.store = {k: v for k, v in copy.store.items() if k[0] in p.headers}
            for name, _ in p.program.metadata[0].fields:
                p.free_field(copy, STANDARD, name)
            p.carry_over(copy, p.always)
            states.append(self._leaving(copy, [_INGRESS_CLONE]))
        if ir.Effect.CLONE_EGRESS in effects:
            copy = p.fresh()
            for header in p.headers:
                p.forget(copy, header)
            for name, _ in p.program.metadata[0].fields:
                p.free_field(copy, STANDARD, name)
            p.carry_over(copy, p.always)
            states.append(self._leaving(copy, [_EGRESS_CLONE]))
        whichever = [state.under(p.flag()) for state in states[1:]]
        others = p.besides(whichever)
        left = p.through(p.code.blocks["egress"], p.joined([states[0].under(others), *whichever]))
        p.checksums(left, verify=False)
        p.through(p.code.blocks["deparser"], left)

    def _leaving(self, state: ProofState, kinds: list[int]) -> ProofState:
        """Return the state in which egress starts."""
        p = self._prover
        p.one_of(kinds, (STANDARD, "instance_type"), state)
        for name in ("egress_port", "egress_rid", "enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"):
            p.free_field(state, STANDARD, name)
        for name in ("egress_global_timestamp", "packet_length"):
            p.free_field(state, STANDARD, name)
        state.store[STANDARD, "egress_spec"] = ZERO
        return state


def _low_32(value: Scalar) -> Scalar:
    return Scalar(value.number & 0xFFFFFFFF, None if value.formula is None else resize(value.formula, 32))
