"""Tables of a hash: its algorithm, the slices of its fields that are hashed, and the hash of given fields.

The algorithm and the slices have a table each. Both are stored in the cell of the hash in the switch (`Hash` of TNA).
The program's own hash is computed until a client writes one of them.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.tna.externs.hash import MOST_SLICES, PREDEFINED, Hash
from p4switch.bfrt.fields import Id, Json
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.cells import AnyPipe
from p4switch.bfrt.tables.data import decode, encode
from p4switch.bits.checksums import Crc, crc_of, reflect
from p4switch.engine import objects
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
_OWN, _USER_DEFINED = 0, 255  # values of the cell's `algorithm`; other values are positions in PREDEFINED plus 1
_MOST = (1 << 64) - 1
_MOST_ORDER = (1 << 16) - 1
_UNORDERED = 0  # order of the only slice, which has all fields, until a client sets slices
_CRCS = {
    "CRC_8": Crc(8, 0x07, 0, 0, False),
    "CRC_8_DARC": Crc(8, 0x39, 0, 0, True),
    "CRC_8_I_CODE": Crc(8, 0x1D, 0xFD, 0, False),
    "CRC_8_ITU": Crc(8, 0x07, 0x55, 0x55, False),
    "CRC_8_MAXIM": Crc(8, 0x31, 0, 0, True),
    "CRC_8_ROHC": Crc(8, 0x07, 0xFF, 0, True),
    "CRC_8_WCDMA": Crc(8, 0x9B, 0, 0, True),
    "CRC_16": Crc(16, 0x8005, 0, 0, True),
    "CRC_16_BYPASS": Crc(16, 0x8005, 0, 0, False),
    "CRC_16_DDS_110": Crc(16, 0x8005, 0x800D, 0, False),
    "CRC_16_DECT": Crc(16, 0x0589, 0, 1, False),
    "CRC_16_DECT_R": Crc(16, 0x0589, 0, 1, False),
    "CRC_16_DECT_X": Crc(16, 0x0589, 0, 0, False),
    "CRC_16_DNP": Crc(16, 0x3D65, 0, 0xFFFF, True),
    "CRC_16_EN_13757": Crc(16, 0x3D65, 0, 0xFFFF, False),
    "CRC_16_GENIBUS": Crc(16, 0x1021, 0xFFFF, 0xFFFF, False),
    "CRC_16_MAXIM": Crc(16, 0x8005, 0, 0xFFFF, True),
    "CRC_16_MCRF4XX": Crc(16, 0x1021, 0xFFFF, 0, True),
    "CRC_16_RIELLO": Crc(16, 0x1021, 0x554D, 0, True),
    "CRC_16_T10_DIF": Crc(16, 0x8BB7, 0, 0, False),
    "CRC_16_TELEDISK": Crc(16, 0xA097, 0, 0, False),
    "CRC_16_USB": Crc(16, 0x8005, 0xFFFF, 0xFFFF, True),
    "X_25": Crc(16, 0x1021, 0xFFFF, 0xFFFF, True),
    "XMODEM": Crc(16, 0x1021, 0, 0, False),
    "MODBUS": Crc(16, 0x8005, 0xFFFF, 0, True),
    "KERMIT": Crc(16, 0x1021, 0, 0, True),
    "CRC_CCITT_FALSE": Crc(16, 0x1021, 0xFFFF, 0, False),
    "CRC_AUG_CCITT": Crc(16, 0x1021, 0x1D0F, 0, False),
    "CRC_32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "CRC_32_BZIP2": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False),
    "CRC_32C": Crc(32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "CRC_32D": Crc(32, 0xA833982B, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "CRC_32_MPEG": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0, False),
    "POSIX": Crc(32, 0x04C11DB7, 0, 0xFFFFFFFF, False),
    "CRC_32Q": Crc(32, 0x814141AB, 0, 0, False),
    "JAMCRC": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0, True),
    "XFER": Crc(32, 0x000000AF, 0, 0, False),
    "CRC_64": Crc(64, 0x42F0E1EBA9EA3693, 0, 0, False),
    "CRC_64_GO_ISO": Crc(64, 0x1B, _MOST, _MOST, True),
    "CRC_64_WE": Crc(64, 0x42F0E1EBA9EA3693, _MOST, _MOST, False),
    "CRC_64_JONES": Crc(64, 0xAD93D23594C935A9, _MOST, 0, True),
    "RANDOM": Crc(64, 0xAD93D23594C935A9, _MOST, 0, True),
}
"""Parameters of BfRuntime's CRCs. The initial value of a reflected CRC is that of its reversed register."""


