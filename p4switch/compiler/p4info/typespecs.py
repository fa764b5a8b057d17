"""Types in P4Info: `P4DataTypeSpec`, and the named types in `P4TypeInfo`."""

from __future__ import annotations

from typing import Any

from p4switch.compiler import ast, types
from p4switch.compiler.facts import Facts
from p4switch.compiler.midend.storage import flat_fields
from p4switch.compiler.p4info.annotations import add_annotations


def type_name(t: types.Record | types.Enum | types.NewType) -> str:
    annotation = next((a.string for a in t.decl.annotations if a.name == "name" and a.string), None)
    return (annotation or t.decl.name).lstrip(".")


def _field_name(f: types.Field) -> str:
    annotation = next((a.string for a in f.decl.annotations if a.name == "name" and a.string), None)
    return annotation or f.name


def translation(t: types.Type) -> ast.Annotation | None:
    """Return the `@p4runtime_translation` of a `type` declaration."""
    if not isinstance(t, types.NewType):
        return None
    return next((a for a in t.decl.annotations if a.name == "p4runtime_translation"), None)


def _controller_width(annotation: ast.Annotation) -> int | None:
    """Return the width in `@p4runtime_translation("uri", bit<width>)`; None for `string`."""
    digits = [token for token in annotation.tokens[1:] if token.isdigit()]
    return int(digits[0]) if digits else None


def bitwidth(t: types.Type) -> int:
    """Return the width of a value of type `t` over P4Runtime; 0 for strings."""
    annotation = translation(t)
    if annotation is not None:
        return _controller_width(annotation) or 0
    t = types.strip_newtype(t)
    if isinstance(t, types.Error):
        return 0
    if isinstance(t, types.Enum) and t.underlying is None:
        return 32
    return types.width_of(t) or 0


def encode(value: int, width: int) -> bytes:
    """Return a value in P4Runtime's form, with as many bytes as the width needs."""
    return (value & ((1 << width) - 1)).to_bytes(-(-width // 8), "big")


class TypeSpecs:
    """Converter of types to P4Info, which adds named types to `type_info`."""

    def __init__(self, p4info: Any, spec_class: Any, errors: list[str], facts: Facts) -> None:
        self._p4info = p4info
        self._spec_class = spec_class
        self._errors = errors
        self._facts = facts

    def convert(self, t: types.Type) -> Any:
        spec = self._spec_class()
        if isinstance(t, types.Bits):
            (spec.bitstring.int if t.signed else spec.bitstring.bit).bitwidth = t.width
        elif isinstance(t, types.Varbit):
            spec.bitstring.varbit.max_bitwidth = t.max_width
        elif isinstance(t, types.Bool):
            spec.bool.SetInParent()
        elif isinstance(t, types.Tuple):
            spec.tuple.SetInParent()
            for element in t.elements:
                spec.tuple.members.add().CopyFrom(self.convert(element))
        elif isinstance(t, types.Stack):
            self._stack(spec, t)
        elif isinstance(t, types.Error):
            spec.error.SetInParent()
            self._error()
        elif isinstance(t, types.Enum):
            self._enum(spec, t)
        elif isinstance(t, types.NewType):
            spec.new_type.name = type_name(t)
            self._new_type(t)
        elif isinstance(t, types.Struct):
            spec.struct.name = type_name(t)
            self._struct(t)
        elif isinstance(t, types.Header):
            spec.header.name = type_name(t)
            self._header(t)
        elif isinstance(t, types.Union):
            spec.header_union.name = type_name(t)
            self._union(t)
        return spec

    @property
    def _info(self) -> Any:
        return self._p4info.type_info

    def _stack(self, spec: Any, t: types.Stack) -> None:
        if isinstance(t.element, types.Union):
            spec.header_union_stack.header_union.name = type_name(t.element)
            spec.header_union_stack.size = t.size
        elif isinstance(t.element, types.Header):
            spec.header_stack.header.name = type_name(t.element)
            spec.header_stack.size = t.size
        self.convert(t.element)

    def _error(self) -> None:
        if not self._info.HasField("error"):
            self._info.error.members.extend(self._errors)

    def _enum(self, spec: Any, t: types.Enum) -> None:
        name = type_name(t)
        if t.underlying is None:
            spec.enum.name = name
            if name not in self._info.enums:
                for m in t.decl.members:
                    self._info.enums[name].members.add(name=m.name)
            return
        spec.serializable_enum.name = name
        if name not in self._info.serializable_enums:
            entry = self._info.serializable_enums[name]
            entry.underlying_type.bitwidth = t.underlying.width
            for m in t.decl.members:
                entry.members.add(name=m.name, value=encode(self._facts.values[m], t.underlying.width))

    def _new_type(self, t: types.NewType) -> None:
        name = type_name(t)
        if name in self._info.new_types:
            return
        underlying = self.convert(types.strip_newtype(t))
        entry = self._info.new_types[name]
        add_annotations(entry, t.decl.annotations, "p4runtime_translation")
        annotation = translation(t)
        if annotation is None:
            entry.original_type.CopyFrom(underlying)
            return
        uri = annotation.tokens[0].strip('"') if annotation.tokens else ""
        entry.translated_type.uri = uri
        width = _controller_width(annotation)
        if width is None:
            entry.translated_type.sdn_string.SetInParent()
        else:
            entry.translated_type.sdn_bitwidth = width

    def _struct(self, t: types.Struct) -> None:
        name = type_name(t)
        if name in self._info.structs:
            return
        members = [(_field_name(f), self.convert(f.type)) for f in t.fields]
        entry = self._info.structs[name]
        for field_name, spec in members:
            entry.members.add(name=field_name, type_spec=spec)

    def _header(self, t: types.Header) -> None:
        name = type_name(t)
        if name in self._info.headers:
            return
        entry = self._info.headers[name]
        entry.SetInParent()
        for field_name, field_type in flat_fields(t):
            entry.members.add(name=field_name, type_spec=self.convert(field_type).bitstring)

    def _union(self, t: types.Union) -> None:
        name = type_name(t)
        if name in self._info.header_unions:
            return
        for f in t.fields:
            self.convert(f.type)
        for f in t.fields:
            if isinstance(f.type, types.Header):
                self._info.header_unions[name].members.add(name=f.name).header.name = type_name(f.type)
