"""Calculations: hashes and checksums over fields, headers and payload, one C function each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from p4switch import ir
from p4switch.bits.checksums import CRCS, DRAWN, crc_of, reflect
from p4switch.compiler import types
from p4switch.engine.cnodes import Function, Line
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef
from p4switch.engine.program import Field, Program
from p4switch.engine.value import Native
from p4switch.ir.errors import ProgramError

_SIMPLE = {
    "csum16": "p4_csum16(b, n)",
    "cksum16": "p4_csum16(b, n)",
    "xor8": "p4_xor_words(b, n, 1)",
    "xor16": "p4_xor_words(b, n, 2)",
    "xor32": "p4_xor_words(b, n, 4)",
    "identity": "p4_identity(b, n)",
    DRAWN: "p4_random64(sw)",
}
ALGORITHMS = sorted((*CRCS, *_SIMPLE))


def tables(algorithms: Sequence[str]) -> Iterator[Line]:
    """Yield the definitions of the CRCs among the algorithms. The library fills in their tables when it is loaded."""
    for name in sorted(set(algorithms)):
        crc = crc_of(name)
        if crc is None:
            continue
        if not crc.reflected:
            yield Line(f"P4_CRC_PLAIN({name}, 0x{crc.polynomial:x}, {crc.width})")
        else:
            polynomial = reflect(crc.polynomial, crc.width)
            yield Line(f"P4_CRC_REFLECTED{64 if crc.width > 32 else 32}({name}, 0x{polynomial:x}ull)")


def _result(algorithm: str) -> str:
    """Return a C expression of the hash of n bytes at b."""
    if algorithm in _SIMPLE:
        return _SIMPLE[algorithm]
    crc = crc_of(algorithm)
    if crc is None:
        raise ProgramError(f"unknown hash algorithm {algorithm}; expected one of {', '.join(ALGORITHMS)}")
    if not crc.reflected:
        code = f"p4_crc_plain({algorithm}_table, b, n, 0x{crc.initial:x}, {crc.width})"
    elif crc.width > 32:
        code = f"p4_crc_reflected64({algorithm}_table, b, n, 0x{crc.initial:x})"
    else:
        code = f"p4_crc_reflected32({algorithm}_table, b, n, 0x{crc.initial:x})"
    return f"({code} ^ 0x{crc.final:x}ull)"


@dataclass(frozen=True)
class _Piece:
    """Consecutive input: a field, a constant or a whole header. `ref` is None for a constant."""

    ref: HeaderRef | None
    field: Field | None
    width: int
    value: int = 0


def _pieces(program: Program, calculation: ir.Calculation) -> list[_Piece]:
    """Return the input without its payload."""
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
    """Return runs of one header each; validity is tested once per run."""
    runs: list[list[_Piece]] = []
    for piece in pieces:
        same = runs and (runs[-1][-1].ref == piece.ref) and not (piece.field and piece.field.varbit)
        if same and not (runs[-1][-1].field and runs[-1][-1].field.varbit):
            runs[-1].append(piece)
        else:
            runs.append([piece])
    return runs


def _append_constant(em: Emitter, piece: _Piece, to: str, at: str) -> None:
    """Put a constant of any width at bit `at` of the bytes `to`."""
    for low in range(0, piece.width, 64):
        take = min(64, piece.width - low)
        part = piece.value >> low & (1 << take) - 1
        em.do(f"p4_put_bits({to}, {at} + {piece.width - low - take}, {take}, 0x{part:x}ull)")


def _append_value(program: Program, em: Emitter, piece: _Piece, at: str) -> None:
    """Put a value of any width at bit `at` of b."""
    if piece.ref is None:
        _append_constant(em, piece, "b", at)
        return
    assert piece.field is not None
    if not piece.ref.metadata:
        em.do(f"p4_copy_bits(b, {at}, {piece.ref.base}, {piece.field.bit}, {piece.width})")
        return
    place = piece.ref.place(piece.field)
    if piece.width <= 64:
        em.do(f"p4_put_bits(b, {at}, {piece.width}, {place.low(em, piece.width).bare})")
    elif isinstance(place, Native):
        em.do(f"p4_big_put(b, {at}, {piece.width}, {place.code})")


def _append_aligned(em: Emitter, run: Sequence[_Piece]) -> None:
    """Copy a byte-aligned run to b + n; adjacent parts of the header are copied together."""
    at = index = 0
    while index < len(run):
        piece = run[index]
        size = piece.width // 8
        if piece.ref is None or piece.ref.metadata:
            if piece.ref is None:
                if size in (1, 2, 4, 8):
                    em.do(f"p4_st{piece.width}(b + n + {at}, 0x{piece.value:x}ull)")
                else:
                    _append_constant(em, piece, "b + n", f"{8 * at}")
            else:
                assert piece.field is not None
                place = piece.ref.place(piece.field)
                if size in (1, 2, 4, 8):
                    em.do(f"p4_st{piece.width}(b + n + {at}, {place.low(em, piece.width).bare})")
                elif size < 8:
                    em.do(f"p4_put_bits(b + n, {8 * at}, {piece.width}, {place.low(em, piece.width).bare})")
                else:
                    assert isinstance(place, Native)
                    em.do(f"p4_big_put(b + n, {8 * at}, {piece.width}, {place.code})")
            at += size
            index += 1
            continue
        assert piece.field is not None
        first = end = piece.field.bit
        while index < len(run) and (field := run[index].field) is not None and field.bit == end:
            end += field.width
            index += 1
        em.do(f"memcpy(b + n + {at}, {piece.ref.base} + {first // 8}, {(end - first) // 8})")
        at += (end - first) // 8
    em.do(f"n += {at}")


def _is_aligned(run: Sequence[_Piece]) -> bool:
    """Return whether every piece consists of whole bytes, or belongs to a stretch of the header that does."""
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
    """Return a run of one packet header as stretches of its bytes (first, count); None if it is not that."""
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


def _checksum_in_place(run: Sequence[_Piece]) -> str | None:
    """Return the checksum of one header's fields, summed in place.

    The result is None if 16-bit words would straddle stretches.
    """
    stretches = _stretches(run)
    if stretches is None or any(count % 2 for _, count in stretches[:-1]):
        return None
    assert run[0].ref is not None
    sums = " + ".join(f"p4_csum_add({run[0].ref.base} + {first}, {count})" for first, count in stretches)
    return f"p4_csum_fold({sums})"


def pack_inputs(program: Program, em: Emitter, calculation: ir.Calculation) -> str:
    """Declare an array with the inputs of a calculation, each at a place of its own, and return its name.

    Fields of invalid headers are zeros.
    """
    pieces = _pieces(program, calculation)
    em.declare(f"uint8_t b[{sum(piece.width for piece in pieces) // 8 + 8}]")
    em.do("memset(b, 0, sizeof b)")
    at = 0
    for piece in pieces:
        with _if_valid(em, piece.ref):
            _append_value(program, em, piece, str(at))
        at += piece.width
    return "b"


def functions(program: Program) -> Iterator[Function]:
    """Yield the functions of all calculations; calculations with equal code share a function."""
    written = set()
    for calculation in program.nodes.calculations:
        own = program.calculation(calculation.name)
        if own not in written:
            written.add(own)
            yield from function(program, own, calculation)


def function(program: Program, name: str, calculation: ir.Calculation) -> Iterator[Function]:
    """Yield a C function `uint64_t name(p4_switch *sw, phv *p)` that computes the hash, after another that it calls."""
    algorithm, payload = calculation.algorithm, calculation.with_payload
    pieces = _pieces(program, calculation)
    result = _result(algorithm)
    em = Emitter()
    runs = _runs(pieces)
    head = f"P4_UNUSED static uint64_t {name}(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p)"
    if len(runs) == 1 and not payload and algorithm in ("csum16", "cksum16"):
        in_place = _checksum_in_place(runs[0])
        if in_place:
            assert runs[0][0].ref is not None
            em.leave(f"P4_LIKELY({runs[0][0].ref.valid}) ? {in_place} : p4_csum_fold(0)")
            yield Function(head, em.body)
            return
    size = sum((piece.width + 7) // 8 + 1 for piece in pieces) + 16
    if payload:
        em.declare(f"uint8_t *b = p4_scratch(sw, {size} + (size_t)payload_len(p))")
        with em.when("!b"):
            em.leave("0")
    else:
        em.declare(f"uint8_t b[{size}]")
    aligned = all(_is_aligned(run) and not (run[0].field and run[0].field.varbit) for run in runs)
    asked = list(dict.fromkeys(run[0].ref.valid for run in runs if run[0].ref and not run[0].ref.metadata))
    split = aligned and bool(asked) and not payload
    given = {valid: f"has{i}" if split else valid for i, valid in enumerate(asked)}
    if aligned:
        em.declare("size_t n = 0")
        for run in runs:
            ref = run[0].ref
            with em.when(given[ref.valid]) if ref and not ref.metadata else em.block():
                _append_aligned(em, run)
    else:
        em.declare("uint32_t bit = 0")
        em.do(f"memset(b, 0, {size})")
        for run in runs:
            with _if_valid(em, run[0].ref):
                for piece in run:
                    if piece.field and piece.field.varbit and piece.ref:
                        width = f"8 * p->varbytes[{piece.ref.slot}]"
                        em.do(f"p4_copy_bits(b, bit, {piece.ref.base}, {piece.field.bit}, {width})")
                        em.do(f"bit += {width}")
                    else:
                        _append_value(program, em, piece, "bit")
                        em.do(f"bit += {piece.width}")
        em.declare("size_t n = (bit + 7) / 8")
    if payload:
        em.do("n += payload_copy(p, b + n)")
    em.leave(result)
    if not split:
        yield Function(head, em.body)
        return
    # The usual case has all headers: n is a constant then, and the hash's loops unroll.
    flags = "".join(f", int {flag}" for flag in given.values())
    inner = f"P4_INLINE uint64_t {name}_of(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p{flags})"
    usual, any_case = (f"{name}_of(sw, p, {', '.join(values)})" for values in (["1"] * len(asked), asked))
    outer = Emitter()
    outer.leave(f"P4_LIKELY({' & '.join(asked)}) ? {usual} : {any_case}")
    yield Function(inner, em.body)
    yield Function(head, outer.body)


def _if_valid(em: Emitter, ref: HeaderRef | None) -> AbstractContextManager[None]:
    return em.when(ref.valid) if ref and not ref.metadata else em.block()
