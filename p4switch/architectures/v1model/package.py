"""The v1model architecture: the package `V1Switch`, its blocks and their parameters."""

from __future__ import annotations

from p4switch import ir
from p4switch.architectures.package import Package
from p4switch.architectures.v1model.metadata import STANDARD
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import Block
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import EXPRS, Packet, StructValue, Value
from p4switch.ir.graph import drop_needless


class V1Switch(Package):
    name = "V1Switch"
    file = "v1model.p4"
    parameters = ("parser", "verify", "ingress", "egress", "compute", "deparser")
    takes = "a parser and five controls"

    # Storage

    def begin(self, blocks: list[Block]) -> None:
        parser = blocks[0]
        headers, metadata, standard = (self.low.type_of(p) for p in parser.decl.params[1:4])
        assert isinstance(standard, types.Struct)
        fields: dict[str, Value] = {}
        for f in standard.fields:
            t = scalar_type(f.type)
            assert t is not None
            fields[f.name] = ir.FieldRef(STANDARD, f.name, t)
            alias = next((a.string for a in f.decl.annotations if a.name == "alias"), None)
            self.low.out.standard_metadata.append((f.name, t, alias or ""))
        for param, t in zip(parser.decl.params[1:3], (headers, metadata), strict=True):
            self.low.storable(t, param)
        self._headers = self.low.storage.allocate(headers, "", exact=True)
        self.low.externs.program_headers = set(self.low.copies.leaves(self._headers))
        self._metadata = self.low.externs.user_metadata = self.low.storage.allocate(metadata, "userMetadata")
        self.low.externs.standard = StructValue(standard, fields)

    def _bind_parameters(self, block: Block) -> None:
        values: dict[str, list[Value]] = {
            "parser": [Packet(), self._headers, self._metadata, self.low.externs.standard],
            "verify": [self._headers, self._metadata],
            "ingress": [self._headers, self._metadata, self.low.externs.standard],
            "egress": [self._headers, self._metadata, self.low.externs.standard],
            "compute": [self._headers, self._metadata],
            "deparser": [Packet(output=True), self._headers],
        }
        for param, value in zip(block.decl.params, values[self.low.where], strict=True):
            block.frame.values[param] = value

    # Blocks

    def lower(self, where: str, block: Block) -> None:
        self._bind_parameters(block)
        start = self.low.code = ir.Block()
        end = ir.Block()
        if where == "parser":
            self.low.parsers.run_parser(block, end)
            drop_needless(start, set(self.low.rewinds))
            self.low.out.parser = start
            return
        assert isinstance(block.decl, ast.ControlDecl)
        if where in ("verify", "compute"):
            self.low.calls.make_locals(block)
            self._checksums(block.decl.body, fold.TRUE)
            if start.ops or self.low.code is not start:
                raise self.low.error(block.decl, f"computations are not supported in '{block.decl.name}'")
            return
        self.low.exit_target = end
        self.low.calls.make_locals(block)
        self.low.return_targets.append((end, None))
        self.low.statements.run(block.decl.body)
        self.low.return_targets.pop()
        self.low.goto(end)
        if where == "deparser":
            self._deparser(start, end, block)
        else:
            self.low.out.pipelines.append(ir.Pipeline(where, start, block.decl.pos))

    def _deparser(self, start: ir.Block, end: ir.Block, block: Block) -> None:
        code: ir.Block | None = start
        while code is not None and code is not end:
            self.low.out.deparser_ops += code.ops
            if code.end is not None and not isinstance(code.end, ir.Goto):
                raise self.low.error(block.decl, "conditions and tables are not supported in a deparser")
            code = code.end.target if code.end is not None else None

    # Checksums

    def _checksums(self, body: ast.Block, condition: ir.Expr) -> bool:
        """The calls in a checksum control; returns False after a `return`."""
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
        prefix = "verify_checksum" if self.low.where == "verify" else "update_checksum"
        if binding.method not in (prefix, f"{prefix}_with_payload"):
            raise self.low.error(call, f"only {prefix} and {prefix}_with_payload can be called in this control")
        test, data, target, algorithm = self.low.calls.arguments(binding.params, binding.bound)
        if not isinstance(target, ir.FieldRef):
            raise self.low.error(call, "the checksum has to be a field of a header or of metadata")
        assert isinstance(test, EXPRS)
        if not isinstance(algorithm, ir.Const):
            raise self.low.error(call, "the algorithm has to be a compile-time constant")
        inputs: list[ir.Expr] = []
        for value in self.low.externs.fields_of(data, call):
            if not isinstance(value, (ir.FieldRef, ir.Const)):
                raise self.low.error(call, "the data has to consist of fields and constants")
            inputs.append(value)
        self.low.out.checksums.append(
            ir.Checksum(
                target,
                inputs,
                algorithm.member,
                self.low.expressions.limited(fold.conjunction([condition, test]), call),
                binding.method.endswith("_with_payload"),
                self.low.where == "verify",
                call.pos,
            )
        )
