"""Program with its layout in memory.

Packet headers are kept as bytes in the member `H` of the generated packet struct, and fields are read and written in
place. The elements of a stack are consecutive. They are followed by a spare element, which an index out of bounds
selects. Metadata fields are native integers; those of more than 64 bits are arrays of limbs.

Register arrays of the same size share a bank, in which their cells with the same index are adjacent. A
register has one number per cell, so programs keep related numbers (the lanes of a sum; a flow's key, port
and time) in arrays of the same size, and read them at the same index. Adjacent cells take a few cache
lines instead of one for each array.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from p4switch import ir
from p4switch.architectures.packet_path import PacketPath, path_of
from p4switch.bmv2.schema import MAX_FIELD_BITS
from p4switch.compiler import types
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code
from p4switch.engine.objects import Object
from p4switch.engine.points import Points
from p4switch.ir.errors import ProgramError
from p4switch.ir.places import Place
from p4switch.ir.printer import text as ir_text
from p4switch.ir.unread import unread

MAX_CELLS = 1 << 28
_PACKET_BYTES = cexpr.packet("ingress_len")
_NAME_CHARS = 40  # maximum length of names in generated C
_PLAIN = re.compile(r"(?!x[0-9]|p4_)[a-z][a-z0-9_]*")
_RESERVED = frozenset((
    "alloca", "asm", "assert", "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double",
    "else", "enum", "errno", "extern", "false", "float", "for", "goto", "i386", "if", "inline", "int", "linux", "long",
    "offsetof", "register", "restrict", "return", "short", "signed", "sizeof", "static", "stderr", "stdin", "stdout",
    "struct", "switch", "true", "typedef", "typeof", "union", "unix", "unsigned", "void", "volatile", "while",
))  # fmt: skip
_CORE_ERRORS = (
    "NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
    "ParserInvalidArgument",
)


def identifier(name: str) -> str:
    """Return the end of `name`, which is most informative, for a readable C identifier. It is not unique."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", name.rpartition(".")[2]).strip("_")
    end = words[-_NAME_CHARS:]
    return end if end == words else end.partition("_")[2] or end


def numbered(prefix: str, number: int, name: str) -> str:
    """Return a C identifier that contains a unique number and the name in the source."""
    return f"{prefix}{number}_{identifier(name)}"


def labels(names: Sequence[str]) -> list[str]:
    """Return distinct names as parts of C identifiers, with numbers only where necessary.

    None is a keyword of C or the name of a macro, or has a prefix that the engine's names have.
    """
    plain = [identifier(name) for name in names]
    often = collections.Counter(plain)
    return [
        one if often[one] == 1 and _PLAIN.fullmatch(one) and one not in _RESERVED else numbered("x", number, name)
        for number, (one, name) in enumerate(zip(plain, names, strict=True))
    ]


@dataclass(frozen=True)
class Field:
    """Field of a header type.

    `bit` is its position in the header in the engine's memory.
    """

    name: str
    index: int
    width: int  # width in bits; for a varbit field the maximum
    signed: bool
    bit: int
    varbit: bool = False
    member: str = ""  # name in C, for fields of metadata


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: tuple[Field, ...]
    nbytes: int  # bytes in memory, with a varbit of maximum length
    fixed_bytes: int  # bytes on the wire, without the varbit
    length: ir.Expr | None  # bits of the varbit, by the fields before it

    @property
    def varbit(self) -> Field | None:
        return next((f for f in self.fields if f.varbit), None)

    def field(self, name: str) -> Field:
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise ProgramError(f"header type {self.name} has no field {name}")


class _Placed:
    """Base of objects with a position in the packet struct, given by enumerators in C."""

    name: str
    slot: int
    offset: int
    label: str  # part of names in C

    @property
    def at(self) -> str:
        """Enumerator for `offset`."""
        return f"H_{self.label}"

    @property
    def is_valid(self) -> str:
        """Enumerator for `slot`."""
        return f"V_{self.label}"

    def memory(self, packet: str = "p") -> C:
        """Return the address in a packet."""
        return cexpr.node(packet).arrow("H") + self.at


