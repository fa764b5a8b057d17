"""Generation of C for expressions of the intermediate representation.

Operators are exact and of type `int`; casts truncate results to the width of a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4switch import ir
from p4switch.compiler import types
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C
from p4switch.engine.emit import Emitter
from p4switch.engine.program import Column, Field, Header, HeaderType, Program, Register, Stack, labels
from p4switch.engine.value import (
    InHeader,
    Native,
    Place,
    Rep,
    Value,
    constant,
    convert,
    from_low,
    literal,
    low_bits,
    low_rep,
    rep_of,
)
from p4switch.ir.errors import ProgramError

_COMPARE = {"==", "!=", "<", "<=", ">", ">="}
_ARITHMETIC = {"+", "-", "*"}
_BITWISE = {"&", "|", "^"}
_MAX_SHIFT = 4096


@dataclass(frozen=True)
class HeaderRef:
    """Header, possibly a stack element known only at run time. `slot` and `base` are C expressions.

    `siblings` are the slots of the other members of its union.
    """

    type: HeaderType
    slot: str
    base: str
    siblings: tuple[str, ...] = ()
    metadata: Header | None = None
    at: str = ""  # its offset in `H`, if that is known

    @property
    def valid(self) -> str:
        return "1" if self.metadata else f"p->valid[{self.slot}]"

    def place(self, field: Field) -> Place:
        if self.metadata:
            return Native(field.width, field.signed, f"p->m.{self.metadata.label}.{field.member}")
        if field.varbit:
            raise ProgramError(f"{self.type.name}.{field.name} has variable length: it has no value")
        return InHeader(field.width, field.signed, self.base, field)

    def set_valid(self, em: Emitter) -> None:
        if self.metadata:
            return
        for sibling in self.siblings:
            em.do(f"p->valid[{sibling}] = 0")
        em.do(f"p->valid[{self.slot}] = 1")

    def length(self) -> str:
        """Return the bytes on the wire if the header is valid."""
        if self.type.fixed_bytes < 0:
            raise ProgramError(f"header type {self.type.name} is not a whole number of bytes")
        fixed = str(self.type.fixed_bytes)
        return f"({fixed} + p->varbytes[{self.slot}])" if self.type.varbit else fixed


class Expressions(ir.ExpressionVisitor[Value]):
    """Generator of expressions in one function. `params` are the action's parameters, in order."""

    def __init__(self, program: Program, em: Emitter, params: Sequence[Place] = ()) -> None:
        self.program = program
        self.em = em
        self.params = params

    # --- headers ---

    def named(self, name: str) -> HeaderRef:
        header = self.program.header(name)
        if header.metadata:
            return HeaderRef(header.type, "", "", metadata=header)
        siblings: tuple[str, ...] = ()
        if header.union:
            members = (self.program.headers[member] for member in self.program.unions[header.union])
            siblings = tuple(m.is_valid for m in members if m is not header)
        return HeaderRef(header.type, header.is_valid, f"p->H + {header.at}", siblings, at=header.at)

    @staticmethod
    def element(stack: Column, index: str) -> HeaderRef:
        """Return the element at a C index that is known to be at most `stack.size`."""
        if index.isdigit():
            at = int(index) * stack.type.nbytes
            return HeaderRef(stack.type, f"{stack.is_valid} + {index}", f"p->H + {stack.at} + {at}")
        base = f"p->H + {stack.at} + {index} * {stack.type.nbytes}"
        return HeaderRef(stack.type, f"{stack.is_valid} + {index}", base)

    def any_element(self, stack: Stack, member: str, index: str) -> HeaderRef:
        """Return the element, or its header `member`, at a C index that is known to be at most `stack.size`."""
        columns = {name: self.element(column, index) for name, column in stack.columns.items()}
        chosen = columns.pop(member)
        return HeaderRef(chosen.type, chosen.slot, chosen.base, tuple(other.slot for other in columns.values()))

    def header(self, ref: ir.HeaderRef) -> HeaderRef:
        if not ref.stack:
            return self.named(ref.name)
        assert ref.index is not None, "only an extraction has a next element"
        stack = self.program.stacks[ref.stack]
        return self.any_element(stack, ref.member, self.index(ref.index, stack.size))

    def last(self, stack: Stack) -> str:
        """Index of the last element that was extracted; the spare one if there is none."""
        return self.em.temp("uint32_t", f"p->next[{stack.next}] ? p->next[{stack.next}] - 1 : {stack.size}")

    def index(self, expr: ir.Expr, size: int) -> str:
        """Return an index into a stack of `size`; an index out of bounds becomes `size`, the spare element."""
        value = self.data(expr)
        if value.constant is not None:
            return str(value.constant if 0 <= value.constant < size else size)
        if value.low < 0 or value.high >= 1 << 64:
            inside = cexpr.both("&&", self.compare(">=", value, constant(self.em, 0)),
                                self.compare("<", value, constant(self.em, size)))
            return self.em.temp("uint32_t", f"{inside} ? (uint32_t){low_bits(self.em, value, 64)} : {size}")
        name = self.em.temp("uint64_t", value.code.bare)
        return self.em.temp("uint32_t", f"{name} < {size} ? (uint32_t){name} : {size}")

    # --- places ---

    def place(self, expr: ir.Expr) -> Place:
        """Return the place where a field, a parameter or a header's validity is stored."""
        if isinstance(expr, ir.Valid):
            return Native(1, False, self.header(expr.header).valid)
        if isinstance(expr, ir.Param):
            return self.params[expr.index]
        header, field = self.located(expr)
        return header.place(field)

    def located(self, expr: ir.Expr) -> tuple[HeaderRef, Field]:
        """Return the header of a field, and the field."""
        if isinstance(expr, ir.FieldRef):
            header = self.named(expr.header)
        elif isinstance(expr, ir.LastField):
            stack = self.program.stacks[expr.stack]
            header = self.any_element(stack, expr.member, self.last(stack))
        else:
            assert isinstance(expr, ir.ElemField)
            stack = self.program.stacks[expr.stack]
            header = self.any_element(stack, expr.member, self.index(expr.index, stack.size))
        return header, header.type.field(expr.name)

    def cell(self, register: Register, index: str) -> Native:
        """Return a register's cell at a C expression."""
        return Native(register.width, False, register.code(index))

    # --- data ---

    def data(self, expr: ir.Expr) -> Value:
        """Return the value of `expr`, without bits beyond its range."""
        if isinstance(expr.type, types.Bool):
            return Value(cexpr.cast("uint64_t", self.bool(expr)), 0, 1)
        return expr.accept(self)

    def const(self, expr: ir.Const) -> Value:
        return constant(self.em, expr.value)

    def field(self, expr: ir.Place | ir.Param | ir.Valid) -> Value:
        return self.place(expr).load(self.em)

    last_field = elem_field = param = valid = field

    def lookahead(self, expr: ir.Lookahead) -> Value:
        raise ProgramError("a lookahead stands in the key of a parser state or alone in an assignment")

    def last_index(self, expr: ir.LastIndex) -> Value:
        stack = self.program.stacks[expr.stack]
        return Value(C(f"(int64_t)p->next[{stack.next}] - 1", "int64_t", "-"), -1, stack.size - 1)

    def low(self, expr: ir.Expr, width: int) -> C:
        """Return the low `width` bits in the form of `low_rep`; higher bits are arbitrary."""
        if not isinstance(expr, ir.Op) or isinstance(expr.type, types.Bool):
            return low_bits(self.em, self.data(expr), width)
        op, args = expr.op, expr.args
        rep = low_rep(width)
        if op in _ARITHMETIC or op in _BITWISE:
            if op == "&":
                mask = _mask(args[1])
                if mask is not None and mask & (1 << width) - 1 == (1 << width) - 1:
                    return self.low(args[0], width)
            a, b = self.low(args[0], width), self.low(args[1], width)
            if rep.limbs:
                return self._big(op, a, b, rep.limbs)
            return cexpr.binary(op, a, b)
        if op == "~":
            a = self.low(args[0], width)
            if not rep.limbs:
                return C(f"~{a}", rep.c_type)
            name = self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_not({name}, {a}, {rep.limbs})")
            return C(name)
        if op == "<<":
            return self._shift_left(self.low(args[0], width), self._amount(args[1]), rep)
        if op == "cast" and (expr.type == ir.INT or width <= _width(expr)):
            return self.low(args[0], width)
        if op == "?:":
            a, b = self.low(args[1], width), self.low(args[2], width)
            return cexpr.chosen(self.bool(args[0]), a, b, rep.c_type)
        return low_bits(self.em, self.data(expr), width)

    def op(self, expr: ir.Op) -> Value:
        op, args = expr.op, expr.args
        if op in _ARITHMETIC:
            return self._arithmetic(op, self.data(args[0]), self.data(args[1]))
        if op in ("/", "%"):
            return self._divide(op, self.data(args[0]), self.data(args[1]))
        if op in _BITWISE:
            return self._bitwise(op, args[0], args[1])
        if op == "~":
            return self._not(self.data(args[0]))
        if op == "<<":
            return self._shifted_left(self.data(args[0]), args[1])
        if op == ">>":
            return self._shift_right(self.data(args[0]), self._amount(args[1]))
        if op == "cast":
            if expr.type == ir.INT or isinstance(args[0].type, types.Bool):
                return self.data(args[0])
            assert isinstance(expr.type, types.Bits)
            return from_low(self.em, self.low(args[0], expr.type.width), expr.type.width, expr.type.signed)
        if op == "saturate":
            assert isinstance(expr.type, types.Bits)
            width = expr.type.width
            low, high = (-(1 << width - 1), (1 << width - 1) - 1) if expr.type.signed else (0, (1 << width) - 1)
            return self._clamp(self.data(args[0]), low, high)
        assert op == "?:", op
        a, b = self.data(args[1]), self.data(args[2])
        low, high = min(a.low, b.low), max(a.high, b.high)
        rep = rep_of(low, high)
        condition = self.bool(args[0])
        then, otherwise = convert(self.em, a, rep), convert(self.em, b, rep)
        return Value(cexpr.chosen(condition, then, otherwise, rep.c_type), low, high)

    def _not(self, a: Value) -> Value:
        rep = rep_of(min(a.low, ~a.high), max(a.high, ~a.low))
        code = convert(self.em, a, rep)
        if rep.limbs:
            name = self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_not({name}, {code}, {rep.limbs})")
            return self._narrow(C(name), rep, ~a.high, ~a.low)
        return self._narrow(C(f"~{code}", rep.c_type), rep, ~a.high, ~a.low)

    def _shifted_left(self, a: Value, by: ir.Expr) -> Value:
        amount = self._amount(by)
        most = amount if isinstance(amount, int) else self.data(by).high
        if most > _MAX_SHIFT:
            raise ProgramError(f"the result of a shift by up to {most} is not cut to a width")
        low, high = min(a.low, a.low << most), max(a.high, a.high << most)
        rep = rep_of(low, high)
        return Value(self._shift_left(convert(self.em, a, rep), amount, rep), low, high)

    def _narrow(self, code: C, rep: Rep, low: int, high: int) -> Value:
        """Return a result computed in `rep`, converted to the representation of its own range."""
        want = rep_of(low, high)
        if want == rep:
            return Value(code, low, high)
        if want.limbs:
            name = self.em.limbs(want.limbs)
            self.em.do(f"p4_big_resize({name}, {want.limbs}, {code}, {rep.limbs})")
            return Value(C(name), low, high)
        if rep.limbs:
            low_part = f"{code}[0]" if want.width == 64 else f"p4_big_low({code})"
            return Value(cexpr.cast(want.c_type, low_part), low, high)
        return Value(cexpr.cast(want.c_type, code), low, high)

    def _big(self, op: str, a: C, b: C, limbs: int) -> C:
        names = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
        name = self.em.limbs(limbs)
        self.em.do(f"p4_big_{names[op]}({name}, {a}, {b}, {limbs})")
        return C(name)

    def _binary(self, op: str, a: Value, b: Value, low: int, high: int) -> Value:
        """Return an operation in a representation that holds operands and result."""
        rep = rep_of(min(low, a.low, b.low), max(high, a.high, b.high))
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        code = self._big(op, x, y, rep.limbs) if rep.limbs else cexpr.binary(op, x, y)
        return self._narrow(code, rep, low, high)

    def _arithmetic(self, op: str, a: Value, b: Value) -> Value:
        if op == "+":
            return self._binary(op, a, b, a.low + b.low, a.high + b.high)
        if op == "-":
            return self._binary(op, a, b, a.low - b.high, a.high - b.low)
        products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return self._binary(op, a, b, min(products), max(products))

    def _divide(self, op: str, a: Value, b: Value) -> Value:
        """Return a division.

        BMv2 requires operands that are not negative and a divisor other than 0; otherwise the result is 0 here.
        """
        if a.low < 0 or b.low < 0:
            a, b = self._clamp(a, 0, max(a.high, 0)), self._clamp(b, 0, max(b.high, 0))
        low, high = 0, a.high if op == "/" else max(0, min(a.high, b.high - 1))
        rep = rep_of(0, max(a.high, b.high))
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        if rep.limbs:
            quotient, remainder = self.em.limbs(rep.limbs), self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_divide({quotient}, {remainder}, {x}, {y}, {rep.limbs})")
            return self._narrow(C(quotient if op == "/" else remainder), rep, low, high)
        if not b.constant:
            divisor = C(self.em.temp(rep.c_type, y.bare), rep.c_type)
            return self._narrow(cexpr.chosen(divisor, cexpr.binary(op, x, divisor), "0", rep.c_type), rep, low, high)
        return self._narrow(cexpr.binary(op, x, y), rep, low, high)

    def _bitwise(self, op: str, left: ir.Expr, right: ir.Expr) -> Value:
        if op == "&":
            for mask, other in ((_mask(right), left), (_mask(left), right)):
                if mask is None:
                    continue
                if mask == 0:
                    return constant(self.em, 0)
                width = mask.bit_length()
                code = self.low(other, width)
                if mask & mask + 1 == 0:
                    return from_low(self.em, code, width, False)
                if width <= 128:
                    return Value(cexpr.binary("&", code, literal(mask, low_rep(width))), 0, mask)
                exact = from_low(self.em, code, width, False)
                return self._binary("&", exact, constant(self.em, mask), 0, mask)
        a, b = self.data(left), self.data(right)
        if op == "&" and (a.low >= 0 or b.low >= 0):
            return self._binary(op, a, b, 0, min(v.high for v in (a, b) if v.low >= 0))
        reach = max(v.bit_length() for v in (a.low, a.high, b.low, b.high))
        return self._binary(op, a, b, 0 if a.low >= 0 and b.low >= 0 else -(1 << reach), (1 << reach) - 1)

    def _amount(self, expr: ir.Expr) -> int | str:
        """Return the amount of a shift: a number, or a C expression of type uint64_t."""
        value = self.data(expr)
        if value.constant is not None:
            return max(value.constant, 0)
        value = self._clamp(value, 0, max(0, min(value.high, 1 << 32)))
        return cexpr.cast("uint64_t", value.code).text

    def _shift_left(self, code: C, amount: int | str, rep: Rep) -> C:
        if rep.limbs:
            name = self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_shl({name}, {code}, {rep.limbs}, {amount})")
            return C(name)
        unsigned_type = "uint64_t" if rep.width == 64 else "p4_u128"
        unsigned = cexpr.cast(unsigned_type, code)
        if not isinstance(amount, int):
            moved = cexpr.call(f"p4_shl{rep.width}", unsigned_type, unsigned, amount)
        elif amount >= rep.width:
            moved = literal(0, low_rep(rep.width))
        else:
            moved = cexpr.shifted("<<", unsigned, amount)
        return cexpr.cast(rep.c_type, moved)

    def _shift_right(self, a: Value, amount: int | str) -> Value:
        rep = a.rep
        least = amount if isinstance(amount, int) else 0
        low, high = a.low >> least if a.low >= 0 or least else a.low, a.high >> least
        if a.low >= 0 and not isinstance(amount, int):
            low = 0
        if a.high < 0 and not isinstance(amount, int):
            high = -1
        if rep.limbs:
            name = self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_sar({name}, {a.code}, {rep.limbs}, {amount})")
            return self._narrow(C(name), rep, low, high)
        if isinstance(amount, int):
            if amount >= rep.width:
                return constant(self.em, 0) if a.low >= 0 else self._shift_right(a, rep.width - 1)
            return self._narrow(cexpr.shifted(">>", a.code, amount), rep, low, high)
        function = f"p4_s{'a' if rep.signed else 'h'}r{rep.width}"
        return self._narrow(cexpr.call(function, rep.c_type, a.code, amount), rep, low, high)

    def _clamp(self, a: Value, low: int, high: int) -> Value:
        if a.low >= low and a.high <= high:
            return a
        rep = rep_of(min(a.low, low), max(a.high, high))
        code = convert(self.em, a, rep)
        if rep.limbs:
            least, most = (convert(self.em, constant(self.em, v), rep) for v in (low, high))
            bounded = f"p4_big_cmp({code}, {least}, {rep.limbs}) < 0 ? {least} : " \
                      f"p4_big_cmp({code}, {most}, {rep.limbs}) > 0 ? {most} : {code}"
            name = self.em.name()
            self.em.declare(f"const uint64_t *{name} = {bounded}")
            return self._narrow(C(name), rep, low, high)
        bounded_code = value = C(self.em.temp(rep.c_type, code.bare), rep.c_type)
        for op, bound, beyond in ((">", high, a.high > high), ("<", low, a.low < low)):
            if beyond:
                edge = literal(bound, rep)
                bounded_code = cexpr.chosen(cexpr.compared(op, value, edge), edge, bounded_code, rep.c_type)
        return self._narrow(bounded_code, rep, low, high)

    # --- conditions ---

    def compare(self, op: str, a: Value, b: Value) -> C:
        rep = rep_of(min(a.low, b.low), max(a.high, b.high))
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        if rep.limbs:
            return C(f"p4_big_cmp({x}, {y}, {rep.limbs}) {op} 0", "int", op)
        return cexpr.compared(op, x, y)

    def bool(self, expr: ir.Expr) -> C:
        """Return a C condition."""
        if isinstance(expr, ir.Const):
            return C(str(int(bool(expr.value))), "int")
        if isinstance(expr, ir.Valid):
            return C(self.header(expr.header).valid, "int")
        if not isinstance(expr, ir.Op):
            return self._nonzero(self.place(expr).load(self.em))
        op, args = expr.op, expr.args
        if op in _COMPARE:
            return self._compared(op, args[0], args[1])
        if op in ("&&", "||"):
            return cexpr.both(op, self.bool(args[0]), self.bool(args[1]))
        if op == "!":
            return cexpr.negated(self.bool(args[0]))
        if op == "?:":
            return cexpr.chosen(self.bool(args[0]), self.bool(args[1]), self.bool(args[2]), "int")
        assert op == "cast", op
        return self._nonzero(self.data(args[0]))

    def _nonzero(self, value: Value) -> C:
        if value.rep.limbs:
            return C(f"p4_big_nonzero({value.code}, {value.rep.limbs})", "int")
        return cexpr.compared("!=", value.code, literal(0, value.rep))

    def _compared(self, op: str, left: ir.Expr, right: ir.Expr) -> C:
        if isinstance(left.type, types.Bool) and op in ("==", "!="):
            return cexpr.compared(op, cexpr.negated(self.bool(left)), cexpr.negated(self.bool(right)))
        if isinstance(left.type, types.Varbit):
            same = self._varbits_equal(left, right)
            return same if op == "==" else cexpr.negated(same)
        return self.compare(op, self.data(left), self.data(right))

    def _varbits_equal(self, left: ir.Expr, right: ir.Expr) -> C:
        """Return whether lengths and bits are equal, as in P4-16; BMv2 compares only the values."""
        (a, first), (b, second) = self.located(left), self.located(right)
        lengths = C(f"p->varbytes[{a.slot}] == p->varbytes[{b.slot}]", "int", "==")
        first_byte, second_byte = f"{a.base} + {first.bit // 8}", f"{b.base} + {second.bit // 8}"
        return cexpr.both("&&", lengths, f"!memcmp({first_byte}, {second_byte}, p->varbytes[{a.slot}])")


def _mask(expr: ir.Expr) -> int | None:
    """Return the value of a constant that is not negative."""
    return expr.value if isinstance(expr, ir.Const) and expr.value >= 0 else None


def _width(expr: ir.Op) -> int:
    assert isinstance(expr.type, types.Bits)
    return expr.type.width


@dataclass(frozen=True)
class Parameter:
    """Parameter of an action: a member of its struct in C."""

    name: str
    width: int
    member: str

    @classmethod
    def of(cls, action: ir.Action) -> list[Parameter]:
        """Return the parameters of an action, in order."""
        members = labels([name for name, _ in action.params])
        return [
            cls(name, types.width_of(t) or 0, member)
            for (name, t), member in zip(action.params, members, strict=True)
        ]
