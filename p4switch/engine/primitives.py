"""Primitives of actions, parser states and deparsers in C."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from p4switch.engine import calc, schema
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef, hex_value, unwrap
from p4switch.engine.program import Program, Stack, UnionStack, c_string
from p4switch.engine.schema import Json, JsonError
from p4switch.engine.value import Native, Place, low_bits, low_rep


class Primitives:
    """Generates the body of one action (or parser method call)."""

    def __init__(self, program: Program, em: Emitter, params: Sequence[Place], prefix: str) -> None:
        self.program = program
        self.em = em
        self.x = Expressions(program, em, params)
        self.prefix = prefix  # of labels
        self.exits = False
        self.loops = False
        self._source: Mapping[str, Json] | None = None  # of the primitive at hand

    def body(self, primitives: Sequence[schema.Primitive]) -> None:
        """All primitives, with their jumps. `goto <prefix>_end` is where an exit goes."""
        targets: set[int] = set()
        for at, primitive in enumerate(primitives):
            if primitive.op in ("_jump", "_jump_if_zero"):
                target = self._target(primitive, len(primitives))
                targets.add(target)
                self.loops |= target <= at
        self.exits |= self.loops
        for at, primitive in enumerate(primitives):
            if at in targets:
                self.em.label(f"{self.prefix}_{at}")
            self.em.open("")
            if primitive.op in ("_jump", "_jump_if_zero"):
                target = self._target(primitive, len(primitives))
                condition = "" if primitive.op == "_jump" else f"if (!{self._test(primitive)}) "
                if target <= at:
                    endless = "p->exit = p->endless = 1; return;"
                    self.em.line(
                        f"{condition}{{ if (++p->steps < P4_MAX_STEPS) goto {self.prefix}_{target}; {endless} }}"
                    )
                else:
                    self.em.line(f"{condition}goto {self.prefix}_{target};")
            elif primitive.op == "exit":
                self.exits = True
                point = self._point(primitive)
                self.em.line(f"CHANGES(P4_TRACE_STATEMENT, {point});")
                self.em.line("p->exit = 1;")
                self.em.line("return;")
            else:
                point = self._point(primitive)
                self.primitive(primitive)
                self.em.line(f"CHANGES(P4_TRACE_STATEMENT, {point});")
            self.em.close()
        if len(primitives) in targets:
            self.em.label(f"{self.prefix}_{len(primitives)}")

    def _point(self, primitive: schema.Primitive) -> int:
        """Passes the point of a statement."""
        point = self.program.points.add("statement", primitive.op, primitive.source_info, primitive.op)
        self.em.comment(source_text(primitive.source_info, ""))
        self.em.line(f"PASS({point});")
        return point

    def _test(self, primitive: schema.Primitive) -> str:
        """Declares whether the condition of a jump holds."""
        self.em.comment(source_text(primitive.source_info, ""))
        value = self.em.temp("int", self.x.bool(primitive.parameters[0]))
        branch(self.program, self.em, value, source_text(primitive.source_info, "if"), primitive.source_info)
        return value

    def _target(self, primitive: schema.Primitive, count: int) -> int:
        self._arity(primitive, 1 if primitive.op == "_jump" else 2)
        offset = unwrap(primitive.parameters[-1])
        if offset.get("type") != "hexstr" or not 0 <= hex_value(offset.get("value")) <= count:
            raise JsonError(f"BMv2 JSON: {primitive.op} needs the number of a primitive of its action")
        return hex_value(offset.get("value"))

    @staticmethod
    def _arity(primitive: schema.Primitive, count: int) -> None:
        if len(primitive.parameters) != count:
            raise JsonError(
                f"BMv2 JSON: primitive {primitive.op} takes {count} parameters, got {len(primitive.parameters)}"
            )

    def primitive(self, primitive: schema.Primitive) -> None:
        """One primitive other than jumps and exit."""
        handlers: dict[str, tuple[int, Callable[..., None]]] = {
            "assign": (2, self.assign),
            "modify_field": (2, self.assign),
            "assign_VL": (2, self._assign_varbit),
            "assign_header": (2, self._assign_header),
            "copy_header": (2, self._assign_header),
            "assign_union": (2, self._assign_union),
            "assign_header_stack": (2, self._assign_stack),
            "assign_union_stack": (2, self._assign_stack),
            "add_header": (1, self._add_header),
            "add_header_fast": (1, self._add_header_fast),
            "remove_header": (1, self._remove_header),
            "push": (2, self._push),
            "pop": (2, self._pop),
            "add_to_field": (2, lambda f, v: self._arithmetic("+", f, f, v)),
            "subtract_from_field": (2, lambda f, v: self._arithmetic("-", f, f, v)),
            "add": (3, lambda f, a, b: self._arithmetic("+", f, a, b)),
            "subtract": (3, lambda f, a, b: self._arithmetic("-", f, a, b)),
            "bit_xor": (3, lambda f, a, b: self._arithmetic("^", f, a, b)),
            "bit_or": (3, lambda f, a, b: self._arithmetic("|", f, a, b)),
            "bit_and": (3, lambda f, a, b: self._arithmetic("&", f, a, b)),
            "shift_left": (3, lambda f, a, b: self._arithmetic("<<", f, a, b)),
            "shift_right": (3, lambda f, a, b: self._arithmetic(">>", f, a, b)),
            "drop": (0, self._drop),
            "mark_to_drop": (1, self._mark_to_drop),
            "no_op": (0, lambda: None),
            "generate_digest": (2, lambda _, ident: self._flag("digest", ident)),
            "clone_ingress_pkt_to_egress": (2, self._clone),
            "clone_egress_pkt_to_egress": (2, self._clone),
            "resubmit": (1, lambda ident: self._flag("resubmit", ident)),
            "recirculate": (1, lambda ident: self._flag("recirculate", ident)),
            "truncate": (1, self._truncate),
            "modify_field_with_hash_based_offset": (4, self._hash),
            "modify_field_rng_uniform": (3, self._random),
            "execute_meter": (3, self._meter),
            "count": (2, self._count),
            "register_read": (3, self._register_read),
            "register_write": (3, self._register_write),
            "log_msg": (2, self._log),
            "assert": (1, self._assert),
            "assume": (1, self._assert),
        }
        if primitive.op not in handlers:
            raise JsonError(f"BMv2 JSON: unknown primitive {primitive.op}; the engine has no such extern")
        arity, handler = handlers[primitive.op]
        self._arity(primitive, arity)
        self._source = primitive.source_info
        handler(*primitive.parameters)

    # --- assignments ---

    def assign(self, target: Json, source: Json) -> None:
        if self.x.varbit(target):
            self._assign_varbit(target, source)
            return
        place = self.x.place(target)
        place.store(self.em, self.x.low(source, place.width))

    def _arithmetic(self, op: str, target: Json, a: Json, b: Json) -> None:
        self.assign(target, {"op": op, "left": a, "right": b})

    def _varbit(self, json: Json) -> HeaderRef:
        found = self.x.varbit(json)
        if found is None:
            raise JsonError("BMv2 JSON: assign_VL needs fields of variable length")
        return found

    def _assign_varbit(self, target: Json, source: Json) -> None:
        to, of = self._varbit(target), self._varbit(source)
        a, b = to.type.varbit, of.type.varbit
        assert a is not None
        assert b is not None
        length = self.em.temp("uint32_t", f"p->varbytes[{of.slot}]")
        limit = a.width // 8
        if b.width > a.width:
            length = self.em.temp("uint32_t", f"{length} < {limit} ? {length} : {limit}")
        self.em.line(f"memmove({to.base} + {a.bit // 8}, {of.base} + {b.bit // 8}, {length});")
        self.em.line(f"p->varbytes[{to.slot}] = (uint16_t){length};")

    def _copy_header(self, to: HeaderRef, of: HeaderRef) -> None:
        """BMv2's assign_header: values move only from a valid header."""
        if [f.width for f in to.type.fields] != [f.width for f in of.type.fields]:
            raise JsonError(f"BMv2 JSON: headers of type {to.type.name} and {of.type.name} cannot be assigned")
        if to.metadata or of.metadata:
            for a, b in zip(to.type.fields, of.type.fields, strict=True):
                to.place(a).store(self.em, of.place(b).low(self.em, a.width))
            return
        self.em.open(f"if ({of.valid})")
        to.set_valid(self.em)
        self.em.line(f"memmove({to.base}, {of.base}, {to.type.nbytes});")
        if to.type.varbit:
            self.em.line(f"p->varbytes[{to.slot}] = p->varbytes[{of.slot}];")
        self.em.close(" else {")
        self.em.line(f"    {to.valid} = 0;")
        self.em.line("}")

    def _assign_header(self, target: Json, source: Json) -> None:
        self._copy_header(self.x.header_ref(target), self.x.header_ref(source))

    def _assign_union(self, target: Json, source: Json) -> None:
        to, of = self.x.union_ref(target), self.x.union_ref(source)
        for a, b in zip(to.members, of.members, strict=True):
            self._copy_header(a, b)

    def _assign_stack(self, target: Json, source: Json) -> None:
        to, of = self.x.any_stack(target), self.x.any_stack(source)
        if to.size != of.size or isinstance(to, Stack) is not isinstance(of, Stack):
            raise JsonError(f"BMv2 JSON: stacks {to.name} and {of.name} cannot be assigned")
        self.em.line(f"p->next[{to.next}] = p->next[{of.next}];")
        for column_to, column_of in zip(_columns(to), _columns(of), strict=True):
            for i in range(to.size):
                self._copy_header(self.x.element(column_to, str(i)), self.x.element(column_of, str(i)))

    # --- validity ---

    def _add_header(self, header: Json) -> None:
        ref = self.x.header_ref(header)
        if ref.metadata:
            return
        self.em.open(f"if (!{ref.valid})")
        self.em.line(f"memset({ref.base}, 0, {ref.type.nbytes});")
        if ref.type.varbit:
            self.em.line(f"p->varbytes[{ref.slot}] = 0;")
        ref.set_valid(self.em)
        self.em.line(f"p->length += {ref.length()};")
        self.em.close()

    def _add_header_fast(self, header: Json) -> None:
        self.x.header_ref(header).set_valid(self.em)

    def _remove_header(self, header: Json) -> None:
        ref = self.x.header_ref(header)
        if ref.metadata:
            return
        self.em.open(f"if ({ref.valid})")
        self.em.line(f"{ref.valid} = 0;")
        self.em.line(f"p->length -= {ref.length()};")
        self.em.close()

    def _count_arg(self, json: Json, size: int) -> int:
        value = unwrap(json)
        if value.get("type") != "hexstr":
            raise JsonError("BMv2 JSON: push and pop take a constant")
        return max(0, min(hex_value(value.get("value")), size))

    def _push(self, stack_json: Json, count_json: Json) -> None:
        stack = self.x.any_stack(stack_json)
        count = self._count_arg(count_json, stack.size)
        kept = stack.size - count
        for column in _columns(stack):
            self._shift(column, 0, count, kept)
            self.em.line(f"memset(p->valid + {column.is_valid}, 0, {count});")
        self.em.line(f"p->next[{stack.next}] = p->next[{stack.next}] < {kept} ? "
                     f"p->next[{stack.next}] + {count} : {stack.size};")

    def _pop(self, stack_json: Json, count_json: Json) -> None:
        stack = self.x.any_stack(stack_json)
        count = self._count_arg(count_json, stack.size)
        kept = stack.size - count
        for column in _columns(stack):
            self._shift(column, count, 0, kept)
            self.em.line(f"memset(p->valid + {column.is_valid} + {kept}, 0, {count});")
        self.em.line(f"p->next[{stack.next}] = p->next[{stack.next}] > {count} ? p->next[{stack.next}] - {count} : 0;")

    def _shift(self, stack: Stack, source: int, target: int, count: int) -> None:
        """Moves `count` elements within a stack."""
        size = stack.type.nbytes
        to, of = f"p->H + {stack.at} + {target * size}", f"p->H + {stack.at} + {source * size}"
        self.em.line(f"memmove({to}, {of}, {count * size});")
        for array, width in (("valid", 1), *((("varbytes", 2),) if stack.type.varbit else ())):
            to, of = f"p->{array} + {stack.is_valid} + {target}", f"p->{array} + {stack.is_valid} + {source}"
            self.em.line(f"memmove({to}, {of}, {count * width});")

    # --- what becomes of the packet ---

    def _drop(self) -> None:
        self.em.line("SET_EGRESS_SPEC(p, sw->drop_port);")
        self.em.line("SET_MCAST_GRP(p, 0);")

    def _mark_to_drop(self, json: Json) -> None:
        """`json` is the standard metadata, or a copy that p4c makes for a parameter and copies back."""
        header = self.x.header_ref(json)
        if header.metadata is None or header.metadata.name == "standard_metadata":
            self._drop()
            return
        header.place(header.type.field("egress_spec")).store(self.em, "(uint64_t)sw->drop_port")
        if any(f.name == "mcast_grp" for f in header.type.fields):
            header.place(header.type.field("mcast_grp")).store(self.em, "0ull")

    def _flag(self, name: str, ident: Json) -> None:
        self.em.line(f"p->{name} = (uint16_t)({self.x.low(ident, 16)});")

    def _clone(self, session: Json, field_list: Json) -> None:
        self.em.line(f"p->clone_session = (uint16_t)(({self.x.low(session, 16)} & 0x7fff) | 0x8000);")
        self._flag("clone_list", field_list)

    def _truncate(self, length: Json) -> None:
        limit = self.em.temp("uint32_t", f"(uint32_t)({self.x.low(length, 32)})")
        self.em.line(f"p->truncate = {limit} < p->truncate ? {limit} : p->truncate;")

    # --- computing ---

    def _number(self, what: str, names: Sequence[str], json: Json) -> int:
        name = unwrap(json).get("value")
        if name not in names:
            raise JsonError(f"BMv2 JSON: there is no {what} {name}")
        return names.index(str(name))

    def _hash(self, target: Json, base: Json, calculation: Json, size: Json) -> None:
        number = self._number("calculation", [c.name for c in self.program.json.calculations], calculation)
        place = self.x.place(target)
        modulus = self.x.data(size)
        low = low_bits(self.em, modulus, 64)
        value = self.em.temp("uint64_t", f"{calc.named(self.program, number)}(sw, p)")
        if modulus.constant is None:
            name = self.em.temp("uint64_t", low)
            value = f"({value} % ({name} ? {name} : 1))"
        elif modulus.constant & (1 << 64) - 1 <= 1:
            value = "0ull"
        elif modulus.constant & modulus.constant - 1 == 0:
            value = f"({value} & {(modulus.constant & (1 << 64) - 1) - 1}ull)"
        else:
            value = f"({value} % {low})"
        self._store_u64(place, f"({value} + {self.x.low(base, 64)})")

    def _store_u64(self, place: Place, code: str) -> None:
        rep = low_rep(place.width)
        if rep.limbs:
            name = self.em.limbs(rep.limbs)
            self.em.line(f"p4_big_u128({name}, {rep.limbs}, {code});")
            code = name
        place.store(self.em, code)

    def _random(self, target: Json, low: Json, high: Json) -> None:
        place = self.x.place(target)
        a = self.em.temp("uint64_t", self.x.low(low, 64))
        b = self.em.temp("uint64_t", self.x.low(high, 64))
        self.em.open(f"if ({a} <= {b})")
        self._store_u64(place, self.em.temp("uint64_t", f"p4_random(sw, {a}, {b})"))
        self.em.close()

    # --- stateful objects ---

    def _meter(self, array: Json, index: Json, target: Json) -> None:
        meters = self.program.json.meter_arrays
        number = self._number("meter array", [m.name for m in meters], array)
        meter = meters[number]
        if meter.is_direct:
            raise JsonError(f"BMv2 JSON: execute_meter on the direct meter {meter.name}")
        at = self.em.temp("uint64_t", f"(uint32_t)({self.x.low(index, 32)})")
        self.em.open(f"if ({at} < {meter.size})")
        call = f"p4_meter_execute(sw, &sw->meters[{number}][{at}], {meter.rate_count}, " \
               f"{int(meter.type == 'packets')}, p->ingress_len, p->now)"
        color = self.em.temp("uint64_t", call)
        self._touch("meter", "METER", meter.name, at, f"(int64_t){color}", "NULL, 0")
        self._store_u64(self.x.place(target), color)
        self.em.close()

    def _count(self, array: Json, index: Json) -> None:
        counters = self.program.json.counter_arrays
        number = self._number("counter array", [c.name for c in counters], array)
        at, size = self.em.temp("uint32_t", f"(uint32_t)({self.x.low(index, 32)})"), counters[number].size
        self.em.line(f"p4_count(sw, {number}, {size}, {at}, p->ingress_len);")
        cell = f"&sw->counters[{number}][{at} < {size} ? {at} : {size}], sizeof(p4_counter)"
        self._touch("counter", "COUNTER", counters[number].name, at, "0", cell)

    def _touch(self, kind: Literal["register", "counter", "meter"], event: str, name: str, index: str, extra: str,
               data: str) -> None:
        """Tells what was done to a cell of an array."""
        point = self.program.points.add(kind, name, self._source, counted=False)
        self.em.line(f"TRACE(P4_TRACE_{event}, {point}, {index}, {extra}, {data});")

    def _register_read(self, target: Json, array: Json, index: Json) -> None:
        register = self.program.register(str(unwrap(array).get("value")))
        at = self.em.temp("uint32_t", f"(uint32_t)({self.x.low(index, 32)})")
        self.em.open(f"if ({at} < {register.size})")
        place = self.x.place(target)
        cell = self.x.cell(register, at)
        self._touch("register", "REGISTER", register.name, at, "0", _memory(cell))
        place.store(self.em, cell.low(self.em, place.width))
        self.em.close()

    def _register_write(self, array: Json, index: Json, source: Json) -> None:
        register = self.program.register(str(unwrap(array).get("value")))
        at = self.em.temp("uint32_t", f"(uint32_t)({self.x.low(index, 32)})")
        self.em.open(f"if ({at} < {register.size})")
        cell = self.x.cell(register, at)
        cell.store(self.em, self.x.low(source, register.width))
        self._touch("register", "REGISTER", register.name, at, "1", _memory(cell))
        self.em.close()

    # --- for people ---

    def _log(self, text: Json, values: Json) -> None:
        """The text with its values put in, where somebody listens."""
        template = str(unwrap(text).get("value"))
        arguments = unwrap(values).get("value") or []  # p4c writes {} for none
        if not isinstance(arguments, list):
            raise JsonError("BMv2 JSON: log_msg takes a list of values")
        parts = template.split("{}")
        if len(parts) != len(arguments) + 1:
            raise JsonError(f"BMv2 JSON: log_msg: {len(parts) - 1} values expected, got {len(arguments)}")
        self.em.open("if (P4_UNLIKELY(HEARD(sw)))")
        fmt, codes = parts[0].replace("%", "%%"), []
        for argument, part in zip(arguments, parts[1:], strict=True):
            value = self.x.data(argument)
            signed = value.low < 0
            codes.append(f"({'long long' if signed else 'unsigned long long'})({low_bits(self.em, value, 64)})")
            fmt += ("%lld" if signed else "%llu") + part.replace("%", "%%")
        self.em.line("char text[512];")
        self.em.line(f"snprintf(text, sizeof text, {', '.join([c_string(fmt), *codes])});")
        self.em.line("p4_log(sw, text);")
        self.em.line("TRACE(P4_TRACE_LOG, P4_NO_POINT, 0, 0, text, strlen(text));")
        self.em.close()

    def _assert(self, condition: Json) -> None:
        text = c_string(_place(self._source))
        self.em.open(f"if (P4_UNLIKELY(!{self.x.bool(condition)}))")
        self.em.line(f"p4_assert_failed(sw, {text});")
        self.em.line(f"TRACE(P4_TRACE_LOG, P4_NO_POINT, 1, 0, {text}, sizeof {text} - 1);")
        self.em.close()