@dataclass(frozen=True)
class Header(_Placed):
    """Header instance. `slot` is its index in `valid` and `offset` its position in `H`; metadata has neither."""

    name: str
    type: HeaderType
    metadata: bool
    slot: int
    offset: int
    label: str  # for metadata, the name of the struct's member
    union: str | None = None


@dataclass(frozen=True)
class Column(_Placed):
    """Header instances of one type with consecutive slots; one spare element follows the last."""

    name: str
    type: HeaderType
    size: int
    slot: int
    offset: int
    label: str


@dataclass(frozen=True)
class Stack:
    """Stack. A stack of headers is a single column without a name; a stack of unions has a column per member."""

    size: int
    columns: dict[str, Column]
    next: int  # index in `next`


@dataclass
class Layout:
    """Layout of the packet struct."""

    slots: int = 0
    nbytes: int = 0
    nexts: int = 0

    def place(self, header_type: HeaderType, count: int) -> tuple[int, int]:
        slot, offset = self.slots, self.nbytes
        self.slots += count
        self.nbytes += count * header_type.nbytes
        return slot, offset

    def next_index(self) -> int:
        self.nexts += 1
        return self.nexts - 1


@dataclass(frozen=True)
class Register:
    """Register array of `size` cells of `width` bits. The cells are members of the rows of a bank."""

    number: int
    name: str
    width: int
    size: int
    bank: int
    member: str  # member of the row
    initial: int = 0

    def code(self, index: Code) -> C:
        """Return the cell at a C expression; index `size` is a spare cell."""
        return cexpr.cells(f"bank{self.bank}", "banks", self.bank)[index].dot(self.member)


