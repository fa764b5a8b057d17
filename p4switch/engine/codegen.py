"""Generation of one C source from a program: the pipeline, and its description for the control plane."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from p4switch import ir
from p4switch.engine import calc, cexpr, cnodes, keys, objects, registers
from p4switch.engine.cexpr import C, Code, Fields, Name, Rows, String, packet
from p4switch.engine.cnodes import (
    PACKET,
    SWITCH,
    Assign,
    Comment,
    Declaration,
    Declare,
    Define,
    Do,
    Enum,
    Function,
    Include,
    Macro,
    Return,
    Statement,
    Struct,
    array,
)
from p4switch.engine.control import NO_NAME, Control
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef
from p4switch.engine.parser import ParserGenerator, VsetKeys
from p4switch.engine.pipeline import PipelineGenerator
from p4switch.engine.program import Program, numbered
from p4switch.engine.statements import Statements
from p4switch.engine.value import c_member, storage_bytes
from p4switch.interpreter import deep_recursion
from p4switch.ir.errors import ProgramError

_CONST_PACKET = Declare("P4_UNUSED const phv *", "p")
_LIST = Declare("P4_UNUSED uint32_t", "list")

_Named = TypeVar("_Named", ir.Parser, ir.Deparser, ir.Pipeline)


class Generator:
    """Generator of the C text of one program."""

    def __init__(self, program: ir.Program, *, traced: bool = False) -> None:
        self.nodes = program
        self.traced = traced
        self.program = Program(program, traced=traced)
        self.path = self.program.path
        self.control = Control(self.program)
        self.deparsers = [self._block("deparser", program.deparsers, name) for name in self.path.deparsers]
        self.vset_keys: VsetKeys = {}

    def _block(self, kind: str, blocks: Sequence[_Named], name: str) -> _Named:
        """Return the parser, control or deparser of that name."""
        for block in blocks:
            if block.name == name:
                return block
        raise ProgramError(f"there is no {kind} {name}")

    @property
    def _controls(self) -> list[ir.Pipeline]:
        """Controls of the package, except a `watcher` that the program does not have."""
        present = {pipeline.name for pipeline in self.nodes.pipelines}
        names = [name for name in self.path.controls if name != self.path.watcher or name in present]
        return [self._block("pipeline", self.nodes.pipelines, name) for name in names]

    @property
    def _has_watcher(self) -> bool:
        return any(pipeline.name == self.path.watcher for pipeline in self.nodes.pipelines)

    def text(self) -> str:
        """Return the whole source. It does not depend on the program's path, so copies are not compiled again."""
        parsers = [
            declaration for name in self.path.parsers
            for declaration in ParserGenerator(
                self.program, self._block("parser", self.nodes.parsers, name), self.vset_keys
            ).declarations()
        ]
        algorithms = [c.algorithm for c in self.nodes.calculations]
        algorithms += [p.algorithm for p in self.nodes.profiles if p.algorithm]
        return cnodes.source([
            *_included("<stdio.h>", "<stdlib.h>", '"hash.h"', '"state.h"', '"packet.h"', '"runtime.h"'),
            *calc.tables(algorithms),
            *self._packet(),
            *registers.types(self.program),
            *objects.types(self.program.objects),
            *self._constants(),
            *(self._cells() if self.traced else ()),
            *self._intrinsic(),
            *_included('"trace.h"', '"actions.h"', *(['"externs.h"'] if self.path.has_externs else [])),
            *calc.functions(self.program),
            *self.control.action_functions(),
            *self.control.selectors(),
            *self.control.description(),
            *_included('"apply.h"'),
            *parsers,
            *(PipelineGenerator(self.control, pipeline).function() for pipeline in self._controls),
            *(function for deparser in self.deparsers for function in self._deparser(deparser)),
            self._verify_checksums(),
            self._update_checksums(),
            self._copy_field_list(),
            self._send_digest(),
            Enum({"CAN_LOOP": int(self.control.loops)}),
            *_included('"packets.h"', '"packet_path.h"'),
            *self._program(),
        ])

    # --- packet struct ---

    def _packet(self) -> Iterator[Declaration]:
        """Yield the types of metadata and packets, and the places of packet headers."""
        layout = self.program.layout
        if any(stack.size > 255 for stack in self.program.stacks.values()):
            raise ProgramError("a header stack has over 255 elements")
        yield Struct("metadata", [
            Struct(header.label, [c_member(f.width, f.member) for f in header.type.fields])
            for header in self.program.headers.values() if header.metadata
        ])
        if self.program.enumerators:
            yield Comment("Of packet headers: V, their place in `valid`; H, where they begin in `H`.")
            yield Enum(self.program.enumerators)
        # Fields are read 8 bytes at a time, so there must be memory after the last one.
        slots, headers = max(layout.slots, 1), layout.nbytes + 16
        varbytes = any(h.type.varbit for h in self.program.headers.values())
        yield Macro("P4_PACKET", (slots, max(layout.nexts, 1), slots if varbytes else 0, headers))

    def _cells(self) -> list[Declaration]:
        """Return the description of the cells whose changes traces report (`Program.cells`)."""
        rows: list[C] = []
        size = 0
        for header, field in self.program.cells:
            if field is not None:
                rows.append(cexpr.call("METADATA_CELL", "", Name(header.label).dot(field.member)))
                size += 2 * storage_bytes(field.width)
            else:
                rows.append(cexpr.call("HEADER_CELL", "", header.at, header.type.nbytes, header.is_valid))
                size += 2 * header.type.nbytes
        changes = cexpr.size_of_type("p4_trace_change") * len(rows) + (size + 1)
        return [
            Enum({"N_CELLS": len(rows), "CHANGES_BYTES": changes}),
            array("trace_cell", "cells", rows, Fields({"slot": -1})),
        ]

    def _constants(self) -> Iterator[Declaration]:
        """Yield the definitions of the constants and cells that the C of the packet path uses."""
        for name, value in self.path.constants.items():
            yield Define(name, value)
        yield Define("HAS_WATCHER", int(self._has_watcher))
        for own, each in zip(self.path.states, self.program.objects, strict=False):
            yield Function(f"P4_INLINE {each.c_type} *", f"{own}_cells", (SWITCH,), [Return(each.cells)])

    def _emitter(self) -> Emitter:
        return Emitter(traced=self.traced)

    def _intrinsic(self) -> Iterator[Declaration]:
        for own, intrinsic in self.path.intrinsic.items():
            place = self.program.intrinsic(intrinsic.name)
            if place is None:
                if intrinsic.required:
                    raise ProgramError(f"metadata field {intrinsic.name} is required")
                yield Macro("NO_INTRINSIC", (own,))
                continue
            header, field = place
            kind = "INTRINSIC_SATURATING" if intrinsic.saturates else "INTRINSIC"
            yield Macro(kind, (own, field.width, Name(header.label).dot(field.member)))
        if self._has_watcher:
            yield self._set_watched()

    def _set_watched(self) -> Function:
        """Return the function that writes the header that the path's `watcher` reads, and makes it valid."""
        name, nbytes = self.path.watched
        header = self.program.header(name)
        if header.metadata or header.type.varbit or header.type.nbytes != nbytes:
            raise ProgramError(f"header {name} has to be one of the packet, of {nbytes} bytes")
        body: list[Statement] = [
            Do(cexpr.call("memcpy", "", header.memory(), "bytes", header.type.nbytes)),
            Assign(packet("valid")[header.is_valid], cexpr.node(1)),
        ]
        return Function("static void", "set_watched", (PACKET, Declare("const uint8_t *", "bytes")), body)

    # --- deparser and checksums ---

    def _deparser(self, deparser: ir.Deparser) -> list[Function]:
        """Return a deparser's functions: the length of its output, the output itself, its trace, and its statements."""
        x = Expressions(self.program, Emitter())
        emitted = [x.named(header.name) for header in deparser.order]
        for ref in emitted:
            if ref.metadata:
                raise ProgramError(f"metadata {ref.metadata.name} cannot be emitted")
        return [
            self._header_bytes(deparser.name, emitted),
            self._write_headers(deparser.name, emitted),
            self._tell_emitted(deparser.name, emitted),
            self._run_deparser(deparser),
        ]

    @staticmethod
    def _header_bytes(name: str, emitted: Sequence[HeaderRef]) -> Function:
        """Return a function for the length of the headers that would be emitted now."""
        terms = [cexpr.chosen(ref.valid, ref.length(), 0, "") for ref in emitted]
        total = Name("n")
        body: list[Statement] = [Declare("uint32_t", "n", cexpr.node(0))]
        body += [*(Assign(total, term, "+=") for term in terms), Return(total)]
        return Function("static uint32_t", f"{name}_bytes", (_CONST_PACKET,), body)

    def _write_headers(self, name: str, emitted: Sequence[HeaderRef]) -> Function:
        em, to = self._emitter(), Name("to")
        for ref in emitted:
            varbit = ref.type.varbit
            if varbit is None:
                em.set(to, cexpr.call("p4_emit", "", "p", to, ref.slot, ref.at, ref.length()))
                continue
            with em.when(ref.valid):
                before = sum(f.width for f in ref.type.fields[:varbit.index])
                after = sum(f.width for f in ref.type.fields[varbit.index + 1:])
                bits = em.declare("const uint32_t", "bits", cexpr.node(8) * ref.varbytes)
                behind = cexpr.node(before) + bits
                em.call("p4_copy_bits", to, 0, ref.base, 0, before)
                em.call("p4_copy_bits", to, before, ref.base, varbit.bit, bits)
                em.call("p4_copy_bits", to, behind, ref.base, varbit.bit + varbit.width, after)
                em.set(to, ref.length(), "+=")
        return Function(
            "static void", f"{name}_write", (_CONST_PACKET, Declare("P4_UNUSED uint8_t *", "to")), em.body
        )

    def _tell_emitted(self, name: str, emitted: Sequence[HeaderRef]) -> Function:
        em = self._emitter()
        for ref in emitted:
            with em.when(ref.valid):
                em.trace("EMIT", "P4_NO_POINT", ref.slot, ref.length())
        return Function("static void", f"{name}_tell", (SWITCH, _CONST_PACKET), em.body if self.traced else [])

    def _run_deparser(self, deparser: ir.Deparser) -> Function:
        code = Statements(self.program, self._emitter(), (), deparser.name)
        body = code.body(deparser.body)
        if code.loops:
            raise ProgramError(f"deparser {deparser.name} jumps back; expected no loop in it")
        return Function("static void", f"run_{deparser.name}", (SWITCH, PACKET), body)

    def _checksum(self, em: Emitter, checksum: ir.Checksum) -> None:
        x = Expressions(self.program, em)
        calculation = self.program.calculation(checksum.calculation.name)
        target, source = checksum.target, self.program.place(checksum.span)
        place = x.place(target)
        if place.width > 64:
            raise ProgramError(f"checksum {checksum.name} goes to a field of over 64 bits")
        with em.block():
            condition = x.bool(checksum.condition)
            em.comment(source.note if source is not None else "")
            if checksum.verify:
                self._verify(em, x, checksum, calculation, condition)
                return
            with em.block() if condition.value == 1 else em.when(condition):
                place.store(em, em.temp("uint64_t", cexpr.call(calculation, "uint64_t", "sw", "p")))
                point = self.program.points.add("checksum update", f"{target.header}.{target.name}", source)
                em.note("PASS", point)
                em.note("CHANGES", "P4_TRACE_STATEMENT", point)

    def _verify(self, em: Emitter, x: Expressions, checksum: ir.Checksum, calculation: str, condition: C) -> None:
        place, target = x.place(checksum.target), checksum.target
        valid = x.named(checksum.target.header).valid
        with em.when(valid if condition.value == 1 else cexpr.both("&&", valid, condition)):
            stored = place.bits(em).exact(em)
            computed = cexpr.call(calculation, "uint64_t", "sw", "p")
            wrong = em.temp("int", cexpr.compared("!=", computed, stored))
            em.set(packet("checksum_error"), wrong, "|=")
            source = self.program.place(checksum.span)
            point = self.program.points.add("checksum", f"{target.header}.{target.name}", source)
            em.note("PASS", point)
            em.trace("CHECKSUM", point, cexpr.negated(wrong))

    def _verify_checksums(self) -> Function:
        em = self._emitter()
        em.set(packet("checksum_error"), 0)
        for checksum in self.nodes.checksums:
            if checksum.verify:
                self._checksum(em, checksum)
        return Function("static void", "verify_checksums", (SWITCH, PACKET), em.body)

    def _update_checksums(self) -> Function:
        em = self._emitter()
        for checksum in self.nodes.checksums:
            if not checksum.verify:
                self._checksum(em, checksum)
        return Function("static void", "update_checksums", (SWITCH, PACKET), em.body)

    # --- field lists ---

    def _copy_field_list(self) -> Function:
        em = self._emitter()
        with em.switch("list") as switch:
            for copied in self.nodes.field_lists:
                with em.case(switch, copied.number):
                    for ref in copied.elements:
                        assert isinstance(ref, ir.FieldRef)
                        self._copy_field(em, ref)
        to, source = Declare("P4_UNUSED phv *", "to"), Declare("P4_UNUSED const phv *", "from")
        return Function("static void", "copy_field_list", (to, source, _LIST), em.body)

    def _copy_field(self, em: Emitter, ref: ir.FieldRef) -> None:
        header = self.program.header(ref.header)
        field = header.type.field(ref.name)
        if header.metadata:
            to, of = (Name(each).arrow("m").dot(header.label).dot(field.member) for each in ("to", "from"))
            em.call("memcpy", to.address, of.address, cexpr.size_of(to))
        else:
            em.call("p4_copy_bits", header.memory("to"), field.bit, header.memory("from"), field.bit, field.width)

    def _send_digest(self) -> Function:
        em = self._emitter()
        with em.switch("list") as switch:
            for learnt in self.nodes.learn_lists:
                with em.case(switch, learnt.number):
                    self._digest(em, learnt.number, learnt.elements)
        return Function("static void", "send_digest", (SWITCH, PACKET, _LIST), em.body)

    def _digest(self, em: Emitter, ident: int, elements: Sequence[ir.Expr]) -> None:
        x = Expressions(self.program, em)
        places = [x.place(element) for element in elements]
        size = sum((place.width + 7) // 8 for place in places)
        packed = em.declare("uint8_t", "b", Rows([]), max(size, 1))
        at = 0
        for place in places:
            nbytes = (place.width + 7) // 8
            bit = 8 * (at + nbytes) - place.width
            low = place.low(em, place.width)
            if place.width <= 64:
                em.call("p4_put_bits", packed, bit, place.width, low)
            else:
                if place.width <= 128:
                    low = em.wide(2, "p4_big_u128", 2, low)
                em.call("p4_big_put", packed, bit, place.width, low)
            at += nbytes
        em.trace("DIGEST", "P4_NO_POINT", ident, 0, packed, size)
        env = cexpr.switch("env")
        em.call(env.dot("digest"), env.dot("ctx"), "sw", ident, packed, size)

    # --- description ---

    def _program(self) -> Iterator[Declaration]:
        nodes = self.nodes
        yield array("p4_counter_info", "counters", [
            Fields({"name": String(c.name), "size": 0 if c.table else c.size}) for c in nodes.counters
        ], NO_NAME)
        for m in nodes.meters:
            if m.rates not in (1, 2):
                raise ProgramError(f"meter {m.name} has {m.rates} rates; expected 1 or 2")
        yield array("p4_meter_info", "meters", [
            Fields({
                "name": String(m.name),
                "size": 0 if m.table else m.size,
                "packets": int(m.unit == "packets"),
                "rates": m.rates,
            })
            for m in nodes.meters
        ], NO_NAME)
        yield array("p4_bank_info", "banks", registers.banks(self.program), Fields({"size": 0}))
        yield array("p4_register_info", "registers", registers.arrays(self.program), NO_NAME)
        yield array("p4_object_info", "objects", objects.rows(self.program.objects), NO_NAME)
        rows = []
        for number, vset in enumerate(nodes.value_sets):
            own_key = (vset.name, vset.width, "P4_TERNARY", None)
            fields, words = self.vset_keys.get(vset.name) or keys.layout([own_key])
            own = numbered("vset_keys_", number, vset.name)
            yield array("p4_key_info", own, keys.description(fields))
            rows.append(Fields({"name": String(vset.name), "n_keys": len(fields), "key_words": words, "keys": own}))
        yield array("p4_vset_info", "vsets", rows, NO_NAME)
        counts: dict[str, Collection[object]] = {
            "actions": self.control.offered,
            "tables": self.control.tables,
            "profiles": nodes.profiles,
            "counters": nodes.counters,
            "meters": nodes.meters,
            "banks": self.program.banks,
            "registers": self.program.registers,
            "objects": self.program.objects,
            "vsets": nodes.value_sets,
        }
        members: dict[str, Code] = {
            "abi": "P4_ABI",
            "packet_size": cexpr.size_of_type("phv"),
            "fallbacks_size": self.control.fallbacks_bytes + 8,
            "drop_port": self.path.drop_port,
            **{f"n_{what}": len(items) for what, items in counts.items()},
            "n_points": len(self.program.points.all) if self.traced else 0,
            **{own: own for own in (*counts, "receive", "transmit", "free_packet", "take_over", "release")},
            **({"deflect": "deflect"} if self.path.deflects else {}),
            **({"timer": "timer", "state_changed": "state_changed"} if self.path.has_timers else {}),
            **({"queue_changed": "queue_changed"} if self._has_watcher else {}),
        }
        yield Declare("const p4_program", "p4_program_description", Fields(members))


def _included(*files: str) -> list[Include]:
    return [Include(file) for file in files]


@dataclass(frozen=True)
class Generated:
    """C source with the program from which it was generated."""

    text: str
    program: Program
    control: Control


def generate(program: ir.Program, *, traced: bool = False) -> Generated:
    """Return the C source of a program's pipeline. Raises ProgramError for an unsupported feature.

    traced: the source will be built with P4_TRACE, and reports the events of each packet.
    """
    with deep_recursion():
        generator = Generator(program, traced=traced)
        return Generated(generator.text(), generator.program, generator.control)


__all__ = ["Generated", "Generator", "generate"]
