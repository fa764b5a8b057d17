"""C expressions as nodes with types, simplified on construction and printed with the parentheses they need.

Arithmetic uses 64 bits or more, so narrower operands are cast. If only the value of an expression matters (it is
stored, compared, or passed to a function), no cast is needed; `bare` is the form without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

U64_TYPE = "uint64_t"
_INT_MAX = (1 << 31) - 1
_WORD = (1 << 64) - 1
_ONES = {U64_TYPE: _WORD, "p4_u128": (1 << 128) - 1}
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
_BITWISE = ("&", "|", "^")
# Operators that need no parentheses as operands of another operator. C allows more, but compilers warn about it.
_INSIDE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_COMPARE, ("+", "-", "*", "/", "%")),
    **dict.fromkeys(("&&",), ("+", "-", "*", "/", "%", *_COMPARE)),
    **dict.fromkeys(("||",), ("+", "-", "*", "/", "%", *_COMPARE)),
    **dict.fromkeys(("+", "-"), ("*", "/", "%")),
    "?:": ("+", "-", "*", "/", "%", "&", "|", "^", *_COMPARE),
}
_CHAINS = ("+", "&", "|", "^", "&&", "||")  # operators whose left operand may have the same operator


class C:
    """Base of C expressions. `type` is "" if it is not known."""

    type: str
    is_primary = False

    def __getitem__(self, index: Code) -> C:
        return Item(self, node(index))

    def limb(self, number: int) -> C:
        """Return a limb of a wide integer."""
        return Item(self, node(number), U64_TYPE)

    def __add__(self, other: Code) -> C:
        return binary("+", self, other)

    def __sub__(self, other: Code) -> C:
        return binary("-", self, other)

    def __mul__(self, other: Code) -> C:
        return binary("*", self, other)

    def __truediv__(self, other: Code) -> C:
        return binary("/", self, other)

    def __mod__(self, other: Code) -> C:
        return binary("%", self, other)

    def __lt__(self, other: Code) -> C:
        return compared("<", self, other)

    def __gt__(self, other: Code) -> C:
        return compared(">", self, other)

    def dot(self, member: str, c_type: str = "") -> C:
        """Return a member of a struct."""
        return Member(self, ".", member, c_type)

    def arrow(self, member: str, c_type: str = "") -> C:
        """Return a member of the struct to which the expression points."""
        return Member(self, "->", member, c_type)

    @property
    def address(self) -> C:
        return Unary("&", self, "")

    @property
    def op(self) -> str:
        """The outermost operator; "" if the expression is primary or unary."""
        return ""

    @property
    def value(self) -> int | None:
        """The value of a constant; None for other expressions."""
        return None

    @property
    def text(self) -> str:
        """The code without parentheses around it."""
        raise NotImplementedError

    @property
    def plain(self) -> C:
        """An expression with the same value but possibly another type."""
        return self

    def __str__(self) -> str:
        """Return the code as an operand."""
        return f"({self.text})" if self.op else self.text

    @property
    def postfix(self) -> str:
        """The code in a form that an index or a member can follow."""
        return self.text if self.is_primary else f"({self.text})"

    @property
    def bare(self) -> str:
        """The code for places where C converts it to the required type, or where only its value matters."""
        return self.plain.text

    def inside(self, op: str, *, left: bool = False) -> str:
        """Return the code as an operand of another operator."""
        if not self.op or self.op in _INSIDE.get(op, ()) or (left and self.op == op and op in _CHAINS):
            return self.text
        return f"({self.text})"


@dataclass(frozen=True)
class Name(C):
    """Name of a variable, a constant, a type, or a member in `offsetof`."""

    name: str
    type: str = ""
    is_primary = True

    def __post_init__(self) -> None:
        if not (self.name.isidentifier() and self.name.isascii()):
            raise ValueError(f"{self.name!r} is not a name in C")

    @property
    def text(self) -> str:
        return self.name


@dataclass(frozen=True)
class String(C):
    """String literal."""

    content: str
    type = "const char *"

    @property
    def text(self) -> str:
        shown = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in self.content.encode())
        return f'"{"".join(shown)}"'


@dataclass(frozen=True)
class Member(C):
    of: C
    operator: str
    name: str
    type: str = ""
    is_primary = True

    @property
    def text(self) -> str:
        return f"{self.of.postfix}{self.operator}{self.name}"


@dataclass(frozen=True)
class Item(C):
    """Element of an array."""

    of: C
    index: C
    type: str = ""
    is_primary = True

    @property
    def text(self) -> str:
        return f"{self.of.postfix}[{self.index.bare}]"


@dataclass(frozen=True)
class Rows(C):
    """Initialiser of an array, or with `c_type` an expression: a constant array without a name."""

    items: Sequence[Code]
    c_type: str = ""
    type = ""
    is_primary = True

    @property
    def text(self) -> str:
        cast = f"(const {self.c_type}[])" if self.c_type else ""
        return f"{cast}{{{', '.join(node(item).bare for item in self.items) or '0'}}}"


@dataclass(frozen=True)
class Fields(C):
    """Initialiser of a struct by the names of its members. Members that are 0 or NULL are omitted.

    With `c_type` it is an expression: a constant struct without a name.
    """

    members: Mapping[str, Code]
    c_type: str = ""
    type = ""
    is_primary = True

    @property
    def text(self) -> str:
        members = {name: node(value).bare for name, value in self.members.items()}
        shown = {name: text for name, text in members.items() if text not in ("0", "NULL")} or members
        cast = f"(const {self.c_type})" if self.c_type else ""
        return f"{cast}{{{', '.join(f'.{name} = {text}' for name, text in shown.items())}}}"


@dataclass(frozen=True)
class Number(C):
    """Constant. Without a type it is a size, an offset or an object's number, and is printed in decimal."""

    number: int
    type: str = U64_TYPE

    @property
    def value(self) -> int:
        return self.number

    @property
    def text(self) -> str:
        if not self.type:
            return str(self.number)
        word = self.number & _WORD
        digits = str(word) if word < 10 else f"{word:#x}"
        if self.type == "int":
            return digits
        if "128" in self.type:
            return f"({self.type})((p4_u128)0x{self.number >> 64 & _WORD:x}ull << 64 | 0x{word:x}ull)"
        return f"{digits}ull" if self.type == U64_TYPE else f"({self.type}){digits}ull"

    @property
    def plain(self) -> C:
        return Number(self.number, "int") if self.type == U64_TYPE and self.number <= _INT_MAX else self


