"""The v1model architecture: the package `V1Switch`, its blocks and their parameters."""

from __future__ import annotations

from dataclasses import dataclass

from p4switch import ir
from p4switch.architectures.extern import extern_type
from p4switch.architectures.v1model import EXTERNS
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import Block, ExternObject
from p4switch.compiler.midend.lowering import Lowering
from p4switch.compiler.midend.storage import flat_fields, scalar_type
from p4switch.compiler.midend.tables import ActionObject, TableObject
from p4switch.compiler.midend.values import EXPRS, Packet, StructValue, Value
from p4switch.ir.graph import drop_needless

_BLOCKS = ("parser", "verify", "ingress", "egress", "compute", "deparser")


@dataclass(slots=True)
class Lowered:
    """A lowered program, and the objects of it that a control plane sees."""

    source: ast.Program
    program: ir.Program
    blocks: list[Block]  # of the package, in order
    tables: list[TableObject]
    actions: list[ActionObject]
    externs: list[ExternObject]
    value_sets: list[tuple[Block, ast.ValueSetDecl, ir.ValueSet]]
    digests: list[types.Type]

    @property
    def parameters(self) -> dict[str, str]:
        """How the source names what the target keeps for all blocks: as the parser's parameters."""
        decl = self.blocks[0].decl
        assert isinstance(decl, ast.ParserDecl)
        return {"headers": decl.params[1].name, "metadata": decl.params[2].name}


class Architecture:
    def __init__(self, program: ast.Program) -> None:
        self.low = Lowering(program)

    def run(self) -> Lowered:
        blocks = self._blocks()
        self._global_instances()
        self._storage(blocks[0])
        self._enums()
        for where, block in zip(_BLOCKS, blocks, strict=True):
            self.low.where, self.low.block, self.low.prefix = where, block, f"{block.path}."
            self._bind_parameters(block)
            with self.low.activation(block.frame):
                self._lower(where, block)
        self._objects()
        self._unique_names()
        self._whole_bytes()
        for name, t in self.low.out.scalars.items():
            if t == types.Bits(0):
                raise self._refuse(f"'{name}', a value of no bits, has to be stored: not supported on this target")
        value_sets = [(block, decl, vs) for (block, decl), vs in self.low.parsers.value_sets.items()]
        return Lowered(
            self.low.source,
            self.low.out,
            blocks,
            list(self.low.tables.tables.values()),
            [*self.low.tables.actions.values(), *self.low.tables.direct_actions.values()],
            self.low.instances.extern_objects,
            value_sets,
            self.low.externs.digests,
        )

    # The package

    def _refuse(self, message: str) -> CompileError:
        """What is wrong with the whole program: at its package or, without one, at its last declaration."""
        return self.low.error(self.low.source.main, message)

    def _blocks(self) -> list[Block]:
        main = self.low.source.main
        if main is None:
            raise self._refuse("no package is instantiated: expected 'V1Switch(...) main;' of v1model.p4")
        package = main.type
        if not isinstance(package, types.Package) or package.decl.name != "V1Switch" or len(main.bound) != len(_BLOCKS):
            raise self._refuse(f"package '{package}' is not supported: expected 'V1Switch' of v1model.p4")
        blocks: list[Block] = []
        with self.low.activation(self.low.globals):
            for arg in main.bound:
                value = None if arg is None else self.low.expressions.expr(arg)
                if not isinstance(value, Block):
                    raise self._refuse("the arguments of V1Switch have to be a parser and five controls")
                blocks.append(value)
        return blocks

    def _global_instances(self) -> None:
        for decl in self.low.source.declarations:
            if isinstance(decl, ast.Instantiation) and isinstance(self.low.resolve(decl.type), types.Extern):
                self.low.instances.instance(decl)

    # Storage

    def _storage(self, parser: Block) -> None:
        headers, metadata, standard = (self.low.resolve(p.type) for p in parser.decl.params[1:4])
        assert isinstance(standard, types.Struct)
        fields: dict[str, Value] = {}
        for f in standard.fields:
            t = scalar_type(f.type)
            assert t is not None
            fields[f.name] = ir.FieldRef("standard_metadata", f.name, t)
            alias = next((a.string for a in f.decl.annotations if a.name == "alias"), None)
            self.low.out.standard_metadata.append((f.name, t, alias or ""))
        for param, t in zip(parser.decl.params[1:3], (headers, metadata), strict=True):
            self.low.storable(t, param)
        self._headers = self.low.storage.allocate(headers, "", exact=True)
        self.low.externs.program_headers = set(self.low.copies.leaves(self._headers))
        self._metadata = self.low.externs.user_metadata = self.low.storage.allocate(metadata, "userMetadata")
        self.low.externs.standard = StructValue(standard, fields)
        self.low.out.errors = list(self.low.source.errors)

    def _enums(self) -> None:
        for decl in self.low.source.declarations:
            if isinstance(decl, ast.EnumDecl) and decl.underlying_expr is None:
                self.low.out.enums.append((decl.name, [m.name for m in decl.members]))

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

    def _lower(self, where: str, block: Block) -> None:
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
        if call.kind is ast.CallKind.CONTROL_APPLY and call.receiver is not None:
            inner = self.low.expressions.expr(call.receiver)
            assert isinstance(inner, Block)
            assert isinstance(inner.decl, ast.ControlDecl)
            copies = self.low.calls.bind(call.params, call.param_types, call.bound, inner.frame)
            if copies:
                raise self.low.error(call, "arguments that need a copy are not supported in this control")
            with self.low.activation(inner.frame):
                self._checksums(inner.decl.body, condition)
            return
        prefix = "verify_checksum" if self.low.where == "verify" else "update_checksum"
        if call.method not in (prefix, f"{prefix}_with_payload"):
            raise self.low.error(call, f"only {prefix} and {prefix}_with_payload can be called in this control")
        test, data, target, algorithm = self.low.calls.arguments(call.params, call.bound)
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
                call.method.endswith("_with_payload"),
                self.low.where == "verify",
                call.pos,
            )
        )

    # Extern objects

    def _objects(self) -> None:
        for extern in self.low.instances.extern_objects:
            kind = extern_type(EXTERNS, extern.decl.name)
            if kind is not None:
                kind.declare(extern, self.low)

    def _unique_names(self) -> None:
        """Refuses two tables, or two actions, with one control-plane name."""
        objects: list[TableObject | ActionObject] = [
            *self.low.tables.tables.values(),
            *self.low.tables.actions.values(),
        ]
        taken: dict[tuple[type, str], TableObject | ActionObject] = {}
        for each in [*objects, *self.low.tables.direct_actions.values()]:
            other = taken.setdefault((type(each), each.ir.name), each)
            # An action may be there more than once: with other arguments, or in two instances of a control.
            if other is not each and (isinstance(each, TableObject) or other.decl is not each.decl):
                what = "table" if isinstance(each, TableObject) else "action"
                raise self.low.error(each.decl, f"another {what} has the control-plane name '{each.ir.name}' already")

    def _whole_bytes(self) -> None:
        for header in {i.type: None for i in self.low.out.headers}:
            bits = sum(types.width_of(t) or 0 for _, t in flat_fields(header))
            if bits % 8:
                raise self.low.error(header.decl, f"header '{header}' has {bits} bits: this target needs whole bytes")


def lower(program: ast.Program) -> Lowered:
    """`program` as flat code for v1model. Raises CompileError for what this target cannot do."""
    return Architecture(program).run()
