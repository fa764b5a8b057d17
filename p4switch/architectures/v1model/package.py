"""The v1model architecture: the package `V1Switch`, its blocks and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from p4switch import ir
from p4switch.architectures.blocks import lower_control, lower_parser
from p4switch.architectures.package import Package, Site, Tell
from p4switch.architectures.v1model import PACKAGES, differences
from p4switch.architectures.v1model.field_lists import FieldLists
from p4switch.architectures.v1model.metadata import EGRESS_SPEC, MCAST_GRP, PACKET_LENGTH, STANDARD
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind, Facts
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.assign import Footprint
from p4switch.compiler.midend.elaborate import Block
from p4switch.compiler.midend.values import EXPRS, Value

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Prover, Walk


@PACKAGES.register("V1Switch")
class V1Switch(Package):
    include = "v1model.p4"
    sites = (
        Site("parser", parses=True),
        Site("verify", statements=False),
        Site("ingress"),
        Site("egress"),
        Site("compute", statements=False),
        Site("deparser", branches=False),
    )
    takes = "a parser and five controls"
    parameters: ClassVar[Mapping[str, range]] = {
        "parser": range(4, 5), "verify": range(2, 3), "ingress": range(3, 4), "egress": range(3, 4),
        "compute": range(2, 3), "deparser": range(2, 3),
    }  # fmt: skip
    tools = frozenset({"testgen", "fit"})
    leads_to = (f"{STANDARD}.{EGRESS_SPEC.name}", f"{STANDARD}.{MCAST_GRP.name}")
    replicates = (f"{STANDARD}.{MCAST_GRP.name}",)
    bridges = True

    def __init__(self, low: Lowering) -> None:
        super().__init__(low)
        self.field_lists = FieldLists(low)
        self._own = Footprint()  # the package's headers; a deparser reads them without changing them
        self._deparser = ir.Deparser("deparser")

    # Tests and proofs

    def way(self, machine: Machine) -> Walk:
        from p4switch.architectures.v1model.testing import V1Walk

        return V1Walk(machine)

    def prove(self, prover: Prover) -> None:
        from p4switch.architectures.v1model.testing import Proof

        Proof(prover).packet()

    # Storage

    def begin(self, blocks: list[Block]) -> None:
        parser = blocks[0]
        headers, metadata, standard = (self.low.type_of(p) for p in parser.decl.params[1:4])
        assert isinstance(standard, types.Struct)
        self.standard = self.low.storage.intrinsic(standard, STANDARD)
        for param, t in zip(parser.decl.params[1:3], (headers, metadata), strict=True):
            self.low.storable(t, param)
        self._headers = self.low.storage.allocate(headers, "", exact=True)
        self._own = self.low.copies.footprint(self._headers)
        self._metadata = self.low.storage.allocate(metadata, "userMetadata")
        self.field_lists.metadata = self._metadata

    def _bind_parameters(self, block: Block) -> None:
        every: list[Value] = [self._headers, self._metadata, self.standard]
        params = block.decl.params
        if params and isinstance(self.low.type_of(params[0]), types.Extern):
            block.frame.values[params[0]] = self.low.instances.packet(params[0])
            params = params[1:]
        for param, value in zip(params, every, strict=False):
            block.frame.values[param] = value

    # Blocks

    def lower(self, site: Site, block: Block) -> None:
        self._bind_parameters(block)
        if site.parses:
            lower_parser(self.low, site.name, block)
        elif not site.statements:
            self._checksum_control(block)
        elif site.branches:
            start, _ = lower_control(self.low, block)
            self.low.out.pipelines.append(ir.Pipeline(site.name, start, block.decl.pos))
        else:
            self._finish_deparser(*lower_control(self.low, block), block)

    def _checksum_control(self, block: Block) -> None:
        assert isinstance(block.decl, ast.ControlDecl)
        start = self.low.code = ir.Block()
        self.low.calls.make_locals(block)
        self._checksums(block.decl.body, fold.TRUE)
        if start.ops or self.low.code is not start:
            raise self.low.error(block.decl, f"computations are not supported in '{block.decl.name}'")

    def emit_header(self, header: ir.HeaderRef) -> None:
        # The target emits headers after all statements have run, so headers that may change later are copied.
        own = self.low.copies.footprint(header).overlaps(self._own)
        emitted = header if own else self.low.copies.snapshot(header)
        assert isinstance(emitted, ir.HeaderRef)
        self._deparser.order.append(emitted)

    def _finish_deparser(self, start: ir.Block, end: ir.Block, block: Block) -> None:
        self.low.out.deparsers.append(self._deparser)
        code: ir.Block | None = start
        while code is not None and code is not end:
            self._deparser.body.ops += code.ops
            if code.end is not None and not isinstance(code.end, ir.Goto):
                raise self.low.error(block.decl, "conditions and tables are not supported in a deparser")
            code = code.end.target if code.end is not None else None

    def packet_length(self, call: ast.Call) -> ir.Expr:
        return PACKET_LENGTH

    @staticmethod
    def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
        differences.warn(blocks, facts, tell)

    # Checksums

    def _checksums(self, body: ast.Block, condition: ir.Expr) -> bool:
        """Lower the calls in a checksum control; return False after a `return`."""
        for statement in body.statements:
            if isinstance(statement, ast.Block):
                if not self._checksums(statement, condition):
                    return False
            elif isinstance(statement, ast.CallStatement):
                self._checksum_call(statement.call, condition)
            elif isinstance(statement, ast.If):
                self._checksum_if(statement, condition)
            elif isinstance(statement, (ast.Return, ast.Exit)):
                return False
            elif not isinstance(statement, (ast.Empty, ast.ConstDecl)):
                raise self.low.error(statement, "only calls of checksum functions are supported in this control")
        return True

    def _checksum_if(self, node: ast.If, condition: ir.Expr) -> None:
        test = self.low.expressions.scalar(node.condition)
        negated = fold.make("!", types.BOOL, test)
        for branch, guard in ((node.then, test), (node.otherwise, negated)):
            if branch is not None:
                block = branch if isinstance(branch, ast.Block) else ast.Block(branch.pos, [branch])
                if not self._checksums(block, self.low.expressions.limited(fold.conjunction([condition, guard]), node)):
                    raise self.low.error(node, "a conditional return is not supported in this control")

    def _checksum_call(self, call: ast.Call, condition: ir.Expr) -> None:
        binding = self.low.facts.bindings[call]
        if binding.kind is CallKind.CONTROL_APPLY and binding.receiver is not None:
            inner = self.low.expressions.expr(binding.receiver)
            assert isinstance(inner, Block)
            assert isinstance(inner.decl, ast.ControlDecl)
            copies = self.low.calls.bind(binding.params, binding.param_types, binding.bound, inner.frame)
            if copies:
                raise self.low.error(call, "arguments that need a copy are not supported in this control")
            with self.low.activation(inner.frame):
                self._checksums(inner.decl.body, condition)
            return
        prefix = "verify_checksum" if self.low.site.name == "verify" else "update_checksum"
        if binding.method not in (prefix, f"{prefix}_with_payload"):
            raise self.low.error(call, f"only {prefix} and {prefix}_with_payload can be called in this control")
        test, data, target, algorithm = self.low.calls.arguments(binding.params, binding.bound)
        if not isinstance(target, ir.FieldRef):
            raise self.low.error(call, "the checksum has to be a field of a header or of metadata")
        assert isinstance(test, EXPRS)
        if not isinstance(algorithm, ir.Const):
            raise self.low.error(call, "the algorithm has to be a compile-time constant")
        inputs: list[ir.Input] = []
        for value in self.low.externs.fields_of(data, call):
            if not isinstance(value, (ir.FieldRef, ir.Const)):
                raise self.low.error(call, "the data has to consist of fields and constants")
            inputs.append(value)
        self.low.out.checksums.append(
            ir.Checksum(
                target,
                ir.Calculation("", algorithm.member, inputs, binding.method.endswith("_with_payload"), call.pos),
                self.low.expressions.limited(fold.conjunction([condition, test]), call),
                self.low.site.name == "verify",
                call.pos,
            )
        )


def v1switch(low: Lowering) -> V1Switch:
    """Return the package of a program that is being lowered."""
    assert isinstance(low.package, V1Switch)
    return low.package