@dataclass(frozen=True)
class Cast(C):
    """Cast. A cast that `widens` an unsigned value does not change the value."""

    type: str
    operand: C
    widens: bool = False

    @property
    def text(self) -> str:
        return f"({self.type}){self.operand.plain if self.operand.type == U64_TYPE else self.operand}"

    @property
    def plain(self) -> C:
        return self.operand if self.widens else self


@dataclass(frozen=True)
class Call(C):
    function: C
    arguments: tuple[C, ...]
    type: str
    is_primary = True

    @property
    def text(self) -> str:
        return f"{self.function.postfix}({', '.join(argument.bare for argument in self.arguments)})"


@dataclass(frozen=True)
class Unary(C):
    operator: str
    operand: C
    type: str

    @property
    def text(self) -> str:
        return f"{self.operator}{self.operand}"


@dataclass(frozen=True)
class Binary(C):
    operator: str
    left: C
    right: C
    type: str

    @property
    def op(self) -> str:
        return self.operator

    @property
    def text(self) -> str:
        return f"{self.left.inside(self.op, left=True)} {self.op} {self.right.inside(self.op)}"

    @property
    def plain(self) -> C:
        bitwise = self.op in _BITWISE and self.type == U64_TYPE and self.right.type in (U64_TYPE, "int", "")
        if not bitwise and (self.op != ">>" or self.right.value is None):
            return self
        left, right = self.left.plain, self.right.plain
        return self if left is self.left and right is self.right else Binary(self.op, left, right, "")


@dataclass(frozen=True)
class Conditional(C):
    condition: C
    yes: C
    no: C
    type: str

    @property
    def op(self) -> str:
        return "?:"

    @property
    def text(self) -> str:
        return f"{self.condition.plain.inside('?:')} ? {self.yes.inside('?:')} : {self.no.inside('?:')}"


