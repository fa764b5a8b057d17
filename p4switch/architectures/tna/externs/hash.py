"""`Hash` and `CRCPolynomial`: hashes of fields by a CRC of any polynomial, by exclusive or, or by the identity.

The fields are concatenated to one number, with the first field in the highest bits. Zeros in front of it fill up the
first byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.v1model.externs.hash import calculation
from p4switch.bfrt.fields import Id, annotation, data_field, in_bytes, parameter, value_type
from p4switch.bits.checksums import INTERNET_CHECKSUM, crc_name, crc_of
from p4switch.compiler import ast, types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import ExternObject, passed
from p4switch.compiler.midend.tables import key_text
from p4switch.compiler.midend.values import ListValue
from p4switch.engine import cexpr
from p4switch.engine.calc import pack_inputs
from p4switch.engine.cexpr import C

if TYPE_CHECKING:
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.compiler.facts import Facts
    from p4switch.tool_types import Lowering, Machine, Pipeline, Statements, Value

_STANDARD = {
    "CRC8": crc_name(8, 0x07, 0, 0, reflected=False),
    "CRC16": crc_name(16, 0x8005, 0, 0, reflected=True),
    "CRC32": crc_name(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, reflected=True),
    "CRC64": crc_name(64, 0x42F0E1EBA9EA3693, 0, 0, reflected=False),
    # A chip draws a random matrix of bits when a program is loaded. Here the matrix is constant.
    "RANDOM": crc_name(64, 0xAD93D23594C935A9, 0xFFFFFFFFFFFFFFFF, 0, reflected=True),
    "XOR8": "xor8",
    "XOR16": "xor16",
    "XOR32": "xor32",
    "IDENTITY": "identity",
}
_WIDTHS = {"CRC8": 8, "CRC16": 16, "CRC32": 32, "XOR8": 8, "XOR16": 16, "XOR32": 32}
_LARGEST_BITS = 64
MOST_SLICES = 64
"""Largest number of slices in the input of a configured hash."""
_CONFIGURE, _COMPUTE, _ALGORITHM = 0x95, 0x96, 0x97
PREDEFINED = (
    "IDENTITY", "RANDOM", "XOR", "CRC_8", "CRC_8_DARC", "CRC_8_I_CODE", "CRC_8_ITU", "CRC_8_MAXIM", "CRC_8_ROHC",
    "CRC_8_WCDMA", "CRC_16", "CRC_16_BYPASS", "CRC_16_DDS_110", "CRC_16_DECT", "CRC_16_DECT_R", "CRC_16_DECT_X",
    "CRC_16_DNP", "CRC_16_EN_13757", "CRC_16_GENIBUS", "CRC_16_MAXIM", "CRC_16_MCRF4XX", "CRC_16_RIELLO",
    "CRC_16_T10_DIF", "CRC_16_TELEDISK", "CRC_16_USB", "X_25", "XMODEM", "MODBUS", "KERMIT", "CRC_CCITT_FALSE",
    "CRC_AUG_CCITT", "CRC_32", "CRC_32_BZIP2", "CRC_32C", "CRC_32D", "CRC_32_MPEG", "POSIX", "CRC_32Q", "JAMCRC",
    "XFER", "CRC_64", "CRC_64_GO_ISO", "CRC_64_WE", "CRC_64_JONES",
)  # fmt: skip
"""Algorithms that BfRuntime has names for."""


@EXTERNS.register("CRCPolynomial")
class CrcPolynomial(ExternType):
    """Argument of a Hash."""


def _polynomial(extern: ExternObject) -> ExternObject | None:
    polynomial = extern.args.get("poly")
    return polynomial if isinstance(polynomial, ExternObject) else None


def algorithm_of(extern: ExternObject) -> str:
    """Return the engine's name for the algorithm of a Hash."""
    algorithm, polynomial = extern.args["algo"], _polynomial(extern)
    assert isinstance(algorithm, ir.Const)
    if polynomial is None:
        return _STANDARD[algorithm.member]
    width = types.width_of(polynomial.type_args[0]) or 1
    coefficients, first, last = (polynomial.number(name) & (1 << width) - 1 for name in ("coeff", "init", "xor"))
    return crc_name(width, coefficients, first, last, reflected=bool(polynomial.number("reversed")))


@dataclass(slots=True, eq=False)
class HashGet(ir.ExternOperation):
    """`target` is set to the hash, shifted right by `shift` bits."""

    target: ir.Place = field(metadata=ir.WRITTEN)
    calculation: ir.Calculation = field(metadata=ir.CALCULATION)
    shift: int = field(metadata=ir.number(ir.Bits(8)))
    span: int | None = None
    primitive = "_Hash_get"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        to.store(to.x.place(self.target), _shifted(self, to))

    def run(self, machine: Machine) -> None:
        if self.calculation.algorithm == INTERNET_CHECKSUM:
            machine.assign(self.target, machine.checksums.of(self.calculation, [], valid_only=True))
            return
        _run(self, machine)

    def fit(self, pipeline: Pipeline) -> None:
        _fit(self, pipeline)


