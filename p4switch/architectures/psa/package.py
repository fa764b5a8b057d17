"""The package `PSA_Switch`, its blocks and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from p4switch import ir
from p4switch.architectures.blocks import Emitted, allocate_side, lower_parser, lower_side
from p4switch.architectures.package import Package, Site, Tell
from p4switch.architectures.psa import PACKAGES
from p4switch.architectures.psa.metadata import CARRIED, Carried
from p4switch.compiler import ast, types
from p4switch.compiler.facts import Facts
from p4switch.compiler.midend.elaborate import Block
from p4switch.compiler.midend.values import Value

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Prover, Walk

_PACKET, _INTRINSIC = "packet", "psa_"
_INGRESS = "ingress headers", "ingress metadata"
_EGRESS = "egress headers", "egress metadata"
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "ingress_parser": (
        _PACKET, *_INGRESS, "psa_ingress_parser_input_metadata", Carried.RESUBMIT.value, Carried.RECIRCULATE.value,
    ),
    "ingress": (*_INGRESS, "psa_ingress_input_metadata", "psa_ingress_output_metadata"),
    "ingress_deparser": (
        _PACKET, Carried.CLONE_I2E.value, Carried.RESUBMIT.value, Carried.NORMAL.value, *_INGRESS,
        "psa_ingress_output_metadata",
    ),
    "egress_parser": (
        _PACKET, *_EGRESS, "psa_egress_parser_input_metadata", Carried.NORMAL.value, Carried.CLONE_I2E.value,
        Carried.CLONE_E2E.value,
    ),
    "egress": (*_EGRESS, "psa_egress_input_metadata", "psa_egress_output_metadata"),
    "egress_deparser": (
        _PACKET, Carried.CLONE_E2E.value, Carried.RECIRCULATE.value, *_EGRESS, "psa_egress_output_metadata",
        "psa_egress_deparser_input_metadata",
    ),
}  # fmt: skip
"""Parameters of the blocks, in order. Parameters of equal names share storage."""


@PACKAGES.register("PSA_Switch")
class PsaSwitch(Package):
    include = "psa.p4"
    sites = (
        Site("ingress_parser", parses=True),
        Site("ingress"),
        Site("ingress_deparser"),
        Site("egress_parser", parses=True),
        Site("egress"),
        Site("egress_deparser"),
    )
    tools = frozenset({"testgen", "fit"})
    leads_to = (
        *(f"psa_ingress_output_metadata.{name}" for name in (
            "class_of_service", "clone", "clone_session_id", "drop", "resubmit", "multicast_group", "egress_port",
        )),
        *(f"psa_egress_output_metadata.{name}" for name in ("clone", "clone_session_id", "drop")),
    )  # fmt: skip
    replicates = ("psa_ingress_output_metadata.multicast_group",)
    takes = "an IngressPipeline, a PacketReplicationEngine, an EgressPipeline and a BufferingQueueingEngine"
    parameters: ClassVar[Mapping[str, range]] = {
        name: range(len(roles), len(roles) + 1) for name, roles in _PARAMETERS.items()
    }

    def __init__(self, low: Lowering) -> None:
        super().__init__(low)
        self._places: dict[str, Value] = {}
        self._emitted: Emitted | None = None

    # Tests and proofs

    def way(self, machine: Machine) -> Walk:
        from p4switch.architectures.psa.testing import PsaWalk

        return PsaWalk(machine)

    def prove(self, prover: Prover) -> None:
        from p4switch.testgen.two_sided import prove_sides

        prove_sides(prover, *((f"psa_{side}_input_metadata", "parser_error") for side in ("ingress", "egress")))

    # Storage

    def begin(self, blocks: list[Block]) -> None:
        for site, block in zip(self.sites, blocks, strict=True):
            for role, param in zip(_PARAMETERS[site.name], block.decl.params, strict=True):
                if role not in self._places and role != _PACKET:
                    self._places[role] = self._allocate(role, self.low.type_of(param), param)
        for number, struct in CARRIED.items():
            fields = self._carried(struct)
            self.low.out.field_lists.append(ir.FieldList(f"{struct.name.lower()}_{number}", fields))

    def _allocate(self, role: str, t: types.Type, param: ast.Parameter) -> Value:
        if role.startswith(_INTRINSIC):
            assert isinstance(t, types.Struct)
            return self.low.storage.intrinsic(t, role)
        self.low.storable(t, param)
        return allocate_side(self.low, role, t)

    def _carried(self, struct: Carried) -> list[ir.Expr]:
        """Return the fields of the metadata that accompanies a packet from a deparser to a parser."""
        place = self._places[struct.value]
        node = self.low.source.main
        assert node is not None
        fields = self.low.externs.fields_of(place, node)
        if any(not isinstance(f, ir.FieldRef) or f.header != "scalars" for f in fields):
            raise self.low.error(node, f"{struct.value} with headers or varbits in it is not supported on this target")
        return fields

    def _bind_parameters(self, site: Site, block: Block) -> None:
        for role, param in zip(_PARAMETERS[site.name], block.decl.params, strict=True):
            block.frame.values[param] = (
                self.low.instances.packet(param) if role == _PACKET else self._places[role]
            )

    # Blocks

    def lower(self, site: Site, block: Block) -> None:
        self._bind_parameters(site, block)
        if site.parses:
            lower_parser(self.low, site.name, block)
            return
        self._emitted = Emitted(self.low, site.name)
        lower_side(self.low, site, block, self._emitted)

    def emit_header(self, header: ir.HeaderRef) -> None:
        assert self._emitted is not None
        self._emitted.add(header)

    @staticmethod
    def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
        """Do nothing, because the built-in switch follows PSA where psa_switch does not."""
