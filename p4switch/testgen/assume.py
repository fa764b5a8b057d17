"""Assumptions of a user about packets: `ipv4.protocol == 6 and tcp.dst_port in (80, 443)`.

The syntax is that of Python. A name is a field of a header (`HEADER.FIELD`), a field of the target's
metadata (`INSTANCE.FIELD`), or a header, which is true if the header is valid.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields
from p4switch.errors import UserError, suggest
from p4switch.testgen.code import Code
from p4switch.testgen.machine import Machine
from p4switch.testgen.values import Scalar

_COMPARE: dict[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_BINARY: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def assumption(text: str, code: Code) -> Callable[[Machine], Scalar]:
    """Return the condition of `text` on the packet in a machine.

    Raises UserError for text that is not such an assumption.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UserError(f"--assume {text!r}: {error.msg}") from None
    expression, headers = _Reader(text, code).boolean(tree)

    def holds(machine: Machine) -> Scalar:
        if not headers <= machine.valid:
            return Scalar(0)
        return machine.value(expression)

    return holds


class _Reader:
    """Converter of Python expressions to IR expressions, with the headers that have to be valid for each."""

    def __init__(self, text: str, code: Code) -> None:
        self._text = text
        self._headers = {i.name: i.type for i in code.program.headers}
        self._metadata = {metadata.name: dict(metadata.fields) for metadata in code.program.metadata}

    def _refuse(self, what: str) -> UserError:
        return UserError(f"--assume {self._text!r}: {what}")

    def boolean(self, node: ast.expr) -> tuple[ir.Expr, set[str]]:
        if isinstance(node, ast.BoolOp):
            op = "&&" if isinstance(node.op, ast.And) else "||"
            parts = [self.boolean(v) for v in node.values]
            if op == "||" and any(headers for _, headers in parts):
                parts = [(self._guarded(expr, headers), set()) for expr, headers in parts]
            result, needed = parts[0]
            for expr, headers in parts[1:]:
                result, needed = ir.Op(op, (result, expr), types.BOOL), needed | headers
            return result, needed
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            expr, headers = self.boolean(node.operand)
            return ir.Op("!", (self._guarded(expr, headers),), types.BOOL), set()
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._comparison(node)
        name = ast.unparse(node)
        if name in self._headers:
            return ir.Valid(ir.HeaderRef(self._headers[name], name)), set()
        raise self._refuse(f"'{name}' is neither a comparison nor a header; {suggest(name, self._headers)}")

    def _guarded(self, expr: ir.Expr, headers: set[str]) -> ir.Expr:
        for name in sorted(headers):
            expr = ir.Op("&&", (ir.Valid(ir.HeaderRef(self._headers[name], name)), expr), types.BOOL)
        return expr

    def _comparison(self, node: ast.Compare) -> tuple[ir.Expr, set[str]]:
        op, right = node.ops[0], node.comparators[0]
        if isinstance(op, ast.In) and isinstance(right, (ast.Tuple, ast.List)):
            any_of = [ast.Compare(node.left, [ast.Eq()], [item]) for item in right.elts]
            return self.boolean(ast.BoolOp(ast.Or(), list(any_of)))
        if type(op) not in _COMPARE:
            raise self._refuse("expected ==, !=, <, <=, >, >= or 'in (...)'")
        left_type = self._type(node.left) or self._type(right)
        if left_type is None:
            raise self._refuse(f"no field in '{ast.unparse(node)}'")
        left, one = self._number(node.left, left_type)
        other, two = self._number(right, left_type)
        return ir.Op(_COMPARE[type(op)], (left, other), types.BOOL), one | two

    def _type(self, node: ast.expr) -> types.Type | None:
        if isinstance(node, ast.BinOp):
            return self._type(node.left) or self._type(node.right)
        return None if isinstance(node, ast.Constant) else self._field(node)[0].type

    def _number(self, node: ast.expr, t: types.Type) -> tuple[ir.Expr, set[str]]:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return ir.Const(node.value, t), set()
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            left, one = self._number(node.left, t)
            right, two = self._number(node.right, t)
            return ir.Op(_BINARY[type(node.op)], (left, right), t), one | two
        field, headers = self._field(node)
        return (field if field.type == t else ir.Op("cast", (field,), t)), headers

    def _field(self, node: ast.expr) -> tuple[ir.FieldRef, set[str]]:
        header, _, name = ast.unparse(node).rpartition(".")
        if name in self._metadata.get(header, ()):
            return ir.FieldRef(header, name, self._metadata[header][name]), set()
        header = header.removeprefix("hdr.")
        if header not in self._headers:
            raise self._refuse(f"no header '{header}'; {suggest(header, self._headers)}")
        fields = dict(flat_fields(self._headers[header]))
        if name not in fields:
            raise self._refuse(f"no field '{name}' in '{header}'; {suggest(name, fields)}")
        return ir.FieldRef(header, name, fields[name]), {header}
