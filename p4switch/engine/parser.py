"""Generation of a parser in C: one function, with a label for each state."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from p4switch import ir
from p4switch.engine import cexpr, cnodes, keys
from p4switch.engine.cexpr import U64_TYPE, C, Code, Name, Rows, packet
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef
from p4switch.engine.program import Field, Program, labels
from p4switch.engine.statements import Statements
from p4switch.engine.value import InHeader, Place, Value, convert, low_rep, named
from p4switch.ir.errors import ProgramError
from p4switch.ir.graph import looping

_MAX_STEPS = 65536  # maximum number of passes through states on a cycle
_AT = Name("at", "uint32_t")  # C variable with the number of parsed bytes
_LEFT = Name("len", "uint32_t") - _AT

_Case = list[tuple[int, int | None]]

VsetKeys = dict[str, tuple[list[keys.KeyField], int]]
"""Key layout and number of words of each value set."""


@dataclass(frozen=True)
class Front:
    """The `size` bytes that a parser reads in front of a frame.

    The C code writes the first `read` bytes to `place`. If the parser begins by extracting a header and skipping the
    bytes after it, `place` is that header, and these operations (`taking`) need no code. Otherwise `taking` is empty,
    and the parser extracts the bytes like those of the frame.
    """

    size: int
    read: int
    place: C
    taking: tuple[ir.Operation, ...]


class _Operations(Statements):
    """Generator of the operations of states. An operation that fails leaves the parser.

    If the packet has bytes in front of its frame (`behind`), the C variables `front` and `front_len`
    are their address and length. The operations `taking` bytes that are already in place need no code.
    """

    def __init__(self, program: Program, em: Emitter, front: Front | None) -> None:
        super().__init__(program, em, (), "m")
        self.taking = front.taking if front is not None else ()
        self.behind = behind = front is not None and not front.taking
        self.packet = ("front", "front_len", "frame") if behind else ("frame",)
        self.taken = cexpr.call("p4_taken", "uint32_t", _AT, "front_len") if behind else _AT

    def fail(self, condition: C, error: str) -> None:
        """Stop parsing with an error if a condition holds."""
        with self.em.when(condition):
            self.em.leave(cexpr.call("parser_error", "", "sw", "p", self.taken, self.program.errors[error]))

    def require(self, nbytes: Code) -> None:
        """Stop parsing if the rest of the packet is shorter."""
        self.fail(cexpr.node(nbytes) > _LEFT, "PacketTooShort")

    def operation(self, op: ir.Operation) -> None:
        """Add one operation, and report it to traces."""
        with self.em.block():
            if isinstance(op, ir.Extract):
                op.accept(self)
                return
            names = {ir.Verify: "verify", ir.Advance: "advance", ir.Assign: "set"}
            self.point("statement", names.get(type(op), "primitive"), op.span)
            op.accept(self)
            self.changes()

    def assign(self, op: ir.Assign) -> None:
        if not isinstance(op.src, ir.Lookahead):
            super().assign(op)
            return
        place = self.x.place(op.dst)
        place.store(self.em, self.ahead(op.src).low(self.em, place.width))

    def _copy_bytes(self, to: C, at: C, size: Code) -> None:
        """Copy bytes of the packet without consuming them."""
        self.em.call("p4_copy_behind" if self.behind else "p4_copy_padded", to, *self.packet, at, size)

    def verify(self, op: ir.Verify) -> None:
        code = self.x.data(op.error)
        with self.em.when(cexpr.negated(self.x.bool(op.condition))):
            self.em.leave(cexpr.call("parser_error", "", "sw", "p", self.taken, code.lowest(self.em, 64)))

    def advance(self, op: ir.Advance) -> None:
        if op in self.taking:
            return
        em, count = self.em, self.x.data(op.bits)
        bits = em.temp("uint64_t", count.lowest(em, 64))
        if count.constant is None or count.constant % 8:
            self.fail(bits % 8, "ParserInvalidArgument")
        self.require(bits / 8)
        em.set(_AT, cexpr.cast("uint32_t", bits / 8), "+=")

    def extract(self, op: ir.Extract) -> None:
        em = self.em
        point = self.point("extract", "", op.span)
        if not op.header.stack:
            self._extract_header(self.x.named(op.header.name), op.length, point, there=op in self.taking)
            return
        stack = self.program.stacks[op.header.stack]
        following = packet("next")[stack.next]
        index = em.temp("uint32_t", following)
        ref = self.x.any_element(stack, op.header.member, index)
        self.fail(cexpr.compared(">=", index, stack.size), "StackOutOfBounds")
        self._extract_header(ref, op.length, point)
        em.set(following, index + 1)

    def _extract_header(
        self, ref: HeaderRef, length: ir.Expr | None, point: int, *, there: bool = False
    ) -> None:
        em = self.em
        if ref.metadata:
            raise ProgramError(f"metadata {ref.metadata.name} cannot be extracted")
        ref.length()  # raises an error for types that are not a whole number of bytes
        size = ref.type.fixed_bytes
        if ref.type.varbit:
            self._extract_varbit(ref, ref.type.varbit, length)
        elif not there:
            take = "p4_extract_behind" if self.behind else "p4_extract"
            taken = cexpr.call(take, "int", ref.base, *self.packet, _AT.address, "len", "have", size)
            self.fail(cexpr.negated(taken), "PacketTooShort")
        ref.set_valid(em)
        varbytes = ref.varbytes if ref.type.varbit else 0
        em.trace("EXTRACT", point, ref.slot, varbytes, ref.base, ref.type.nbytes)
        em.note("NOTE", "p")

    def _extract_varbit(self, ref: HeaderRef, varbit: Field, length: ir.Expr | None) -> None:
        """Extract a varbit. Memory has room for its maximum length, while the wire has its actual length."""
        em = self.em
        fields = ref.type.fields
        before = sum(f.width for f in fields[:varbit.index])
        after = sum(f.width for f in fields[varbit.index + 1:])
        size, limit = ref.type.fixed_bytes, ref.type.fixed_bytes + varbit.width // 8
        buffer = em.declare("uint8_t", "buffer", size=limit + 16)
        if length is None:
            # The length is given by an expression of the header type over the fields before the varbit.
            if ref.type.length is None:
                raise ProgramError(f"header type {ref.type.name} needs a length to be extracted")
            self.require(size)
            self._copy_bytes(buffer, _AT, size)
            em.call("p4_copy_bits", ref.base, 0, buffer, 0, before)
            own = Expressions(self.program, em, [
                InHeader(f.width, f.signed, ref.base, f) for f in fields[:varbit.index]
            ])
            nbits = own.data(ref.type.length)
        else:
            nbits = self.x.data(length)
        bits = em.temp("uint64_t", nbits.lowest(em, 64))
        self.fail(bits % 8, "ParserInvalidArgument")
        short = cexpr.both("||", bits / 8 > _LEFT, cexpr.node(size) > _LEFT - bits / 8)
        self.fail(short, "PacketTooShort")
        self.fail(bits > varbit.width, "HeaderTooShort")
        count = em.temp("uint32_t", cexpr.cast("uint32_t", bits))
        whole = cexpr.node(size) + count / 8
        self._copy_bytes(buffer, _AT, whole)
        em.call("p4_copy_bits", ref.base, 0, buffer, 0, before)
        em.call("p4_copy_bits", ref.base, varbit.bit, buffer, before, count)
        em.call("p4_copy_bits", ref.base, varbit.bit + varbit.width, buffer, cexpr.node(before) + count, after)
        em.set(ref.varbytes, cexpr.cast("uint16_t", count / 8))
        em.set(_AT, whole, "+=")

    def ahead(self, expr: ir.Lookahead) -> InHeader:
        """Copy the next bits of the packet, and return them as a field of the copy."""
        first, count = expr.offset // 8, (expr.offset % 8 + expr.width + 7) // 8
        em = self.em
        self.require(first + count)
        ahead = em.declare("uint8_t", em.name(), size=count + 8)
        self._copy_bytes(ahead, _AT + first, count)
        em.call("memset", ahead + count, 0, 8)
        return InHeader(expr.width, False, ahead, Field("", 0, expr.width, False, expr.offset % 8))

    def key(self, expr: ir.Expr) -> Place:
        """Return a field of a select key."""
        return self.ahead(expr) if isinstance(expr, ir.Lookahead) else self.x.place(expr)


class ParserGenerator:
    """Generator of a parser's function, `static void run_<name>(p4_switch *sw, phv *p)`, and of code for `Front`."""

    def __init__(self, program: Program, parser: ir.Parser, vset_keys: VsetKeys) -> None:
        self.program = program
        self.parser = parser
        self.em = Emitter(traced=program.traced)
        self.looping = looping(parser.states)
        self.front = self._front(program.path.in_front[parser.name]) if parser.name in program.path.in_front else None
        self.operations = _Operations(program, self.em, self.front)
        self.vset_keys = vset_keys
        names = [state.name for state in parser.states]
        self.labels = {name: f"state_{label}" for name, label in zip(names, labels(names), strict=True)}

    def declarations(self) -> list[cnodes.Declaration]:
        name, front = self.parser.name, self.front
        if front is None:
            self._body(Name("frame").arrow("wire_len"))
            return [cnodes.Function("static void", f"run_{name}", (cnodes.SWITCH, cnodes.PACKET), self.em.body)]
        front_len = self.em.declare("const uint32_t", "front_len", cexpr.node(0 if front.taking else front.size))
        self._body(Name("frame").arrow("wire_len") + front_len)
        spare = cnodes.Declare("P4_UNUSED uint8_t *", "spare")
        at_front = cnodes.Declare("P4_UNUSED const uint8_t *", "front")
        return [
            cnodes.Enum({f"{name}_front_bytes": front.size, f"{name}_front_read": front.read}),
            cnodes.Function(
                "P4_INLINE uint8_t *", f"{name}_front", (cnodes.PACKET, spare), [cnodes.Return(front.place)]
            ),
            cnodes.Function(
                "static void", f"run_{name}", (cnodes.SWITCH, cnodes.PACKET, at_front), self.em.body
            ),
        ]

    def _body(self, length: C) -> None:
        em = self.em
        frame = em.declare("const p4_frame *", "frame", packet("base").dot("frame"))
        em.declare("const uint32_t", "len", length)
        em.declare("const uint32_t", "have", frame.arrow("data_len"))
        em.declare("uint32_t", "at", cexpr.node(0))
        if self.looping:
            em.declare("uint32_t", "steps", cexpr.node(_MAX_STEPS))
        em.set(packet("error"), self.program.errors["NoError"])
        self._goto(self.parser.start)
        for state in self.parser.states:
            self._state(state)
        em.label("done")
        em.set(packet("parsed"), self.operations.taken)

    def _front(self, size: int) -> Front:
        """Return how the parser reads the `size` bytes in front of a frame.

        They can be written directly to a header if the parser first extracts this header and skips the
        bytes after it.
        """
        untouched = Front(size, size, Name("spare"), ())
        ops = [op for op in self.parser.start.ops if not isinstance(op, ir.SetInvalid)]
        first = ops[0] if ops else None
        if not isinstance(first, ir.Extract) or first.header.stack or self.parser.start in self.looping:
            return untouched
        header = Expressions(self.program, self.em).named(first.header.name)
        taken = read = header.type.fixed_bytes
        if header.type.varbit or header.metadata or not 0 < taken <= size:
            return untouched
        taking: list[ir.Operation] = [first]
        for op in ops[1:]:
            if taken < size and isinstance(op, ir.Advance) and isinstance(op.bits, ir.Const):
                taken += op.bits.value // 8
                taking.append(op)
            elif not isinstance(op, ir.Assign) or isinstance(op.src, ir.Lookahead):
                break
        return Front(size, read, header.base, tuple(taking)) if taken == size else untouched

    def _goto(self, state: ir.Block | None) -> None:
        self.em.goto(self.labels[state.name] if state is not None and state.name else "done")

    def _state(self, state: ir.Block) -> None:
        em, name = self.em, state.name
        em.label(self.labels[name])
        with em.block():
            point = self.program.points.add("state", name, self.program.place(state.span), parser=self.parser.name)
            em.note("PASS", point)
            em.trace("STATE", point)
            if state in self.looping:
                none_left = cexpr.negated(cexpr.unary("--", "steps"))
                self.operations.fail(none_left, "ParserTimeout")
            fresh = state is self.parser.start and state not in self.looping
            for op in self.operations.spelled_out(state.ops):
                # Compilers begin by invalidating headers. This needs no code: a packet starts without valid headers.
                fresh = fresh and isinstance(op, ir.SetInvalid)
                if not fresh:
                    self.operations.operation(op)
            if isinstance(state.end, ir.Select):
                self._select(state, state.end)
            elif isinstance(state.end, ir.Goto):
                self._take(state, state.end.target, state.end.span)
            else:
                self._take(state, None, None)

    # --- transitions ---

    def _take(self, state: ir.Block, target: ir.Block | None, span: int | None) -> None:
        """Generate the jump to the target of a transition; None ends parsing."""
        to = target.name if target is not None and target.name else "accept"
        point = self.program.points.add("transition", state.name, self.program.place(span), to)
        key: tuple[Code, ...] = ("key", cexpr.size_of("key")) if isinstance(state.end, ir.Select) else ()
        self.em.note("PASS", point)
        self.em.trace("TRANSITION", point, 0, 0, *key)
        self._goto(target)

    def _select(self, state: ir.Block, select: ir.Select) -> None:
        """Generate the jump to the target of the first case that matches the key."""
        em = self.em
        pieces, widths, values = self._key(select.keys)
        if em.traced:
            em.declare("const uint64_t", "key", Rows(pieces), max(len(pieces), 1))
        cases = [(case, target, span) for (case, target), span in zip(select.cases, select.spans, strict=True)]
        _, *otherwise = cases.pop() if cases and cases[-1][0] == [] else ([], None, None)
        exact = [
            (case[0][0], target, span) for case, target, span in cases
            if len(pieces) == 1 and not isinstance(case, str) and case[0][1] is None
        ]
        if len(exact) == len(cases) and len(select.cases) > 4:
            seen: set[int] = set()
            with em.switch(pieces[0]) as switch:
                for value, target, span in exact:
                    if value not in seen and 0 <= value < 1 << widths[0]:
                        with em.case(switch, cexpr.literal(value)):
                            self._take(state, target, span)
                    seen.add(value)
        else:
            for case, target, span in cases:
                condition = self._vset(case, widths, values) if isinstance(case, str) else _match(case, pieces, widths)
                if condition is None:
                    self._take(state, target, span)
                    return
                with em.when(condition):
                    self._take(state, target, span)
        self._take(state, *otherwise)

    def _key(self, exprs: Sequence[ir.Expr]) -> tuple[list[C], list[int], list[Value]]:
        """Return a key's 64-bit pieces, most significant first, and the widths and values of its fields."""
        em = self.em
        pieces: list[C] = []
        widths: list[int] = []
        values: list[Value] = []
        for expr in exprs:
            place = self.operations.key(expr)
            value, rep = named(em, place.bits(em)), low_rep(place.width)
            code = convert(em, value, rep)
            if rep.limbs:
                pieces += [code.limb(i) for i in reversed(range(rep.limbs))]
            elif rep.width > 64:
                pieces += [cexpr.cast(U64_TYPE, cexpr.shifted(">>", code, 64)), cexpr.cast(U64_TYPE, code)]
            else:
                pieces.append(code)
            values.append(value)
            widths.append(place.width)
        return pieces, widths, values

    def _vset(self, name: str, widths: Sequence[int], values: Sequence[Value]) -> C:
        names = [v.name for v in self.program.nodes.value_sets]
        fields, words = keys.layout([(f"{name}[{i}]", w, "P4_TERNARY", None) for i, w in enumerate(widths)])
        known = self.vset_keys.setdefault(name, (fields, words))
        if known != (fields, words):
            raise ProgramError(f"parse_vset {name} is used with keys of different widths")
        key = keys.pack(self.em, fields, words, values, [cexpr.literal(1, "int")] * len(fields))
        return cexpr.call("p4_vset_contains", "int", cexpr.switch("vsets")[names.index(name)].address, key, words)


def _match(case: _Case, pieces: Sequence[C], widths: Sequence[int]) -> C | None:
    """Return the condition that the pieces of a key match a case; None if it always holds."""
    terms: list[C] = []
    index = 0
    for (want, mask), width in zip(case, widths, strict=True):
        if mask is None and want >> width:
            return cexpr.literal(0, "int")
        care = (1 << width) - 1 if mask is None else mask
        for chunk in reversed(range((width + 63) // 64)):
            size = min(64, width - 64 * chunk)
            chunk_mask = care >> 64 * chunk & (1 << size) - 1
            chunk_want = want >> 64 * chunk & chunk_mask
            piece = pieces[index]
            index += 1
            if chunk_mask != (1 << size) - 1:
                piece = cexpr.binary("&", piece, cexpr.literal(chunk_mask))
            if chunk_mask:
                terms.append(cexpr.compared("==", piece, cexpr.literal(chunk_want)))
    return functools.reduce(lambda a, b: cexpr.both("&&", a, b), terms) if terms else None