@dataclass
class Program:
    """Program with its layout in memory."""

    nodes: ir.Program
    path: PacketPath = field(init=False)
    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    unions: dict[str, list[str]] = field(default_factory=dict)  # the names of their members
    errors: dict[str, int] = field(default_factory=dict)
    registers: dict[str, Register] = field(default_factory=dict)
    layout: Layout = field(default_factory=Layout)
    points: Points = field(default_factory=Points)
    traced: bool = False  # True if the pipeline reports the events of each packet
    objects: list[Object] = field(default_factory=list)
    unread: set[ir.Operation] = field(default_factory=set)  # operations that can be omitted without visible effect
    _types: dict[types.Header, HeaderType] = field(default_factory=dict)
    _calculations: dict[str, str] = field(default_factory=dict)  # name of each calculation's function in C

    def __post_init__(self) -> None:
        nodes = self.nodes
        self.path = path_of(nodes)
        self._place_headers()
        self.errors = dict(nodes.errors)
        for name in _CORE_ERRORS:
            if name not in self.errors:
                self.errors[name] = max(self.errors.values(), default=-1) + 1
        banks = self.banks
        arrays = zip(nodes.registers, labels([r.name for r in nodes.registers]), strict=True)
        for number, (array, label) in enumerate(arrays):
            bank = banks.index(array.size)
            register = Register(number, array.name, array.width, array.size, bank, label, array.initial)
            self.registers.setdefault(array.name, register)
        self._calculations = _calculations(nodes.calculations)
        self.objects = self._objects()
        if not self.traced:
            known = (self.intrinsic(each.name) for each in self.path.intrinsic.values())
            self.unread = unread(nodes, {(place[0].name, place[1].name) for place in known if place is not None})

    def _place_headers(self) -> None:
        nodes = self.nodes
        instances = {instance.name: instance for instance in nodes.headers}
        self.unions = {ref.name: names for ref, names in nodes.unions}
        union_of = {member: union for union, names in self.unions.items() for member in names}
        columns = [_columns(ref) for ref, _ in nodes.stacks]
        distinct = list(dict.fromkeys([*instances, *(name for each in columns for name, _ in each.values())]))
        named = dict(zip(distinct, labels(distinct), strict=True))

        def place(name: str, slot: int, offset: int) -> Header:
            header_type = self._type(instances[name].type)
            header = Header(name, header_type, slot < 0, slot, offset, named[name], union_of.get(name))
            self.headers[name] = header
            return header

        def column(name: str, of: types.Header, elements: Sequence[str]) -> Column:
            header_type = self._type(of)
            slot, offset = self.layout.place(header_type, len(elements) + 1)
            for i, element in enumerate(elements):
                place(element, slot + i, offset + i * header_type.nbytes)
            return Column(name, header_type, len(elements), slot, offset, named[name])

        for (ref, names), own in zip(nodes.stacks, columns, strict=True):
            elements = [self.unions.get(name, [name]) for name in names]
            element_refs = {
                member: column(name, of, [each[i] for each in elements])
                for i, (member, (name, of)) in enumerate(own.items())
            }
            self.stacks[ref.name] = Stack(ref.size, element_refs, self.layout.next_index())
        for instance in nodes.headers:
            header_type = self._type(instance.type)
            if instance.metadata and not header_type.varbit:
                place(instance.name, -1, -1)
            elif instance.name not in self.headers:  # a variable of type varbit has bytes, like a header
                place(instance.name, *self.layout.place(header_type, 1))

    def _objects(self) -> list[Object]:
        states = self.path.states
        objects = [Object(i, s.name, s.kind, s.size, f"state_{own}") for i, (own, s) in enumerate(states.items())]
        instances = self.nodes.externs
        for instance, label in zip(instances, labels([each.name for each in instances]), strict=True):
            kind = self.path.object_type(instance.type)
            if kind is not None:
                size = kind.cells({n: c.value for n, c in instance.attributes.items() if isinstance(c, ir.Const)})
                if not 0 < size <= MAX_CELLS:
                    raise ProgramError(f"{instance.name} has {size} cells; expected 1 to {MAX_CELLS}")
                objects.append(Object(len(objects), instance.name, kind, size, label))
        return objects

    def object(self, name: str) -> Object:
        """Return the extern object of that name."""
        for each in self.objects:
            if each.name == name:
                return each
        raise ProgramError(f"there is no extern object {name}")

    def place(self, span: int | None) -> Place | None:
        """Return the position of a node in the source."""
        return self.nodes.place(span)

    @property
    def banks(self) -> list[int]:
        """Number of rows of each register bank."""
        return list(dict.fromkeys(array.size for array in self.nodes.registers))

    @property
    def enumerators(self) -> dict[str, int]:
        """Names and values of the positions of headers. A stack and its first element may share theirs."""
        columns = [column for stack in self.stacks.values() for column in stack.columns.values()]
        packet_headers = [header for header in self.headers.values() if header.slot >= 0]
        return {
            name: value
            for placed in (*packet_headers, *columns)
            for name, value in ((placed.is_valid, placed.slot), (placed.at, placed.offset))
        }

    @property
    def cells(self) -> list[tuple[Header, Field | None]]:
        """Cells whose changes traces report: each metadata field, and each packet header as a whole (None)."""
        return [
            (header, field)
            for header in self.headers.values()
            for field in (header.type.fields if header.metadata else (None,))
        ]

    def _type(self, t: types.Header) -> HeaderType:
        if t not in self._types:
            self._types[t] = _header_type(t, self.nodes.lengths.get(t.name))
        return self._types[t]

    def header(self, name: str) -> Header:
        if name not in self.headers:
            raise ProgramError(f"there is no header {name}")
        return self.headers[name]

    def register(self, name: str) -> Register:
        """Return the register array of that name."""
        if name not in self.registers:
            raise ProgramError(f"there is no register array {name}")
        return self.registers[name]

    def counter(self, name: str) -> tuple[int, ir.Counter]:
        """Return the number and the first array of that name."""
        return _numbered("counter", self.nodes.counters, name)

    def meter(self, name: str) -> tuple[int, ir.Meter]:
        """Return the number and the first array of that name."""
        return _numbered("meter", self.nodes.meters, name)

    def metered(self, number: int, index: Code, size: C = _PACKET_BYTES, colour: Code = 0) -> C:
        """Return the colour that a meter's cell gives to a packet of `size` bytes that arrives with a colour."""
        return self._metered(number, cexpr.switch("meters")[number][index], size, colour)

    def metered_by_default(self, number: int) -> C:
        """Return the colour that a direct meter gives to a packet that hits no entry."""
        return self._metered(number, self.default_meter(number), _PACKET_BYTES, 0)

    @staticmethod
    def default_meter(number: int) -> C:
        """Return the cell of a direct meter for packets that hit no entry."""
        return cexpr.switch("meters_more")[number].dot("fallback")

    def _metered(self, number: int, cell: C, size: C, colour: Code) -> C:
        meter = self.nodes.meters[number]
        packets = meter.unit == "packets"
        need = size if packets else cexpr.call("p4_metered_bytes", "", "sw", number, size)
        now = cexpr.packet("now")
        return cexpr.call(
            "p4_meter_execute", "", "sw", cell.address, meter.rates, int(packets), need, now, colour
        )

    def calculation(self, name: str) -> str:
        """Return the C name of a calculation's function."""
        return self._calculations[name]

    def intrinsic(self, name: str) -> tuple[Header, Field] | None:
        """Return the metadata field that simple_switch calls `name` (`intrinsic_metadata.mcast_grp`), or None."""
        header_name, _, field_name = name.partition(".")
        if name in self.nodes.aliases:
            header_name, field_name = self.nodes.aliases[name]
        header = self.headers.get(header_name)
        if header is None or not any(f.name == field_name for f in header.type.fields):
            return None
        field = header.type.field(field_name)
        if not header.metadata or field.width > 64:
            raise ProgramError(f"{header_name}.{field_name} must be metadata of at most 64 bits")
        return header, field


