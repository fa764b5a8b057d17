"""A BMv2 JSON to one C source: the pipeline and its description for the control plane."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4switch.engine import calc, keys, registers, schema
from p4switch.engine.control import Control
from p4switch.engine.emit import Emitter, initialiser, long_initialiser
from p4switch.engine.expr import Expressions, HeaderRef
from p4switch.engine.parser import ParserGenerator
from p4switch.engine.primitives import Primitives
from p4switch.engine.program import Program, c_string, numbered
from p4switch.engine.schema import Json, JsonError
from p4switch.engine.value import c_member, cut, storage_bytes

# simple_switch's names of the fields it reads and writes, and those of the macros in pipeline.h.
_INTRINSIC = {
    "INGRESS_PORT": "standard_metadata.ingress_port",
    "PACKET_LENGTH": "standard_metadata.packet_length",
    "INSTANCE_TYPE": "standard_metadata.instance_type",
    "EGRESS_SPEC": "standard_metadata.egress_spec",
    "EGRESS_PORT": "standard_metadata.egress_port",
    "PARSER_ERROR": "standard_metadata.parser_error",
    "CHECKSUM_ERROR": "standard_metadata.checksum_error",
    "INGRESS_TIMESTAMP": "intrinsic_metadata.ingress_global_timestamp",
    "EGRESS_TIMESTAMP": "intrinsic_metadata.egress_global_timestamp",
    "MCAST_GRP": "intrinsic_metadata.mcast_grp",
    "EGRESS_RID": "intrinsic_metadata.egress_rid",
    "PRIORITY": "intrinsic_metadata.priority",
    "ENQ_TIMESTAMP": "queueing_metadata.enq_timestamp",
    "ENQ_QDEPTH": "queueing_metadata.enq_qdepth",
    "DEQ_TIMEDELTA": "queueing_metadata.deq_timedelta",
    "DEQ_QDEPTH": "queueing_metadata.deq_qdepth",
    "QID": "queueing_metadata.qid",
}
_REQUIRED = ("INGRESS_PORT", "PACKET_LENGTH", "INSTANCE_TYPE", "EGRESS_SPEC", "EGRESS_PORT")
_RECURSION_LIMIT = 20 * schema.MAX_NESTING
_SATURATING = ("ENQ_QDEPTH", "DEQ_QDEPTH")

_PREAMBLE = """\
#include <stdio.h>
#include <stdlib.h>

#include "hash.h"
#include "runtime.h"

typedef struct phv phv;
typedef struct family family;

/* Bytes from one entry to the next: no entry of up to a cache line lies in two. */
#define STRIDE(size) ((size) <= 16 ? 16 : (size) <= 32 ? 32 : ((size) + 63) / 64 * 64)

"""

_HELPERS = """\
#include "trace.h"

P4_INLINE uint32_t payload_len(const phv *p) { return p->base.frame->wire_len - p->parsed; }