@dataclass(frozen=True)
class _Slice:
    """Slice of the fields that are hashed.

    `start` is its position in the fields, `to` its position in the input of the hash. Both are
    counted in bits.
    """

    start: int
    to: int
    length: int
    order: int

    @property
    def word(self) -> int:
        """The slice as a word of the cell."""
        return self.start | self.to << 16 | self.length << 32 | self.order << 48

    @classmethod
    def of(cls, word: int) -> _Slice:
        return cls(*(word >> shift & 0xFFFF for shift in (0, 16, 32, 48)))


def _in_order(slices: Sequence[tuple[int, int, int]], table: str) -> list[_Slice]:
    """Return slices, given by start, length and order, with their positions in the input of the hash.

    Slices are sorted by order. Two slices of the same order have the same position.

    Raises P4RuntimeError (INVALID_ARGUMENT) if slices overlap, and if more than two slices, or two of
    different lengths, have the same order.
    """
    placed: list[_Slice] = []
    at = 0
    for (start, length, _), (following, *_) in itertools.pairwise(sorted(slices)):
        if start + length > following:
            invalid(f"{table}: two slices overlap")
    ordered = sorted(slices, key=lambda each: each[2])
    for order, group in itertools.groupby(ordered, key=lambda each: each[2]):
        shared = [_Slice(start, at, length, order) for start, length, _ in group]
        lengths = sorted({each.length for each in shared})
        if len(shared) > 2 or len(lengths) > 1:
            invalid(f"{table}: {len(shared)} slices with order {order}, of {lengths} bits; expected two of one length")
        placed += shared
        at += lengths[0]
    if len(placed) > MOST_SLICES:
        invalid(f"{table}: {len(placed)} slices; expected at most {MOST_SLICES}")
    return placed


def _of_slices(slices: Sequence[_Slice]) -> dict[str, int]:
    """Return the members of a cell for these slices."""
    return {
        "count": len(slices),
        "bits": max((each.to + each.length for each in slices), default=0),
        "slices": sum(each.word << 64 * at for at, each in enumerate(slices)),
    }


def _of_crc(crc: Crc) -> dict[str, int]:
    """Return the members of a cell for a CRC."""
    polynomial = reflect(crc.polynomial, crc.width) if crc.reflected else crc.polynomial
    return {
        "identity": 0, "width": crc.width, "reflected": int(crc.reflected), "polynomial": polynomial,
        "initial": crc.initial, "final": crc.final,
    }  # fmt: skip


@dataclass(frozen=True)
class _Program:
    """Hash as the program declares it. `inputs` has the width of each field, and the value of a constant."""

    algorithm: str
    inputs: tuple[tuple[int, int | None], ...]
    result_bits: int
    used: int
    msb: int

    @property
    def bits(self) -> int:
        return sum(width for width, _ in self.inputs)

    @classmethod
    def of(cls, extern: ir.ExternInstance) -> _Program:
        numbers = {name: each.value for name, each in extern.attributes.items() if isinstance(each, ir.Const)}
        parts = [text.partition("=") for text in str(extern.attributes["inputs"]).split()]
        inputs = tuple((int(width), int(value) if given else None) for width, given, value in parts)
        return cls(str(extern.attributes["algorithm"]), inputs, numbers["result_bits"], numbers["used"], numbers["msb"])


