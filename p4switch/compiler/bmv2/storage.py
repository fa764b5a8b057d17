"""Storage of a program as header instances with scalar fields, the only kind that BMv2 has."""

from __future__ import annotations

from p4switch import ir
from p4switch.bmv2.symbols import header_type, union_type
from p4switch.compiler import types
from p4switch.compiler.midend.storage import SCALARS, flat_fields


def _stored(t: types.Type) -> types.Type:
    return t if isinstance(t, types.Varbit | types.Bits) else types.Bits(types.width_of(t) or 0)


def _fields(fields: list[tuple[str, types.Type]]) -> list[tuple[str, types.Type]]:
    """Return fields in their stored form. Their varbit field or padding fills up the last byte."""
    widths = [types.width_of(t) or 0 for _, t in fields]
    variable = any(isinstance(t, types.Varbit) for _, t in fields)
    rest = sum(widths) // 8 * 8 - sum(widths) if variable else 0
    stored: list[tuple[str, types.Type]] = []
    for (name, t), width in zip(fields, widths, strict=True):
        stored.append((name, types.Varbit(width + rest) if isinstance(t, types.Varbit) else _stored(t)))
    padding = 0 if variable else -sum(widths) % 8
    return [*stored, ("_padding", types.Bits(padding))] if padding else stored


class Storage:
    """Header instances of a program. `stacks` and `unions` map names to the references that expressions use."""

    def __init__(self, program: ir.Program) -> None:
        self.instances: dict[str, ir.Instance] = {}
        self.stacks: dict[str, ir.StackRef] = {}
        self.unions: dict[str, ir.UnionRef] = {}
        self._types: dict[types.Type, types.Header] = {}
        self._union_types: dict[types.Type, types.Union] = {}
        self._taken = {SCALARS, *(metadata.name for metadata in program.metadata)}
        self._fields: dict[tuple[str, str], ir.FieldRef] = {}
        self._add(SCALARS, header_type(SCALARS, _fields(list(program.scalars.items()))), metadata=True)
        for metadata in program.metadata:
            self._add(metadata.name, header_type(metadata.name, _fields(metadata.fields)), metadata=True)
        varbits: dict[int, types.Header] = {}
        for name, width in program.varbits.items():
            if width not in varbits:
                type_name = f"varbit{width}"
                self._taken.add(type_name)
                varbits[width] = header_type(type_name, [("field", types.Varbit(-(-width // 8) * 8))])
            self._add(name, varbits[width], metadata=True)
        for instance in program.headers:
            self._add(instance.name, self._type(instance.type), metadata=False)
        for union, _ in program.unions:
            self.unions[union.name] = ir.UnionRef(self._union_type(union.type), union.name)
        for stack, _ in program.stacks:
            headers = isinstance(stack.element, types.Header)
            element = self._type(stack.element) if headers else self._union_type(stack.element)
            self.stacks[stack.name] = ir.StackRef(stack.name, element, stack.size)

    def field(self, header: str, name: str) -> ir.FieldRef:
        """Return a field of an instance."""
        key = header, name
        if key not in self._fields:
            declared = self.instances[header].type.find(name)
            assert declared is not None, key
            self._fields[key] = ir.FieldRef(header, name, declared.type)
        return self._fields[key]

    def element(self, stack: str, member: str) -> types.Header:
        """Return the type of a stack's elements, or of one member of the unions in it."""
        element = self.stacks[stack].element
        if isinstance(element, types.Header):
            return element
        declared = element.find(member)
        assert declared is not None
        assert isinstance(declared.type, types.Header)
        return declared.type

    def _add(self, name: str, t: types.Header, metadata: bool) -> None:
        self.instances[name] = ir.Instance(name, t, metadata)

    def _unique(self, t: types.Record) -> str:
        name = next((a.string for a in t.decl.annotations if a.name == "name" and a.string), str(t)).lstrip(".")
        candidate, n = name, 0
        while candidate in self._taken:
            n += 1
            candidate = f"{name}_{n}"
        self._taken.add(candidate)
        return candidate

    def _type(self, t: types.Record) -> types.Header:
        if t not in self._types:
            assert isinstance(t, types.Header)
            self._types[t] = header_type(self._unique(t), _fields(list(flat_fields(t))))
        return self._types[t]

    def _union_type(self, t: types.Record) -> types.Union:
        if t not in self._union_types:
            name = self._unique(t)
            members = [(f.name, self._type(f.type)) for f in t.fields if isinstance(f.type, types.Header)]
            self._union_types[t] = union_type(name, members)
        return self._union_types[t]
