"""The package `Switch` of TNA: its pipelines, their blocks and the blocks' parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from p4switch import ir
from p4switch.architectures.blocks import Emitted, allocate_side, lower_parser, lower_side
from p4switch.architectures.package import Package, Site, Tell
from p4switch.architectures.tna import PACKAGES, executions
from p4switch.bfrt.fields import Id, Table, data_field, in_bytes
from p4switch.compiler import ast, types
from p4switch.compiler.facts import Facts
from p4switch.compiler.midend.elaborate import Block
from p4switch.compiler.midend.values import Value
from p4switch.compiler.walk import walk

if TYPE_CHECKING:
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import Lowering, Machine, Prover, Walk

_PACKET = "packet"
_INGRESS = "ingress headers", "ingress metadata"
_EGRESS = "egress headers", "egress metadata"
_FROM_PARSER, _FOR_DEPARSER, _FOR_TM = "ig_intr_md_from_prsr", "ig_intr_md_for_dprsr", "ig_intr_md_for_tm"
_FOR_EGRESS_DEPARSER = "eg_intr_md_for_dprsr"
_ERRORS = "parser_err"
_PORT_METADATA = 0x90
_PORTS, _PORT_BITS = 288, 9
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "ingress_parser": (_PACKET, *_INGRESS, "ig_intr_md", _FOR_TM, _FROM_PARSER),
    "ingress": (*_INGRESS, "ig_intr_md", _FROM_PARSER, _FOR_DEPARSER, _FOR_TM, "gh_intr_md"),
    "ingress_deparser": (_PACKET, *_INGRESS, _FOR_DEPARSER, "ig_intr_md"),
    "egress_parser": (_PACKET, *_EGRESS, "eg_intr_md", "eg_intr_md_from_prsr", "eg_intr_md_for_dprsr"),
    "egress": (
        *_EGRESS, "eg_intr_md", "eg_intr_md_from_prsr", "eg_intr_md_for_dprsr", "eg_intr_md_for_oport",
    ),
    "egress_deparser": (_PACKET, *_EGRESS, "eg_intr_md_for_dprsr", "eg_intr_md", "eg_intr_md_from_prsr"),
    "ghost": ("gh_intr_md",),
}  # fmt: skip
"""Parameters of the blocks, in order; a block may omit the last ones. Parameters of equal names share storage."""
WRITTEN = {
    _FOR_TM: ("ucast_egress_port", "mcast_grp_a", "mcast_grp_b"),
    _FOR_DEPARSER: ("digest_type", "resubmit_type"),
    _FOR_EGRESS_DEPARSER: ("mirror_type",),
}
"""Fields that are invalid until the program writes them."""


@PACKAGES.register("Switch")
class TnaSwitch(Package):
    include = "tna.p4"
    path = "tna.Switch"
    sites: ClassVar[tuple[Site, ...]] = (
        Site("ingress_parser", parses=True),
        Site("ingress"),
        Site("ingress_deparser"),
        Site("egress_parser", parses=True),
        Site("egress"),
        Site("egress_deparser"),
    )
    takes = "a Pipeline each"
    parameters: ClassVar[Mapping[str, range]] = {
        name: range(min(3 if _PACKET in roles else 2, len(roles)), len(roles) + 1)
        for name, roles in _PARAMETERS.items()
    }
    tools = frozenset({"testgen", "fit"})
    leads_to = (
        *(f"{_FOR_TM}.{name}" for name in ("ucast_egress_port", "mcast_grp_a", "mcast_grp_b", "qid", "bypass_egress")),
        *(f"{_FOR_DEPARSER}.{name}" for name in ("drop_ctl", "digest_type", "resubmit_type", "mirror_type")),
        *(f"{_FOR_EGRESS_DEPARSER}.{name}" for name in ("drop_ctl", "mirror_type")),
    )
    replicates = (f"{_FOR_TM}.mcast_grp_a", f"{_FOR_TM}.mcast_grp_b")
    pipelined = True
    bfrt = True

    port_metadata_bits: ClassVar[int] = 64
    """Number of bits in front of a packet for `port_metadata_unpack`."""
    resubmit_bits: ClassVar[int] = 64
    """Size of the port metadata in bits. A resubmitted packet has data of at most this size in its place."""

    egress_front_bytes: ClassVar[int] = 27
    """Number of bytes in front of a packet in egress."""
    queue_time_bits: ClassVar[int] = 18
    """Width in bits of the time at which a packet entered its queue."""
    recirculation_ports: ClassVar[range] = range(68, 72)
    """Ports of each pipe that lead to its ingress."""
    mirrors_incoming: ClassVar[bool] = False
    """True if an egress mirror copies the packet as it arrived, unless the program asks for the packet as it leaves."""

    def __init__(self, low: Lowering) -> None:
        super().__init__(low)
        self.at_end: list[ir.Operation] = []  # operations that are appended to the parser being lowered
        self._places: dict[str, Value] = {}
        self._emitted: Emitted | None = None
        self._reads_errors = False

    # Tests and proofs

    def way(self, machine: Machine) -> Walk:
        from p4switch.architectures.tna.testing import TnaWalk

        return TnaWalk(machine, self)

    def prove(self, prover: Prover) -> None:
        from p4switch.architectures.tna.testing import narrow
        from p4switch.testgen.two_sided import prove_sides

        prove_sides(prover, None, None, narrow=narrow)

    # Storage

    def begin(self, blocks: list[Block]) -> None:
        code = (n for d in self.low.source.declarations for n in walk(d, self.low.facts))
        self._reads_errors = any(isinstance(n, ast.Member) and n.name == _ERRORS for n in code)
        for site, block in zip(self.sites, blocks, strict=False):
            for role, param in zip(_PARAMETERS[site.name], block.decl.params, strict=False):
                if role not in self._places and role != _PACKET:
                    self._places[role] = self._allocate(role, self.low.type_of(param), param)

    def _allocate(self, role: str, t: types.Type, param: ast.Parameter) -> Value:
        if " " not in role and isinstance(t, types.Struct):
            place = self.low.storage.intrinsic(t, role, WRITTEN.get(role, ()))
            if role == _FROM_PARSER and not self._reads_errors:  # packets with an error are then dropped
                fields = self.low.out.metadata[-1].fields
                fields[:] = [(name, scalar) for name, scalar in fields if name != _ERRORS]
            return place
        self.low.storable(t, param)
        return allocate_side(self.low, role, t)

    # Blocks

    def lower(self, site: Site, block: Block) -> None:
        for role, param in zip(_PARAMETERS[site.name], block.decl.params, strict=False):
            block.frame.values[param] = self.low.instances.packet(param) if role == _PACKET else self._places[role]
        if site.parses:
            self.at_end = []
            lower_parser(self.low, site.name, block).ops += self.at_end
            return
        self._emitted = Emitted(self.low, site.name)
        lower_side(self.low, site, block, self._emitted)

    def emit_header(self, header: ir.HeaderRef) -> None:
        assert self._emitted is not None
        self._emitted.add(header)

    # Control plane

    def bfrt_names(self, blocks: list[Block]) -> list[tuple[int, str]]:
        return [(_PORT_METADATA, _port_metadata(blocks))]

    def publish(self, blocks: list[Block], schema: Schema) -> None:
        """Add the table of the port metadata, with the fields that the ingress parser unpacks."""
        parser, own = blocks[0].decl, _port_metadata(blocks)
        table = Table(schema.name(own), schema.id(_PORT_METADATA, own), "PortMetadata", _PORTS, [])
        of = parser.params[3].name if len(parser.params) > 3 else "ig_intr_md"
        table.key(Id.PORT_METADATA_PORT, f"{of}.ingress_port", in_bytes(_PORT_BITS))
        unpacked = None
        for node in walk(parser, schema.facts):
            if isinstance(node, ast.Call) and schema.facts.bindings[node].method == "port_metadata_unpack":
                unpacked = schema.facts.types[node]
        if unpacked is None:
            field = data_field(Id.PORT_METADATA_DEFAULT_FIELD, "$DEFAULT_FIELD", in_bytes(self.resubmit_bits))
            table.singleton(field)
        else:
            for field in schema.fields(unpacked):
                table.singleton(field, mandatory=True)
        schema.tables.append(table)

    @staticmethod
    def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
        """Warn about registers that a packet accesses more than once."""
        executions.warn(blocks, facts, tell)


def _port_metadata(blocks: list[Block]) -> str:
    return f"{blocks[0].path}.$PORT_METADATA"
