"""`digest`: values of the packet that are sent to the control plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.compiler.midend.values import EXPRS
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Statements, Value, ast


@dataclass(slots=True, eq=False)
class Digest(ir.ExternOperation):
    """Message to the control plane with the fields of the learn list `fields`, as they are at the end of ingress."""

    receiver: ir.Expr = field(metadata=ir.READ)
    fields: int = field(metadata=ir.number(ir.ENUM_TYPE))
    span: int | None = None
    primitive = "generate_digest"
    effects = frozenset({ir.Effect.DIGEST})

    def emit(self, to: Statements) -> None:
        to.em.set(cexpr.packet("digest"), self.fields & 0xFFFF)

    def run(self, machine: Machine) -> None:
        """Do nothing: tests do not look at digests."""


@EXTERNS.register("digest")
class DigestFunction(ExternFunction):
    operations = (Digest,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        to.externs.only_in(call, "ingress")
        receiver, data = to.externs.call_arguments(call)
        t = to.resolve(to.facts.bindings[call].param_types[1])
        name = "digest"
        if isinstance(t, types.Struct):
            name = next((a.string for a in t.decl.annotations if a.name == "name" and a.string), t.name)
        number = learn_list(name, t, data, call, to)
        to.emit(Digest(to.externs.scalar_argument(call, 0, receiver), number, call.pos))
        to.externs.digests.append(t)


def learn_list(name: str, t: types.Type, data: Value, call: ast.Call, to: Lowering) -> int:
    """Add a learn list of `data`, a value of type `t`, and return the id of the list.

    The list refers to copies that are made at `call`, because the target reads the fields later.
    """
    copies: list[ir.Expr] = []
    values = to.externs.fields_of(data, call)
    for member, value in zip(_member_names(t, len(values)), values, strict=True):
        place = to.storage.allocate(value.type, f"{to.prefix}{name}.{member}")
        to.copies.assign(place, value, call.pos)
        assert isinstance(place, EXPRS)
        copies.append(place)
    to.out.learn_lists.append(ir.FieldList(name, copies))
    return len(to.out.learn_lists)


def _member_names(t: types.Type, count: int) -> list[str]:
    """Return names for the `count` scalars of type `t`: the members' names if they are distinct, else numbers."""
    names = [name for name, _ in flat_fields(t)] if isinstance(t, types.Struct | types.Header) else []
    return names if len(names) == count else [str(i) for i in range(count)]
