"""A BMv2 JSON with its names resolved and its memory laid out.

Packet headers are kept as bytes, in `H` of the generated packet struct: fields are read and written in place. The
elements of a stack lie one after the other, with one more behind the last that an index out of bounds lands on.
Metadata fields are native integers, of more than 64 bits arrays of limbs.

Register arrays of one size share a bank, in which their cells of one index are side by side. Programs keep what belongs
together in arrays of one size and read them at one index, because a register holds one number: the lanes of a sum, a
flow's key, port and time. Side by side these take a few cache lines from memory instead of one an array.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from p4switch import ir
from p4switch.bmv2 import Document, JsonError, Place, schema
from p4switch.bmv2.values import hex_value
from p4switch.engine.objects import Object
from p4switch.engine.points import Points
from p4switch.ir.printer import text as ir_text

MAX_FIELD_BITS = 2048
MAX_CELLS = 1 << 28
_NAME_CHARS = 40  # of names in generated C
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
    """Return `name` as part of a C identifier, for readers: its end, which tells most. It is not unique."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", name.rpartition(".")[2]).strip("_")
    end = words[-_NAME_CHARS:]
    return end if end == words else end.partition("_")[2] or end


def numbered(prefix: str, number: int, name: str) -> str:
    """Return a C identifier, unique by its number, with the source's name for readers."""
    return f"{prefix}{number}_{identifier(name)}"


def labels(names: Sequence[str]) -> list[str]:
    """Return names that tell the things apart, as parts of C identifiers: numbers only where they have to.

    None is a keyword of C, nor a macro's name, nor begins as those of the engine do.
    """
    plain = [identifier(name) for name in names]
    often = collections.Counter(plain)
    return [
        one if often[one] == 1 and _PLAIN.fullmatch(one) and one not in _RESERVED else numbered("x", number, name)
        for number, (one, name) in enumerate(zip(plain, names, strict=True))
    ]


def c_string(text: str) -> str:
    """Return a C string literal."""
    data = text.encode()
    return '"' + "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data
    ) + '"'


@dataclass(frozen=True)
class Field:
    """Field of a header type.

    `bit` is its place in the engine's memory of the header.
    """

    name: str
    index: int
    width: int  # bits; of a varbit field the most it may have
    signed: bool
    bit: int
    varbit: bool = False
    member: str = ""  # its name in C, where its header is metadata


@dataclass(frozen=True)
class HeaderType:
    name: str
    fields: tuple[Field, ...]
    nbytes: int  # in memory, the varbit at its longest
    fixed_bytes: int  # on the wire, without the varbit
    length: ir.Expr | None  # of a varbit in bits; its parameters are the fields before
    max_bytes: int

    @property
    def varbit(self) -> Field | None:
        return next((f for f in self.fields if f.varbit), None)

    def field(self, name: str) -> Field:
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        raise JsonError(f"BMv2 JSON: header type {self.name} has no field {name}")


class _Placed:
    """Base of what has a place in the packet struct: its enumerators in C."""

    name: str
    slot: int
    offset: int
    label: str  # in names of C

    @property
    def at(self) -> str:
        """The enumerator that is `offset`."""
        return f"H_{self.label}"

    @property
    def is_valid(self) -> str:
        """The enumerator that is `slot`."""
        return f"V_{self.label}"


@dataclass(frozen=True)
class Header(_Placed):
    """A header instance. `slot` is its index in `valid`, `offset` its place in `H`; metadata has neither."""

    name: str
    type: HeaderType
    metadata: bool
    slot: int
    offset: int
    label: str  # of metadata the member of their struct
    union: str | None = None


@dataclass(frozen=True)
class Stack(_Placed):
    """Header instances of one type with consecutive slots; one spare element follows the last.

    Also used for the members of a union stack that have the same position.
    """

    name: str
    type: HeaderType
    size: int
    slot: int
    offset: int
    label: str
    next: int  # index in `next`


@dataclass(frozen=True)
class Union:
    name: str
    headers: tuple[Header, ...]


