"""Roles of the attributes of operations, which determine an operation's reads, writes and arguments.

index: ir.Expr = field(metadata=ir.READ)
target: ir.Place = field(metadata=ir.WRITTEN)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeAlias, TypeVar

from p4switch.compiler.types import Type
from p4switch.ir.expressions import Const, Expr, HeaderRef, Place, Reference, Valid

if TYPE_CHECKING:
    from p4switch.bmv2.arguments import Arguments
    from p4switch.ir.program import Calculation

Read: TypeAlias = "Expr | Reference"
Written: TypeAlias = "Place | Valid | Reference"
"""Written place. A reference is all fields and the validity of all headers in it; `Valid` is only the validity."""


@dataclass(slots=True, eq=False)
class Named:
    """Argument of a primitive that names an object: `kind` is the JSON's type, such as `register_array`."""

    kind: str
    value: str


Argument: TypeAlias = "Expr | Reference | Named | list[Expr]"
_ROLE: Final = "operand"


Value = TypeVar("Value")


def _none(_: object) -> tuple[()]:
    return ()


def _one(value: Value) -> tuple[Value]:
    return (value,)


def _present(expr: Expr | None) -> tuple[Expr, ...]:
    return () if expr is None else (expr,)


@dataclass(frozen=True)
class Operand(Generic[Value]):
    """Role of an attribute. Its functions take the attribute's value."""

    arguments: Callable[[Value], Iterable[Argument]]
    """Arguments of the primitive."""
    take: Callable[[Arguments], Value] | None = None
    """Reads the value from the arguments of a primitive, for operations of externs."""
    read: Callable[[Value], Iterable[Read]] = _none
    """Expressions that are evaluated."""
    written: Callable[[Value], Iterable[Written]] = _none
    """Places that may be changed."""


def role(operand: Operand[Value]) -> Mapping[str, Operand[Value]]:
    """Return metadata that give a dataclass field this role."""
    return {_ROLE: operand}


READ = role(Operand["Expr | None"](_present, take=lambda given: given.value(), read=_present))
"""Expression, or None for an optional one."""
READ_ALL = role(Operand[list[Expr]](lambda values: [values], take=lambda given: given.values(), read=tuple))
"""List of expressions."""
WRITTEN = role(Operand[Place](_one, take=lambda given: given.place(), written=_one))
CHANGED = role(Operand[Place](_one, take=lambda given: given.place(), read=_one, written=_one))
"""Place that is read and written."""
VALIDITY = role(Operand[HeaderRef](_one, written=lambda header: (Valid(header),)))
"""Header that becomes valid or invalid."""
VALIDITIES = role(Operand[list[HeaderRef]](tuple, written=lambda headers: tuple(map(Valid, headers))))
"""List of headers that become invalid."""
CALCULATION: Mapping[str, Operand[Calculation]] = role(
    Operand(
        lambda calculation: (Named("calculation", calculation.name),),
        take=lambda given: given.calculation(),
        read=lambda calculation: calculation.inputs,
    )
)


def named(kind: str) -> Mapping[str, Operand[str]]:
    """Return the role of an object's name; `kind` is its type in BMv2 JSON."""
    return role(Operand[str](lambda name: (Named(kind, name),), take=lambda given: given.name()))


def number(t: Type) -> Mapping[str, Operand[int]]:
    """Return the role of a number of type `t` that is known at compile time."""
    return role(Operand[int](lambda value: (Const(value, t),), take=lambda given: given.number()))


def numbers(t: Type, count: int) -> Mapping[str, Operand[tuple[int, ...]]]:
    """Return the role of a tuple of `count` numbers of type `t` that are known at compile time."""
    return role(
        Operand[tuple[int, ...]](
            lambda values: tuple(Const(value, t) for value in values),
            take=lambda given: tuple(given.number() for _ in range(count)),
        )
    )


def roles(cls: type) -> tuple[tuple[str, Operand[NoReturn]], ...]:
    """Return the attributes of a dataclass in order, without `span`, each with its role.

    Raises TypeError for an attribute without a role. A class that is not (yet) a dataclass has no attributes.
    """
    attributes: dict[str, dataclasses.Field[object]] = getattr(cls, "__dataclass_fields__", {})
    lacking = [name for name, f in attributes.items() if name != "span" and _ROLE not in f.metadata]
    if lacking:
        raise TypeError(f"class {cls.__name__} has no role for {', '.join(lacking)}")
    return tuple((name, f.metadata[_ROLE]) for name, f in attributes.items() if name != "span")
