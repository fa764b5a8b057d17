"""The types of P4-16 (language specification, section 7).

Structural types (`bit<8>`, `tuple<bit<8>, bool>`, stacks ...) are equal if their parts are equal. Nominal types
(structs, headers, enums, externs, parsers, `type` ...) are equal if they come from the same declaration with the same
type arguments. A typedef is replaced by the type that it names. Types are immutable and hashable.

The few types that exist only during checking are at the end, under "While checking".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from p4switch.compiler import ast


class Type:
    """Base of all types. `str(t)` is P4 syntax if the type can be written in P4."""

    __slots__ = ()


# Base types


@dataclass(frozen=True, slots=True)
class Bits(Type):
    """`bit<width>`, or `int<width>` (two's complement) if `signed`."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True, slots=True)
class Varbit(Type):
    """`varbit<max_width>`."""

    max_width: int

    def __str__(self) -> str:
        return f"varbit<{self.max_width}>"


@dataclass(frozen=True, slots=True)
class InfInt(Type):
    """Type `int` of compile-time integers without a width."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True, slots=True)
class Bool(Type):
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True, slots=True)
class String(Type):
    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class Error(Type):
    """The `error` type; its members are in `Program.errors`."""

    def __str__(self) -> str:
        return "error"


@dataclass(frozen=True, slots=True)
class MatchKind(Type):
    def __str__(self) -> str:
        return "match_kind"


@dataclass(frozen=True, slots=True)
class Void(Type):
    def __str__(self) -> str:
        return "void"


INT = InfInt()
BOOL = Bool()
STRING = String()
ERROR = Error()
MATCH_KIND = MatchKind()
VOID = Void()


# Derived structural types


@dataclass(frozen=True, slots=True)
class Stack(Type):
    """`element[size]`: a header stack if the element is a header or header union, otherwise an array."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class List(Type):
    """`list<element>`: compile-time lists (constructor arguments)."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class Set(Type):
    """`set<element>`: the type of keyset expressions and value sets."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


# Nominal types


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a struct, header or union, with its specialised type."""

    name: str
    type: Type
    decl: ast.FieldDecl


@dataclass(frozen=True, slots=True)
class Applied(Type):
    """Base of the types of declarations that may have type parameters, with the type arguments."""

    decl: ast.Declaration
    args: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.decl.name}<{', '.join(map(str, self.args))}>" if self.args else self.decl.name


@dataclass(frozen=True, slots=True)
class Record(Applied):
    """Base of Struct, Header and Union."""

    decl: ast.RecordDecl
    declared: list[Field] = field(compare=False, repr=False)
    """Fields of the declaration, whose types contain the declaration's type parameters."""
    _fields: list[tuple[Field, ...]] = field(default_factory=list, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The declared name, which is the same for all specialisations."""
        return self.decl.name

    @property
    def fields(self) -> tuple[Field, ...]:
        if not self._fields:
            bound = dict(zip(self.decl.type_params, self.args, strict=True))
            self._fields.append(tuple(Field(f.name, substitute(f.type, bound), f.decl) for f in self.declared))
        return self._fields[0]

    def find(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)


class Struct(Record):
    __slots__ = ()


class Header(Record):
    __slots__ = ()


class Union(Record):
    """`header_union`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Enum(Type):
    """Enum. `underlying` is the representation of a serializable enum, and None for other enums."""

    decl: ast.EnumDecl
    underlying: Bits | None = None

    def __str__(self) -> str:
        return self.decl.name


@dataclass(frozen=True, slots=True)
class NewType(Type):
    """`type underlying name`: a distinct type with the values of `underlying`."""

    decl: ast.NewTypeDecl
    underlying: Type

    def __str__(self) -> str:
        return self.decl.name


@dataclass(frozen=True, slots=True)
class TypeVar(Type):
    """Type parameter within the generic declaration that introduces it."""

    decl: ast.TypeParam

    def __str__(self) -> str:
        return self.decl.name


class Extern(Applied):
    __slots__ = ()
    decl: ast.ExternDecl


class Parser(Applied):
    """The type of a parser, or a `parser` type declaration (with `args`)."""

    __slots__ = ()
    decl: ast.ParserDecl | ast.ParserTypeDecl


class Control(Applied):
    """The type of a control, or a `control` type declaration (with `args`)."""

    __slots__ = ()
    decl: ast.ControlDecl | ast.ControlTypeDecl


class Package(Applied):
    __slots__ = ()
    decl: ast.PackageDecl


@dataclass(frozen=True, slots=True)
class Table(Type):
    """The type of the name of a table."""

    decl: ast.TableDecl

    def __str__(self) -> str:
        return f"table {self.decl.name}"


@dataclass(frozen=True, slots=True)
class ApplyResult(Type):
    """Result of `t.apply()`: fields `hit`, `miss` (bool) and `action_run`."""

    decl: ast.TableDecl

    def __str__(self) -> str:
        return f"the result of {self.decl.name}.apply()"


@dataclass(frozen=True, slots=True)
class ActionRun(Type):
    """The type of `t.apply().action_run`: one value for each action of the table."""

    decl: ast.TableDecl

    def __str__(self) -> str:
        return f"{self.decl.name}.action_run"


# While checking


@dataclass(frozen=True, slots=True)
class Unknown(Type):
    """Type of an expression with a reported error.

    It is compatible with every type, so that no error follows from it.
    """

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class AnonRecord(Type):
    """`{a = 1, b = 2}` whose struct or header the context does not determine, as in a generic function's argument."""

    names: tuple[str, ...]
    types: tuple[Type, ...]

    def __str__(self) -> str:
        return "struct {" + "".join(f"{t} {n}; " for n, t in zip(self.names, self.types, strict=True)) + "}"


@dataclass(frozen=True, slots=True)
class Callable(Type):
    """The type of the name of an action, function or method before it is called."""

    decl: ast.Declaration

    def __str__(self) -> str:
        return f"{self.decl.name}(...)"


@dataclass(frozen=True, slots=True)
class Meta(Type):
    """The type of a type name used as the start of an expression: `E` in `E.a`, `C` in `C.apply()`."""

    type: Type

    def __str__(self) -> str:
        return f"type {self.type}"


UNKNOWN = Unknown()


def substitute(t: Type, bound: Mapping[ast.TypeParam, Type]) -> Type:
    """Return `t` with the type parameters in `bound` replaced."""
    if not bound or isinstance(t, Bits):
        return t
    if isinstance(t, TypeVar):
        return bound.get(t.decl, t)
    if isinstance(t, Record):
        return type(t)(t.decl, tuple(substitute(a, bound) for a in t.args), t.declared) if t.args else t
    if isinstance(t, Applied):
        return type(t)(t.decl, tuple(substitute(a, bound) for a in t.args)) if t.args else t
    if isinstance(t, Stack):
        return Stack(substitute(t.element, bound), t.size)
    if isinstance(t, Tuple):
        return Tuple(tuple(substitute(e, bound) for e in t.elements))
    if isinstance(t, List):
        return List(substitute(t.element, bound))
    if isinstance(t, Set):
        return Set(substitute(t.element, bound))
    if isinstance(t, AnonRecord):
        return AnonRecord(t.names, tuple(substitute(e, bound) for e in t.types))
    return t


def strip_newtype(t: Type) -> Type:
    """Return the type that a `type` declaration finally stands for, and other types unchanged."""
    while isinstance(t, NewType):
        t = t.underlying
    return t


def width_of(t: Type) -> int | None:
    """Return the maximum width of a value of type `t` in bits; None if the type has no width."""
    if isinstance(t, Bits):
        return t.width
    if isinstance(t, Bool):
        return 1
    if isinstance(t, Varbit):
        return t.max_width
    if isinstance(t, NewType):
        return width_of(t.underlying)
    if isinstance(t, Enum):
        return t.underlying.width if t.underlying else None
    if isinstance(t, Stack):
        element = width_of(t.element)
        return None if element is None else element * t.size
    if isinstance(t, (Struct, Header)):
        parts = [width_of(f.type) for f in t.fields]
    elif isinstance(t, Tuple):
        parts = [width_of(e) for e in t.elements]
    elif isinstance(t, Union):
        parts = [width_of(f.type) for f in t.fields]
        sizes = [p for p in parts if p is not None]
        return max(sizes, default=0) if len(sizes) == len(parts) else None
    else:
        return None
    known = [p for p in parts if p is not None]
    return sum(known) if len(known) == len(parts) else None
