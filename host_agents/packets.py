"""Headers and packets, declared once: fields with widths in bits, units, names of values, and opcodes.

    HELLO = Packet("hello", 0xE6, (Header("hello", (Field("kind", 8), Field("rate", 24, unit="kb/s"))),),
                   to=TO_NOTIFICATION_POINT)
    body = HELLO.encode(kind=1, rate=5_000)
    rate = HELLO.get("rate", frame, offset)

The codec is here. `wireformats` generates the P4 include, tables in Markdown, scapy layers and the
Wireshark dissector from the same declarations. Fields are big-endian, the most
significant bit first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from librt.strings import read_i64_be
from librt.vecs import vec
from mypy_extensions import i64

from host_agents.errors import PacketError

# Formats in which a field is displayed.
DECIMAL: Final = "decimal"
HEXADECIMAL: Final = "hexadecimal"
MAC: Final = "mac"
IPV4: Final = "ipv4"

# Recipients of a packet.
TO_TRANSPORT: Final = 0  # the queue pair itself
TO_REACTION_POINT: Final = 1
TO_NOTIFICATION_POINT: Final = 2
TO_SENDER: Final = 3  # an ACK or NAK whose first header is an AETH: first the reaction point, then the queue pair
SIDES: Final = ("transport", "reaction point", "notification point", "reaction point and transport")


class Field:
    """Field of `bits` bits.

    `values` has names of values with a special meaning; a name that is an identifier becomes a
    constant of the P4 include. `initial` is the default value for senders. A packet with a value
    below `least` is malformed. Raises PacketError for an invalid name, and for a value that does
    not fit the bits.
    """

    def __init__(
        self,
        name: str,
        bits: int,
        meaning: str = "",
        *,
        unit: str = "",
        values: Mapping[int, str] | None = None,
        display: str = DECIMAL,
        initial: int = 0,
        least: int = 0,
    ) -> None:
        self.name: Final = name
        self.bits: Final = bits
        self.meaning: Final = meaning
        self.unit: Final = unit
        self.values: Final[dict[int, str]] = dict(values or {})
        self.display: Final = display
        self.initial: Final = initial
        self.least: Final = least
        _check_name("field", name)
        if bits < 1:
            raise PacketError(f"field {name}: {bits} bits; expected 1 or more")
        for value in (initial, least, *self.values):
            if not 0 <= value < 1 << bits:
                raise PacketError(f"field {name}: {value} does not fit {bits} bits")


def _check_name(kind: str, name: str) -> None:
    if not (name.isascii() and name.isidentifier() and name == name.lower()):
        raise PacketError(f"{kind} {name!r}: expected a name in lower case, of letters, digits and _")


class Place:
    """Field at its place in a header or after the BTH, where it can be read. `bit` counts from the start."""

    def __init__(self, field: Field, bit: int) -> None:
        end_byte = -(-(bit + field.bits) // 8)
        self.field: Final = field
        self.bit: Final = bit
        self.byte: Final = bit // 8
        self.end_byte: Final = end_byte
        self._end: i64 = end_byte
        self.shift: Final = 8 * end_byte - bit - field.bits
        self._shift: i64 = self.shift
        self.mask: Final = (1 << field.bits) - 1
        self.least: Final = field.least
        self._short: Final = end_byte - bit // 8 <= 8  # the eight bytes that end with the field contain all of it
        self._mask: i64 = -1 if field.bits == 64 else self.mask if self._short else 0

    def get(self, frame: bytes, offset: int) -> int:
        """Return the field's value in a header at `frame[offset]`."""
        start: i64 = offset
        end: i64 = start + self._end
        if self._short and end >= 8:
            word: i64 = read_i64_be(frame, end - 8)
            value: i64 = (word >> self._shift) & self._mask
            if value >= 0:  # otherwise the top bit of 64 looks like a sign
                return value
        return int.from_bytes(frame[offset + self.byte : end], "big") >> self.shift & self.mask


