"""The parser in C: one function, a label a state."""

from collections.abc import Sequence

import networkx as nx
from pydantic import ValidationError

from p4switch.engine import cnodes, keys, schema
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef, hex_value, mask_value, pair, unwrap
from p4switch.engine.primitives import Primitives, source_note
from p4switch.engine.program import Field, Program, numbered
from p4switch.engine.schema import Json, JsonError
from p4switch.engine.value import InHeader, Value, low_bits, low_rep

_MAX_STEPS = 65536  # through states that lie on a cycle


VsetKeys = dict[str, tuple[list[keys.KeyField], int]]
"""The keys of value sets, and how many words they have: those of a program's parsers."""


class ParserGenerator:
    """Generates `static void run_<name>(p4_switch *sw, phv *p)`."""

    def __init__(self, program: Program, parser: schema.Parser, vset_keys: VsetKeys) -> None:
        self.program = program
        self.parser = parser
        self.em = Emitter(traced=program.traced)
        self.x = Expressions(program, self.em)
        self.vset_keys = vset_keys
        self.numbers = {state.name: i for i, state in enumerate(self.parser.parse_states)}
        if len(self.numbers) != len(self.parser.parse_states):
            raise JsonError("BMv2 JSON: two parser states have the same name")

    def function(self) -> str:
        states = self.parser.parse_states
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(state.name for state in states)
        graph.add_edges_from((s.name, t.next_state) for s in states for t in s.transitions if t.next_state is not None)
        self.looping = {
            name for component in nx.strongly_connected_components(graph) for name in component
            if len(component) > 1 or graph.has_edge(name, name)
        }
        em = self.em
        em.declare("const p4_frame *frame = p->base.frame")
        em.declare("const uint32_t len = frame->wire_len, have = frame->data_len")
        em.declare("uint32_t at = 0")
        if self.looping:
            em.declare(f"uint32_t steps = {_MAX_STEPS}")
        em.do(f"p->error = {self.program.errors['NoError']}")
        self._goto(self.parser.init_state)
        for state in states:
            self._state(state)
        em.label("done")
        em.do("p->parsed = at")
        return cnodes.function(f"static void run_{self.parser.name}(P4_UNUSED p4_switch *sw, phv *p)", em.body)

    def _goto(self, name: str | None) -> None:
        if name is not None and name not in self.numbers:
            raise JsonError(f"BMv2 JSON: there is no parser state {name}")
        self.em.goto("done" if name is None else self._label(name))

    def _label(self, name: str) -> str:
        return numbered("state_", self.numbers[name], name)

    def _fail(self, condition: str, error: str) -> None:
        """Stop parsing with an error if a condition holds."""
        with self.em.when(condition):
            self.em.leave(f"parser_error(sw, p, at, {self.program.errors[error]})")

    def _state(self, state: schema.ParseState) -> None:
        em = self.em
        em.label(self._label(state.name))
        with em.block():
            point = self.program.points.add("state", state.name, state.source_info)
            em.note(f"PASS({point})")
            em.note(f"TRACE(P4_TRACE_STATE, {point}, 0, 0, NULL, 0)")
            if state.name in self.looping:
                self._fail("!--steps", "ParserTimeout")
            fresh = state.name == self.parser.init_state and state.name not in self.looping
            for op in state.parser_ops:
                # Compilers begin by invalidating headers. A packet begins without any, so that is nothing to do.
                fresh = fresh and op.op == "primitive" and self._primitive(op).op == "remove_header"
                if fresh:
                    continue
                with em.block():
                    self._operation(op)
            self._keyed_transitions(state)

    # --- operations ---

    def _operation(self, op: schema.ParserOp) -> None:
        arities = {"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "shift": 1, "advance": 1, "primitive": 1}
        if op.op not in arities:
            raise JsonError(f"BMv2 JSON: unknown parser operation {op.op}")
        if len(op.parameters) != arities[op.op]:
            raise JsonError(f"BMv2 JSON: parser operation {op.op} takes {arities[op.op]} parameters")
        args = op.parameters
        if op.op in ("extract", "extract_VL"):
            self._extract(args[0], args[1] if op.op == "extract_VL" else None, op.source_info)
            return
        source = op.source_info
        if op.op == "primitive":
            source = self._primitive(op).source_info
        point = self.program.points.add("statement", op.op, source, op.op)
        self.em.comment(source_note(source, ""))
        self.em.note(f"PASS({point})")
        if op.op == "set":
            self._set(args[0], args[1])
        elif op.op == "verify":
            code = self.x.data(args[1])
            condition = self.x.bool(args[0])
            with self.em.when(f"!{condition}"):
                self.em.leave(f"parser_error(sw, p, at, (uint32_t)({low_bits(self.em, code, 64)}))")
        elif op.op == "advance":
            self._advance(self.x.data(args[0]))
        elif op.op == "shift":
            count = args[0] if isinstance(args[0], int) else hex_value(unwrap(args[0]).get("value"))
            if not 0 <= count <= 1 << 16:
                raise JsonError(f"BMv2 JSON: parser operation shift by {count} bytes; expected 0 to 65536")
            self._advance(Value(f"{8 * count}ull", 8 * count, 8 * count))
        else:
            Primitives(self.program, self.em, (), "m").primitive(self._primitive(op))
        self.em.note(f"CHANGES(P4_TRACE_STATEMENT, {point})")

    @staticmethod
    def _primitive(op: schema.ParserOp) -> schema.Primitive:
        if len(op.parameters) != 1:
            raise JsonError(f"BMv2 JSON: parser operation {op.op} takes 1 parameter, got {len(op.parameters)}")
        try:
            return schema.Primitive.model_validate(op.parameters[0])
        except ValidationError as error:
            raise JsonError(f"BMv2 JSON: parser operation {op.op}: {error.errors()[0]['msg']}") from error

    def _advance(self, nbits: Value) -> None:
        em = self.em
        bits = em.temp("uint64_t", low_bits(em, nbits, 64))
        if nbits.constant is None or nbits.constant % 8:
            self._fail(f"{bits} % 8", "ParserInvalidArgument")
        self._fail(f"{bits} / 8 > len - at", "PacketTooShort")
        em.do(f"at += (uint32_t)({bits} / 8)")

    def _extract(self, target: Json, length: Json, source: Json) -> None:
        em = self.em
        point = self.program.points.add("extract", "", source)
        em.comment(source_note(source, ""))
        em.note(f"PASS({point})")
        kind, value = (target.get("type"), target.get("value")) if isinstance(target, dict) else (None, None)
        if kind == "regular":
            self._extract_header(self.x.header(str(value)), length, point)
            return
        if kind == "stack":
            stack = self.program.stack(str(value))
            size, next_index = stack.size, stack.next
            index = em.temp("uint32_t", f"p->next[{next_index}]")
            ref = self.x.element(stack, index)
        elif kind == "union_stack":
            name, member = pair(value)
            union_stack = self.program.union_stack(str(name))
            if member not in union_stack.order:
                raise JsonError(f"BMv2 JSON: {union_stack.name} has no member {member}")
            size, next_index = union_stack.size, union_stack.next
            index = em.temp("uint32_t", f"p->next[{next_index}]")
            ref = self.x.union_element(union_stack, index).members[union_stack.order.index(str(member))]
        else:
            raise JsonError(f"BMv2 JSON: cannot extract to {kind}")
        self._fail(f"{index} >= {size}", "StackOutOfBounds")
        self._extract_header(ref, length, point)
        em.do(f"p->next[{next_index}] = {index} + 1")

    def _extract_header(self, ref: HeaderRef, length: Json, point: int) -> None:
        em = self.em
        if ref.metadata:
            raise JsonError(f"BMv2 JSON: metadata {ref.metadata.name} cannot be extracted")
        ref.length()  # refuses types that are no whole number of bytes
        size = ref.type.fixed_bytes
        if ref.type.varbit:
            self._extract_varbit(ref, ref.type.varbit, length)
        else:
            self._fail(f"!p4_extract({ref.base}, frame, &at, len, have, {size})", "PacketTooShort")
        ref.set_valid(em)
        varbytes = f"p->varbytes[{ref.slot}]" if ref.type.varbit else "0"
        em.note(f"TRACE(P4_TRACE_EXTRACT, {point}, {ref.slot}, {varbytes}, {ref.base}, {ref.type.nbytes})")
        em.note("NOTE(p)")

    def _extract_varbit(self, ref: HeaderRef, varbit: Field, length: Json) -> None:
        """The wire has the varbit at its actual length; in memory it has room for the longest."""
        em = self.em
        fields = ref.type.fields
        before = sum(f.width for f in fields[:varbit.index])
        after = sum(f.width for f in fields[varbit.index + 1:])
        size, limit = ref.type.fixed_bytes, ref.type.fixed_bytes + varbit.width // 8
        em.declare(f"uint8_t buffer[{limit} + 16]")
        if length is None:
            # The type's own expression, over the fields before the varbit.
            if ref.type.length_exp is None:
                raise JsonError(f"BMv2 JSON: header type {ref.type.name} needs a length to be extracted")
            self._fail(f"{size} > len - at", "PacketTooShort")
            em.do(f"p4_copy_padded(buffer, frame, at, {size})")
            em.do(f"p4_copy_bits({ref.base}, 0, buffer, 0, {before})")
            own = Expressions(self.program, em, [
                InHeader(f.width, f.signed, ref.base, f) for f in fields[:varbit.index]
            ])
            nbits = own.data(ref.type.length_exp)
        else:
            nbits = self.x.data(length)
        bits = em.temp("uint64_t", low_bits(em, nbits, 64))
        self._fail(f"{bits} % 8", "ParserInvalidArgument")
        self._fail(f"{bits} / 8 > len - at || {size} > len - at - {bits} / 8", "PacketTooShort")
        self._fail(f"{bits} > {varbit.width}", "HeaderTooShort")
        count = em.temp("uint32_t", f"(uint32_t){bits}")
        em.do(f"p4_copy_padded(buffer, frame, at, {size} + {count} / 8)")
        em.do(f"p4_copy_bits({ref.base}, 0, buffer, 0, {before})")
        em.do(f"p4_copy_bits({ref.base}, {varbit.bit}, buffer, {before}, {count})")
        em.do(f"p4_copy_bits({ref.base}, {varbit.bit + varbit.width}, buffer, {before} + {count}, {after})")
        em.do(f"p->varbytes[{ref.slot}] = (uint16_t)({count} / 8)")
        em.do(f"at += {size} + {count} / 8")

    def _lookahead(self, value: Json) -> InHeader:
        """Bits that lie ahead, as a place in a copy of them."""
        offset, width = pair(value)
        if not isinstance(offset, int) or not isinstance(width, int) or offset < 0 or not 0 < width <= 4096 \
                or offset > 1 << 20:
            raise JsonError(f"BMv2 JSON: bad lookahead {value}")
        first, count = offset // 8, (offset % 8 + width + 7) // 8
        em = self.em
        self._fail(f"{first + count} > len - at", "PacketTooShort")
        name = em.name()
        em.declare(f"uint8_t {name}[{count} + 8]")
        em.do(f"p4_copy_padded({name}, frame, at + {first}, {count})")
        em.do(f"memset({name} + {count}, 0, 8)")
        return InHeader(width, False, name, Field("", 0, width, False, offset % 8))

    def _set(self, target: Json, source: Json) -> None:
        inner = unwrap(source)
        if inner.get("type") == "lookahead":
            place = self.x.place(target)
            place.store(self.em, self._lookahead(inner.get("value")).low(self.em, place.width))
        else:
            Primitives(self.program, self.em, (), "m").assign(target, source)

    # --- transitions ---

    def _take(self, state: schema.ParseState, transition: schema.Transition | None) -> None:
        """Go where a transition of the state leads; None: there is none, which ends parsing."""
        target = transition.next_state if transition is not None else None
        source = transition.source_info if transition is not None else None
        point = self.program.points.add("transition", state.name, source, target or "accept")
        key = "key, sizeof key" if state.transition_key else "NULL, 0"
        self.em.note(f"PASS({point})")
        self.em.note(f"TRACE(P4_TRACE_TRANSITION, {point}, 0, 0, {key})")
        self._goto(target)

    def _keyed_transitions(self, state: schema.ParseState) -> None:
        if not state.transition_key:
            default = [t for t in state.transitions if t.type == "default"]
            self._take(state, default[0] if default else None)
            return
        pieces, widths, values = self._key(state.transition_key)
        if self.em.traced:
            self.em.declare(f"const uint64_t key[] = {{{', '.join(pieces)}}}")
        self._transitions(state, pieces, widths, values)

    def _transitions(
        self, state: schema.ParseState, pieces: Sequence[str], widths: Sequence[int], values: Sequence[Value]
    ) -> None:
        em = self.em
        simple = len(pieces) == 1 and all(
            t.type == "default" or (t.type == "hexstr" and t.mask is None) for t in state.transitions
        )
        if simple and len(state.transitions) > 4:
            seen: set[int] = set()
            with em.switch(pieces[0]) as switch:
                for t in state.transitions:
                    if t.type == "default":
                        continue
                    value = hex_value(t.value)
                    if value not in seen and 0 <= value < 1 << widths[0]:
                        with em.case(switch, f"0x{value:x}ull"):
                            self._take(state, t)
                    seen.add(value)
        else:
            for t in state.transitions:
                if t.type == "default":
                    continue
                condition = self._vset(t, widths, values) if t.type == "parse_vset" else self._match(t, pieces, widths)
                if condition == "1":
                    self._take(state, t)
                    return
                with em.when(condition):
                    self._take(state, t)
        default = [t for t in state.transitions if t.type == "default"]
        self._take(state, default[0] if default else None)

    def _key(self, items: Sequence[dict[str, Json]]) -> tuple[list[str], list[int], list[Value]]:
        """64-bit pieces of the key, the most significant first; widths of its fields; their values."""
        em = self.em
        pieces: list[str] = []
        widths: list[int] = []
        values: list[Value] = []
        for item in items:
            place = self._lookahead(item.get("value")) if item.get("type") == "lookahead" else self.x.place(item)
            width = place.width
            rep = low_rep(width)
            low = place.low(em, width)
            if rep.limbs:
                pieces += [f"{low}[{i}]" for i in reversed(range(rep.limbs))]
                values.append(place.load(em))
            elif width > 64:
                name = em.temp("p4_u128", f"{low} & p4_mask128({width})")
                pieces += [f"(uint64_t)({name} >> 64)", f"(uint64_t){name}"]
                values.append(Value(name, 0, (1 << width) - 1))
            else:
                name = em.temp("uint64_t", low if not place.signed else f"{low} & p4_mask64({width})")
                pieces.append(name)
                values.append(Value(name, 0, (1 << width) - 1))
            widths.append(width)
        return pieces, widths, values

    def _match(self, transition: schema.Transition, pieces: Sequence[str], widths: Sequence[int]) -> str:
        value = hex_value(transition.value)
        total = sum((w + 7) // 8 * 8 for w in widths)
        mask = (1 << total) - 1 if transition.mask is None else mask_value(transition.mask)
        terms: list[str] = []
        index = 0
        position = total
        for width in widths:
            position -= (width + 7) // 8 * 8
            want = value >> position & (1 << (width + 7) // 8 * 8) - 1
            care = mask >> position & (1 << (width + 7) // 8 * 8) - 1
            if transition.mask is None and want >> width:
                return "0"
            for chunk in reversed(range((width + 63) // 64)):
                size = min(64, width - 64 * chunk)
                chunk_mask = care >> 64 * chunk & (1 << size) - 1
                chunk_want = want >> 64 * chunk & chunk_mask
                name = pieces[index]
                index += 1
                if chunk_mask == (1 << size) - 1:
                    terms.append(f"{name} == 0x{chunk_want:x}ull")
                elif chunk_mask:
                    terms.append(f"({name} & 0x{chunk_mask:x}ull) == 0x{chunk_want:x}ull")
        return " && ".join(terms) or "1"

    def _vset(self, transition: schema.Transition, widths: Sequence[int], values: Sequence[Value]) -> str:
        names = [v.name for v in self.program.json.parse_vsets]
        if transition.value not in names:
            raise JsonError(f"BMv2 JSON: there is no parse_vset {transition.value}")
        name = str(transition.value)
        fields, words = keys.layout([(f"{name}[{i}]", w, "P4_TERNARY", None) for i, w in enumerate(widths)])
        known = self.vset_keys.setdefault(name, (fields, words))
        if known != (fields, words):
            raise JsonError(f"BMv2 JSON: parse_vset {name} is used with keys of different widths")
        key = keys.pack(self.em, fields, words, values, [""] * len(fields))
        return f"p4_vset_contains(&sw->vsets[{names.index(name)}], {key}, {words})"