_Array = TypeVar("_Array", ir.Counter, ir.Meter)


def _numbered(what: str, arrays: Sequence[_Array], name: str) -> tuple[int, _Array]:
    for number, array in enumerate(arrays):
        if array.name == name:
            return number, array
    raise ProgramError(f"there is no {what} array {name}")


def _columns(stack: ir.StackRef) -> dict[str, tuple[str, types.Header]]:
    """Return the names and types of the columns of a stack, by the members of its unions."""
    if isinstance(stack.element, types.Header):
        return {"": (stack.name, stack.element)}
    fields = stack.element.fields
    return {f.name: (f"{stack.name}.{f.name}", f.type) for f in fields if isinstance(f.type, types.Header)}


def _calculations(calculations: Sequence[ir.Calculation]) -> dict[str, str]:
    """Return the C name of each calculation's function. Equal calculations share a function."""
    name_of: dict[str, str] = {}
    written: dict[str, str] = {}
    names = labels([calculation.name for calculation in calculations])
    for calculation, label in zip(calculations, names, strict=True):
        inputs = " ".join(ir_text(item) for item in calculation.inputs)
        same = f"{calculation.algorithm} {calculation.with_payload} {inputs}"
        name_of[calculation.name] = written.setdefault(same, f"calc_{label.removeprefix('calc_')}")
    return name_of


def _header_type(t: types.Header, length: ir.Expr | None) -> HeaderType:
    fields: list[Field] = []
    bit = fixed = 0
    members = labels([f.name for f in t.fields])
    for index, f in enumerate(t.fields):
        if isinstance(f.type, types.Varbit):
            room = f.type.max_width
            if room < 0 or room % 8 or room > 8 * 65535:
                raise ProgramError(f"header type {t.name}: max_length leaves {room} bits for {f.name}")
            bit = (bit + 7) // 8 * 8
            fields.append(Field(f.name, index, room, False, bit, True, members[index]))
            bit += room
        else:
            assert isinstance(f.type, types.Bits)
            width = f.type.width
            if not 0 < width <= MAX_FIELD_BITS:
                raise ProgramError(f"field {t.name}.{f.name} has {width} bits; expected 1 to {MAX_FIELD_BITS}")
            fields.append(Field(f.name, index, width, f.type.signed, bit, False, members[index]))
            bit += width
            fixed += width
    if fixed % 8 and not any(f.varbit for f in fields):
        # Only metadata may have such a size. For a packet header, an error is raised where it is extracted or emitted.
        fixed = -1
    fixed_bytes = -1 if fixed < 0 else fixed // 8
    return HeaderType(t.name, tuple(fields), (bit + 7) // 8, fixed_bytes, length)
