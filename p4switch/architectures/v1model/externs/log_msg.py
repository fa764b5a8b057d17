"""`log_msg`: a line of text with values in it, for human readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.compiler.midend.values import EXPRS, HeaderValue, StructValue, Text, Value
from p4switch.engine import cexpr
from p4switch.engine.cexpr import String
from p4switch.ir.errors import ProgramError

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Pipeline, Statements, ast


@dataclass(slots=True, eq=False)
class LogMsg(ir.ExternOperation):
    """Log message; each `{}` in `text` is one of `values`."""

    text: str = field(metadata=ir.named("string"))
    values: list[ir.Expr] = field(metadata=ir.READ_ALL)
    span: int | None = None
    primitive = "log_msg"
    effects = frozenset({ir.Effect.LOG})

    def emit(self, to: Statements) -> None:
        """Format the message with its values, if there is a listener."""
        parts = self.text.split("{}")
        if len(parts) != len(self.values) + 1:
            raise ProgramError(f"log_msg: {len(parts) - 1} values expected, got {len(self.values)}")
        heard = cexpr.call("HEARD", "int", "sw")
        with to.em.when(cexpr.call("P4_UNLIKELY", "int", heard)):
            template, numbers = parts[0].replace("%", "%%"), []
            for argument, part in zip(self.values, parts[1:], strict=True):
                value = to.x.data(argument)
                kind = "long long" if value.low < 0 else "unsigned long long"
                numbers.append(cexpr.cast(kind, value.lowest(to.em, 64)))
                template += ("%lld" if value.low < 0 else "%llu") + part.replace("%", "%%")
            text = to.em.declare("char", "text", size=512)
            to.em.call("snprintf", text, cexpr.size_of(text), String(template), *numbers)
            to.em.call("p4_log", "sw", text)
            to.em.trace("LOG", "P4_NO_POINT", 0, 0, text, cexpr.call("strlen", "size_t", text))

    def run(self, machine: Machine) -> None:
        """Do nothing: tests do not look at the log."""

    def fit(self, pipeline: Pipeline) -> None:
        """Add nothing: a chip has no log."""


@EXTERNS.register("log_msg")
class LogMsgFunction(ExternFunction):
    operations = (LogMsg,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        args = to.externs.call_arguments(call)
        text = args[0]
        if not isinstance(text, Text):
            raise to.error(call, "the message has to be a compile-time constant")
        data = args[1] if len(args) > 1 else None
        items: list[Value] = [] if data is None else [data]
        if isinstance(data, StructValue):
            items = list(data.fields.values())
        parts = text.value.split("{}")
        message = parts[0]
        for i, part in enumerate(parts[1:]):
            message += (_format(items[i], call, to) if i < len(items) else "{}") + part
        values = [leaf for item in items for leaf in to.externs.fields_of(item, call)]
        to.emit(LogMsg(message, values, call.pos))


def _format(value: Value, node: ast.Node, to: Lowering) -> str:
    """Return placeholders for the scalars in `value`, with the names of fields."""
    if isinstance(value, StructValue):
        inner = [f"{name}:{_format(v, node, to)}" for name, v in value.fields.items()]
    elif isinstance(value, (ir.HeaderRef, HeaderValue)):
        inner = [f"{name}:{{}}" for name in to.copies.header_leaves(value) or ()]
    elif isinstance(value, EXPRS):
        return "{}"
    else:
        inner = ["{}" for _ in to.externs.fields_of(value, node)]
    return f"({','.join(inner)})"