@dataclass(slots=True, eq=False)
class ConfigurableHashGet(ir.ExternOperation):
    """HashGet of `bits` bits of the hash object `hash`, which the control plane may have configured."""

    hash: str = field(metadata=ir.named("extern"))
    target: ir.Place = field(metadata=ir.WRITTEN)
    calculation: ir.Calculation = field(metadata=ir.CALCULATION)
    shift: int = field(metadata=ir.number(ir.Bits(8)))
    bits: int = field(metadata=ir.number(ir.Bits(8)))
    span: int | None = None
    primitive = "_Hash_get_configurable"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        em, cell = to.em, to.program.object(self.hash).cells[0]
        hash_value = em.declare("uint64_t", em.name("hash"))
        with em.when(cexpr.call("P4_UNLIKELY", "int", cell.dot("configured"))):
            inputs = pack_inputs(to.program, em, self.calculation)
            em.set(hash_value, cexpr.call("P4_CONFIGURED_HASH", "uint64_t", cell, inputs, self.bits))
        with em.otherwise():
            em.set(hash_value, _shifted(self, to))
        to.store(to.x.place(self.target), hash_value)

    def run(self, machine: Machine) -> None:
        """Compute the program's own hash, because a generated test configures no hash."""
        _run(self, machine)

    def fit(self, pipeline: Pipeline) -> None:
        _fit(self, pipeline)


def _shifted(operation: HashGet | ConfigurableHashGet, to: Statements) -> C:
    """Return the program's own hash, shifted."""
    hash_value = cexpr.call(to.program.calculation(operation.calculation.name), "uint64_t", "sw", "p")
    return cexpr.shifted(">>", hash_value, operation.shift)


def _run(operation: HashGet | ConfigurableHashGet, machine: Machine) -> None:
    hashed = machine.checksums.hashed(operation.calculation, ("hash", operation.span))
    machine.assign(operation.target, machine.number(hashed >> operation.shift, operation.target.type))


def _fit(operation: HashGet | ConfigurableHashGet, pipeline: Pipeline) -> None:
    label = f"hash {operation.calculation.algorithm}"
    values = 1 << (types.width_of(operation.target.type) or 1)
    pipeline.step(operation, operation.primitive, kind="hash", label=label, constant=values, ahead=True)