def _place(source: Mapping[str, Json] | None) -> str:
    """FILE:LINE: the statement, as far as its first line goes."""
    info = source or {}
    text = str(info.get("source_fragment") or "an assertion of the program").partition(";")[0]
    return f"{info['filename']}:{info.get('line', '?')}: {text}" if info.get("filename") else text


def source_text(source: Mapping[str, Json] | None, otherwise: str) -> str:
    return str((source or {}).get("source_fragment") or otherwise)


def branch(program: Program, em: Emitter, value: str, text: str, source: Mapping[str, Json] | None) -> None:
    """Tells which way a condition goes; `value` is the C variable that has it."""
    yes = program.points.add("branch", text, source, "true")
    no = program.points.add("branch", text, source, "false")
    em.line(f"PASS({value} ? {yes} : {no});")
    em.line(f"TRACE(P4_TRACE_CONDITION, {yes}, {value}, 0, NULL, 0);")


def _memory(cell: Native) -> str:
    """Address and size of a register's cell."""
    return f"&{cell.code}, sizeof {cell.code}" if cell.width <= 64 else f"{cell.code}, {(cell.width + 63) // 64 * 8}"


def _columns(stack: Stack | UnionStack) -> list[Stack]:
    """The stacks that move together."""
    return [stack] if isinstance(stack, Stack) else [stack.members[name] for name in stack.order]