@dataclass(frozen=True)
class UnionStack:
    name: str
    unions: tuple[Union, ...]
    members: dict[str, Stack]  # by the name of the union's member
    order: tuple[str, ...]
    next: int

    @property
    def size(self) -> int:
        return len(self.unions)


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
    """An array of `size` cells of `width` bits. Its cells are members of the rows of its bank."""

    number: int
    name: str
    width: int
    size: int
    bank: int
    member: str  # of the row
    initial: int = 0

    def code(self, index: str) -> str:
        """Return the cell at a C expression; index `size` is a spare cell."""
        return f"((bank{self.bank} *)(void *)sw->banks[{self.bank}])[{index}].{self.member}"


@dataclass
class Program:
    """The whole program."""

    document: Document
    types: dict[str, HeaderType] = field(default_factory=dict)
    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    unions: dict[str, Union] = field(default_factory=dict)
    union_stacks: dict[str, UnionStack] = field(default_factory=dict)
    aliases: dict[str, tuple[str, str]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    layout: Layout = field(default_factory=Layout)
    points: Points = field(default_factory=Points)
    traced: bool = False  # its pipeline tells what it does with each packet
    objects: list[Object] = field(default_factory=list)
    _calculations: dict[str, str] = field(default_factory=dict)  # their functions in C

    def __post_init__(self) -> None:
        for item in self.json.header_types:
            self.types[item.name] = _header_type(item, self.document.lengths.get(item.name))
        self._place_headers()
        self.aliases = dict(self.json.field_aliases)
        self.errors = dict(self.json.errors)
        for name in _CORE_ERRORS:
            if name not in self.errors:
                self.errors[name] = max(self.errors.values(), default=-1) + 1
        banks = self.banks
        self.registers = [
            Register(number, array.name, array.bitwidth, array.size, banks.index(array.size), label,
                     hex_value(array.initial_value) & (1 << array.bitwidth) - 1)
            for number, (array, label) in enumerate(zip(
                self.json.register_arrays, labels([r.name for r in self.json.register_arrays]), strict=True
            ))
        ]
        self._calculations = _calculations(self.document)
        self.objects = self._objects()
        _unique("action", (a.id for a in self.json.actions))
        _unique("table", (t.name for p in self.json.pipelines for t in p.tables))

    def _place_headers(self) -> None:
        by_id = {h.id: h for h in self.json.headers}
        _unique("header", (h.name for h in self.json.headers))
        _unique("header id", (h.id for h in self.json.headers))
        members = {i: u.name for u in self.json.header_unions for i in u.header_ids}
        unions = {u.id: u for u in self.json.header_unions}
        for ident, union_name in members.items():
            if ident in by_id and by_id[ident].metadata:
                raise JsonError(f"BMv2 JSON: header {by_id[ident].name} cannot be a member of {union_name}: metadata")

        columns_of = [
            f"{s.name}.{member}"
            for s in self.json.header_union_stacks for t in self.json.header_union_types if t.name == s.union_type
            for member, _ in t.headers
        ]
        placed_names = [*(h.name for h in self.json.headers), *(s.name for s in self.json.header_stacks), *columns_of]
        distinct = list(dict.fromkeys(placed_names))
        named = dict(zip(distinct, labels(distinct), strict=True))

        def place(item: schema.Header, slot: int, offset: int) -> Header:
            if item.name in self.headers:
                raise JsonError(f"BMv2 JSON: header {item.name} is in two stacks or unions")
            header = Header(item.name, self._type(item.header_type), slot < 0, slot, offset, named[item.name],
                            members.get(item.id))
            self.headers[item.name] = header
            return header

        def lookup(ident: int) -> schema.Header:
            if ident not in by_id:
                raise JsonError(f"BMv2 JSON: there is no header with id {ident}")
            return by_id[ident]

        def place_stack(name: str, type_name: str, items: list[schema.Header]) -> Stack:
            header_type = self._type(type_name)
            slot, offset = self.layout.place(header_type, len(items) + 1)
            for i, item in enumerate(items):
                if item.header_type != type_name or item.metadata:
                    raise JsonError(f"BMv2 JSON: header {item.name} cannot be an element of {name}")
                place(item, slot + i, offset + i * header_type.nbytes)
            return Stack(name, header_type, len(items), slot, offset, named[name], -1)

        for stack in self.json.header_stacks:
            if not stack.header_ids:
                raise JsonError(f"BMv2 JSON: header stack {stack.name} has no elements")
            placed = place_stack(stack.name, stack.header_type, [lookup(i) for i in stack.header_ids])
            self.stacks[stack.name] = replace(placed, next=self.layout.next_index())
        union_types = {t.name: t for t in self.json.header_union_types}
        for ustack in self.json.header_union_stacks:
            elements = [unions[i] for i in ustack.header_union_ids if i in unions]
            if ustack.union_type not in union_types or len(elements) != len(ustack.header_union_ids) or not elements:
                raise JsonError(f"BMv2 JSON: header union stack {ustack.name} names a type or union that is not there")
            names = union_types[ustack.union_type].headers
            if any(len(element.header_ids) != len(names) for element in elements):
                raise JsonError(f"BMv2 JSON: header union stack {ustack.name} does not fit its type")
            columns = {
                member: place_stack(f"{ustack.name}.{member}", type_name,
                                    [lookup(element.header_ids[j]) for element in elements])
                for j, (member, type_name) in enumerate(names)
            }
            self.union_stacks[ustack.name] = UnionStack(
                ustack.name,
                tuple(Union(e.name, tuple(self.headers[lookup(i).name] for i in e.header_ids)) for e in elements),
                columns, tuple(member for member, _ in names), self.layout.next_index(),
            )
        for item in self.json.headers:
            if item.metadata and not self._type(item.header_type).varbit:
                place(item, -1, -1)
            elif item.name not in self.headers:  # or a variable of type varbit: it has bytes, like a header
                place(item, *self.layout.place(self._type(item.header_type), 1))
        for union in self.json.header_unions:
            self.unions[union.name] = Union(union.name, tuple(self.headers[lookup(i).name] for i in union.header_ids))

    def _objects(self) -> list[Object]:
        states = self.document.path.states
        found = [Object(i, s.name, s.kind, s.size, f"state_{own}") for i, (own, s) in enumerate(states.items())]
        instances = self.json.extern_instances
        for instance, label in zip(instances, labels([each.name for each in instances]), strict=True):
            kind = self.document.path.object_type(instance.type)
            if kind is not None:
                size = kind.cells(self.document.attributes(instance))
                if not 0 < size <= MAX_CELLS:
                    raise JsonError(f"BMv2 JSON: {instance.name} has {size} cells; expected 1 to {MAX_CELLS}")
                found.append(Object(len(found), instance.name, kind, size, label))
        return found

    def object(self, name: str) -> Object:
        """Return the extern object of that name."""
        for each in self.objects:
            if each.name == name:
                return each
        raise JsonError(f"BMv2 JSON: there is no extern object {name}")

    @property
    def json(self) -> schema.Program:
        """The structure of the program."""
        return self.document.json

    def place(self, span: int | None) -> Place | None:
        """Return the place of a node in the source."""
        return self.document.place(span)

    @property
    def banks(self) -> list[int]:
        """Number of rows of each bank of registers."""
        return list(dict.fromkeys(array.size for array in self.json.register_arrays))

    @property
    def enumerators(self) -> dict[str, int]:
        """Names and values of the places of headers. A stack and its first element may share theirs."""
        columns = [column for stack in self.union_stacks.values() for column in stack.members.values()]
        packet_headers = [header for header in self.headers.values() if header.slot >= 0]
        return {
            name: value
            for placed in (*packet_headers, *self.stacks.values(), *columns)
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

    def _type(self, name: str) -> HeaderType:
        if name not in self.types:
            raise JsonError(f"BMv2 JSON: there is no header type {name}")
        return self.types[name]

    def header(self, name: str) -> Header:
        if name not in self.headers:
            raise JsonError(f"BMv2 JSON: there is no header {name}")
        return self.headers[name]

    def any_stack(self, name: str) -> Stack | UnionStack:
        """Return a stack of headers or of unions."""
        found = self.stacks.get(name) or self.union_stacks.get(name)
        if found is None:
            raise JsonError(f"BMv2 JSON: there is no header stack {name}")
        return found

    def union(self, name: str) -> Union:
        if name not in self.unions:
            raise JsonError(f"BMv2 JSON: there is no header union {name}")
        return self.unions[name]

    def register(self, name: str) -> Register:
        """Return the first array of that name."""
        for register in self.registers:
            if register.name == name:
                return register
        raise JsonError(f"BMv2 JSON: there is no register array {name}")

    def counter(self, name: str) -> tuple[int, schema.CounterArray]:
        """Return the number and the first array of that name."""
        for number, array in enumerate(self.json.counter_arrays):
            if array.name == name:
                return number, array
        raise JsonError(f"BMv2 JSON: there is no counter array {name}")

    def meter(self, name: str) -> tuple[int, schema.MeterArray]:
        """Return the number and the first array of that name."""
        for number, array in enumerate(self.json.meter_arrays):
            if array.name == name:
                return number, array
        raise JsonError(f"BMv2 JSON: there is no meter array {name}")

    def metered(self, number: int, index: str, size: str = "p->ingress_len", colour: str = "0") -> str:
        """Return as C the colour that a meter's cell gives a packet of `size` bytes, which comes with a colour."""
        meter = self.json.meter_arrays[number]
        packets = int(meter.type == "packets")
        cell = f"&sw->meters[{number}][{index}]"
        return f"p4_meter_execute(sw, {cell}, {meter.rate_count}, {packets}, {size}, p->now, {colour})"

    def calculation(self, name: str) -> str:
        """Return the C name of a calculation's function."""
        return self._calculations[name]

    def intrinsic(self, name: str) -> tuple[Header, Field] | None:
        """Return the metadata field that simple_switch knows as `name` (`intrinsic_metadata.mcast_grp`), if any."""
        header_name, _, field_name = name.partition(".")
        if name in self.aliases:
            header_name, field_name = self.aliases[name]
        header = self.headers.get(header_name)
        if header is None or not any(f.name == field_name for f in header.type.fields):
            return None
        found = header.type.field(field_name)
        if not header.metadata or found.width > 64:
            raise JsonError(f"BMv2 JSON: {header_name}.{field_name} must be metadata of at most 64 bits")
        return header, found


def _calculations(document: Document) -> dict[str, str]:
    """Return C names of the functions of calculations; equal ones share a function."""
    found: dict[str, str] = {}
    written: dict[str, str] = {}
    names = labels(list(document.calculations))
    for (name, calculation), label in zip(document.calculations.items(), names, strict=True):
        inputs = " ".join(ir_text(item) for item in calculation.inputs)
        same = f"{calculation.algorithm} {calculation.with_payload} {inputs}"
        found[name] = written.setdefault(same, f"calc_{label.removeprefix('calc_')}")
    return found


def _unique(what: str, values: Iterable[str | int]) -> None:
    seen: set[str | int] = set()
    for value in values:
        if value in seen:
            raise JsonError(f"BMv2 JSON: two have the same {what}: {value}")
        seen.add(value)


def _header_type(item: schema.HeaderType, length: ir.Expr | None) -> HeaderType:
    fields: list[Field] = []
    bit = fixed = 0
    max_bytes = item.max_length or 0
    members = labels([entry[0] for entry in item.fields])
    for index, entry in enumerate(item.fields):
        name, width = entry[0], entry[1]
        signed = len(entry) == 3 and bool(entry[2])
        if width == "*":
            if any(f.varbit for f in fields):
                raise JsonError(f"BMv2 JSON: header type {item.name} has two fields of variable length")
            others = sum(w for _, w, *_ in item.fields if isinstance(w, int))
            room = max_bytes * 8 - others
            if room < 0 or room % 8 or room > 8 * 65535:
                raise JsonError(f"BMv2 JSON: header type {item.name}: max_length {max_bytes} does not fit its fields")
            bit = (bit + 7) // 8 * 8
            fields.append(Field(name, index, room, signed, bit, True, members[index]))
            bit += room
        else:
            assert isinstance(width, int)
            if not 0 < width <= MAX_FIELD_BITS:
                raise JsonError(
                    f"BMv2 JSON: field {item.name}.{name} has {width} bits; expected 1 to {MAX_FIELD_BITS}"
                )
            fields.append(Field(name, index, width, signed, bit, False, members[index]))
            bit += width
            fixed += width
    _unique(f"field name in {item.name}", (f.name for f in fields))
    if fixed % 8 and not any(f.varbit for f in fields):
        # Only metadata may have such a size; a packet header is refused where it is extracted or emitted.
        fixed = -1
    fixed_bytes = -1 if fixed < 0 else fixed // 8
    return HeaderType(item.name, tuple(fields), (bit + 7) // 8, fixed_bytes, length, max_bytes)
