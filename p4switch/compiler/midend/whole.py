"""The lowering of a whole program: its package, the blocks of it, what the control plane sees."""

from __future__ import annotations

from dataclasses import dataclass

from p4switch import ir
from p4switch.architectures.extern import extern_type
from p4switch.architectures.package import Package
from p4switch.architectures.v1model import EXTERNS
from p4switch.architectures.v1model.package import V1Switch
from p4switch.compiler import ast, types
from p4switch.compiler.midend.elaborate import Block, ExternObject
from p4switch.compiler.midend.lowering import Lowering
from p4switch.compiler.midend.storage import flat_fields
from p4switch.compiler.midend.tables import ActionObject, TableObject

PACKAGES: dict[str, type[Package]] = {package.name: package for package in (V1Switch,)}


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


def lower(program: ast.Program) -> Lowered:
    """Return `program` as code over scalars. Raises CompileError for what the target cannot do."""
    low = Lowering(program)
    package = _package(low)(low)
    blocks = _blocks(low, package)
    for decl in program.declarations:
        if isinstance(decl, ast.Instantiation) and isinstance(low.type_of(decl), types.Extern):
            low.instances.instance(decl)
    package.begin(blocks)
    low.out.errors = list(program.errors)
    for decl in program.declarations:
        if isinstance(decl, ast.EnumDecl) and decl.underlying_expr is None:
            low.out.enums.append((decl.name, [m.name for m in decl.members]))
    for where, block in zip(package.parameters, blocks, strict=True):
        low.where, low.block, low.prefix = where, block, f"{block.path}."
        with low.activation(block.frame):
            package.lower(where, block)
    for extern in low.instances.extern_objects:
        kind = extern_type(EXTERNS, extern.decl.name)
        if kind is not None:
            kind.declare(extern, low)
    _check_names(low)
    _check_sizes(low)
    return Lowered(
        program,
        low.out,
        blocks,
        list(low.tables.tables.values()),
        [*low.tables.actions.values(), *low.tables.direct_actions.values()],
        low.instances.extern_objects,
        [(block, decl, value_set) for (block, decl), value_set in low.parsers.value_sets.items()],
        low.externs.digests,
    )


def _package(low: Lowering) -> type[Package]:
    """The kind of package of the program. Errors are at it or, without one, at the last declaration."""
    main = low.source.main
    expected = " or ".join(f"'{p.name}' of {p.file}" for p in PACKAGES.values())
    if main is None:
        first = next(iter(PACKAGES.values()))
        raise low.error(None, f"no package is instantiated: expected '{first.name}(...) main;' of {first.file}")
    t = low.facts.types[main]
    known = PACKAGES.get(t.decl.name) if isinstance(t, types.Package) else None
    if known is None or len(low.facts.bindings[main].bound) != len(known.parameters):
        raise low.error(main, f"package '{t}' is not supported: expected {expected}")
    return known


def _blocks(low: Lowering, package: Package) -> list[Block]:
    main = low.source.main
    assert main is not None
    blocks: list[Block] = []
    with low.activation(low.globals):
        for arg in low.facts.bindings[main].bound:
            value = None if arg is None else low.expressions.expr(arg)
            if not isinstance(value, Block):
                raise low.error(main, f"the arguments of {package.name} have to be {package.takes}")
            blocks.append(value)
    return blocks


def _check_names(low: Lowering) -> None:
    """Refuse two tables, or two actions, with one control-plane name."""
    taken: dict[tuple[type, str], TableObject | ActionObject] = {}
    made: list[TableObject | ActionObject] = [*low.tables.tables.values(), *low.tables.actions.values()]
    for each in [*made, *low.tables.direct_actions.values()]:
        other = taken.setdefault((type(each), each.ir.name), each)
        # An action may be there more than once: with other arguments, or in two instances of a control.
        if other is not each and (isinstance(each, TableObject) or other.decl is not each.decl):
            what = "table" if isinstance(each, TableObject) else "action"
            raise low.error(each.decl, f"another {what} has the control-plane name '{each.ir.name}' already")


def _check_sizes(low: Lowering) -> None:
    """Refuse headers that are not whole bytes, and variables of no bits."""
    for header in {i.type: None for i in low.out.headers}:
        bits = sum(types.width_of(t) or 0 for _, t in flat_fields(header))
        if bits % 8:
            raise low.error(header.decl, f"header '{header}' has {bits} bits: this target needs whole bytes")
    for name, t in low.out.scalars.items():
        if t == types.Bits(0):
            empty = f"'{name}', a value of no bits, has to be stored"
            raise low.error(low.source.main, f"{empty}: not supported on this target")
