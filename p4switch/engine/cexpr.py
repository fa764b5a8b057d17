"""C expressions with types, simplified on construction and printed with the parentheses they need.

Arithmetic uses 64 bits or more, so narrower values are cast before. Where only the value matters (it is stored,
compared, or passed to a function) no cast is needed; each expression knows such a form of itself (`bare`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

U64_TYPE = "uint64_t"
_INT_MAX = (1 << 31) - 1
_WORD = (1 << 64) - 1
_FOLDED: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b if b < 64 else 0,
    ">>": lambda a, b: a >> b if b < 64 else 0,
}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARE = tuple(_OPPOSITE)
# Operators whose results need no parentheses as operands of another; compilers warn where C itself allows more.
_INSIDE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_COMPARE, ("+", "-", "*", "/", "%")),
    **dict.fromkeys(("&&",), ("+", "-", "*", "/", "%", *_COMPARE)),
    **dict.fromkeys(("||",), ("+", "-", "*", "/", "%", *_COMPARE)),
    **dict.fromkeys(("+", "-"), ("*", "/", "%")),
    "?:": ("+", "-", "*", "/", "%", "&", "|", "^", *_COMPARE),
}
_CHAINS = ("+", "&", "|", "^", "&&", "||")  # the left operand may have the same operator


@dataclass(frozen=True)
class C:
    """C expression.

    `text` has no parentheses around it. `op` is its outermost operator, "" if it is primary or unary.
    """

    text: str
    type: str = ""
    op: str = ""
    value: int | None = None
    equal: C | None = field(default=None, compare=False)  # in value, without casts
    operands: tuple[str, str] | None = None  # of a comparison

    def __str__(self) -> str:
        """Return the code as an operand."""
        return f"({self.text})" if self.op else self.text

    @property
    def plain(self) -> C:
        """Form with the same value but possibly another type."""
        return self.equal or self

    @property
    def bare(self) -> str:
        """Form for places where C converts it to the wanted type, or where only its value matters."""
        return self.plain.text

    def inside(self, op: str, *, left: bool = False) -> str:
        """Return the code as an operand of another operator."""
        if not self.op or self.op in _INSIDE.get(op, ()) or (left and self.op == op and op in _CHAINS):
            return self.text
        return f"({self.text})"


Code = C | str
"""C expression; a string must be primary or have parentheses."""


def node(code: Code, c_type: str = "") -> C:
    return code if isinstance(code, C) else C(code, c_type)


def literal(value: int, c_type: str = U64_TYPE) -> C:
    """Return a constant of 64 bits."""
    word = value & _WORD
    digits = str(word) if word < 10 else f"{word:#x}"
    if c_type == U64_TYPE:
        equal = C(digits, "int", value=word) if word <= _INT_MAX else None
        return C(f"{digits}ull", U64_TYPE, value=word, equal=equal)
    return C(f"({c_type}){digits}ull", c_type, value=value)


def call(name: str, c_type: str, *args: Code | int) -> C:
    return C(f"{name}({', '.join(node(a).bare if not isinstance(a, int) else str(a) for a in args)})", c_type)


def cast(c_type: str, code: Code) -> C:
    inner = node(code)
    if inner.type == c_type:
        return inner
    return C(f"({c_type}){inner.plain if inner.type == U64_TYPE else inner}", c_type)


def widened(code: str) -> C:
    """Return an unsigned value of up to 64 bits, such as a struct's member."""
    return C(f"(uint64_t){code}", U64_TYPE, equal=C(code))


def binary(op: str, a: Code, b: Code) -> C:
    """Return an operation on operands of one type, or a shift by an int."""
    x, y = node(a), node(b)
    unsigned = x.type == U64_TYPE and y.type in (U64_TYPE, "")
    if unsigned and x.value is not None and y.value is not None and op in _FOLDED:
        return literal(_FOLDED[op](x.value, y.value) & _WORD)
    if y.value == 0 and op in ("+", "-", "|", "^", "<<", ">>"):
        return x
    if x.value == 0 and op in ("+", "|", "^"):
        return y
    if op == "&" and unsigned and 0 in (x.value, y.value):
        return literal(0)
    right = y.plain if y.value is not None else y
    left = x.plain if x.value is not None and op not in ("<<", ">>") else x
    equal = None
    if op in ("&", "|", "^") and (x.equal or y.equal) and unsigned:
        equal = C(f"{x.plain.inside(op, left=True)} {op} {y.plain.inside(op)}", "", op)
    return C(f"{left.inside(op, left=True)} {op} {right.inside(op)}", x.type, op, equal=equal)


def shifted(op: str, a: Code, by: int) -> C:
    """Return a shift by a constant of less than the width of the type."""
    x = node(a)
    if not by:
        return x
    if x.value is not None and x.type == U64_TYPE:
        return literal(_FOLDED[op](x.value, by) & _WORD)
    equal = C(f"{x.plain.inside(op)} >> {by}", "", op) if op == ">>" and x.equal is not None else None
    return C(f"{x.inside(op)} {op} {by}", x.type, op, equal=equal)


def compared(op: str, a: Code, b: Code) -> C:
    """Return a comparison of operands of one type."""
    x, y = node(a), node(b)
    if x.type == y.type == U64_TYPE:
        x, y = x.plain, y.plain
    operands = x.inside(op), y.inside(op)
    return C(f"{operands[0]} {op} {operands[1]}", "int", op, operands=operands)


def both(op: str, a: Code, b: Code) -> C:
    """Return conditions joined by `&&` or `||`."""
    x, y = node(a), node(b)
    return C(f"{x.plain.inside(op, left=True)} {op} {y.plain.inside(op)}", "int", op)


def negated(a: Code) -> C:
    x = node(a)
    if x.op in _OPPOSITE and x.operands is not None:
        return C(f"{x.operands[0]} {_OPPOSITE[x.op]} {x.operands[1]}", "int", _OPPOSITE[x.op])
    return C(f"!{x}", "int")


def chosen(condition: Code, a: Code, b: Code, c_type: str) -> C:
    return C(f"{node(condition).plain.inside('?:')} ? {node(a).inside('?:')} : {node(b).inside('?:')}", c_type, "?:")
