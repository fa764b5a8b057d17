"""Expressions of the BMv2 JSON in C."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4switch.engine.emit import Emitter
from p4switch.engine.program import Field, Header, HeaderType, Program, Register, Stack, Union, UnionStack, numbered
from p4switch.engine.schema import Action, Json, JsonError
from p4switch.engine.value import (
    I64,
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

_COMPARE = {"==", "!=", "<", "<=", ">", ">="}
_ARITHMETIC = {"+", "-", "*"}
_BITWISE = {"&", "|", "^"}
_BOOL_OPS = {*_COMPARE, "and", "or", "not", "valid", "valid_union", "d2b"}
_MAX_SHIFT = 4096


@dataclass(frozen=True)
class HeaderRef:
    """A header, maybe an element of a stack known only at run time. `slot` and `base` are C expressions.

    `siblings` are the slots of the other members of its union.
    """

    type: HeaderType
    slot: str
    base: str
    siblings: tuple[str, ...] = ()
    metadata: Header | None = None
    at: str = ""  # where it begins in `H`, where that is known

    @property
    def valid(self) -> str:
        return "1" if self.metadata else f"p->valid[{self.slot}]"

    def place(self, field: Field) -> Place:
        if self.metadata:
            return Native(field.width, field.signed, f"p->m.{self.metadata.member}.{field.member}")
        if field.varbit:
            raise JsonError(f"BMv2 JSON: {self.type.name}.{field.name} has variable length: it has no value")
        return InHeader(field.width, field.signed, self.base, field)

    def set_valid(self, em: Emitter) -> None:
        if self.metadata:
            return
        for sibling in self.siblings:
            em.do(f"p->valid[{sibling}] = 0")
        em.do(f"p->valid[{self.slot}] = 1")

    def length(self) -> str:
        """Bytes on the wire if it is valid."""
        if self.type.fixed_bytes < 0:
            raise JsonError(f"BMv2 JSON: header type {self.type.name} is not a whole number of bytes")
        fixed = str(self.type.fixed_bytes)
        return f"({fixed} + p->varbytes[{self.slot}])" if self.type.varbit else fixed


@dataclass(frozen=True)
class UnionRef:
    """A header union: one reference a member."""

    members: tuple[HeaderRef, ...]

    @property
    def valid(self) -> str:
        return "(" + " | ".join(m.valid for m in self.members) + ")"


def unwrap(json: Json) -> Json:
    """Peels `{"type": "expression", "value": X}` off X."""
    while isinstance(json, Mapping) and json.get("type") == "expression":
        json = json.get("value")
    words = [json[key] for key in ("op", "type") if key in json] if isinstance(json, Mapping) else []
    if not isinstance(json, Mapping) or not words or not all(isinstance(word, str) for word in words):
        raise JsonError(f"BMv2 JSON: expected an expression, got {_short(json)}")
    return json


def _short(json: Json) -> str:
    text = str(json)
    return text if len(text) < 60 else text[:57] + "..."


def hex_value(json: Json) -> int:
    """The value of a hexstr."""
    try:
        return int(str(json), 16)
    except ValueError:
        raise JsonError(f"BMv2 JSON: expected a hexadecimal number, got {_short(json)}") from None


def mask_value(json: Json) -> int:
    """The value of a hexstr that is a mask."""
    value = hex_value(json)
    if value < 0:
        raise JsonError(f"BMv2 JSON: mask {_short(json)} is negative")
    return value


def pair(json: Json) -> tuple[Json, Json]:
    if not isinstance(json, Sequence) or isinstance(json, str) or len(json) != 2:
        raise JsonError(f"BMv2 JSON: expected a pair, got {_short(json)}")
    return json[0], json[1]


class Expressions:
    """Generates expressions into one function. `params` are the action's data, in order."""

    def __init__(self, program: Program, em: Emitter, params: Sequence[Place] = ()) -> None:
        self.program = program
        self.em = em
        self.params = params

    # --- headers ---

    def header(self, name: str) -> HeaderRef:
        header = self.program.header(name)
        if header.metadata:
            return HeaderRef(header.type, "", "", metadata=header)
        siblings: tuple[str, ...] = ()
        if header.union:
            members = self.program.union(header.union).headers
            siblings = tuple(m.is_valid for m in members if m.slot != header.slot)
        return HeaderRef(header.type, header.is_valid, f"(p->H + {header.at})", siblings, at=header.at)

    def element(self, stack: Stack, index: str) -> HeaderRef:
        """The element at a C index that is known to be at most `stack.size`."""
        if index.isdigit():
            at = int(index) * stack.type.nbytes
            return HeaderRef(stack.type, f"{stack.is_valid} + {index}", f"(p->H + {stack.at} + {at})")
        base = f"(p->H + {stack.at} + {index} * {stack.type.nbytes})"
        return HeaderRef(stack.type, f"{stack.is_valid} + {index}", base)

    def union(self, union: Union) -> UnionRef:
        return UnionRef(tuple(self.header(h.name) for h in union.headers))

    def union_element(self, stack: UnionStack, index: str) -> UnionRef:
        members = [self.element(stack.members[name], index) for name in stack.order]
        return UnionRef(tuple(
            HeaderRef(m.type, m.slot, m.base, tuple(o.slot for o in members if o is not m)) for m in members
        ))

    def last(self, stack: Stack | UnionStack) -> str:
        """Index of the last element that was extracted; the spare one if there is none."""
        return self.em.temp("uint32_t", f"p->next[{stack.next}] ? p->next[{stack.next}] - 1 : {stack.size}")

    def index(self, json: Json, size: int) -> str:
        """An index into a stack of `size`; out of bounds becomes `size`, the spare element."""
        value = self.data(json)
        if value.constant is not None:
            return str(value.constant if 0 <= value.constant < size else size)
        if value.low < 0 or value.high >= 1 << 64:
            inside = f"{self.compare('>=', value, constant(self.em, 0))} && " \
                     f"{self.compare('<', value, constant(self.em, size))}"
            return self.em.temp("uint32_t", f"{inside} ? (uint32_t)({low_bits(self.em, value, 64)}) : {size}")
        name = self.em.temp("uint64_t", value.code)
        return self.em.temp("uint32_t", f"{name} < {size} ? (uint32_t){name} : {size}")

    def header_ref(self, json: Json) -> HeaderRef:
        json = unwrap(json)
        op = json.get("op")
        if json.get("type") == "header":
            return self.header(str(json.get("value")))
        if op in ("dereference_header_stack", "dereference_stack"):
            stack = self.stack(json.get("left"))
            return self.element(stack, self.index(json.get("right"), stack.size))
        if op == "access_union_header":
            union = self.union_ref(json.get("left"))
            offset = json.get("right")
            if not isinstance(offset, int) or not 0 <= offset < len(union.members):
                raise JsonError(f"BMv2 JSON: a header union has no member {_short(offset)}")
            return union.members[offset]
        raise JsonError(f"BMv2 JSON: expected a header, got {_short(json)}")

    def union_ref(self, json: Json) -> UnionRef:
        json = unwrap(json)
        if json.get("type") == "header_union":
            return self.union(self.program.union(str(json.get("value"))))
        if json.get("op") == "dereference_union_stack":
            inner = unwrap(json.get("left"))
            stack = self.program.union_stack(str(inner.get("value")))
            return self.union_element(stack, self.index(json.get("right"), stack.size))
        raise JsonError(f"BMv2 JSON: expected a header union, got {_short(json)}")

    def stack(self, json: Json) -> Stack:
        json = unwrap(json)
        if json.get("type") != "header_stack":
            raise JsonError(f"BMv2 JSON: expected a header stack, got {_short(json)}")
        return self.program.stack(str(json.get("value")))

    def any_stack(self, json: Json) -> Stack | UnionStack:
        json = unwrap(json)
        if json.get("type") == "header_union_stack":
            return self.program.union_stack(str(json.get("value")))
        return self.stack(json)

    # --- places ---

    def field(self, ref: Json) -> Place:
        """`[header, field]`, of which the field may be `$valid$`."""
        header_name, field_name = pair(ref)
        header = self.header(str(header_name))
        if field_name == "$valid$":
            return Native(1, False, header.valid)
        return header.place(header.type.field(str(field_name)))

    def place(self, json: Json) -> Place:
        """Something that can be assigned to; raises JsonError for what cannot."""
        found = self._place(unwrap(json))
        if found is None:
            raise JsonError(f"BMv2 JSON: expected a field, got {_short(json)}")
        return found

    def _place(self, json: Json) -> Place | None:
        kind, value = json.get("type"), json.get("value")
        if kind == "field":
            return self.field(value)
        if kind == "stack_field":
            stack_name, field_name = pair(value)
            stack = self.program.stack(str(stack_name))
            ref = self.element(stack, self.last(stack))
            return ref.place(stack.type.field(str(field_name)))
        if kind == "union_stack_field":
            if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
                raise JsonError(f"BMv2 JSON: expected a triple, got {_short(value)}")
            union_stack = self.program.union_stack(str(value[0]))
            if value[1] not in union_stack.members:
                raise JsonError(f"BMv2 JSON: {union_stack.name} has no member {_short(value[1])}")
            column = union_stack.members[str(value[1])]
            return self.element(column, self.last(union_stack)).place(column.type.field(str(value[2])))
        if kind in ("runtime_data", "local"):
            if not isinstance(value, int) or not 0 <= value < len(self.params):
                raise JsonError(f"BMv2 JSON: there is no action parameter {_short(value)}")
            return self.params[value]
        if kind == "register":
            return self._register_cell(value)
        if json.get("op") == "access_field":
            ref = self.header_ref(json.get("left"))
            offset = json.get("right")
            if not isinstance(offset, int) or not 0 <= offset <= len(ref.type.fields):
                raise JsonError(f"BMv2 JSON: header type {ref.type.name} has no field at {_short(offset)}")
            if offset == len(ref.type.fields):
                return Native(1, False, ref.valid)  # the hidden field $valid$
            return ref.place(ref.type.fields[offset])
        return None

    def cell(self, register: Register, index: str) -> Native:
        """A register's cell at a C expression."""
        return Native(register.width, False, register.code(index))

    def _register_cell(self, value: Json) -> Native:
        name, index = pair(value)
        register = self.program.register(str(name))
        return self.cell(register, self.index(index, register.size))

    # --- data ---

    def is_bool(self, json: Json) -> bool:
        json = unwrap(json)
        if json.get("op") == "?":
            return self.is_bool(json.get("left"))
        return json.get("type") == "bool" or json.get("op") in _BOOL_OPS

    def data(self, json: Json) -> Value:
        """The exact value."""
        json = unwrap(json)
        if self.is_bool(json):
            return Value(f"(uint64_t)({self.bool(json)})", 0, 1)
        if json.get("type") == "hexstr":
            return constant(self.em, hex_value(json.get("value")))
        place = self._place(json)
        if place is not None:
            return place.load(self.em)
        return self._operation(json)

    def low(self, json: Json, width: int) -> str:
        """The low `width` bits, as `low_rep` says; what is above them is anything."""
        json = unwrap(json)
        op, left, right = json.get("op"), json.get("left"), json.get("right")
        rep = low_rep(width)
        if op in _ARITHMETIC or op in _BITWISE:
            if op == "&":
                mask = self._mask(right)
                if mask is not None and mask & (1 << width) - 1 == (1 << width) - 1:
                    return self.low(left, width)
            a, b = self.low(left, width), self.low(right, width)
            if rep.limbs:
                return self._big(str(op), a, b, rep.limbs)
            return f"({a} {op} {b})"
        if op == "~":
            a = self.low(right, width)
            if not rep.limbs:
                return f"(~{a})"
            name = self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_not({name}, {a}, {rep.limbs})")
            return name
        if op == "<<":
            return self._shift_left(self.low(left, width), self._amount(right), rep)
        if op == "two_comp_mod" and width <= self._width(right):
            return self.low(left, width)
        if op == "?":
            a, b = self.low(left, width), self.low(right, width)
            return f"({self.bool(json.get('cond'))} ? {a} : {b})"
        return low_bits(self.em, self.data(json), width)

    def _operation(self, json: Json) -> Value:
        op, left, right = json.get("op"), json.get("left"), json.get("right")
        if op in _ARITHMETIC:
            return self._arithmetic(str(op), self.data(left), self.data(right))
        if op in ("/", "%"):
            return self._divide(str(op), self.data(left), self.data(right))
        if op in _BITWISE:
            return self._bitwise(str(op), left, right)
        if op == "~":
            a = self.data(right)
            rep = rep_of(min(a.low, ~a.high), max(a.high, ~a.low))
            code = convert(self.em, a, rep)
            if rep.limbs:
                name = self.em.limbs(rep.limbs)
                self.em.do(f"p4_big_not({name}, {code}, {rep.limbs})")
                return self._narrow(name, rep, ~a.high, ~a.low)
            return self._narrow(f"(~{code})", rep, ~a.high, ~a.low)
        if op == "<<":
            a, amount = self.data(left), self._amount(right)
            most = amount if isinstance(amount, int) else self.data(right).high
            if most > _MAX_SHIFT:
                raise JsonError(f"BMv2 JSON: the result of a shift by up to {most} is not cut to a width")
            low, high = min(a.low, a.low << most), max(a.high, a.high << most)
            rep = rep_of(low, high)
            return Value(self._shift_left(convert(self.em, a, rep), amount, rep), low, high)
        if op == ">>":
            return self._shift_right(self.data(left), self._amount(right))
        if op == "two_comp_mod":
            width = self._width(right)
            low, high = -(1 << width - 1), (1 << width - 1) - 1
            return from_low(self.em, self.low(left, width), width, True)
        if op in ("usat_cast", "sat_cast"):
            width = self._width(right)
            low, high = (0, (1 << width) - 1) if op == "usat_cast" else (-(1 << width - 1), (1 << width - 1) - 1)
            return self._clamp(self.data(left), low, high)
        if op == "?":
            a, b = self.data(left), self.data(right)
            low, high = min(a.low, b.low), max(a.high, b.high)
            rep = rep_of(low, high)
            cond = self.bool(json.get("cond"))
            return Value(f"({cond} ? {convert(self.em, a, rep)} : {convert(self.em, b, rep)})", low, high)
        if op == "b2d":
            return Value(f"(uint64_t)({self.bool(right)})", 0, 1)
        if op == "last_stack_index":
            stack = self.any_stack(right)
            return Value(f"((int64_t)p->next[{stack.next}] - 1)", -1, stack.size - 1)
        if op == "size_stack":
            stack = self.any_stack(right)
            return Value(f"(uint64_t)p->next[{stack.next}]", 0, stack.size)
        raise JsonError(f"BMv2 JSON: unknown expression {_short(json)}")

    def _narrow(self, code: str, rep: Rep, low: int, high: int) -> Value:
        """A result computed in `rep`, in the representation of its own range."""
        want = rep_of(low, high)
        if want == rep:
            return Value(code, low, high)
        if want.limbs:
            name = self.em.limbs(want.limbs)
            self.em.do(f"p4_big_resize({name}, {want.limbs}, {code}, {rep.limbs})")
            return Value(name, low, high)
        if rep.limbs:
            low_part = f"{code}[0]" if want.width == 64 else f"p4_big_low({code})"
            return Value(f"({want.c_type}){low_part}", low, high)
        return Value(f"({want.c_type}){code}", low, high)

    def _big(self, op: str, a: str, b: str, limbs: int) -> str:
        names = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
        name = self.em.limbs(limbs)
        self.em.do(f"p4_big_{names[op]}({name}, {a}, {b}, {limbs})")
        return name

    def _binary(self, op: str, a: Value, b: Value, low: int, high: int) -> Value:
        """Computes in a representation that holds operands and result."""
        rep = rep_of(min(low, a.low, b.low), max(high, a.high, b.high))
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        code = self._big(op, x, y, rep.limbs) if rep.limbs else f"({x} {op} {y})"
        return self._narrow(code, rep, low, high)

    def _arithmetic(self, op: str, a: Value, b: Value) -> Value:
        if op == "+":
            return self._binary(op, a, b, a.low + b.low, a.high + b.high)
        if op == "-":
            return self._binary(op, a, b, a.low - b.high, a.high - b.low)
        products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return self._binary(op, a, b, min(products), max(products))

    def _divide(self, op: str, a: Value, b: Value) -> Value:
        """BMv2 divides no negative numbers, and not by 0: here the result is 0 then."""
        if a.low < 0 or b.low < 0:
            a, b = self._clamp(a, 0, max(a.high, 0)), self._clamp(b, 0, max(b.high, 0))
        low, high = 0, a.high if op == "/" else max(0, min(a.high, b.high - 1))
        rep = rep_of(0, max(a.high, b.high))
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        if rep.limbs:
            quotient, remainder = self.em.limbs(rep.limbs), self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_divide({quotient}, {remainder}, {x}, {y}, {rep.limbs})")
            return self._narrow(quotient if op == "/" else remainder, rep, low, high)
        if not b.constant:
            y = self.em.temp(rep.c_type, y)
            return self._narrow(f"({y} ? {x} {op} {y} : 0)", rep, low, high)
        return self._narrow(f"({x} {op} {y})", rep, low, high)

    def _mask(self, json: Json) -> int | None:
        """The value of a constant that is not negative."""
        json = unwrap(json)
        if json.get("type") != "hexstr":
            return None
        value = hex_value(json.get("value"))
        return value if value >= 0 else None

    def _bitwise(self, op: str, left: Json, right: Json) -> Value:
        if op == "&":
            for mask, other in ((self._mask(right), left), (self._mask(left), right)):
                if mask is None:
                    continue
                if mask == 0:
                    return constant(self.em, 0)
                width = mask.bit_length()
                code = self.low(other, width)
                if mask & mask + 1 == 0:
                    return from_low(self.em, code, width, False)
                if width <= 128:
                    return Value(f"({code} & {literal(mask, low_rep(width))})", 0, mask)
                exact = from_low(self.em, code, width, False)
                return self._binary("&", exact, constant(self.em, mask), 0, mask)
        a, b = self.data(left), self.data(right)
        if op == "&" and (a.low >= 0 or b.low >= 0):
            return self._binary(op, a, b, 0, min(v.high for v in (a, b) if v.low >= 0))
        reach = max(v.bit_length() for v in (a.low, a.high, b.low, b.high))
        return self._binary(op, a, b, 0 if a.low >= 0 and b.low >= 0 else -(1 << reach), (1 << reach) - 1)

    def _width(self, json: Json) -> int:
        value = self._mask(json)
        if value is None or not 0 < value <= 4096:
            raise JsonError(f"BMv2 JSON: expected a width in bits, got {_short(json)}")
        return value

    def _amount(self, json: Json) -> int | str:
        """How far to shift: a number, or a C expression of type uint64_t."""
        value = self.data(json)
        if value.constant is not None:
            return max(value.constant, 0)
        value = self._clamp(value, 0, max(0, min(value.high, 1 << 32)))
        return f"(uint64_t){value.code}"

    def _shift_left(self, code: str, amount: int | str, rep: Rep) -> str:
        if rep.limbs:
            name = self.em.limbs(rep.limbs)
            self.em.do(f"p4_big_shl({name}, {code}, {rep.limbs}, {amount})")
            return name
        unsigned = code if not rep.signed else f"(uint{rep.width}_t)({code})" if rep == I64 else f"(p4_u128)({code})"
        if isinstance(amount, int):
            shifted = f"({unsigned} << {amount})" if amount < rep.width else f"({rep.c_type})0"
        else:
            shifted = f"p4_shl{rep.width}({unsigned}, {amount})"
        return f"({rep.c_type}){shifted}" if rep.signed else shifted

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
            return self._narrow(name, rep, low, high)
        if isinstance(amount, int):
            if amount >= rep.width:
                return constant(self.em, 0) if a.low >= 0 else self._shift_right(a, rep.width - 1)
            return self._narrow(f"({a.code} >> {amount})", rep, low, high)
        return self._narrow(f"p4_s{'a' if rep.signed else 'h'}r{rep.width}({a.code}, {amount})", rep, low, high)

    def _clamp(self, a: Value, low: int, high: int) -> Value:
        if a.low >= low and a.high <= high:
            return a
        rep = rep_of(min(a.low, low), max(a.high, high))
        code = convert(self.em, a, rep)
        if rep.limbs:
            least, most = (convert(self.em, constant(self.em, v), rep) for v in (low, high))
            code = f"(p4_big_cmp({code}, {least}, {rep.limbs}) < 0 ? {least} : " \
                   f"p4_big_cmp({code}, {most}, {rep.limbs}) > 0 ? {most} : {code})"
            name = self.em.name()
            self.em.declare(f"const uint64_t *{name} = {code}")
            return self._narrow(name, rep, low, high)
        name = self.em.temp(rep.c_type, code)
        code = name
        if a.high > high:
            code = f"{name} > {literal(high, rep)} ? {literal(high, rep)} : {code}"
        if a.low < low:
            code = f"{name} < {literal(low, rep)} ? {literal(low, rep)} : {code}"
        return self._narrow(f"({code})", rep, low, high)

    # --- conditions ---

    def compare(self, op: str, a: Value, b: Value) -> str:
        rep = rep_of(min(a.low, b.low), max(a.high, b.high))
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        return f"(p4_big_cmp({x}, {y}, {rep.limbs}) {op} 0)" if rep.limbs else f"({x} {op} {y})"

    def bool(self, json: Json) -> str:
        """A C condition."""
        json = unwrap(json)
        op, left, right = json.get("op"), json.get("left"), json.get("right")
        if json.get("type") == "bool":
            return str(int(bool(json.get("value"))))
        if op in _COMPARE:
            if op in ("==", "!="):
                return self._equal(str(op), left, right)
            return self.compare(str(op), self.data(left), self.data(right))
        if op in ("and", "or"):
            a, b = self.bool(left), self.bool(right)
            return f"({a} {'&&' if op == 'and' else '||'} {b})"
        if op == "not":
            return f"(!{self.bool(right)})"
        if op == "valid":
            return self.header_ref(right).valid
        if op == "valid_union":
            return self.union_ref(right).valid
        if op == "d2b":
            return self._nonzero(self.data(right))
        if op == "?":
            return f"({self.bool(json.get('cond'))} ? {self.bool(left)} : {self.bool(right)})"
        return self._nonzero(self.data(json))

    def _nonzero(self, value: Value) -> str:
        return f"p4_big_nonzero({value.code}, {value.rep.limbs})" if value.rep.limbs else f"({value.code} != 0)"

    def _equal(self, op: str, left: Json, right: Json) -> str:
        a = unwrap(left)
        if self.is_bool(a):
            return f"(!{self.bool(left)} {op} !{self.bool(right)})"
        if a.get("type") == "header" or a.get("op") in ("dereference_header_stack", "access_union_header"):
            same = self.headers_equal(self.header_ref(left), self.header_ref(right))
        elif a.get("type") == "header_union" or a.get("op") == "dereference_union_stack":
            pairs = zip(self.union_ref(left).members, self.union_ref(right).members, strict=True)
            same = "(" + " || ".join(self.headers_equal(x, y) for x, y in pairs) + ")"
        elif self.varbit(left):
            same = self.varbits_equal(left, right)
        else:
            return self.compare(op, self.data(left), self.data(right))
        return same if op == "==" else f"(!{same})"

    def varbit(self, json: Json) -> HeaderRef | None:
        """The header of a field of variable length; None for anything else."""
        json = unwrap(json)
        value, offset = json.get("value"), json.get("right")
        if json.get("type") == "field" and isinstance(value, list) and len(value) == 2 and value[1] != "$valid$":
            ref = self.header(str(value[0]))
            return ref if ref.type.field(str(value[1])).varbit else None
        if json.get("op") == "access_field" and isinstance(offset, int):
            ref = self.header_ref(json.get("left"))
            return ref if 0 <= offset < len(ref.type.fields) and ref.type.fields[offset].varbit else None
        return None

    def varbits_equal(self, left: Json, right: Json) -> str:
        """Equal length and equal bits, as P4-16 has it; BMv2 compares the values alone."""
        a, b = self.varbit(left), self.varbit(right)
        if a is None or b is None or a.type.varbit is None or b.type.varbit is None:
            raise JsonError("BMv2 JSON: a field of variable length is compared with one that is not")
        return (
            f"(p->varbytes[{a.slot}] == p->varbytes[{b.slot}] && !memcmp({a.base} + {a.type.varbit.bit // 8}, "
            f"{b.base} + {b.type.varbit.bit // 8}, p->varbytes[{a.slot}]))"
        )

    def headers_equal(self, a: HeaderRef, b: HeaderRef) -> str:
        """As BMv2: two headers are equal if both are valid and all fields are the same."""
        terms = [a.valid, b.valid]
        if a.type.varbit:
            terms.append(f"p->varbytes[{a.slot}] == p->varbytes[{b.slot}]")
        for field in a.type.fields:
            if field.varbit:
                at = field.bit // 8
                terms.append(f"!memcmp({a.base} + {at}, {b.base} + {at}, p->varbytes[{a.slot}])")
            else:
                terms.append(self.compare("==", a.place(field).load(self.em), b.place(field).load(self.em)))
        return "(" + " && ".join(terms) + ")"


def parameter_members(action: Action) -> list[str]:
    """The names in C of an action's parameters, as members of its struct."""
    return [numbered("p", i, parameter.name) for i, parameter in enumerate(action.runtime_data)]


def params_of(prefix: str, action: Action) -> list[Place]:
    """The parameters of an action, as members of a struct."""
    members = zip(action.runtime_data, parameter_members(action), strict=True)
    return [Native(parameter.bitwidth, False, f"{prefix}{member}") for parameter, member in members]