class HashTable(AnyPipe):
    """Base of the tables of a hash that the program calls in one place. They have only a default entry."""

    takes = frozenset()

    @property
    def _hash(self) -> str:
        return self.object_name.rpartition(".")[0]

    def _program(self, state: State) -> _Program:
        instance = next((each for each in state.pipeline.program.externs if each.name == self._hash), None)
        if instance is None:
            unimplemented(f"{self.name}: a hash that is the identity or extended in the program cannot be configured")
        return _Program.of(instance)

    def _cell(self, state: State) -> dict[str, int]:
        """Return the members of the cell. If the hash is not configured, they are those of the program's own hash."""
        cell = objects.values(Hash, state.switch.object_read(self._hash, 0))
        return cell if cell["configured"] else self._own(state)

    def _own(self, state: State) -> dict[str, int]:
        return {**self._own_algorithm(state), **self._all_fields(state)}

    def _own_algorithm(self, state: State) -> dict[str, int]:
        program = self._program(state)
        crc = crc_of(program.algorithm)
        if crc is None:
            unimplemented(f"{self.name}: only a hash that is a CRC in the program can be configured")
        return {**_of_crc(crc), "algorithm": _OWN, "msb": program.msb, "extend": 0, "rotate": 0}

    def _all_fields(self, state: State) -> dict[str, int]:
        return _of_slices([_Slice(0, 0, self._program(state).bits, _UNORDERED)])

    def _change(self, members: Mapping[str, int], state: State) -> Undo:
        """Set members of the cell. The hash counts as configured if they differ from the program's own."""
        own, cell = self._own(state), {**self._cell(state), **members}
        cell["configured"] = int(any(cell[name] != value for name, value in own.items()))
        old = state.switch.object_read(self._hash, 0)
        state.switch.object_write(self._hash, 0, objects.packed(Hash, cell))
        return lambda: state.switch.object_write(self._hash, 0, old)

    @abstractmethod
    def _members(self, entry: Message, state: State) -> dict[str, int]:
        """Return the members of the cell that a default entry sets."""

    @abstractmethod
    def _initial(self, state: State) -> dict[str, int]:
        """Return the same members for the program's own hash."""

    @abstractmethod
    def _put_members(self, cell: Mapping[str, int], data: Message, state: State) -> None:
        """Put the same members into the data of the default entry."""

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Configure the hash, or restore that of the program (RESET, DELETE)."""
        members = self._initial(state) if self._restores(kind) else self._members(entry, state)
        return self._change(members, state)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Refuse entries, because there is only a default entry."""
        unimplemented(f"{self.name}: entries are not supported")

    def clear(self, state: State) -> Undo:
        """Refuse to clear, because there is only a default entry."""
        unimplemented(f"{self.name}: entries are not supported")

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the default entry."""
        if not entry.is_default_entry:
            return []
        reply = self._entry()
        reply.is_default_entry = True
        self._put_members(self._cell(state), reply.data, state)
        return [reply]


@TABLE_KINDS.register("DynHashAlgorithm")
class AlgorithmTable(HashTable):
    """Algorithm of a hash: a name, or the parameters of a CRC. Omitted fields have their defaults."""

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._specs = {spec["id"]: {f["name"]: f for f in spec["data"]} for spec in info["action_specs"]}

    def _initial(self, state: State) -> dict[str, int]:
        return self._own_algorithm(state)

    def _members(self, entry: Message, state: State) -> dict[str, int]:
        action = entry.data.action_id
        if action not in self._specs:
            invalid(f"{self.name}: no action has the id {action}")
        infos = {**{info["name"]: info for info in self._data.values()}, **self._specs[action]}
        given = self._given(entry.data, {info["id"]: info for info in infos.values()})
        values = {
            name: self._decoded(given[info["id"]], info) if info["id"] in given else _default(info, self.name)
            for name, info in infos.items()
        }
        if values["seed"]:
            unimplemented(f"{self.name}: a seed is not supported")
        common = {name: values[name] for name in ("msb", "extend", "rotate")}
        if action == Id.HASH_ALGORITHM_PRE_DEFINED:
            return {**common, **self._of_name(values["algorithm_name"])}
        width = values["hash_bit_width"]
        numbers = [values[name] for name in ("polynomial", "init", "final_xor")]
        if not 8 <= width <= 64 or max(numbers) >> width:
            invalid(f"{self.name}: expected a hash_bit_width from 8 to 64, and numbers of so many bits")
        polynomial, first, last = numbers
        crc = Crc(width, polynomial, first, last, bool(values["reverse"]))
        return {**common, "algorithm": _USER_DEFINED, **_of_crc(crc)}

    def _decoded(self, field: Message, info: Json) -> int:
        """Return a field as a number. The case of an algorithm's name does not matter."""
        if info["name"] == "algorithm_name":
            named = bfruntime_pb2.DataField(field_id=field.field_id, str_val=field.str_val.upper())
            return decode(named, info, self.name)
        return decode(field, info, self.name)

    def _of_name(self, at: int) -> dict[str, int]:
        name = PREDEFINED[at]
        if name == "IDENTITY":
            plain = Crc(64, 0, 0, 0, reflected=False)
            return {**_of_crc(plain), "algorithm": at + 1, "identity": 1}
        if name not in _CRCS:
            unimplemented(f"{self.name}: {name} is not supported")
        return {"algorithm": at + 1, **_of_crc(_CRCS[name])}

    def _put_members(self, cell: Mapping[str, int], data: Message, state: State) -> None:
        named = cell["algorithm"] not in (_OWN, _USER_DEFINED)
        data.action_id = Id.HASH_ALGORITHM_PRE_DEFINED if named else Id.HASH_ALGORITHM_USER_DEFINED
        values = {**cell, "seed": 0}
        if named:
            values["algorithm_name"] = cell["algorithm"] - 1
        else:
            polynomial, width = cell["polynomial"], cell["width"]
            values |= {
                "reverse": cell["reflected"], "init": cell["initial"], "final_xor": cell["final"],
                "polynomial": reflect(polynomial, width) if cell["reflected"] else polynomial, "hash_bit_width": width,
            }  # fmt: skip
        for info in (*self._data.values(), *self._specs[data.action_id].values()):
            encode(data, info, values[info["name"]])