class Header:
    """Contiguous fields that fill whole bytes.

    `name` is used in P4 (`name_t`), scapy and Wireshark. Raises PacketError for an invalid name,
    for two fields of one name, and if the fields do not fill whole bytes.
    """

    def __init__(self, name: str, fields: Sequence[Field], meaning: str = "") -> None:
        self.name: Final = name
        self.fields: Final = tuple(fields)
        self.meaning: Final = meaning
        self.places: Final[dict[str, Place]] = {}
        bit = 0
        _check_name("header", name)
        for field in fields:
            if field.name in self.places:
                raise PacketError(f"header {name}: two fields {field.name}")
            self.places[field.name] = Place(field, bit)
            bit += field.bits
        if bit % 8 or bit == 0:
            raise PacketError(f"header {name}: {bit} bits; expected whole bytes")
        self.bits: Final = bit
        self.size_bytes: Final = bit // 8

    def place(self, name: str) -> Place:
        """Return a field's place.

        Raises PacketError if there is no such field.
        """
        place = self.places.get(name)
        if place is None:
            raise PacketError(f"header {self.name} has no field {name!r}; expected one of: {', '.join(self.places)}")
        return place

    def get(self, name: str, frame: bytes, offset: int = 0) -> int:
        """Return the value of a field of the header at `frame[offset]`."""
        return self.place(name).get(frame, offset)

    def decode(self, frame: bytes, offset: int = 0) -> dict[str, int]:
        """Return all fields by name.

        Raises PacketError if the frame ends before the header.
        """
        if len(frame) < offset + self.size_bytes:
            raise PacketError(f"header {self.name}: {len(frame) - offset} bytes; expected {self.size_bytes}")
        return {name: place.get(frame, offset) for name, place in self.places.items()}

    def encode(self, values: Mapping[str, int]) -> bytes:
        """Return the header with these values; other fields have their initial ones.

        Raises PacketError for an unknown field, and for a value that does not fit its field.
        """
        for name in values:
            self.place(name)
        number = 0
        for field in self.fields:
            value = values.get(field.name, field.initial)
            if not 0 <= value < 1 << field.bits:
                raise PacketError(f"header {self.name}: {field.name} = {value} does not fit {field.bits} bits")
            number = number << field.bits | value
        return number.to_bytes(self.size_bytes, "big")


class Records:
    """Repeated header: `count` is a number, or the name of a field in an earlier header.

    Zeros fill the last record up to a multiple of `align_bytes`. `limit` is the largest count, if
    it is smaller than the field's range.
    """

    def __init__(self, header: Header, count: int | str, *, align_bytes: int = 1, limit: int = 0) -> None:
        self.header: Final = header
        self.fixed: Final = count if isinstance(count, int) else -1  # -1: the field `counter` has the number
        self.counter: Final = count if isinstance(count, str) else ""
        self.align_bytes: Final = align_bytes
        self.limit: Final = limit

    def size_bytes(self, count: int) -> int:
        """Return the size of `count` records with their padding."""
        size = count * self.header.size_bytes
        return size + -size % self.align_bytes


