"""Decoding of a traced pipeline's reports (p4_trace_event) into events with the names of the P4 source."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from p4switch import ir
from p4switch.engine import Traced
from p4switch.engine.expr import Parameter
from p4switch.engine.keys import KeyField
from p4switch.engine.points import Point
from p4switch.engine.program import Header
from p4switch.engine.value import storage_bytes
from p4switch.ir.places import Place
from p4switch.trace import events as ev
from p4switch.trace.names import SourceNames

RawEvent = tuple[int, int, int, int, int, int, int, bytes, int]

_DROPS = (
    "the program drops it in ingress", "the program drops it in egress", "there is no room for it",
    "its port, group or session does not exist", "the link is down", "the link lost it",
    "it was resubmitted, recirculated or cloned too often", "a loop of the program does not end",
)  # fmt: skip
_COLORS = ("green", "yellow", "red")
_KINDS = {"P4_EXACT": "exact", "P4_LPM": "lpm", "P4_TERNARY": "ternary", "P4_RANGE": "range",
          "P4_OPTIONAL": "optional", "P4_VALID": "exact"}  # fmt: skip
_CHANGE = struct.Struct("<IHHBBH")  # p4_trace_change
_ASKS = {
    ir.Effect.CLONE_INGRESS: "clone", ir.Effect.CLONE_EGRESS: "clone", ir.Effect.RESUBMIT: "resubmit",
    ir.Effect.RECIRCULATE: "recirculate", ir.Effect.DIGEST: "digest", ir.Effect.DROP: "egress_spec",
}  # fmt: skip


@dataclass
class _Packet:
    """Requests of a packet with their places in the source, and the last parser that the packet reached."""

    asked: dict[str, Place | None] = field(default_factory=dict)
    parser: str = ""


class Decoder:
    """Decoder of the events of a switch, or of one pipe of a switch, that runs a traced program."""

    def __init__(self, traced: Traced) -> None:
        self.points = traced.program.points.all
        self.names = SourceNames(traced.program)
        self._program = traced.program
        self._controls = traced.program.path.controls
        self._operations = traced.program.path.operations
        self._destinations = dict(self._written_destinations())
        self._cells = traced.program.cells
        self._headers = {h.slot: h for h in traced.program.headers.values() if not h.metadata}
        self._tables = {t.name: t for t in traced.control.tables}
        self._actions = {a.name: Parameter.of(a) for a in traced.program.nodes.actions}
        self._errors = {code: name for name, code in traced.program.errors.items()}
        self._registers = {r.name: r.width for r in traced.program.nodes.registers}
        self._digests = {each.number: each for each in traced.program.nodes.learn_lists}
        self._packets: dict[tuple[int, int], _Packet] = {}
        self._readers = (
            self._receive, self._state, self._extract, self._transition, self._parser_error, self._checksum,
            self._pipeline, self._table, self._action, self._statement, self._condition, self._register,
            self._counter, self._meter, self._log, self._digest, self._enqueue, self._dequeue, self._clone,
            self._multicast, self._resubmit, self._recirculate, self._drop, self._emit, self._transmit, self._extern,
            self._generate, self._stop_queue,
        )  # fmt: skip

    def __call__(self, raw: Iterable[RawEvent]) -> Iterator[ev.Event]:
        for kind, packet, copy, now, point, value, extra, data, _ in raw:
            at = self.points[point] if point >= 0 else None
            common = {"packet": packet, "copy": copy, "time": now, "place": at.place if at is not None else None}
            event = self._readers[kind](common, at, value, extra, data)
            if isinstance(event, ev.StatementRun | ev.ChecksumUpdated) and event.place is None and not event.changes:
                continue  # the compiler generated it, and it has no effect
            yield event

    def _written_destinations(self) -> Iterator[tuple[str, str]]:
        """Yield the fields that decide where a packet goes: name in the source, and name in the packet path."""
        path = self._program.path
        for own in path.destinations:
            if intrinsic := self._program.intrinsic(path.intrinsic[own].name):
                header, f = intrinsic
                yield self.names.field(header, f.name), own

    # The requests of a packet follow from its statements. A copy begins with the requests that the packet had
    # when it was copied.

    def _asked(self, common: Mapping[str, Any], what: str) -> dict[str, Any]:
        packet = self._packets.get((common["packet"], common["copy"])) or self._packets.get((common["packet"], 0))
        return {**common, "place": packet.asked.get(what) if packet is not None else None}

    def _ask(self, common: Mapping[str, Any], what: str) -> None:
        self._packet(common).asked[what] = common["place"]

    def _packet(self, common: Mapping[str, Any]) -> _Packet:
        return self._packets.setdefault((common["packet"], common["copy"]), _Packet())

    def _receive(self, common: Any, at: Point | None, value: int, extra: int, data: bytes) -> ev.Event:
        # In tests packets are processed one by one. In a switch with queues, several are in progress.
        for old in [key for key in self._packets if key[0] + 4096 < common["packet"]]:
            del self._packets[old]
        return ev.Received(**common, port=value, length=extra, frame=data)

    # Parser

    def _state(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        self._packet(common).parser = at.parser
        return ev.StateEntered(**common, state=at.name, parser=at.parser)

    def _extract(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        header = self._headers.get(value)
        if header is None:  # the spare element of a stack
            return ev.Extracted(**common, header="?", fields=(), bytes=len(data))
        fields = tuple(
            ev.Value(self.names.field(header, f.name), number, width)
            for f, number, width in self._fields(header, data, extra)
        )
        size = header.type.fixed_bytes + extra if header.type.varbit else header.type.nbytes
        return ev.Extracted(**common, header=self.names.header(header), fields=fields, bytes=size)

    def _fields(self, header: Header, data: bytes, varbytes: int) -> Iterator[tuple[Any, int, int]]:
        """Yield the fields, values and widths of a header, given its bytes in memory."""
        whole, total = int.from_bytes(data, "big"), 8 * len(data)
        for f in header.type.fields:
            width = 8 * varbytes if f.varbit else f.width
            yield f, whole >> (total - f.bit - width) & ((1 << width) - 1), width

    def _transition(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        words = struct.unpack(f"<{len(data) // 8}Q", data)
        return ev.Transition(**common, state=at.name, to=at.detail, key=words)

    def _parser_error(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        parser = self._packet(common).parser
        return ev.ParserFailed(**common, error=self._errors.get(value, str(value)), parser=parser)

    def _checksum(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.ChecksumVerified(**common, field=self.names.dotted(at.name), right=bool(value))

    # Pipelines

    def _pipeline(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return (ev.PipelineLeft if extra else ev.PipelineEntered)(**common, pipeline=self._controls[value])

    def _table(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        table = self._tables[at.name]
        words = struct.unpack(f"<{len(data) // 8}Q", data)
        key, entry = words[: table.words], words[table.words :]
        ordered = table.kind == "P4_TABLE_ORDERED"
        values = tuple(
            ev.KeyValue(
                f.name, _key_field(f, key), f.width, _KINDS[f.kind],
                self._match(f, entry, table.words, extra) if value >= 0 else "",
            )
            for f in table.fields
        )  # fmt: skip
        hit = value if value >= 0 else None
        return ev.TableApplied(
            **common, table=at.name, key=values, entry=hit, priority=extra if ordered and hit is not None else None
        )

    @staticmethod
    def _match(f: KeyField, entry: tuple[int, ...], words: int, prefix: int) -> str:
        value = ev.hexadecimal(_key_field(f, entry), f.width)
        if f.kind == "P4_LPM":
            return f"{value}/{prefix}"
        if f.kind in ("P4_TERNARY", "P4_RANGE") and len(entry) > words:
            other = _key_field(f, entry[words:])
            if f.kind == "P4_TERNARY" and not other:
                return "*"
            return f"{value} {'&&&' if f.kind == 'P4_TERNARY' else '..'} {ev.hexadecimal(other, f.width)}"
        if f.kind == "P4_OPTIONAL" and not _key_field(f, entry[words:]):
            return "*"
        return value

    def _action(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        arguments, offset = [], 0
        for parameter in self._actions[at.detail]:
            size = storage_bytes(parameter.width)
            offset = -(-offset // min(size, 8)) * min(size, 8)
            number = int.from_bytes(data[offset : offset + size], "little")
            arguments.append(ev.Value(parameter.name, number, parameter.width))
            offset += size
        member = value if value >= 0 else None
        return ev.ActionRun(**common, table=at.name, action=at.detail, arguments=tuple(arguments), member=member)

    def _statement(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        changes = tuple(self._changes(data))
        operation = self._operations.get(at.detail)
        for effect in operation.effects if operation is not None else ():
            if effect in _ASKS:
                self._ask(common, _ASKS[effect])
        for change in changes:
            if change.name in self._destinations:
                self._ask(common, self._destinations[change.name])
        text = at.place.text if at.place is not None else ""
        if at.kind == "checksum update":
            return ev.ChecksumUpdated(**common, text=text, field=self.names.dotted(at.name), changes=changes)
        return ev.StatementRun(**common, text=text, operation=at.detail, changes=changes)

    def _changes(self, data: bytes) -> Iterator[ev.Change]:
        offset = 0
        while offset < len(data):
            cell, varbytes_before, varbytes_now, was_valid, is_valid, _ = _CHANGE.unpack_from(data, offset)
            header, f = self._cells[cell]
            offset += _CHANGE.size
            size = storage_bytes(f.width) if f is not None else header.type.nbytes
            before, now = data[offset : offset + size], data[offset + size : offset + 2 * size]
            offset += 2 * size
            if f is not None:
                old, new = (int.from_bytes(part, "little") for part in (before, now))
                yield ev.Change(self.names.field(header, f.name), old, new, f.width)
                continue
            name = self.names.header(header)
            if was_valid != is_valid:
                yield ev.Change(f"{name}.isValid()", was_valid, is_valid, 1)
            olds = list(self._fields(header, before, varbytes_before))
            for (f, old, _), (_, new, width) in zip(olds, self._fields(header, now, varbytes_now), strict=True):
                if old != new and (is_valid or was_valid == is_valid):
                    yield ev.Change(self.names.field(header, f.name), old if was_valid else None, new, width)

    def _condition(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.ConditionTested(**common, text=at.name, outcome=bool(value))

    # Stateful objects

    def _register(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        number, width = int.from_bytes(data, "little"), self._registers[at.name]
        return ev.RegisterAccessed(
            **common, register=at.name, index=value, value=number, width=width, written=bool(extra)
        )

    def _counter(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        packets, nbytes = struct.unpack("<QQ", data)
        return ev.Counted(**common, counter=at.name, index=value, packets=packets, bytes=nbytes)

    def _meter(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Metered(**common, meter=at.name, index=value, color=_COLORS[extra])

    def _extern(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.ExternTold(**common, extern=at.name, index=value, text=self._operations[at.detail].told(data))

    def _log(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Logged(**common, text=data.decode(errors="replace"), failed=bool(value))

    def _digest(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        name, fields = self.digest(value, data)
        return ev.DigestSent(**self._asked(common, "digest"), digest=name, fields=fields)

    def digest(self, number: int, data: bytes) -> tuple[str, tuple[ev.Value, ...]]:
        """Return the name and the fields of a digest that a switch has sent."""
        learned, offset, fields = self._digests[number], 0, []
        for element in learned.elements:
            name, width = self.names.digest_element(learned.name, element)
            size = (width + 7) // 8
            fields.append(ev.Value(name, int.from_bytes(data[offset : offset + size], "big"), width))
            offset += size
        return learned.name, tuple(fields)

    # Fate of the packet

    def _enqueue(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Enqueued(**self._asked(common, "egress_spec"), port=value, length=extra)

    def _dequeue(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Dequeued(**common, port=value)

    def _clone(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Cloned(**self._asked(common, "clone"), session=value, made=extra)

    def _multicast(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Multicast(**self._asked(common, "mcast_grp"), group=value)

    def _resubmit(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Resubmitted(**self._asked(common, "resubmit"))

    def _recirculate(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Recirculated(**self._asked(common, "recirculate"))

    def _generate(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Generated(**common, application=value, made=extra)

    def _stop_queue(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.QueueStopped(**common, port=value, queue=extra // 2, stopped=bool(extra % 2))

    def _drop(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Dropped(**self._asked(common, "egress_spec"), reason=_DROPS[value])

    def _emit(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        header = self._headers[value]
        fields = tuple(
            (self.names.field(header, f.name), 8 * (extra - header.type.fixed_bytes) if f.varbit else f.width)
            for f in header.type.fields
        )
        return ev.Emitted(**common, header=self.names.header(header), bytes=extra, fields=fields)

    def _transmit(self, common: Any, at: Any, value: int, extra: int, data: bytes) -> ev.Event:
        return ev.Transmitted(**common, port=value, length=extra, frame=data)


def _key_field(f: KeyField, words: tuple[int, ...]) -> int:
    """Return a field of a packed key."""
    if f.width <= 64:
        return words[f.word] >> f.shift & ((1 << f.width) - 1)
    value = 0
    for word in words[f.word : f.word + f.words]:
        value = value << 64 | word
    return value


def decode_pipes(decoders: Sequence[Decoder], raw: Iterable[RawEvent]) -> Iterator[ev.Event]:
    """Yield the events of a switch whose pipes have these decoders."""
    for each in raw:
        yield from decoders[each[-1]]([each])