def _default(info: Json, table: str) -> int:
    """Return the value of a field that is not given. Raises P4RuntimeError (INVALID_ARGUMENT) if it has none."""
    t = info["type"]
    if info["name"] == "hash_bit_width":
        invalid(f"{table}: hash_bit_width is missing")
    if "default_value" not in t:
        invalid(f"{table}: {info['name']} is missing")
    return int(t["choices"].index(t["default_value"]) if "choices" in t else t["default_value"])


@TABLE_KINDS.register("DynHashConfigure")
class ConfigureTable(HashTable):
    """Slices of the fields that are hashed.

    Bits of a field are numbered from the lowest. A slice of order 0 is not hashed.
    """

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._widths: dict[int, int] = {
            ident: _parts(field)["length"]["type"]["default_value"] for ident, field in self._data.items()
        }

    def _offsets(self, state: State) -> dict[int, int]:
        """Return the position of each field's first bit in the input, which begins with zeros."""
        at = self._program(state).bits - sum(self._widths.values())
        offsets = {}
        for ident, width in self._widths.items():
            offsets[ident] = at
            at += width
        return offsets

    def _initial(self, state: State) -> dict[str, int]:
        return self._all_fields(state)

    def _members(self, entry: Message, state: State) -> dict[str, int]:
        offsets, slices = self._offsets(state), []
        for field in entry.data.fields:
            if field.field_id not in offsets:
                invalid(f"{self.name}: no data field has the id {field.field_id}")
            width = self._widths[field.field_id]
            for container in field.container_arr_val.container:
                first, length, order = self._part(field.field_id, container.val)
                if order:
                    slices.append((offsets[field.field_id] + width - first - length, length, order))
        return _of_slices(_in_order(slices, self.name))

    def _part(self, ident: int, given: Sequence[Message]) -> tuple[int, int, int]:
        """Return the first bit, length and order of a slice of a field. Raises P4RuntimeError (INVALID_ARGUMENT)."""
        where, width = f"{self.name}: {self._data[ident]['name']}", self._widths[ident]
        infos = _parts(self._data[ident])
        fields = {field.field_id: field for field in given if field.WhichOneof("value") is not None}
        values = {name: decode(fields[i["id"]], i, where) for name, i in infos.items() if i["id"] in fields}
        if "order" not in values:
            invalid(f"{where}: order is missing")
        first = values.get("start_bit", 0)
        length = values.get("length", width - first)
        if not length or first + length > width or values["order"] > _MOST_ORDER:
            invalid(f"{where}: bits {first} to {first + length - 1}; expected some of its {width} bits")
        return first, length, values["order"]

    def _put_members(self, cell: Mapping[str, int], data: Message, state: State) -> None:
        slices = [_Slice.of(cell["slices"] >> 64 * at & _MOST) for at in range(cell["count"])]
        for place, (ident, offset) in enumerate(self._offsets(state).items(), 1):
            width = self._widths[ident]
            parts = [(offset + width - s.start - s.length, s.length, s.order) for s in slices
                     if offset <= s.start < offset + width]  # fmt: skip
            if slices[:1] and slices[0].order == _UNORDERED:
                parts = [(0, width, place)]
            if parts:
                field = data.fields.add(field_id=ident)
                infos = _parts(self._data[ident])
                for first, length, order in parts:
                    container = field.container_arr_val.container.add()
                    for name, value in (("start_bit", first), ("length", length), ("order", order)):
                        container.val.add(field_id=infos[name]["id"], stream=value.to_bytes(8, "big"))