class Packet:
    """Declaration of a packet: opcode, contents after the BTH, and recipient.

    `parts` are headers, and records at most once. With `opcodes`, it has that many opcodes from
    `opcode` on. If it `wraps` reliable-connection packets, opcode + n has, after `parts`, the
    content of the packet with opcode n (an AETH for an acknowledgement, else payload). With
    `payload` other bytes follow, and without `icrc` the packet ends after them. The packet is
    delivered `to` a side; `reply` names a field of one bit that, when set, delivers it to the other
    point instead. Raises PacketError if the declaration contradicts itself.
    """

    def __init__(
        self,
        name: str,
        opcode: int,
        parts: Sequence[Header | Records] = (),
        *,
        to: int = TO_TRANSPORT,
        reply: str = "",
        opcodes: int = 1,
        wraps: bool = False,
        payload: bool = False,
        icrc: bool = True,
        meaning: str = "",
    ) -> None:
        self.name: Final = name
        self.opcode: Final = opcode
        self.opcodes: Final = opcodes
        self.parts: Final = tuple(parts)
        self.to: Final = to
        self.reply: Final = reply
        self.wraps: Final = wraps
        self.payload: Final = payload
        self.icrc: Final = icrc
        self.meaning: Final = meaning
        self.headers: Final[list[Header]] = []  # headers that occur once
        self.records: Final[list[Records]] = []  # at most one
        # Fields of the headers before records of variable number, which always have the same place.
        self.places: Final[dict[str, Place]] = {}
        if opcode < 0 or opcodes < 1 or opcode + opcodes > 0x100:
            raise PacketError(f"packet {name}: opcode {opcode:#x} and {opcodes - 1} more; expected 0x00 to 0xFF")
        names: list[str] = []
        bit = 0
        fixed = True
        for part in parts:
            if isinstance(part, Header):
                self.headers.append(part)
                names += part.places
                for place in part.places.values():
                    if fixed:
                        self.places[place.field.name] = Place(place.field, bit + place.bit)
                bit += part.bits
            elif self.records:
                raise PacketError(f"packet {name}: records twice; expected at most one kind of them")
            else:
                self.records.append(part)
                if part.fixed >= 0:
                    bit += 8 * part.size_bytes(part.fixed)
                elif part.counter not in self.places:
                    raise PacketError(f"packet {name}: no field {part.counter!r} counts the records")
                else:
                    fixed = False
        for repeated in names:
            if names.count(repeated) > 1:
                raise PacketError(f"packet {name}: two fields {repeated}")
        self._least: Final = [place for place in self.places.values() if place.field.least > 0]
        self._counted: Final = len(self.records) > 0 and self.records[0].fixed < 0
        self._reply: Final = self.places.get(reply)
        # Size without records whose number is a field.
        self.size_bytes: Final = bit // 8
        if reply and (reply not in self.places or self.places[reply].field.bits != 1):
            raise PacketError(f"packet {name}: no field {reply!r} of one bit says what is a reply")
        if reply and to not in (TO_REACTION_POINT, TO_NOTIFICATION_POINT):
            raise PacketError(f"packet {name}: expected a reply to be of the reaction point or the notification point")

    def place(self, name: str) -> Place:
        """Return a field's place after the BTH.

        Raises PacketError if there is none, or if it varies.
        """
        place = self.places.get(name)
        if place is None:
            raise PacketError(f"packet {self.name} has no field {name!r}; expected one of: {', '.join(self.places)}")
        return place

    def get(self, name: str, frame: bytes, offset: int) -> int:
        """Return the value of a field of the packet; the bytes after the BTH start at `frame[offset]`."""
        return self.place(name).get(frame, offset)

    def count(self, frame: bytes, offset: int) -> int:
        """Return the number of records; -1 if the frame ends before that field."""
        if not self.records:
            return 0
        records = self.records[0]
        if records.fixed >= 0:
            return records.fixed
        place = self.places[records.counter]
        return place.get(frame, offset) if len(frame) >= offset + place.end_byte else -1

    def fits(self, frame: bytes, offset: int) -> bool:
        """Return whether all headers and records are complete and within limits, and no field is too small."""
        size = self.size_bytes
        if self._counted:
            count = self.count(frame, offset)
            limit = self.records[0].limit
            if count < 0 or (limit > 0 and count > limit):
                return False
            size += self.records[0].size_bytes(count)
        if len(frame) < offset + size:
            return False
        # Most packets have no records, and a protocol's own packets may carry data.
        for place in self._least:  # noqa: SIM110  # a generator costs more than the rest
            if place.get(frame, offset) < place.least:
                return False
        return True

    def is_reply(self, frame: bytes, offset: int) -> bool:
        """Return whether the field `reply` marks the packet as a reply."""
        return self._reply is not None and self._reply.get(frame, offset) != 0

    def side(self, frame: bytes, offset: int) -> int:
        """Return the side that gets the packet, whose headers at `frame[offset]` are complete."""
        if self.is_reply(frame, offset):
            return TO_REACTION_POINT if self.to == TO_NOTIFICATION_POINT else TO_NOTIFICATION_POINT
        return self.to

    def decode(self, frame: bytes, offset: int) -> dict[str, int]:
        """Return all fields by name, without those of records.

        Raises PacketError if it does not fit.
        """
        self._check(frame, offset)
        values: dict[str, int] = {}
        for part in self.parts:
            if isinstance(part, Header):
                values.update(part.decode(frame, offset))
                offset += part.size_bytes
            elif part.fixed >= 0:
                offset += part.size_bytes(part.fixed)
            else:
                offset += part.size_bytes(values[part.counter])
        return values

    def decode_records(self, frame: bytes, offset: int) -> list[dict[str, int]]:
        """Return the records as dictionaries by field name.

        Raises PacketError if the packet does not fit.
        """
        self._check(frame, offset)
        values: list[dict[str, int]] = []
        count = self.count(frame, offset)
        for part in self.parts:
            if isinstance(part, Header):
                offset += part.size_bytes
            else:
                for _ in range(count):
                    values.append(part.header.decode(frame, offset))
                    offset += part.header.size_bytes
                return values
        return values

    def encode(self, records: Sequence[Mapping[str, int]] = (), **values: int) -> bytes:
        """Return the bytes after the BTH.

        Omitted fields have their initial values, and the number of records is set. Raises
        PacketError for an unknown field, and for a value or a number of records out of range.
        """
        given = dict(values)
        if self.records:
            repeated = self.records[0]
            if repeated.fixed >= 0 and len(records) > repeated.fixed:
                raise PacketError(f"packet {self.name}: {len(records)} records; expected at most {repeated.fixed}")
            if repeated.limit > 0 and len(records) > repeated.limit:
                raise PacketError(f"packet {self.name}: {len(records)} records; expected at most {repeated.limit}")
            if repeated.counter and repeated.counter not in given:
                given[repeated.counter] = len(records)
        elif records:
            raise PacketError(f"packet {self.name}: it has no records")
        body = b""
        for part in self.parts:
            if isinstance(part, Header):
                own = {name: given.pop(name) for name in part.places if name in given}
                body += part.encode(own)
            else:
                start = len(body)
                for record in records:
                    body += part.header.encode(record)
                for _ in range(len(records), part.fixed):
                    body += part.header.encode({})
                body += bytes(-(len(body) - start) % part.align_bytes)
        for name in given:
            known = ", ".join(self.field_names())
            raise PacketError(f"packet {self.name} has no field {name!r}; expected one of: {known}")
        return body

    def field_names(self) -> list[str]:
        """Return the names of all fields, without those of records."""
        return [name for header in self.headers for name in header.places]

    def _check(self, frame: bytes, offset: int) -> None:
        if not self.fits(frame, offset):
            raise PacketError(f"packet {self.name}: {len(frame) - offset} bytes after the BTH are too few")


