"""Elaboration of the instances in a program: parsers, controls and externs, with constructor arguments and names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind, Facts
from p4switch.compiler.midend.values import Frame, Ignored, Value
from p4switch.compiler.walk import walk

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering


@dataclass(slots=True, eq=False)
class Block:
    """Instance of a parser or control. `path` is its control-plane name.

    A `shared` block has tables and is applied in several places, so that its parameters and locals
    need fixed storage. `applications` are the calls in the text of `parent`. A block without a parent
    is applied by the package.
    """

    decl: ast.ParserDecl | ast.ControlDecl
    path: str
    frame: Frame
    parent: Block | None
    annotations: list[ast.Annotation]
    shared: bool = False
    externs: list[ExternObject] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    applications: list[ast.Call] = field(default_factory=list)

    @property
    def applied(self) -> int:
        """Number of applications of the block after inlining all blocks."""
        return 1 if self.parent is None else len(self.applications) * self.parent.applied

    @property
    def outermost(self) -> Block:
        """The block of the package that contains this block, or this block itself."""
        return self if self.parent is None else self.parent.outermost


@dataclass(slots=True, eq=False)
class ExternObject:
    """Instance of an extern. `args` are the values of the constructor's parameters, by name."""

    decl: ast.ExternDecl
    type_args: tuple[types.Type, ...]
    args: dict[str, Value]
    path: str
    node: ast.Instantiation | ast.Call | ast.Parameter
    annotations: list[ast.Annotation]
    block: Block | None = None

    def number(self, name: str) -> int:
        """Return an argument that is a compile-time constant."""
        value = self.args[name]
        assert isinstance(value, ir.Const)
        return value.value


@dataclass(slots=True, eq=False)
class PackageObject:
    """Instance of a package, an argument of `main` or of another package.

    `args` are in order; omitted ones are None.
    """

    decl: ast.PackageDecl
    args: list[Value | None]
    node: ast.Node


def control_name(name: str, annotations: list[ast.Annotation], prefix: str) -> str:
    """Return the control-plane name of a declaration.

    This is `@name` or the declaration's own name, after the names of the enclosing blocks.
    """
    for annotation in annotations:
        if annotation.name == "name" and annotation.string:
            name = annotation.string
            break
    if name.startswith("."):
        return name[1:]
    return f"{prefix}.{name}" if prefix else name


def local_name(decl: ast.Declaration) -> str:
    """Return the control-plane name of a parameter or field."""
    return next((a.string for a in decl.annotations if a.name == "name" and a.string), decl.name)


def passed(node: ast.Expr, block: Block | None, facts: Facts) -> tuple[ast.Expr, Block | None]:
    """Return the argument that `node`, a parameter of `block`, stands for, and the block that contains it.

    This requires that `block` is applied in only one place. Otherwise, and for other expressions in
    `block`, `node` and `block` are returned.
    """
    while isinstance(node, ast.Name) and block is not None and len(block.applications) == 1:
        binding = facts.bindings[block.applications[0]]
        decl = facts.decls[node]
        given = next((b for p, b in zip(binding.params, binding.bound, strict=True) if p is decl), None)
        if given is None:
            break
        node, block = given, block.parent
    return node, block


def has_tables(decl: ast.Declaration, facts: Facts) -> bool:
    """Return whether a control has tables, either itself or in the controls that it applies."""
    waiting, seen = [decl], {decl}
    while waiting:
        control = waiting.pop()
        for local in control.locals if isinstance(control, ast.ControlDecl) else ():
            if isinstance(local, ast.TableDecl):
                return True
            inner = facts.types[local] if isinstance(local, ast.Instantiation) else None
            if isinstance(inner, types.Control) and inner.decl not in seen:
                seen.add(inner.decl)
                waiting.append(inner.decl)
    return False