def _parts(field: Json) -> dict[str, Json]:
    """Return the numbers that describe a slice of a field, by their names."""
    return {each["singleton"]["name"]: each["singleton"] for each in field["container"]}


@TABLE_KINDS.register("DynHashCompute")
class ComputeTable(HashTable):
    """Table that returns the hash of given fields. Bits that the program does not use are 0."""

    def _initial(self, state: State) -> dict[str, int]:
        unimplemented(f"{self.name}: the table can only be read")

    def _members(self, entry: Message, state: State) -> dict[str, int]:
        return self._initial(state)

    def _put_members(self, cell: Mapping[str, int], data: Message, state: State) -> None:
        """Put nothing, because the default entry has no data."""

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the hash of the fields in the key."""
        if entry.WhichOneof("value") != "key":
            unimplemented(f"{self.name}: expected the fields to be hashed as the key")
        program = self._program(state)
        given = {field.field_id: field.exact.value for field in entry.key.fields}
        keys = iter(self._info["key"])
        bits, whole = 0, 0
        for width, value in program.inputs:
            if value is None:
                info = next(keys, None)
                if info is None or width_of(info) != width:
                    unimplemented(f"{self.name}: fields that the program concatenates with constants are not supported")
                value = number(given.get(info["id"], bytes(size(width))), width, f"{self.name}: {info['name']}")
            bits, whole = bits + width, whole << width | value
        reply = bfruntime_pb2.TableEntry(table_id=self.id, key=entry.key)
        hash_value = hash_of(self._cell(state), whole, bits, program.result_bits) & program.used
        self._put(reply.data, Id.HASH_VALUE, hash_value)
        return [reply]


def hash_of(cell: Mapping[str, int], fields: int, bits: int, result_bits: int) -> int:
    """Return the hash that the switch computes with the configuration in `cell`.

    `fields` are the concatenated fields, a number of `bits` bits.
    """
    whole = 0
    for word in (cell["slices"] >> 64 * at & _MOST for at in range(cell["count"])):
        part = _Slice.of(word)
        value = fields >> bits - part.start - part.length & (1 << part.length) - 1
        whole ^= value << cell["bits"] - part.to - part.length
    data, width = whole.to_bytes(size(cell["bits"]), "big"), cell["width"]
    if cell["identity"]:
        value = (whole ^ cell["final"]) & (1 << width) - 1
    else:
        polynomial = reflect(cell["polynomial"], width) if cell["reflected"] else cell["polynomial"]
        value = Crc(width, polynomial, cell["initial"], cell["final"], bool(cell["reflected"])).of(data)
    if width > result_bits and cell["msb"]:
        value >>= width - result_bits
    if cell["extend"]:
        value = sum(value << at for at in range(0, max(result_bits, 1), width))
    value &= (1 << result_bits) - 1
    rotate = cell["rotate"] % result_bits
    return (value << rotate | value >> result_bits - rotate) & (1 << result_bits) - 1