@EXTERNS.register("Hash")
class Hash(ExternType):
    """Hash, which the control plane may configure.

    If a client has configured a hash (`configured`), its cell has the algorithm and the slices of the input. The
    algorithm is a CRC, or the low bits of the input (`identity`). The polynomial of a reflected CRC is stored reversed.
    A slice is one word of `slices` with four numbers of 16 bits, from the lowest bits on: its first bit in the
    concatenated fields, its first bit in the new input, its length, and the order that the client gave. `algorithm`
    numbers the names by which clients choose algorithms.
    """

    operations = (HashGet, ConfigurableHashGet)
    bfrt = 0x8F
    cell = (
        ("configured", 8), ("identity", 8), ("width", 8), ("reflected", 8), ("msb", 8), ("extend", 8), ("rotate", 32),
        ("algorithm", 8), ("count", 8), ("bits", 16), ("polynomial", 64), ("initial", 64), ("final", 64),
        ("slices", 64 * MOST_SLICES),
    )  # fmt: skip

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"get": self._get}

    def _get(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        (data,) = to.externs.call_arguments(call)
        t = types.strip_newtype(to.type_of(call))
        bits = types.width_of(t) or 1
        fields = to.externs.fields_of(data, call)
        if any(types.width_of(field.type) is None for field in fields):
            raise to.error(call, "only fields of fixed width can be hashed on this target")
        fields = _symmetric(extern, fields, call, to)
        algorithm = extern.args["algo"]
        assert isinstance(algorithm, ir.Const)
        if algorithm.member == "IDENTITY":
            return fold.make("cast", t, joined([to.tables.simple(field) for field in fields]))
        if bits > _LARGEST_BITS:
            raise to.error(call, f"a hash of {bits} bits is not supported, at most {_LARGEST_BITS}")
        fill = -sum(types.width_of(field.type) or 0 for field in fields) % 8
        padding = [fold.const(0, ir.Bits(fill))] if fill else []
        hashing = calculation(algorithm_of(extern), ListValue([*padding, *fields]), call, to)
        polynomial = _polynomial(extern)
        width = _WIDTHS.get(algorithm.member, 64)
        if polynomial is not None:
            width = types.width_of(polynomial.type_args[0]) or 1
        shift = width - bits if polynomial is not None and polynomial.number("msb") and width > bits else 0
        if polynomial is not None and polynomial.number("extended") and bits > width:
            place = to.externs.result(call, lambda place: HashGet(place, hashing, 0, call.pos))
            assert isinstance(place, ir.FieldRef)
            once = to.copies.saved(fold.slice_(place, width - 1, 0))
            return fold.make("cast", t, joined([once] * -(-bits // width)))
        if all(each.name != extern.path for each in to.out.externs):
            attributes: dict[str, ir.Const | str] = {
                "algorithm": algorithm_of(extern),
                "inputs": " ".join(_input_text(each) for each in [*padding, *fields]),
                "result_bits": ir.Const(bits, ir.ENUM_TYPE),
                "used": ir.Const(_used_bits(call, bits, to), ir.Bits(_LARGEST_BITS)),
                "msb": ir.Const(int(shift > 0), ir.ENUM_TYPE),
            }
            to.out.externs.append(ir.ExternInstance(extern.path, "Hash", attributes, extern.node.pos))
        return to.externs.result(
            call, lambda place: ConfigurableHashGet(extern.path, place, hashing, shift, bits, call.pos)
        )

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        """Add the three tables of a hash that is called in exactly one place."""
        calls = schema.calls(extern)
        if len(calls) != 1:
            return
        fields = _fields(calls[0], extern, schema.facts)
        like = schema.id(self.bfrt, extern.path)
        algorithm = schema.table(_ALGORITHM, extern, "DynHashAlgorithm", 1, name=f"{extern.path}.algorithm", like=like)
        configure = schema.table(_CONFIGURE, extern, "DynHashConfigure", 1, name=f"{extern.path}.configure", like=like)
        compute = schema.table(_COMPUTE, extern, "DynHashCompute", 1, name=f"{extern.path}.compute", like=like)
        _publish_algorithm(algorithm)
        constants, keys = 0, 0
        for number, (name, width, constant) in enumerate(fields, 1):
            notes = [annotation("bfrt_p4_constant")] if constant else []
            if constant:
                name = f"constant{constants}_{width}_{name}"
                constants += 1
            else:
                keys += 1
                compute.key(keys, name, in_bytes(width), mandatory=False)
            configure.singleton(_part(number, name, width, notes))
        bits = types.width_of(types.strip_newtype(schema.facts.types[calls[0]])) or 0
        compute.singleton(data_field(Id.HASH_VALUE, "hash_value", in_bytes(bits)), read_only=True)
        compute.read_only = True
        algorithm.depends(configure.id)
        compute.depends(configure.id)


def _input_text(value: ir.Expr) -> str:
    """Return the width of an input as WIDTH, or the width and the value of a constant as WIDTH=VALUE."""
    width = types.width_of(value.type) or 0
    return f"{width}={value.value & (1 << width) - 1}" if isinstance(value, ir.Const) else str(width)


def _used_bits(call: ast.Call, bits: int, to: Lowering) -> int:
    """Return a mask of the bits of a call's result that the program uses."""
    part = to.externs.slices.get(call)
    if part is None or not isinstance(part.high, ast.IntLiteral) or not isinstance(part.low, ast.IntLiteral):
        return (1 << bits) - 1
    return (2 << part.high.value) - (1 << part.low.value)


def _symmetric(extern: ExternObject, fields: list[ir.Expr], call: ast.Call, to: Lowering) -> list[ir.Expr]:
    """Return the fields with each `@symmetric` pair combined.

    As on a chip, the exclusive or of the pair takes the place of the later field, and zeros take
    the place of the earlier one.

    Raises CompileError for a pair that is not two whole fields of the same width, and for an
    algorithm that is not a CRC.
    """
    parts, used = list(fields), set[int]()
    places = {name: place for place, (name, _, _) in enumerate(_fields(call, extern, to.facts))}
    for note in extern.annotations:
        if note.name != "symmetric":
            continue
        pair = [each.value for each in note.args or [] if isinstance(each, ast.StringLiteral)]
        if len(pair) != 2:
            raise to.error(extern.node, "@symmetric: expected the names of two fields")
        for name in pair:
            if name not in places or len(places) != len(fields):
                raise to.error(call, f"@symmetric: {name!r} is not one of the fields that are hashed")
        first, last = sorted(places[name] for name in pair)
        t = types.strip_newtype(fields[first].type)
        if t != types.strip_newtype(fields[last].type):
            raise to.error(call, f"@symmetric: {pair[0]!r} and {pair[1]!r} differ in their types")
        if first == last or used & {first, last}:
            raise to.error(call, f"@symmetric: {pair[0]!r} and {pair[1]!r}: expected each field in one pair")
        if not crc_of(algorithm_of(extern)):
            raise to.error(call, "@symmetric is supported for CRCs only")
        used |= {first, last}
        parts[first] = fold.const(0, t)
        one, other = (to.tables.simple(fields[place]) for place in (first, last))
        parts[last] = to.copies.saved(fold.make("^", t, one, other))
    return parts


def _fields(call: ast.Call, extern: ExternObject, facts: Facts) -> list[tuple[str, int, bool]]:
    """Return the hashed fields in order: names, widths in bits, and whether each is constant.

    A field of a control's parameter has the name of the argument.
    """
    given = facts.bindings[call].bound[0]
    items: list[ast.Expr] = []
    if isinstance(given, ast.ListExpr):
        items = given.items
    elif isinstance(given, ast.StructExpr):
        items = [field.value for field in given.fields]
    fields: list[tuple[str, int, bool]] = []
    for item in (part for each in items for part in _parts(each)):
        width = types.width_of(types.strip_newtype(facts.types[item])) or 0
        argument, block = passed(item, extern.block, facts)
        literal = _literal(argument, facts)
        if literal is None:
            fields.append((key_text(argument, facts, block) or key_text(item, facts) or "", width, False))
        else:
            digits = hex(literal.value) if literal.base == 16 else str(literal.value)
            fields.append((f"{width}w{digits}", width, True))
    return fields


def _literal(node: ast.Expr, facts: Facts) -> ast.IntLiteral | None:
    """Return the value of a constant."""
    while not isinstance(node, ast.IntLiteral):
        decl = facts.decls.get(node) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Cast):
            node = node.operand
        elif isinstance(decl, ast.ConstDecl):
            node = decl.init
        else:
            return None
    return node


def _parts(node: ast.Expr) -> list[ast.Expr]:
    """Return the operands of a concatenation."""
    if isinstance(node, ast.Binary) and node.op == "++":
        return [*_parts(node.left), *_parts(node.right)]
    return [node]


def _part(number: int, name: str, width: int, annotations: list[dict[str, object]]) -> dict[str, object]:
    """Return the description in table `configure` of one field, whose slices can be hashed."""
    container: list[dict[str, object]] = []
    for each, own, t, mandatory in (
        (Id.HASH_CONFIGURE_START_BIT, "start_bit", value_type("uint64", 0), False),
        (Id.HASH_CONFIGURE_LENGTH, "length", value_type("uint64", width), False),
        (Id.HASH_CONFIGURE_ORDER, "order", value_type("uint64"), True),
    ):
        container.append({"mandatory": mandatory, "read_only": False, "singleton": data_field(each, own, t)})
    return {"id": number, "name": name, "repeated": True, "annotations": annotations, "container": container}


def _publish_algorithm(table: Table) -> None:
    for each, kind, default in (
        (Id.HASH_ALGORITHM_ROTATE, "uint32", 0),
        (Id.HASH_ALGORITHM_SEED, "uint32", 0),
        (Id.HASH_ALGORITHM_MSB, "bool", False),
        (Id.HASH_ALGORITHM_EXTEND, "bool", False),
    ):
        name = each.name.removeprefix("HASH_ALGORITHM_").lower()
        table.singleton(data_field(each, name, value_type(kind, default)))
    algorithm = parameter(
        1, "algorithm_name", value_type("string", choices=list(PREDEFINED), default_value="RANDOM"), mandatory=False
    )
    numbers = [
        parameter(1, "reverse", value_type("bool", False), mandatory=False),
        parameter(2, "polynomial", value_type("uint64")),
        parameter(3, "init", value_type("uint64", 0), mandatory=False),
        parameter(4, "final_xor", value_type("uint64", 0), mandatory=False),
        parameter(5, "hash_bit_width", value_type("uint64"), mandatory=False),
    ]
    table.actions = [
        {"id": int(each), "name": own, "action_scope": "TableAndDefault", "annotations": [], "data": data}
        for each, own, data in (
            (Id.HASH_ALGORITHM_PRE_DEFINED, "pre_defined", [algorithm]),
            (Id.HASH_ALGORITHM_USER_DEFINED, "user_defined", numbers),
        )
    ]


def joined(fields: list[ir.Expr]) -> ir.Expr:
    """Return fields of fixed widths concatenated to one number, with the first field in the highest bits."""
    whole: ir.Expr | None = None
    filled = 0
    for each in fields:
        width = types.width_of(each.type) or 1
        filled += width
        number = fold.make("cast", ir.Bits(width), each)
        whole = number if whole is None else fold.make("++", ir.Bits(filled), whole, number)
    assert whole is not None
    return whole
