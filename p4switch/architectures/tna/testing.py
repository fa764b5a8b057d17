"""Path of a packet through the blocks of TNA and T2NA in the test generator.

Parsers find intrinsic metadata as bytes in front of the packet. Everything that only BfRuntime can set has its initial
value: no port metadata, no port for copies to the CPU, no excluded ports.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import z3

from p4switch import ir
from p4switch.architectures.ports import MAX_PORT
from p4switch.bits.formulas import resize
from p4switch.testgen.two_sided import TwoSidedWalk, octets
from p4switch.testgen.values import ZERO, Scalar

if TYPE_CHECKING:
    from p4switch.architectures.tna.package import TnaSwitch
    from p4switch.tool_types import Machine, Prover, State

_FROM_PARSER, _FOR_TM, _FOR_DEPARSER = "ig_intr_md_from_prsr", "ig_intr_md_for_tm", "ig_intr_md_for_dprsr"
_EGRESS_HEADER = "eg_intr_md"
_FROM_EGRESS_PARSER, _FOR_EGRESS_DEPARSER = "eg_intr_md_from_prsr", "eg_intr_md_for_dprsr"
_RESUBMIT, _MIRROR, _EGRESS_MIRROR = "ig_resubmit", "ig_mirror", "eg_mirror"
_DROP_PACKET, _DROP_MIRROR = 1, 4
_FCS_BYTES = 4
_TICK_NS = 1000  # length of a tick in packet tests
_CHUNK_BITS = 64
_NO_MATCH, _PARTIAL_HEADER, _COUNTER_RANGE, _TIMEOUT = 0x1, 0x2, 0x4, 0x10
_ERRORS = {
    "NoError": 0,
    "PacketTooShort": _PARTIAL_HEADER,
    "NoMatch": _NO_MATCH,
    "StackOutOfBounds": _COUNTER_RANGE,
    "HeaderTooShort": _PARTIAL_HEADER,
    "ParserTimeout": _TIMEOUT,
    "ParserInvalidArgument": _NO_MATCH,
}
"""Bit of `parser_err` for each error of `core.p4`. Errors that programs declare have the bit of a time-out."""


def narrow(prover: Prover, state: State) -> None:
    """Restrict a state after a parser to existing ports, and to the fixed bytes in front of packets.

    This is possible for programs that extract these bytes first.
    """
    start = prover.code.blocks["egress_parser"]
    header = next((op.header.name for op in start.ops if isinstance(op, ir.Extract)), "")
    port = state.store.get((header, "egress_port"))
    if header == _EGRESS_HEADER and port is not None and port.formula is not None:
        state.guard = z3.And(state.guard, state.valid[header], z3.ULE(port.formula, MAX_PORT))


class TnaWalk(TwoSidedWalk):
    """Walk of one packet. Ingress may send it to a port and also to groups, and deparsers send mirror copies."""

    def __init__(self, machine: Machine, package: TnaSwitch) -> None:
        super().__init__(machine)
        self._package = package
        self._errors = {machine.program.errors[name]: bits for name, bits in _ERRORS.items()}
        self._looks_at_errors = (_FROM_PARSER, "parser_err") in self._types

    def arrive(self, data: list[Scalar]) -> None:
        """Add the first step of a packet that arrives."""
        self.waiting.append(partial(self._ingress, data, self.machine.port_in, None))

    def loaded(self, header: str, name: str) -> None:
        """Record nothing, because tests always set the bytes in front of packets, such as times and queue depths."""

    def _nanoseconds(self, bits: int) -> Scalar:
        """Return the time of the test in nanoseconds, as a number of `bits` bits."""
        m = self.machine
        tick = m.input("clock", 48)
        m.out.clock = tick.number
        z = None if tick.formula is None else resize(tick.formula * _TICK_NS, bits)
        return Scalar(tick.number * _TICK_NS & (1 << bits) - 1, z)

    def _ingress(self, data: list[Scalar], port: Scalar, resubmitted: list[Scalar] | None) -> None:
        m = self.machine
        self.begin()
        size = self._package.port_metadata_bits // 8
        flag = 0 if resubmitted is None else 0x8000
        head = Scalar(flag | port.number, None if port.formula is None else resize(port.formula, 16) | flag)
        front = [*octets(head, 16), *octets(self._nanoseconds(48), 48)]
        front += [*(resubmitted or []), *[ZERO] * size][:size]
        rest, error = m.parse("ingress_parser", [*front, *data], len(front))
        self.first_parsed(len(rest))
        if error and not self._looks_at_errors:
            return
        self.put(_FROM_PARSER, parser_err=self._error(error), global_tstamp=self._nanoseconds(48))
        m.control("ingress")
        m.control("ingress_deparser")
        dropped = self.asked(_FOR_DEPARSER, "drop_ctl")
        if self.asks(_RESUBMIT, "emitted") and self.asks(_FOR_DEPARSER, "resubmit_type_written"):
            if resubmitted is None:
                self.waiting.appendleft(partial(self._ingress, data, port, self._sent(_RESUBMIT)))
            return
        if self.asks(_MIRROR, "emitted") and self.asks(_FOR_DEPARSER, "mirror_type") and not dropped & _DROP_MIRROR:
            self._mirror(_MIRROR, data)
        if not dropped & _DROP_PACKET:
            self._send(self._cut(_FOR_DEPARSER, [*m.deparsed("ingress_deparser"), *rest]))

    def _send(self, data: list[Scalar]) -> None:
        """Send a packet to each destination that the program has set, independently of the others."""
        cos, qid = self.intrinsic(_FOR_TM, "ingress_cos"), self.intrinsic(_FOR_TM, "qid")
        bypass = self.asks(_FOR_TM, "bypass_egress")
        for group in ("mcast_grp_a", "mcast_grp_b"):
            is_sent = self.asks(_FOR_TM, f"{group}_written") and self.asks(_FOR_TM, group)
            number = self.asked(_FOR_TM, group) if is_sent else 0
            last = None
            for port, rid in self.replicas(number) if number else ():
                first = Scalar(int(rid.number != last))
                last = self.machine.pin(rid)
                self.waiting.append(partial(self._egress, data, port, rid, first, qid, cos, bypass))
        if self.asks(_FOR_TM, "ucast_egress_port_written"):
            wanted = self.intrinsic(_FOR_TM, "ucast_egress_port")
            self.machine.below(wanted, MAX_PORT + 1, 9, f"a port above {MAX_PORT}")
            self.machine.flip("recirculated", self._recirculates(wanted), 0, self.machine.code.all)
            port = self.machine.pin(wanted)
            rid = self.intrinsic(_FOR_TM, "rid")
            self.waiting.append(partial(self._egress, data, port, rid, ZERO, qid, cos, bypass))

    def _error(self, error: int) -> Scalar:
        return Scalar(self._errors.get(error, _TIMEOUT))

    def _sent(self, instance: str) -> list[Scalar]:
        """Return the bytes that a deparser puts in front of a copy."""
        count = self.asked(instance, "bytes")
        chunks = range(-(-count * 8 // _CHUNK_BITS))
        return [o for i in chunks for o in octets(self.intrinsic(instance, f"data{i}"), _CHUNK_BITS)][:count]

    def _mirror(self, instance: str, data: list[Scalar]) -> None:
        port = self.session(self.asked(instance, "session"))
        copy = [*self._sent(instance), *data]
        self.waiting.append(partial(self._egress, copy, port, ZERO, ZERO, ZERO, ZERO, False))

    def _egress(
        self, data: list[Scalar], port: int, rid: Scalar, first: Scalar, qid: Scalar, cos: Scalar, bypass: bool
    ) -> None:
        m = self.machine
        if bypass:
            self._leave(port, data)
            return
        self.begin()
        front = self._front(port, len(data), rid, first, qid, cos)
        rest, error = m.parse("egress_parser", [*front, *data], len(front))
        self.put(_FROM_EGRESS_PARSER, parser_err=self._error(error), global_tstamp=self._nanoseconds(48))
        m.control("egress")
        m.control("egress_deparser")
        dropped = self.asked(_FOR_EGRESS_DEPARSER, "drop_ctl")
        sent = [*m.deparsed("egress_deparser"), *rest]
        mirrored = self.asks(_EGRESS_MIRROR, "emitted") and self.asks(_FOR_EGRESS_DEPARSER, "mirror_type_written")
        if mirrored and not dropped & _DROP_MIRROR:
            as_it_came = self._package.mirrors_incoming and not self.asked(_FOR_EGRESS_DEPARSER, "mirror_io_select")
            self._mirror(_EGRESS_MIRROR, data if as_it_came else sent)
        if dropped & _DROP_PACKET:
            return
        self._leave(port, self._cut(_FOR_EGRESS_DEPARSER, sent))

    def _cut(self, intrinsic: str, data: list[Scalar]) -> list[Scalar]:
        """Return a packet truncated to `mtu_trunc_len`, which includes the FCS."""
        most = self.asked(intrinsic, "mtu_trunc_len")
        return data[: max(most - _FCS_BYTES, 0)] if most else data

    def _front(self, port: int, size: int, rid: Scalar, first: Scalar, qid: Scalar, cos: Scalar) -> list[Scalar]:
        """Return the bytes in front of a packet in egress. In a test, queue depth and time are constant."""
        m, package = self.machine, self._package
        depth = m.input("depth", 19, lambda rng: 0)
        m.out.depth = depth.number
        m.out.length_read = True
        length = m.grown(m.length_in, size + _FCS_BYTES - m.length_in.number)
        return [
            *octets(Scalar(port), 16),
            *octets(depth, 24), ZERO,
            *octets(self._nanoseconds(package.queue_time_bits), 32),
            *octets(depth, 24), ZERO, ZERO,
            *[ZERO] * 4,
            *octets(rid, 16), first, *octets(qid, 8), *octets(cos, 8), ZERO,
            *octets(Scalar(length.number & 0xFFFF, length.formula), 16),
            *[ZERO] * (package.egress_front_bytes - 27),
        ]  # fmt: skip

    def _recirculates(self, port: Scalar) -> Scalar:
        """Return whether a port leads to ingress."""
        ports = self._package.recirculation_ports
        z = None
        if port.formula is not None:
            of_pipe = port.formula & 0x7F
            z = z3.And(z3.UGE(of_pipe, ports.start), z3.ULT(of_pipe, ports.stop))
        return Scalar(int(port.number & 0x7F in ports), z)

    def _leave(self, port: int, data: list[Scalar]) -> None:
        """Send a packet out of a port, or to ingress again."""
        if self._recirculates(Scalar(port)).number:
            self.waiting.appendleft(partial(self._ingress, data, Scalar(port), None))
            return
        self.machine.out.outputs.append((port, bytes(octet.number for octet in data)))
