"""Primitives of actions, parser states and deparsers in C."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

from p4switch.engine import calc, schema
from p4switch.engine.cnodes import Statement
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef, hex_value, unwrap
from p4switch.engine.flow import Node, statements
from p4switch.engine.points import place_of
from p4switch.engine.program import Program, Stack, UnionStack, c_string
from p4switch.engine.schema import Json, JsonError
from p4switch.engine.value import Native, Place, low_bits, low_rep

_JUMPS = ("_jump", "_jump_if_zero")


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

    def body(self, primitives: Sequence[schema.Primitive]) -> list[Statement]:
        """Return the statements of all primitives, with their jumps and exits."""
        jumps = {i: self._target(p, len(primitives)) for i, p in enumerate(primitives) if p.op in _JUMPS}
        self.loops |= any(target <= at for at, target in jumps.items())
        self.exits |= self.loops
        if not primitives:
            return []
        firsts = sorted({0, *jumps.values(), *(at + 1 for at in jumps)} - {len(primitives)})
        nodes: dict[str, Node] = {}
        for first, after in zip(firsts, [*firsts[1:], len(primitives)], strict=True):
            node = nodes[str(first)] = Node(next=self._place(after, primitives))
            for at in range(first, after):
                with self.em.inside(node.body):
                    if at in jumps:
                        self._jump(node, nodes, primitives, at, jumps[at])
                    else:
                        self.statement(primitives[at])
        return statements(nodes, self._place(0, primitives), lambda name: f"{self.prefix}_{name.replace(' ', '_')}")

    @staticmethod
    def _place(at: int, primitives: Sequence[schema.Primitive]) -> str | None:
        """The name of the node that begins at a primitive."""
        return str(at) if at < len(primitives) else None

    def _jump(
        self, node: Node, nodes: dict[str, Node], primitives: Sequence[schema.Primitive], at: int, target: int
    ) -> None:
        """The end of a node by a jump; one that goes back counts its rounds."""
        to = self._place(target, primitives)
        if target <= at:
            again = nodes[f"again {at}"] = Node(next=to)
            with self.em.inside(again.body), self.em.when("++p->steps >= P4_MAX_STEPS"):
                self.em.do("p->exit = p->endless = 1")
                self.em.leave()
            to = f"again {at}"
        if primitives[at].op == "_jump":
            node.next = to
        else:  # if zero
            node.condition, node.yes, node.next = self._test(primitives[at]), node.next, to
            node.note = source_note(primitives[at].source_info, "")

    def statement(self, primitive: schema.Primitive) -> None:
        """One primitive other than a jump."""
        with self.em.block():
            point = self._point(primitive)
            if primitive.op == "exit":
                self.exits = True
                self.em.note(f"CHANGES(P4_TRACE_STATEMENT, {point})")
                self.em.do("p->exit = 1")
                self.em.leave()
            else:
                self.primitive(primitive)
                self.em.note(f"CHANGES(P4_TRACE_STATEMENT, {point})")

    def _point(self, primitive: schema.Primitive) -> int:
        """Passes the point of a statement."""
        point = self.program.points.add("statement", primitive.op, primitive.source_info, primitive.op)
        self.em.comment(source_note(primitive.source_info, ""))
        self.em.note(f"PASS({point})")
        return point

    def _test(self, primitive: schema.Primitive) -> str:
        """The condition of a jump."""
        text = source_text(primitive.source_info, "if")
        return branch(self.program, self.em, self.x.bool(primitive.parameters[0]), text, primitive.source_info)

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
        self.em.do(f"memmove({to.base} + {a.bit // 8}, {of.base} + {b.bit // 8}, {length})")
        self.em.do(f"p->varbytes[{to.slot}] = (uint16_t){length}")

    def _copy_header(self, to: HeaderRef, of: HeaderRef) -> None:
        """BMv2's assign_header: values move only from a valid header."""
        if [f.width for f in to.type.fields] != [f.width for f in of.type.fields]:
            raise JsonError(f"BMv2 JSON: headers of type {to.type.name} and {of.type.name} cannot be assigned")
        if to.metadata or of.metadata:
            for a, b in zip(to.type.fields, of.type.fields, strict=True):
                to.place(a).store(self.em, of.place(b).low(self.em, a.width))
            return
        with self.em.when(f"{of.valid}"):
            to.set_valid(self.em)
            self.em.do(f"memmove({to.base}, {of.base}, {to.type.nbytes})")
            if to.type.varbit:
                self.em.do(f"p->varbytes[{to.slot}] = p->varbytes[{of.slot}]")
        with self.em.otherwise():
            self.em.do(f"{to.valid} = 0")

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
        self.em.do(f"p->next[{to.next}] = p->next[{of.next}]")
        for column_to, column_of in zip(_columns(to), _columns(of), strict=True):
            for i in range(to.size):
                self._copy_header(self.x.element(column_to, str(i)), self.x.element(column_of, str(i)))

    # --- validity ---

    def _add_header(self, header: Json) -> None:
        ref = self.x.header_ref(header)
        if ref.metadata:
            return
        with self.em.when(f"!{ref.valid}"):
            self.em.do(f"memset({ref.base}, 0, {ref.type.nbytes})")
            if ref.type.varbit:
                self.em.do(f"p->varbytes[{ref.slot}] = 0")
            ref.set_valid(self.em)
            self.em.do(f"p->length += {ref.length()}")

    def _add_header_fast(self, header: Json) -> None:
        self.x.header_ref(header).set_valid(self.em)

    def _remove_header(self, header: Json) -> None:
        ref = self.x.header_ref(header)
        if ref.metadata:
            return
        with self.em.when(f"{ref.valid}"):
            self.em.do(f"{ref.valid} = 0")
            self.em.do(f"p->length -= {ref.length()}")

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
            self.em.do(f"memset(p->valid + {column.is_valid}, 0, {count})")
        self.em.do(f"p->next[{stack.next}] = p->next[{stack.next}] < {kept} ? "
                   f"p->next[{stack.next}] + {count} : {stack.size}")

    def _pop(self, stack_json: Json, count_json: Json) -> None:
        stack = self.x.any_stack(stack_json)
        count = self._count_arg(count_json, stack.size)
        kept = stack.size - count
        for column in _columns(stack):
            self._shift(column, count, 0, kept)
            self.em.do(f"memset(p->valid + {column.is_valid} + {kept}, 0, {count})")
        self.em.do(f"p->next[{stack.next}] = p->next[{stack.next}] > {count} ? p->next[{stack.next}] - {count} : 0")

    def _shift(self, stack: Stack, source: int, target: int, count: int) -> None:
        """Moves `count` elements within a stack."""
        size = stack.type.nbytes
        to, of = f"p->H + {stack.at} + {target * size}", f"p->H + {stack.at} + {source * size}"
        self.em.do(f"memmove({to}, {of}, {count * size})")
        for array, width in (("valid", 1), *((("varbytes", 2),) if stack.type.varbit else ())):
            to, of = f"p->{array} + {stack.is_valid} + {target}", f"p->{array} + {stack.is_valid} + {source}"
            self.em.do(f"memmove({to}, {of}, {count * width})")

    # --- what becomes of the packet ---

    def _drop(self) -> None:
        self.em.do("set_egress_spec(p, sw->drop_port)")
        self.em.do("set_mcast_grp(p, 0)")

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
        self.em.do(f"p->{name} = (uint16_t)({self.x.low(ident, 16)})")

    def _clone(self, session: Json, field_list: Json) -> None:
        self.em.do(f"p->clone_session = (uint16_t)(({self.x.low(session, 16)} & 0x7fff) | 0x8000)")
        self._flag("clone_list", field_list)

    def _truncate(self, length: Json) -> None:
        limit = self.em.temp("uint32_t", f"(uint32_t)({self.x.low(length, 32)})")
        self.em.do(f"p->truncate = {limit} < p->truncate ? {limit} : p->truncate")

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
            self.em.do(f"p4_big_u128({name}, {rep.limbs}, {code})")
            code = name
        place.store(self.em, code)

    def _random(self, target: Json, low: Json, high: Json) -> None:
        place = self.x.place(target)
        a = self.em.temp("uint64_t", self.x.low(low, 64))
        b = self.em.temp("uint64_t", self.x.low(high, 64))
        with self.em.when(f"{a} <= {b}"):
            self._store_u64(place, self.em.temp("uint64_t", f"p4_random(sw, {a}, {b})"))

    # --- stateful objects ---

    def _index(self, c_type: str, json: Json) -> str:
        """The 32 bits of an index: a C constant or a temporary."""
        value = self.x.data(json).constant
        if value is not None:
            return str(value & (1 << 32) - 1)
        return self.em.temp(c_type, f"(uint32_t)({self.x.low(json, 32)})")

    def _within(self, at: str, size: int) -> AbstractContextManager[None]:
        """What is done only inside of an array."""
        return self.em.block() if at.isdigit() and int(at) < size else self.em.when(f"{at} < {size}")

    def _meter(self, array: Json, index: Json, target: Json) -> None:
        meters = self.program.json.meter_arrays
        number = self._number("meter array", [m.name for m in meters], array)
        meter = meters[number]
        if meter.is_direct:
            raise JsonError(f"BMv2 JSON: execute_meter on the direct meter {meter.name}")
        at = self._index("uint64_t", index)
        with self._within(at, meter.size):
            call = f"p4_meter_execute(sw, &sw->meters[{number}][{at}], {meter.rate_count}, " \
                   f"{int(meter.type == 'packets')}, p->ingress_len, p->now)"
            color = self.em.temp("uint64_t", call)
            self._touch("meter", "METER", meter.name, at, f"(int64_t){color}", "NULL, 0")
            self._store_u64(self.x.place(target), color)

    def _count(self, array: Json, index: Json) -> None:
        counters = self.program.json.counter_arrays
        number = self._number("counter array", [c.name for c in counters], array)
        at, size = self._index("uint32_t", index), counters[number].size
        self.em.do(f"p4_count(sw, {number}, {size}, {at}, p->ingress_len)")
        cell = f"&sw->counters[{number}][{at} < {size} ? {at} : {size}], sizeof(p4_counter)"
        self._touch("counter", "COUNTER", counters[number].name, at, "0", cell)

    def _touch(self, kind: Literal["register", "counter", "meter"], event: str, name: str, index: str, extra: str,
               data: str) -> None:
        """Tells what was done to a cell of an array."""
        point = self.program.points.add(kind, name, self._source, counted=False)
        self.em.note(f"TRACE(P4_TRACE_{event}, {point}, {index}, {extra}, {data})")

    def _register_read(self, target: Json, array: Json, index: Json) -> None:
        register = self.program.register(str(unwrap(array).get("value")))
        at = self._index("uint32_t", index)
        with self._within(at, register.size):
            place = self.x.place(target)
            cell = self.x.cell(register, at)
            self._touch("register", "REGISTER", register.name, at, "0", _memory(cell))
            place.store(self.em, cell.low(self.em, place.width))

    def _register_write(self, array: Json, index: Json, source: Json) -> None:
        register = self.program.register(str(unwrap(array).get("value")))
        at = self._index("uint32_t", index)
        with self._within(at, register.size):
            cell = self.x.cell(register, at)
            cell.store(self.em, self.x.low(source, register.width))
            self._touch("register", "REGISTER", register.name, at, "1", _memory(cell))

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
        with self.em.when("P4_UNLIKELY(HEARD(sw))"):
            fmt, codes = parts[0].replace("%", "%%"), []
            for argument, part in zip(arguments, parts[1:], strict=True):
                value = self.x.data(argument)
                signed = value.low < 0
                codes.append(f"({'long long' if signed else 'unsigned long long'})({low_bits(self.em, value, 64)})")
                fmt += ("%lld" if signed else "%llu") + part.replace("%", "%%")
            self.em.declare("char text[512]")
            self.em.do(f"snprintf(text, sizeof text, {', '.join([c_string(fmt), *codes])})")
            self.em.do("p4_log(sw, text)")
            self.em.note("TRACE(P4_TRACE_LOG, P4_NO_POINT, 0, 0, text, strlen(text))")

    def _assert(self, condition: Json) -> None:
        text = c_string(_place(self._source))
        with self.em.when(f"P4_UNLIKELY(!{self.x.bool(condition)})"):
            self.em.do(f"p4_assert_failed(sw, {text})")
            self.em.note(f"TRACE(P4_TRACE_LOG, P4_NO_POINT, 1, 0, {text}, sizeof {text} - 1)")