Code = C | str | int
"""C expression. A string stands for a name."""


def node(code: Code, c_type: str = "") -> C:
    if isinstance(code, str):
        return Name(code, c_type)
    return Number(code, c_type) if isinstance(code, int) else code


def literal(value: int, c_type: str = U64_TYPE) -> C:
    """Return a constant of 64 or 128 bits."""
    return Number(value & _WORD if c_type == U64_TYPE else value, c_type)


def limbs(number: int, count: int) -> Rows:
    """Return the limbs of a wide integer, the least significant one first."""
    return Rows([literal(number >> 64 * i) for i in range(count)])


def packet(member: str, c_type: str = "") -> C:
    """Return a member of the packet."""
    return Name("p").arrow(member, c_type)


def switch(member: str) -> C:
    """Return a member of the switch."""
    return Name("sw").arrow(member)


def cells(row_type: str, arrays: str, number: int) -> C:
    """Return an array of the switch as a pointer to its rows."""
    return Cast(f"{row_type} *", Cast("void *", switch(arrays)[number]))


def call(function: Code, c_type: str, *args: Code) -> C:
    return Call(node(function), tuple(map(node, args)), c_type)


def size_of(code: Code) -> C:
    return Unary("sizeof ", node(code), "size_t")


def size_of_type(c_type: str) -> C:
    return call("sizeof", "size_t", c_type)


def cast(c_type: str, code: Code) -> C:
    inner = node(code)
    return inner if inner.type == c_type else Cast(c_type, inner)


def widened(code: Code) -> C:
    """Return the cast of `code`, an unsigned value of at most 64 bits, to 64 bits."""
    return Cast(U64_TYPE, node(code), widens=True)


def unary(op: str, a: Code) -> C:
    operand = node(a)
    return Unary(op, operand, operand.type)


def binary(op: str, a: Code, b: Code) -> C:
    """Return an operation on operands of one type, or a shift by an int."""
    x, y = node(a), node(b)
    unsigned = x.type == U64_TYPE and y.type in (U64_TYPE, "")
    if unsigned and x.value is not None and y.value is not None and op in _FOLDED:
        return literal(_FOLDED[op](x.value, y.value))
    if y.value == 0 and op in ("+", "-", "|", "^", "<<", ">>"):
        return x
    if x.value == 0 and op in ("+", "|", "^"):
        return y
    if op == "&" and unsigned and 0 in (x.value, y.value):
        return literal(0)
    if op == "&" and y.value is not None and y.value == _ONES.get(x.type):
        return x
    left = x.plain if x.value is not None and op not in ("<<", ">>") else x
    return Binary(op, left, y.plain if y.value is not None else y, x.type)


def shifted(op: str, a: Code, by: int) -> C:
    """Return a shift by a constant that is less than the width of the type."""
    x = node(a)
    if not by:
        return x
    if x.value is not None and x.type == U64_TYPE:
        return literal(_FOLDED[op](x.value, by))
    return Binary(op, x, Number(by, ""), x.type)


def low_part(a: Code, width: int) -> C:
    """Return an unsigned value without the bits beyond `width`."""
    return binary("&", a, literal((1 << width) - 1, U64_TYPE if width <= 64 else "p4_u128"))


def compared(op: str, a: Code, b: Code) -> C:
    """Return a comparison of operands of one type."""
    x, y = node(a), node(b)
    if x.type == y.type == U64_TYPE:
        x, y = x.plain, y.plain
    return Binary(op, x, y, "int")


def both(op: str, a: Code, b: Code) -> C:
    """Return conditions joined by `&&` or `||`."""
    return Binary(op, node(a).plain, node(b).plain, "int")


def negated(a: Code) -> C:
    x = node(a)
    if x.value is not None:
        return literal(int(not x.value), "int")
    if isinstance(x, Binary) and x.op in _OPPOSITE:
        return Binary(_OPPOSITE[x.op], x.left, x.right, "int")
    return Unary("!", x, "int")


def chosen(condition: Code, a: Code, b: Code, c_type: str) -> C:
    return Conditional(node(condition), node(a), node(b), c_type)
