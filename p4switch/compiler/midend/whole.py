"""Lowering of a whole program: its package, the package's blocks, and the objects of the control plane."""

from __future__ import annotations

from dataclasses import dataclass

from p4switch import ir
from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.package import Package
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError, Diagnostic
from p4switch.compiler.midend.elaborate import Block, ExternObject
from p4switch.compiler.midend.lowering import Lowering
from p4switch.compiler.midend.storage import flat_fields
from p4switch.compiler.midend.tables import ActionObject, TableObject
from p4switch.compiler.midend.values import Value


@dataclass(slots=True)
class Lowered:
    """Lowered program, with the objects that a control plane sees."""

    source: ast.Program
    architecture: Architecture
    package: Package
    program: ir.Program
    blocks: list[Block]  # blocks of the package, in order
    tables: list[TableObject]
    actions: list[ActionObject]
    externs: list[ExternObject]
    value_sets: list[tuple[Block, ast.ValueSetDecl, ir.ValueSet]]
    digests: list[types.Type]
    pipelines: int  # number of pipelines of the program, including this one

    def require(self, tool: str) -> None:
        """Raise CompileError if `tool` does not support the program's package."""
        if tool not in self.package.tools:
            known = [a.name for a in ARCHITECTURES.all().values() for p in a.packages.all().values() if tool in p.tools]
            message = f"p4cc {tool} knows {', '.join(known)} alone, not {self.architecture.name}"
            raise error_at(self.source, self.source.main, message)

    @property
    def parameters(self) -> dict[str, str]:
        """Name in the source for each name of storage in the target."""
        return self.package.source_names(self.blocks)


def lower(program: ast.Program) -> Lowered:
    """Return `program` as code over scalars. Raises CompileError for features that the target lacks."""
    architecture, chosen = _package(program)
    low = Lowering(program, architecture, chosen)
    package = low.package
    pipelines = low.instances.pipelines(_main(program))
    blocks = _blocks(low, pipelines)
    for decl in program.declarations:
        if isinstance(decl, ast.Instantiation) and isinstance(low.type_of(decl), types.Extern):
            low.instances.instance(decl)
    package.begin(blocks)
    low.out.errors = {name: i for i, name in enumerate(program.errors)}
    for decl in program.declarations:
        if isinstance(decl, ast.EnumDecl) and decl.underlying_expr is None:
            low.out.enums.append((decl.name, [m.name for m in decl.members]))
    for site, block in zip(package.sites, blocks, strict=False):
        low.site, low.block, low.prefix = site, block, f"{block.path}."
        with low.activation(block.frame):
            package.lower(site, block)
    for extern in low.instances.extern_objects:
        kind = architecture.extern_type(extern.decl.name)
        if kind is not None:
            kind.declare(extern, low)
    _check_names(low)
    _check_sizes(low)
    return Lowered(
        program,
        architecture,
        package,
        low.out,
        blocks,
        list(low.tables.tables.values()),
        [*low.tables.actions.values(), *low.tables.direct_actions.values()],
        low.instances.extern_objects,
        [(block, decl, value_set) for (block, decl), value_set in low.parsers.value_sets.items()],
        low.externs.digests,
        len(pipelines),
    )


def error_at(program: ast.Program, node: ast.Node | None, message: str) -> CompileError:
    """Return the error at `node`, or else at the last declaration."""
    last = program.declarations[-1] if program.declarations else None
    pos = node.pos if node is not None else last.pos if last is not None else 0
    return CompileError([Diagnostic("error", program.source.locate(pos), message, program.source.line_at(pos))])


def _package(program: ast.Program) -> tuple[Architecture, type[Package]]:
    """Return the architecture and the package of the program.

    Errors refer to `main`, or to the last declaration if there is no `main`.
    """
    architecture, main = program.architecture, program.main
    of = [*ARCHITECTURES.all().values()] if architecture is None else [architecture]
    expected = [f"'{name}' of {p.include}" for a in of for name, p in a.packages.all().items()]
    if architecture is not None and not expected:
        raise error_at(program, main, f"programs for {architecture.name} are type-checked, and not compiled yet")
    if main is None:
        raise error_at(program, None, f"no package is instantiated: expected one as main, {' or '.join(expected)}")
    known = None if architecture is None else architecture.package_of(program)
    if architecture is None or known is None:
        where = "supported" if architecture is None else f"one of architecture {architecture.name}"
        message = f"package '{program.facts.types[main]}' is not {where}: expected {' or '.join(expected)}"
        raise error_at(program, main, message)
    return architecture, known


def _main(program: ast.Program) -> ast.Instantiation:
    assert program.main is not None
    return program.main


def _blocks(low: Lowering, pipelines: list[Value]) -> list[Block]:
    """Return the blocks of the pipeline to compile. Raises CompileError for a pipeline that does not exist."""
    main, package, chosen = _main(low.source), low.package, low.source.pipeline
    if chosen is None and len(pipelines) > 1:
        raise low.error(main, f"the program has {len(pipelines)} pipelines; expected the number of one with it")
    if chosen is not None and chosen >= len(pipelines):
        raise low.error(main, f"the program has no pipeline {chosen}; expected a number below {len(pipelines)}")
    blocks = low.instances.blocks(pipelines[chosen or 0])
    least = sum(not site.aside for site in package.sites)
    if blocks is None or not least <= len(blocks) <= len(package.sites):
        decl = low.facts.package(main)
        assert decl is not None
        raise low.error(main, f"the arguments of {decl.name} have to be {package.takes}")
    for site, block in zip(package.sites, blocks, strict=False):
        if len(block.decl.params) not in package.parameters[site.name]:
            what = f"'{block.decl.name}' has {len(block.decl.params)} parameters"
            raise low.error(block.decl, f"{what}: expected those of the block {site.name} in {package.include}")
    return blocks


def _check_names(low: Lowering) -> None:
    """Refuse two tables or two actions with the same control-plane name."""
    taken: dict[tuple[type, str], TableObject | ActionObject] = {}
    named: list[TableObject | ActionObject] = [*low.tables.tables.values(), *low.tables.actions.values()]
    for each in [*named, *low.tables.direct_actions.values()]:
        other = taken.setdefault((type(each), each.ir.name), each)
        # An action may occur more than once: with different arguments, or in two instances of a control.
        if other is not each and (isinstance(each, TableObject) or other.decl is not each.decl):
            what = "table" if isinstance(each, TableObject) else "action"
            raise low.error(each.decl, f"another {what} has the control-plane name '{each.ir.name}' already")


def _check_sizes(low: Lowering) -> None:
    """Refuse headers whose length is not a whole number of bytes, and variables of width 0."""
    for header in {i.type: None for i in low.out.headers}:
        bits = sum(types.width_of(t) or 0 for _, t in flat_fields(header))
        if bits % 8 and not low.architecture.pads_headers:
            raise low.error(header.decl, f"header '{header}' has {bits} bits: this target needs whole bytes")
    for name, t in low.out.scalars.items():
        if t == types.Bits(0):
            empty = f"'{name}', a value of no bits, has to be stored"
            raise low.error(low.source.main, f"{empty}: not supported on this target")
