"""Generation of a C function for each calculation, a hash or checksum over fields, headers and payload."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from p4switch import ir
from p4switch.bits.checksums import CRCS, DRAWN, crc_of, reflect
from p4switch.compiler import types
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code, Name, Number
from p4switch.engine.cnodes import PACKET, SWITCH, Declare, Function, Macro, Return
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef
from p4switch.engine.program import Field, Program
from p4switch.engine.value import Native
from p4switch.ir.errors import ProgramError

_B, _N = Name("b"), Name("n")  # C names of the input's bytes and of their number
_SIMPLE = {
    "csum16": cexpr.call("p4_csum16", "uint64_t", _B, _N),
    "cksum16": cexpr.call("p4_csum16", "uint64_t", _B, _N),
    "xor8": cexpr.call("p4_xor_words", "uint64_t", _B, _N, 1),
    "xor16": cexpr.call("p4_xor_words", "uint64_t", _B, _N, 2),
    "xor32": cexpr.call("p4_xor_words", "uint64_t", _B, _N, 4),
    "identity": cexpr.call("p4_identity", "uint64_t", _B, _N),
    DRAWN: cexpr.call("p4_random64", "uint64_t", "sw"),
}
ALGORITHMS = sorted((*CRCS, *_SIMPLE))


def tables(algorithms: Sequence[str]) -> Iterator[Macro]:
    """Yield the definitions of the CRCs' tables. The library computes the tables when it is loaded."""
    for name in sorted(set(algorithms)):
        crc = crc_of(name)
        if crc is None:
            continue
        if not crc.reflected:
            yield Macro("P4_CRC_PLAIN", (name, Number(crc.polynomial), crc.width))
        else:
            polynomial = reflect(crc.polynomial, crc.width)
            yield Macro(f"P4_CRC_REFLECTED{64 if crc.width > 32 else 32}", (name, Number(polynomial)))


def _result(algorithm: str) -> C:
    """Return the hash of n bytes at b."""
    if algorithm in _SIMPLE:
        return _SIMPLE[algorithm]
    crc = crc_of(algorithm)
    if crc is None:
        raise ProgramError(f"unknown hash algorithm {algorithm}; expected one of {', '.join(ALGORITHMS)}")
    kind, width = ("plain", [crc.width]) if not crc.reflected else (f"reflected{64 if crc.width > 32 else 32}", [])
    code = cexpr.call(f"p4_crc_{kind}", "uint64_t", f"{algorithm}_table", _B, _N, Number(crc.initial), *width)
    return cexpr.binary("^", code, Number(crc.final))


@dataclass(frozen=True)
class _Piece:
    """Piece of the input: a field, a constant or a whole header. `ref` is None for a constant."""

    ref: HeaderRef | None
    field: Field | None
    width: int
    value: int = 0


def _pieces(program: Program, calculation: ir.Calculation) -> list[_Piece]:
    """Return the pieces of the input, except the payload."""
    names = Expressions(program, Emitter())
    pieces: list[_Piece] = []
    for item in calculation.inputs:
        if isinstance(item, ir.Const):
            pieces.append(_Piece(None, None, types.width_of(item.type) or 0, item.value))
        elif isinstance(item, ir.HeaderRef):
            ref = names.header(item)
            pieces += [_Piece(ref, field, field.width) for field in ref.type.fields]
        else:
            ref, field = names.located(item)
            pieces.append(_Piece(ref, field, field.width))
    return pieces


