"""Storage of values: header instances, and fields of the metadata instance `scalars`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.midend.values import ListValue, StackValue, StructValue, UnionValue, Value

SCALARS = "scalars"


def scalar_type(t: types.Type) -> types.Type | None:
    """Return the scalar type for `t`: Bits, Bool, Varbit, InfInt or String; None if `t` is not scalar."""
    if isinstance(t, (types.Bits, types.Bool, types.InfInt, types.Varbit, types.String)):
        return t
    if isinstance(t, types.NewType):
        return scalar_type(t.underlying)
    if isinstance(t, types.Enum):
        return t.underlying or ir.ENUM_TYPE
    if isinstance(t, (types.Error, types.MatchKind)):
        return ir.ENUM_TYPE
    return None


@cache
def flat_fields(header: types.Header) -> tuple[tuple[str, types.Type], ...]:
    """Return names, such as `a.b[2]`, and types of all scalars in a header with structs and arrays."""
    return tuple(leaf for f in header.fields for leaf in _flat(f.name, f.type))


def _flat(name: str, t: types.Type) -> Iterator[tuple[str, types.Type]]:
    t = types.strip_newtype(t)
    scalar = scalar_type(t)
    if scalar is not None:
        yield name, scalar
    elif isinstance(t, types.Struct):
        for f in t.fields:
            yield from _flat(f"{name}.{f.name}", f.type)
    elif isinstance(t, types.Stack):
        for i in range(t.size):
            yield from _flat(f"{name}[{i}]", t.element)


class Storage:
    """Allocation of instances in `program`. Names are made unique by a suffix."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self._taken: dict[str, int] = {SCALARS: 0}
        self._scalar_names: dict[str, int] = {}
        self.members: dict[str, list[ir.HeaderRef]] = {}  # all headers of the union that contains an instance
        self.roots: dict[str, str] = {}  # the stack or union that contains an instance

    @staticmethod
    def _unique(taken: dict[str, int], name: str) -> str:
        if name not in taken:
            taken[name] = 0
            return name
        while True:
            taken[name] += 1
            candidate = f"{name}_{taken[name]}"
            if candidate not in taken:
                taken[candidate] = 0
                return candidate

    def intrinsic(self, t: types.Struct, name: str, written: Sequence[str] = ()) -> StructValue:
        """Add an instance of metadata that the architecture writes or reads, and return it.

        Each FIELD in `written` has a companion FIELD_written, which is 1 after an assignment to the field.
        """
        self._taken[name] = 0
        metadata = ir.Metadata(name)
        self.program.metadata.append(metadata)
        fields: dict[str, Value] = {}
        for f in t.fields:
            scalar = scalar_type(f.type)
            assert scalar is not None
            fields[f.name] = ir.FieldRef(name, f.name, scalar)
            metadata.fields.append((f.name, scalar))
            alias = next((a.string for a in f.decl.annotations if a.name == "alias" and a.string), None)
            if alias is not None:
                metadata.aliases[alias] = f.name
            if f.name in written:
                metadata.written[f.name] = f"{f.name}_written"
        metadata.fields += [(flag, types.Bits(1)) for flag in metadata.written.values()]
        return StructValue(t, fields)

    def allocate(self, t: types.Type, name: str, exact: bool = False) -> Value:
        """Return new storage for a value of type `t`.

        An `exact` name gets neither prefix nor suffix, which is for the program's own headers.
        """
        t = types.strip_newtype(t)
        scalar = scalar_type(t)
        if isinstance(scalar, types.Varbit):
            instance = self._unique(self._taken, name)
            self.program.varbits[instance] = scalar.max_width
            return ir.FieldRef(instance, "field", scalar)
        if isinstance(scalar, (types.Bits, types.Bool)):
            unique = self._unique(self._scalar_names, name)
            self.program.scalars[unique] = scalar
            return ir.FieldRef(SCALARS, unique, scalar)
        if isinstance(t, types.Struct):
            prefix = f"{name}." if name else ""
            return StructValue(t, {f.name: self.allocate(f.type, prefix + f.name, exact) for f in t.fields})
        if isinstance(t, types.Tuple):
            return StructValue(t, {str(i): self.allocate(e, f"{name}.{i}") for i, e in enumerate(t.elements)})
        if isinstance(t, types.AnonRecord):
            return StructValue(t, {n: self.allocate(e, f"{name}.{n}") for n, e in zip(t.names, t.types, strict=True)})
        if isinstance(t, types.Header):
            return self._header(t, self._unique(self._taken, name))
        if isinstance(t, types.Union):
            return self._union(t, self._unique(self._taken, name))
        if isinstance(t, types.Stack):
            if isinstance(t.element, (types.Header, types.Union)):
                return self._stack(t.element, t.size, self._unique(self._taken, name))
            return ListValue([self.allocate(t.element, f"{name}.{i}") for i in range(t.size)])
        raise AssertionError(f"no storage for {t}")

    def _header(self, t: types.Header, name: str) -> ir.HeaderRef:
        self.program.headers.append(ir.Instance(name, t))
        return ir.HeaderRef(t, name)

    def _union(self, t: types.Union, name: str) -> UnionValue:
        members: dict[str, ir.HeaderRef] = {}
        for f in t.fields:
            assert isinstance(f.type, types.Header)
            members[f.name] = self._header(f.type, f"{name}.{f.name}")
            self.roots[members[f.name].name] = name
        self.members.update({m.name: list(members.values()) for m in members.values()})
        ref = ir.UnionRef(t, name)
        self.program.unions.append((ref, [m.name for m in members.values()]))
        return UnionValue(ref, members)

    def _stack(self, element: types.Header | types.Union, size: int, name: str) -> StackValue:
        elements: list[ir.HeaderRef | UnionValue] = []
        for i in range(size):
            if isinstance(element, types.Header):
                elements.append(self._header(element, f"{name}[{i}]"))
                self.roots[f"{name}[{i}]"] = name
            else:
                union = self._union(element, f"{name}[{i}]")
                elements.append(union)
                self.roots.update({m.name: name for m in union.members.values()})
        ref = ir.StackRef(name, element, size)
        names = [e.name if isinstance(e, ir.HeaderRef) else e.ref.name for e in elements]
        self.program.stacks.append((ref, names))
        return StackValue(ref, elements)


def header_field(header: ir.HeaderRef, path: str) -> Value:
    """Return field `path` of `header`: a place, or a StructValue or ListValue of places for a struct or an array."""
    for position, (name, t) in enumerate(flat_fields(header.type)):
        if name == path:
            return _place(header, name, position, t)
    return _part(header, path, next(f.type for f in header.type.fields if f.name == path))


def _part(header: ir.HeaderRef, path: str, t: types.Type) -> Value:
    t = types.strip_newtype(t)
    if isinstance(t, types.Struct):
        return StructValue(t, {f.name: _part(header, f"{path}.{f.name}", f.type) for f in t.fields})
    if isinstance(t, types.Stack):
        return ListValue([_part(header, f"{path}[{i}]", t.element) for i in range(t.size)])
    return header_field(header, path)


def _place(header: ir.HeaderRef, name: str, position: int, t: types.Type) -> ir.Place:
    if not header.stack:
        return ir.FieldRef(header.name, name, t)
    if header.index is not None:
        return ir.ElemField(header.stack, header.index, name, position, t, header.member, header.position)
    return ir.LastField(header.stack, name, t, header.member)