def _place(source: Mapping[str, Json] | None) -> str:
    """FILE:LINE: the statement, as far as its first line goes."""
    info = source or {}
    text = str(info.get("source_fragment") or "an assertion of the program").partition(";")[0]
    return f"{info['filename']}:{info.get('line', '?')}: {text}" if info.get("filename") else text


def source_text(source: Mapping[str, Json] | None, otherwise: str) -> str:
    return str((source or {}).get("source_fragment") or otherwise)


def source_note(source: Mapping[str, Json] | None, otherwise: str) -> str:
    """Return the name of the file, the line and the text of a piece of source."""
    text, place = source_text(source, otherwise), place_of(source)
    return f"{posixpath.basename(place.file)}:{place.line}: {text}" if place and text else text


def branch(program: Program, em: Emitter, condition: str, text: str, source: Mapping[str, Json] | None) -> str:
    """Tell which way a condition goes; returns the condition."""
    yes = program.points.add("branch", text, source, "true")
    no = program.points.add("branch", text, source, "false")
    if em.traced:
        condition = em.temp("int", condition)
        em.note(f"PASS({condition} ? {yes} : {no})")
        em.note(f"TRACE(P4_TRACE_CONDITION, {yes}, {condition}, 0, NULL, 0)")
    return condition


def _memory(cell: Native) -> str:
    """Address and size of a register's cell."""
    return f"&{cell.code}, sizeof {cell.code}" if cell.width <= 64 else f"{cell.code}, {(cell.width + 63) // 64 * 8}"


def _columns(stack: Stack | UnionStack) -> list[Stack]:
    """The stacks that move together."""
    return [stack] if isinstance(stack, Stack) else [stack.members[name] for name in stack.order]