class Elaboration:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self.extern_objects: list[ExternObject] = []
        self._making: set[ast.Declaration] = set()

    def instance(self, decl: ast.Instantiation) -> Value:
        """Return a global instance. It is created when the program first refers to it."""
        value = self.low.globals.lookup(decl)
        if value is None:
            with self.low.activation(self.low.globals):
                value = self._instantiate(decl, "", None)
            self.low.globals.values[decl] = value
        return value

    def packet(self, param: ast.Parameter) -> ExternObject:
        """Return the object of a block's `packet_in` or `packet_out` parameter."""
        t = self.low.type_of(param)
        assert isinstance(t, types.Extern)
        return ExternObject(t.decl, (), {}, "", param, [])

    def pipelines(self, main: ast.Instantiation) -> list[Value]:
        """Return the pipelines of `main`: its arguments if the package is `pipelined`, or else `main` itself."""
        value = self.instance(main)
        if not self.low.package.pipelined or not isinstance(value, PackageObject):
            return [value]
        return [each for each in value.args if each is not None]

    def blocks(self, pipeline: Value) -> list[Block] | None:
        """Return the blocks of a pipeline, with those of nested packages in their positions.

        The result is None if an argument is not a block. Omitted `@optional` arguments are left out.
        Extern objects of other blocks are removed.
        """
        in_order: list[Block] = []
        waiting: list[Value | None] = [pipeline]
        while waiting:
            value = waiting.pop()
            if isinstance(value, PackageObject):
                waiting += reversed(value.args)
            elif isinstance(value, Block):
                in_order.append(value)
            elif value is not None and not isinstance(value, ExternObject):
                return None
        own = {None, *in_order}
        self.extern_objects = [e for e in self.extern_objects if (e.block and e.block.outermost) in own]
        return in_order

    def _arguments(self, params: list[ast.Parameter], bound: list[ast.Expr | None]) -> dict[ast.Parameter, Value]:
        return {p: Ignored() if b is None else self.low.expressions.expr(b) for p, b in zip(params, bound, strict=True)}

    def _instantiate(self, decl: ast.Instantiation, prefix: str, parent: Block | None) -> Value:
        binding = self.facts.bindings[decl]
        path = control_name(decl.name, decl.annotations, prefix)
        t = self.low.type_of(decl)
        args = self._arguments(binding.params, binding.bound)
        return self._make(t, args, path, decl, decl.annotations, parent)

    def construct(self, node: ast.Call) -> Value:
        """Return a new anonymous instance, for an argument of a package or constructor or a table property."""
        binding = self.facts.bindings[node]
        t = self.low.type_of(node)
        args = self._arguments(binding.params, binding.bound)
        path = ""
        if isinstance(t, (types.Parser, types.Control)):
            path = t.decl.name
        return self._make(t, args, path, node, [], None)

    def _make(
        self,
        t: types.Type,
        args: dict[ast.Parameter, Value],
        path: str,
        node: ast.Instantiation | ast.Call,
        annotations: list[ast.Annotation],
        parent: Block | None,
    ) -> Value:
        if isinstance(t, types.Extern):
            extern = ExternObject(t.decl, t.args, {p.name: v for p, v in args.items()}, path, node, annotations, parent)
            self.extern_objects.append(extern)
            if parent is not None:
                parent.externs.append(extern)
            return extern
        if isinstance(t, (types.Parser, types.Control)):
            return self._make_block(t, args, path, node, annotations, parent)
        if isinstance(t, types.Package):
            return PackageObject(t.decl, [None if isinstance(v, Ignored) else v for v in args.values()], node)
        raise self.low.error(node, f"an instance of {t} is not supported here")

    def _make_block(
        self,
        t: types.Parser | types.Control,
        args: dict[ast.Parameter, Value],
        path: str,
        node: ast.Node,
        annotations: list[ast.Annotation],
        parent: Block | None,
    ) -> Block:
        self.low.work(node)
        decl = t.decl
        if not isinstance(decl, (ast.ParserDecl, ast.ControlDecl)):
            raise self.low.error(node, f"'{decl.name}' is a type: a parser or control with a body is expected here")
        if decl in self._making:
            raise self.low.error(node, f"'{decl.name}' contains itself")
        frame = Frame(self.low.globals)
        frame.values.update((p, v) for p, v in args.items())
        block = Block(decl, path, frame, parent, annotations)
        if parent is not None:
            parent.blocks.append(block)
        self._making.add(decl)
        applied = _applications(decl, self.facts)
        with self.low.activation(frame):
            for local in decl.locals:
                if isinstance(local, ast.Instantiation):
                    value = self._instantiate(local, path, block)
                    frame.values[local] = value
                    if isinstance(value, Block):
                        value.applications = applied.get(local, [])
                        if len(value.applications) > 1:
                            _share(value, self.facts)
                elif isinstance(local, ast.ConstDecl):
                    frame.values[local] = self.low.expressions.expr(local.init)
        self._making.discard(decl)
        return block


def _share(block: Block, facts: Facts) -> None:
    if has_tables(block.decl, facts):
        block.shared = True
        for inner in block.blocks:
            _share(inner, facts)


def _applications(decl: ast.ParserDecl | ast.ControlDecl, facts: Facts) -> dict[ast.Declaration, list[ast.Call]]:
    """Return the calls in the text of `decl` that apply each local instance."""
    calls: dict[ast.Declaration, list[ast.Call]] = {}
    for node in walk(decl, facts):
        if not isinstance(node, ast.Call):
            continue
        called = facts.bindings[node]
        if called.kind in (CallKind.CONTROL_APPLY, CallKind.PARSER_APPLY) and isinstance(called.receiver, ast.Name):
            calls.setdefault(facts.decls[called.receiver], []).append(node)
    return calls
