"""Path of a packet through PSA's blocks in the test generator and the prover (PSA, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from p4switch import ir
from p4switch.architectures.ports import MAX_PORT
from p4switch.architectures.psa.externs.packet_path import RECIRCULATE_PORT
from p4switch.architectures.psa.metadata import CARRIED, Carried
from p4switch.testgen.two_sided import Place, TwoSidedWalk
from p4switch.testgen.values import ZERO, Scalar

# PSA_PacketPath_t
_NORMAL, _UNICAST, _MULTICAST, _CLONE_I2E, _CLONE_E2E, _RESUBMIT, _RECIRCULATE = range(7)
_CLOCKS = ("ingress_timestamp", "egress_timestamp")
_OUTPUT, _EGRESS_OUTPUT = "psa_ingress_output_metadata", "psa_egress_output_metadata"
_LISTS = {carried: number for number, carried in CARRIED.items()}


class PsaWalk(TwoSidedWalk):
    """Walk of one packet. Deparsers also run for packets that are dropped or resubmitted."""

    port_bits = 32

    def arrive(self, data: list[Scalar]) -> None:
        """Add the first step of a packet that arrives."""
        self.waiting.append(partial(self._ingress, data, self.machine.port_in, _NORMAL, {}))

    def loaded(self, header: str, name: str) -> None:
        """Record that the program reads the time."""
        if header.startswith("psa_") and name in _CLOCKS:
            self.machine.out.clock = self.machine.inputs.numbers["clock"]

    def _carried(self, what: Carried) -> dict[Place, Scalar]:
        m = self.machine
        elements = m.program.field_lists[_LISTS[what] - 1].elements
        return {(e.header, e.name): m.value(e) for e in elements if isinstance(e, ir.FieldRef)}

    def _ingress(self, data: list[Scalar], port: Scalar, path: int, metadata: Mapping[Place, Scalar]) -> None:
        m = self.machine
        self.begin(metadata)
        self.put("psa_ingress_parser_input_metadata", ingress_port=port, packet_path=Scalar(path))
        rest, error = m.parse("ingress_parser", data)
        self.put(
            "psa_ingress_input_metadata", ingress_port=port, packet_path=Scalar(path),
            ingress_timestamp=m.input("clock", 48), parser_error=Scalar(error),
        )  # fmt: skip
        self.put(_OUTPUT, drop=Scalar(1))
        self.first_parsed(len(rest))
        m.control("ingress")
        m.control("ingress_deparser")
        if self.asks(_OUTPUT, "clone"):
            self._clone(data, self.asked(_OUTPUT, "clone_session_id"), _CLONE_I2E, self._carried(Carried.CLONE_I2E))
        if self.asks(_OUTPUT, "drop"):
            return
        if self.asks(_OUTPUT, "resubmit"):
            again = partial(self._ingress, data, port, _RESUBMIT, self._carried(Carried.RESUBMIT))
            self.waiting.appendleft(again)
            return
        sent, kept = [*m.deparsed("ingress_deparser"), *rest], self._carried(Carried.NORMAL)
        cos = self.intrinsic(_OUTPUT, "class_of_service")
        if self.asks(_OUTPUT, "multicast_group"):
            m.below(self.intrinsic(_OUTPUT, "multicast_group"), 1 << 16, 32, "a multicast group above 65535")
            for to, instance in self.replicas(self.asked(_OUTPUT, "multicast_group")):
                self.waiting.append(partial(self._egress, sent, to, _MULTICAST, kept, instance, cos))
            return
        wanted = self.intrinsic(_OUTPUT, "egress_port")
        if wanted.number != RECIRCULATE_PORT:
            m.below(wanted, MAX_PORT + 1, self.port_bits, f"a port above {MAX_PORT}")
        to = m.pin(wanted)
        self.waiting.append(partial(self._egress, sent, to, _UNICAST, kept, ZERO, cos))

    def _clone(self, data: list[Scalar], session: int, path: int, metadata: Mapping[Place, Scalar]) -> None:
        self.waiting.append(partial(self._egress, data, self.session(session), path, metadata, ZERO, ZERO))

    def _egress(
        self,
        data: list[Scalar],
        port: int,
        path: int,
        metadata: Mapping[Place, Scalar],
        instance: Scalar,
        class_of_service: Scalar,
    ) -> None:
        m = self.machine
        self.begin(metadata)
        self.put("psa_egress_parser_input_metadata", egress_port=Scalar(port), packet_path=Scalar(path))
        rest, error = m.parse("egress_parser", data)
        self.put(
            "psa_egress_input_metadata", class_of_service=class_of_service, egress_port=Scalar(port),
            packet_path=Scalar(path), instance=instance, egress_timestamp=m.input("clock", 48),
            parser_error=Scalar(error),
        )  # fmt: skip
        m.control("egress")
        self.put("psa_egress_deparser_input_metadata", egress_port=Scalar(port))
        m.control("egress_deparser")
        sent = [*m.deparsed("egress_deparser"), *rest]
        if self.asks(_EGRESS_OUTPUT, "clone"):
            session = self.asked(_EGRESS_OUTPUT, "clone_session_id")
            self._clone(sent, session, _CLONE_E2E, self._carried(Carried.CLONE_E2E))
        if self.asks(_EGRESS_OUTPUT, "drop"):
            return
        if port == RECIRCULATE_PORT:
            kept = self._carried(Carried.RECIRCULATE)
            self.waiting.appendleft(partial(self._ingress, sent, Scalar(port), _RECIRCULATE, kept))
            return
        m.out.outputs.append((port, bytes(octet.number for octet in sent)))