/* The payload with its zeros; returns its length. */
static __attribute__((unused)) size_t payload_copy(const phv *p, uint8_t *to)
{
    uint32_t len = payload_len(p);
    p4_copy_padded(to, p->base.frame, p->parsed, len);
    return len;
}
"""


class Generator:
    """Generates the C text of one program."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        json = schema.validate(document)
        self.program = Program(json)
        self.control = Control(self.program)
        self.json = json
        self.deparser = self._one_deparser()

    def _one_deparser(self) -> schema.Deparser:
        found = [d for d in self.json.deparsers if d.name == "deparser"] or self.json.deparsers[:1]
        if not found:
            raise JsonError("BMv2 JSON: there is no deparser")
        return found[0]

    def text(self) -> str:
        """The whole source. It does not say where the program lies: copies of it are compiled once."""
        parser = ParserGenerator(self.program)
        parser_text = parser.function()
        algorithms = [c.algo for c in self.json.calculations]
        algorithms += [p.selector.algo for p, _ in self.control.profiles if p.selector is not None]
        parts = [
            _PREAMBLE,
            calc.tables(algorithms),
            self._structs(),
            registers.types(self.program),
            self._cells(),
            self._macros(),
            _HELPERS,
            "\n".join(
                calc.function(self.program, calc.named(self.program, i), c.algo, c.input)
                for i, c in enumerate(self.json.calculations)
            ),
            self.control.actions_text(),
            self.control.selectors_text(),
            self.control.description(),
            parser_text,
            self.control.pipeline_text("ingress"),
            self.control.pipeline_text("egress"),
            self._header_bytes(),
            self._write_headers(),
            self._tell_emitted(),
            self._verify_checksums(),
            self._update_checksums(),
            self._run_deparser(),
            self._copy_field_list(),
            self._send_digest(),
            f"enum {{ CAN_LOOP = {int(self.control.loops)} }};",
            '#include "pipeline.h"\n',
            self._program(parser),
        ]
        return "\n".join(parts)

    # --- packet struct ---

    def _structs(self) -> str:
        out = ["typedef struct metadata {"]
        for header in self.program.headers.values():
            if header.metadata:
                members = " ".join(c_member(f.width, f.member) for f in header.type.fields)
                out.append(f"    struct {{ {members} }} {header.member};")
        layout = self.program.layout
        out.append("} metadata;\n")
        out.append("/* Of packet headers: V, their place in `valid`; H, where they begin in `H`. */")
        places = self.program.enumerators
        if places:
            out.append("enum {\n" + "".join(f"    {name} = {value},\n" for name, value in places.items()) + "};\n")
        out.append("struct phv {")
        out.append("    p4_packet base;")
        out.append("    family *family;")
        out.append("    p4_tick now;")
        out.append("    uint32_t ingress_port, parsed, ingress_len, length, truncate, error;")
        out.append("    uint16_t clone_session, clone_list, digest, resubmit, recirculate;")
        out.append("    uint8_t exit, endless, checksum_error;")
        out.append("    uint32_t steps;")
        out.append("    metadata m;")
        slots = max(layout.slots, 1)
        out.append(f"    uint8_t valid[{slots}];")
        out.append(f"    uint8_t next[{max(layout.nexts, 1)}];")
        varbytes = f"    uint16_t varbytes[{slots}];"
        if any(t.varbit for t in self.program.types.values()):
            out.append(varbytes)
        else:
            out += ["#ifdef P4_TRACE", varbytes, "#endif"]
        # Fields are read 8 bytes at a time: what lies behind the last must be memory.
        headers = f"    uint8_t H[{layout.nbytes + 16}];"
        out.append(headers)
        seen = f"    struct {{ metadata m; uint8_t valid[{slots}];{varbytes}{headers} }} seen;"
        out += ["#ifdef P4_TRACE", "    uint32_t number, copy;", seen, "#endif"]
        out.append("};\n")
        if any(s.size > 255 for s in self.program.stacks.values()):
            raise JsonError("BMv2 JSON: a header stack has over 255 elements")
        return "\n".join(out)

    def _cells(self) -> str:
        """What changes are told of: see `Program.cells`."""
        rows, size = [], 0
        for header, field in self.program.cells:
            if field is not None:
                where, nbytes, slot = f"m.{header.member}.{field.member}", storage_bytes(field.width), "-1"
            else:
                where, nbytes, slot = f"H[{header.at}]", header.type.nbytes, header.is_valid
            row = initialiser({
                "now": f"offsetof(phv, {where})",
                "before": f"offsetof(phv, seen.{where})",
                "size": nbytes,
                "slot": slot,
            })
            rows.append(f"    {row},\n")
            size += 2 * nbytes
        count = len(rows)
        return (
            "#ifdef P4_TRACE\n"
            "typedef struct trace_cell { uint32_t now, before, size; int32_t slot; } trace_cell;\n"
            f"enum {{ N_CELLS = {count}, CHANGES_BYTES = {count} * sizeof(p4_trace_change) + {size} + 1 }};\n"
            f"static const trace_cell cells[] = {{\n{''.join(rows)}    {{.slot = -1}}}};\n#endif\n"
        )

    def _tell_emitted(self) -> str:
        em = Emitter()
        for ref in self._emitted():
            em.line(f"if ({ref.valid}) TRACE(P4_TRACE_EMIT, P4_NO_POINT, {ref.slot}, {ref.length()}, NULL, 0);")
        return (
            "static void tell_emitted(p4_switch *sw, const phv *p)\n{\n"
            f"    (void)sw, (void)p;\n#ifdef P4_TRACE\n{em.text()}\n#endif\n}}\n"
        )

    def _macros(self) -> str:
        out = []
        for macro, name in _INTRINSIC.items():
            found = self.program.intrinsic(name)
            if found is None:
                if macro in _REQUIRED:
                    raise JsonError(f"BMv2 JSON: metadata field {name} is required")
                out.append(f"#define SET_{macro}(p, v) ((void)(p), (void)(v))")
                out.append(f"#define GET_{macro}(p) 0")
                continue
            header, field = found
            code = f"(p)->m.{header.member}.{field.member}"
            value = f"(uint64_t)({'v'})"
            if macro in _SATURATING:
                limit = f"0x{(1 << field.width) - 1:x}ull"
                value = f"({value} < {limit} ? {value} : {limit})"
            out.append(f"#define SET_{macro}(p, v) ({code} = {cut(value, field.width)})")
            out.append(f"#define GET_{macro}(p) ((uint64_t){code})")
        return "\n".join(out) + "\n"

    # --- deparser and checksums ---

    def _emitted(self) -> list[HeaderRef]:
        x = Expressions(self.program, Emitter())
        refs = [x.header(name) for name in self.deparser.order]
        for ref in refs:
            if ref.metadata:
                raise JsonError(f"BMv2 JSON: metadata {ref.metadata.name} cannot be emitted")
        return refs

    def _header_bytes(self) -> str:
        """Bytes of the headers that would be emitted now."""
        em = Emitter()
        em.line("uint32_t n = 0;")
        for ref in self._emitted():
            em.line(f"n += {ref.valid} ? {ref.length()} : 0;")
        em.line("return n;")
        return f"static uint32_t header_bytes(const phv *p)\n{{\n    (void)p;\n{em.text()}\n}}\n"

    def _write_headers(self) -> str:
        em = Emitter()
        for ref in self._emitted():
            varbit = ref.type.varbit
            em.open(f"if ({ref.valid})")
            if varbit is None:
                em.line(f"memcpy(to, {ref.base}, {ref.type.fixed_bytes});")
            else:
                before = sum(f.width for f in ref.type.fields[:varbit.index])
                after = sum(f.width for f in ref.type.fields[varbit.index + 1:])
                em.line(f"const uint32_t bits = 8u * p->varbytes[{ref.slot}];")
                em.line(f"p4_copy_bits(to, 0, {ref.base}, 0, {before});")
                em.line(f"p4_copy_bits(to, {before}, {ref.base}, {varbit.bit}, bits);")
                em.line(f"p4_copy_bits(to, {before} + bits, {ref.base}, {varbit.bit + varbit.width}, {after});")
            em.line(f"to += {ref.length()};")
            em.close()
        return f"static void write_headers(const phv *p, uint8_t *to)\n{{\n    (void)p, (void)to;\n{em.text()}\n}}\n"

    def _checksum(self, em: Emitter, checksum: schema.Checksum, verify: bool) -> None:
        x = Expressions(self.program, em)
        names = [c.name for c in self.json.calculations]
        if checksum.calculation not in names:
            raise JsonError(f"BMv2 JSON: checksum {checksum.name}: there is no calculation {checksum.calculation}")
        calculation = calc.named(self.program, names.index(checksum.calculation))
        place = x.field(list(checksum.target))
        if place.width > 64:
            raise JsonError(f"BMv2 JSON: checksum {checksum.name} goes to a field of over 64 bits")
        em.open("")
        condition = x.bool(checksum.if_cond) if checksum.if_cond is not None else "1"
        if verify:
            em.open(f"if ({x.header(checksum.target[0]).valid} && {condition})")
            stored = place.low(em, place.width)
            wrong = em.temp("int", f"{calculation}(sw, p) != {cut(stored, place.width)}")
            em.line(f"if ({wrong})")
            em.line("    p->checksum_error = 1;")
            point = self.program.points.add("checksum", ".".join(checksum.target), checksum.source_info)
            em.line(f"PASS({point});")
            em.line(f"TRACE(P4_TRACE_CHECKSUM, {point}, !{wrong}, 0, NULL, 0);")
        else:
            em.open(f"if ({condition})")
            place.store(em, em.temp("uint64_t", f"{calculation}(sw, p)"))
            point = self.program.points.add("statement", "update_checksum", checksum.source_info, "update_checksum")
            em.line(f"PASS({point});")
            em.line(f"CHANGES(P4_TRACE_STATEMENT, {point});")
        em.close()
        em.close()

    def _verify_checksums(self) -> str:
        em = Emitter()
        em.line("p->checksum_error = 0;")
        for checksum in self.json.checksums:
            if checksum.verify:
                self._checksum(em, checksum, verify=True)
        return f"static void verify_checksums(p4_switch *sw, phv *p)\n{{\n    (void)sw;\n{em.text()}\n}}\n"

    def _update_checksums(self) -> str:
        em = Emitter()
        for checksum in self.json.checksums:
            if checksum.update:
                self._checksum(em, checksum, verify=False)
        return f"static void update_checksums(p4_switch *sw, phv *p)\n{{\n    (void)sw, (void)p;\n{em.text()}\n}}\n"

    def _run_deparser(self) -> str:
        em = Emitter()
        primitives = Primitives(self.program, em, (), "deparser")
        primitives.body(self.deparser.primitives)
        if primitives.loops:
            raise JsonError(f"BMv2 JSON: deparser {self.deparser.name} jumps back; expected no loop in it")
        return f"static void run_deparser(p4_switch *sw, phv *p)\n{{\n    (void)sw, (void)p;\n{em.text()}\n}}\n"

    # --- field lists ---

    def _copy_field_list(self) -> str:
        em = Emitter()
        em.open("switch (list)")
        for field_list in self.json.field_lists:
            em.line(f"case {field_list.id}:")
            em.open("")
            for element in field_list.elements:
                if element.get("type") == "field":
                    self._copy_field(em, element.get("value"))
            em.close()
            em.line("break;")
        em.line("default: break;")
        em.close()
        return (
            "static void copy_field_list(phv *to, const phv *from, uint32_t list)\n{\n"
            f"    (void)to, (void)from;\n{em.text()}\n}}\n"
        )

    def _copy_field(self, em: Emitter, ref: Json) -> None:
        if not isinstance(ref, list) or len(ref) != 2:
            raise JsonError(f"BMv2 JSON: expected a field in a field list, got {ref}")
        header = self.program.header(str(ref[0]))
        field = header.type.field(str(ref[1]))
        if header.metadata:
            member = f"m.{header.member}.{field.member}"
            em.line(f"memcpy(&to->{member}, &from->{member}, sizeof to->{member});")
        else:
            to, of = f"to->H + {header.at}", f"from->H + {header.at}"
            em.line(f"p4_copy_bits({to}, {field.bit}, {of}, {field.bit}, {field.width});")

    def _send_digest(self) -> str:
        em = Emitter()
        em.open("switch (list)")
        for learn_list in self.json.learn_lists:
            em.line(f"case {learn_list.id}:")
            em.open("")
            self._digest(em, learn_list.id, learn_list.elements)
            em.close()
            em.line("break;")
        em.line("default: break;")
        em.close()
        return (
            "static void send_digest(p4_switch *sw, phv *p, uint32_t list)\n{\n"
            f"    (void)sw, (void)p;\n{em.text()}\n}}\n"
        )

    def _digest(self, em: Emitter, ident: int, elements: Sequence[Mapping[str, Json]]) -> None:
        x = Expressions(self.program, em)
        places = [x.place(element) for element in elements]
        size = sum((place.width + 7) // 8 for place in places)
        em.line(f"uint8_t b[{max(size, 1)}] = {{0}};")
        at = 0
        for place in places:
            nbytes = (place.width + 7) // 8
            bit = 8 * (at + nbytes) - place.width
            low = place.low(em, place.width)
            if place.width <= 64:
                em.line(f"p4_put_bits(b, {bit}, {place.width}, {low});")
            else:
                if place.width <= 128:
                    name = em.limbs(2)
                    em.line(f"p4_big_u128({name}, 2, {low});")
                    low = name
                em.line(f"p4_big_put(b, {bit}, {place.width}, {low});")
            at += nbytes
        em.line(f"TRACE(P4_TRACE_DIGEST, P4_NO_POINT, {ident}, 0, b, {size});")
        em.line(f"sw->env.digest(sw->env.ctx, {ident}, b, {size});")

    # --- description ---

    def _program(self, parser: ParserGenerator) -> str:
        json = self.json
        out = [self._array("p4_counter_info", "counters", [
            initialiser({"name": c_string(c.name), "size": 0 if c.is_direct else c.size}) for c in json.counter_arrays
        ])]
        out.append(self._array("p4_meter_info", "meters", [
            initialiser({
                "name": c_string(m.name),
                "size": 0 if m.is_direct else m.size,
                "packets": int(m.type == "packets"),
                "rates": m.rate_count,
            })
            for m in json.meter_arrays
        ]))
        for m in json.meter_arrays:
            if m.rate_count not in (1, 2):
                raise JsonError(f"BMv2 JSON: meter {m.name} has {m.rate_count} rates; expected 1 or 2")
        out.append(self._array("p4_bank_info", "banks", registers.banks(self.program), ".size = 0"))
        out.append(self._array("p4_register_info", "registers", registers.arrays(self.program)))
        rows = []
        for number, vset in enumerate(json.parse_vsets):
            width = vset.compressed_bitwidth
            fields, words = parser.vset_keys.get(vset.name) or keys.layout([(vset.name, width, "P4_TERNARY", None)])
            own = numbered("vset_keys_", number, vset.name)
            out.append(f"static const p4_key_info {own}[] = {{\n{keys.description(fields)}}};")
            rows.append(
                initialiser({"name": c_string(vset.name), "n_keys": len(fields), "key_words": words, "keys": own})
            )
        out.append(self._array("p4_vset_info", "vsets", rows))
        counts: dict[str, Sequence[object]] = {
            "actions": json.actions,
            "tables": self.control.tables,
            "profiles": self.control.profiles,
            "counters": json.counter_arrays,
            "meters": json.meter_arrays,
            "banks": self.program.banks,
            "registers": self.program.registers,
            "vsets": json.parse_vsets,
        }
        points = len(self.program.points.all)
        out.append(f"#ifdef P4_TRACE\n#define N_POINTS {points}\n#else\n#define N_POINTS 0\n#endif")
        text = long_initialiser({
            "abi": "P4_ABI",
            "packet_size": "sizeof(phv)",
            "fallbacks_size": "sizeof(fallbacks)",
            **{f"n_{what}": len(items) for what, items in counts.items()},
            "n_points": "N_POINTS",
            **{own: own for own in (*counts, "receive", "transmit", "free_packet")},
        })
        out.append(f"const p4_program p4_program_description = {text};")
        return "\n".join(out) + "\n"

    @staticmethod
    def _array(c_type: str, name: str, rows: Sequence[str], last: str = ".name = NULL") -> str:
        body = "".join(f"    {row},\n" for row in rows)
        return f"static const {c_type} {name}[] = {{\n{body}    {{{last}}}}};"


@dataclass(frozen=True)
class Generated:
    """C source, and the program that it is of."""

    text: str
    program: Program
    control: Control


def generate(document: Mapping[str, Json]) -> Generated:
    """C source of the pipeline that a BMv2 JSON describes. Raises JsonError."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        generator = Generator(document)
        text = generator.text()
        return Generated(text, generator.program, generator.control)
    finally:
        sys.setrecursionlimit(limit)


__all__ = ["Generated", "Generator", "generate"]