def _runs(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Group pieces of the same header, whose validity is then tested only once."""
    runs: list[list[_Piece]] = []
    for piece in pieces:
        same = runs and (runs[-1][-1].ref == piece.ref) and not (piece.field and piece.field.varbit)
        if same and not (runs[-1][-1].field and runs[-1][-1].field.varbit):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return runs


def _append_constant(em: Emitter, piece: _Piece, to: C, at: C) -> None:
    """Put a constant of any width at bit `at` of the bytes `to`."""
    for low in range(0, piece.width, 64):
        take = min(64, piece.width - low)
        part = piece.value >> low & (1 << take) - 1
        em.call("p4_put_bits", to, at + (piece.width - low - take), take, Number(part))


def _append_value(em: Emitter, piece: _Piece, at: C) -> None:
    """Put a value of any width at bit `at` of b."""
    if piece.ref is None:
        _append_constant(em, piece, _B, at)
        return
    assert piece.field is not None
    if not piece.ref.metadata:
        em.call("p4_copy_bits", _B, at, piece.ref.base, piece.field.bit, piece.width)
        return
    _append_native(em, piece, _B, at)


def _append_native(em: Emitter, piece: _Piece, to: C, at: Code) -> None:
    """Put a field of metadata at bit `at` of the bytes `to`."""
    assert piece.ref is not None
    assert piece.field is not None
    place = piece.ref.place(piece.field)
    if piece.width <= 64:
        em.call("p4_put_bits", to, at, piece.width, place.low(em, piece.width))
    else:
        assert isinstance(place, Native)
        em.call("p4_big_put", to, at, piece.width, place.code)


def _append_aligned(em: Emitter, run: Sequence[_Piece]) -> None:
    """Copy a byte-aligned run to b + n. Adjacent parts of the header are copied together."""
    at = index = 0
    while index < len(run):
        piece = run[index]
        size = piece.width // 8
        if piece.ref is None or piece.ref.metadata:
            if size in (1, 2, 4, 8):
                place = piece.ref.place(piece.field) if piece.ref and piece.field else None
                value = place.low(em, piece.width) if place is not None else Number(piece.value)
                em.call(f"p4_st{piece.width}", _B + _N + at, value)
            elif piece.ref is None:
                _append_constant(em, piece, _B + _N, cexpr.node(8 * at))
            else:
                _append_native(em, piece, _B + _N, 8 * at)
            at += size
            index += 1
            continue
        assert piece.field is not None
        first = end = piece.field.bit
        while index < len(run) and (field := run[index].field) is not None and field.bit == end:
            end += field.width
            index += 1
        em.call("memcpy", _B + _N + at, piece.ref.base + first // 8, (end - first) // 8)
        at += (end - first) // 8
    em.set(_N, at, "+=")


def _is_aligned(run: Sequence[_Piece]) -> bool:
    """Return whether every piece, or the stretch of the header that contains it, consists of whole bytes."""
    bit = 0
    previous_end = None
    for piece in run:
        native = piece.ref is None or piece.ref.metadata is not None
        if native:
            if bit % 8 or piece.width % 8:
                return False
        else:
            assert piece.field is not None
            if piece.field.bit != previous_end and (bit % 8 or piece.field.bit % 8):
                return False
            if piece.field.bit % 8 != bit % 8:
                return False
        previous_end = None if native or piece.field is None else piece.field.bit + piece.width
        bit += piece.width
    return bit % 8 == 0


def _stretches(run: Sequence[_Piece]) -> list[tuple[int, int]] | None:
    """Return the stretches (first byte, number of bytes) of a packet header that form a run, or None."""
    stretches: list[tuple[int, int]] = []
    for piece in run:
        if piece.field is None or piece.ref is None or piece.ref.metadata or piece.field.varbit:
            return None
        bit, width = piece.field.bit, piece.width
        if stretches and sum(stretches[-1]) == bit:
            stretches[-1] = (stretches[-1][0], stretches[-1][1] + width)
        else:
            stretches.append((bit, width))
    if any(first % 8 or count % 8 for first, count in stretches):
        return None
    return [(first // 8, count // 8) for first, count in stretches]


def _checksum_in_place(run: Sequence[_Piece]) -> C | None:
    """Return a C expression that sums the checksum directly over the bytes of one header.

    The result is None if a 16-bit word would be in two stretches.
    """
    stretches = _stretches(run)
    if stretches is None or any(count % 2 for _, count in stretches[:-1]):
        return None
    assert run[0].ref is not None
    base = run[0].ref.base
    sums = [cexpr.call("p4_csum_add", "uint64_t", base + first, count) for first, count in stretches]
    return cexpr.call("p4_csum_fold", "uint64_t", functools.reduce(C.__add__, sums))


def pack_inputs(program: Program, em: Emitter, calculation: ir.Calculation) -> C:
    """Declare an array with the inputs of a calculation, and return it.

    Fields of invalid headers are 0.
    """
    pieces = _pieces(program, calculation)
    packed = em.declare("uint8_t", "b", size=sum(piece.width for piece in pieces) // 8 + 8)
    em.call("memset", packed, 0, cexpr.size_of(packed))
    at = 0
    for piece in pieces:
        with _if_valid(em, piece.ref):
            _append_value(em, piece, cexpr.node(at))
        at += piece.width
    return packed


def functions(program: Program) -> Iterator[Function]:
    """Yield the functions of all calculations; calculations with equal code share a function."""
    written = set()
    for calculation in program.nodes.calculations:
        own = program.calculation(calculation.name)
        if own not in written:
            written.add(own)
            yield from function(program, own, calculation)


def function(program: Program, name: str, calculation: ir.Calculation) -> Iterator[Function]:
    """Yield the C function `uint64_t name(p4_switch *sw, phv *p)` of a hash, after a function that it calls."""
    algorithm, payload = calculation.algorithm, calculation.with_payload
    pieces = _pieces(program, calculation)
    result = _result(algorithm)
    em = Emitter()
    runs = _runs(pieces)
    head, parameters = "P4_UNUSED static uint64_t", (SWITCH, PACKET)
    if len(runs) == 1 and not payload and algorithm in ("csum16", "cksum16"):
        in_place = _checksum_in_place(runs[0])
        if in_place is not None:
            assert runs[0][0].ref is not None
            em.leave(_likely(runs[0][0].ref.valid, in_place, cexpr.call("p4_csum_fold", "uint64_t", 0)))
            yield Function(head, name, parameters, em.body)
            return
    size = sum((piece.width + 7) // 8 + 1 for piece in pieces) + 16
    if payload:
        length = cexpr.cast("size_t", cexpr.call("payload_len", "uint32_t", "p"))
        em.declare("uint8_t *", "b", cexpr.call("p4_scratch", "", "sw", cexpr.node(size) + length))
        with em.when(cexpr.negated(_B)):
            em.leave(0)
    else:
        em.declare("uint8_t", "b", size=size)
    aligned = all(_is_aligned(run) and not (run[0].field and run[0].field.varbit) for run in runs)
    asked = list(dict.fromkeys(run[0].ref.valid for run in runs if run[0].ref and not run[0].ref.metadata))
    split = aligned and bool(asked) and not payload
    flags = [Declare("int", f"has{i}") for i in range(len(asked))] if split else []
    given = dict(zip(asked, (Name(flag.name) for flag in flags) if split else asked, strict=True))
    if aligned:
        em.declare("size_t", "n", cexpr.node(0))
        for run in runs:
            ref = run[0].ref
            with em.when(given[ref.valid]) if ref and not ref.metadata else em.block():
                _append_aligned(em, run)
    else:
        bit = em.declare("uint32_t", "bit", cexpr.node(0))
        em.call("memset", _B, 0, size)
        for run in runs:
            with _if_valid(em, run[0].ref):
                for piece in run:
                    width: Code = piece.width
                    if piece.field and piece.field.varbit and piece.ref:
                        width = cexpr.node(8) * piece.ref.varbytes
                        em.call("p4_copy_bits", _B, bit, piece.ref.base, piece.field.bit, width)
                    else:
                        _append_value(em, piece, bit)
                    em.set(bit, width, "+=")
        em.declare("size_t", "n", (bit + 7) / 8)
    if payload:
        em.set(_N, cexpr.call("payload_copy", "", "p", _B + _N), "+=")
    em.leave(result)
    if not split:
        yield Function(head, name, parameters, em.body)
        return
    # Usually all headers are valid. Then n is a constant, and the compiler unrolls the hash's loops.
    usual, any_case = (
        cexpr.call(f"{name}_of", "uint64_t", "sw", "p", *values) for values in ([1] * len(asked), asked)
    )
    all_valid = functools.reduce(lambda a, b: cexpr.binary("&", a, b), asked)
    yield Function("P4_INLINE uint64_t", f"{name}_of", (*parameters, *flags), em.body)
    yield Function(head, name, parameters, [Return(_likely(all_valid, usual, any_case))])


def _likely(condition: C, yes: C, no: C) -> C:
    return cexpr.chosen(cexpr.call("P4_LIKELY", "int", condition), yes, no, "uint64_t")


def _if_valid(em: Emitter, ref: HeaderRef | None) -> AbstractContextManager[None]:
    return em.when(ref.valid) if ref and not ref.metadata else em.block()