class Opcodes:
    """Packets of one run by opcode; `packets` are by owner: the transport, or a protocol.

    An opcode is unique within the run only. Raises PacketError if two packets have the same. A
    `catalog` is for protocols that need not occur in the same run, so they may share opcodes;
    `find` then returns the last one.
    """

    def __init__(self, packets: Mapping[str, Sequence[Packet]], catalog: bool = False) -> None:
        self.catalog: Final = catalog
        self.packets: Final[dict[str, tuple[Packet, ...]]] = {owner: tuple(own) for owner, own in packets.items()}
        self._by_opcode = vec[Packet | None]([None] * 256)  # a list would check the type of each item that is read
        owners: dict[int, str] = {}
        for owner, own in packets.items():
            for packet in own:
                for opcode in range(packet.opcode, packet.opcode + packet.opcodes):
                    other = self._by_opcode[opcode]
                    if other is not None and other is not packet and not catalog:
                        raise PacketError(
                            f"opcode {opcode:#04x} is wanted twice: by {other.name!r} of {owners[opcode]} "
                            f"and by {packet.name!r} of {owner}"
                        )
                    self._by_opcode[opcode] = packet
                    owners[opcode] = owner

    def joined(self, other: Opcodes) -> Opcodes:
        """Return the packets of both objects.

        Raises PacketError if they conflict.
        """
        if other is self:
            return self
        both = dict(self.packets)
        for owner, own in other.packets.items():
            known = both.get(owner, ())
            both[owner] = (*known, *(packet for packet in own if packet not in known))
        return Opcodes(both, self.catalog)

    def find(self, opcode: int) -> Packet | None:
        return self._by_opcode[opcode]

    def all(self) -> list[Packet]:
        """Return each packet once, by opcode."""
        packets: list[Packet] = []
        for own in self.packets.values():
            packets += [packet for packet in own if packet not in packets]
        return sorted(packets, key=lambda packet: packet.opcode)

    def headers(self) -> list[Header]:
        """Return each header once.

        Raises PacketError if two different headers have the same name.
        """
        headers: dict[str, Header] = {}
        for packet in self.all():
            for part in packet.parts:
                header = part.header if isinstance(part, Records) else part
                if headers.setdefault(header.name, header) is not header:
                    raise PacketError(f"two headers {header.name}, one of {packet.name!r}; expected a name for each")
        return list(headers.values())
