"""Pipeline as a controller uses it: P4Info joined with the program that implements it.

P4Info describes the controller's view (ids, types, sizes), and the program describes the data plane (field widths,
match kinds, initial entries). A `Pipeline` is immutable, so that all devices that run the same program share it.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError

from p4switch import ir
from p4switch.architectures.packet_path import path_of
from p4switch.architectures.ports import WIDTH_BITS
from p4switch.bmv2 import JsonError, read
from p4switch.compiler.types import width_of
from p4switch.p4runtime import p4data
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.errors import invalid
from p4switch.p4runtime.messages import Message, P4DeviceConfig, p4info_pb2

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField

_IN_JSON = {"exact": ("exact", "valid"), "optional": ("optional", "ternary")}
_KINDS = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}  # P4Info's MatchField.MatchType


@dataclass(frozen=True, slots=True)
class Value:
    """Number that controller and data plane exchange: a key field, a parameter or a packet metadata field."""

    id: int
    name: str
    bits: int  # width of values: the smaller one of the controller's and the data plane's type
    width: int  # width of the data plane's type
    size: int  # bytes of the data plane's type


@dataclass(frozen=True, slots=True)
class Field(Value):
    """Key field of a table or value set."""

    kind: str  # match kind for the controller: exact, lpm, ternary, range, optional
    engine_kind: str  # match kind in the data plane: in BMv2 JSON an optional field is ternary

    @property
    def maximum(self) -> int:
        """Largest value of the field."""
        return (1 << self.width) - 1

    @property
    def anything(self) -> KeyField:
        """The engine's key field that matches any value."""
        zero = bytes(self.size)
        if self.engine_kind == "lpm":
            return (zero, 0)
        if self.engine_kind == "ternary":
            return (zero, zero)
        if self.engine_kind == "range":
            return (zero, self.maximum.to_bytes(self.size, "big"))
        return (None, b"")


@dataclass(frozen=True, slots=True)
class Action:
    """Action of a program."""

    id: int
    name: str
    params: tuple[Value, ...]
    position: Mapping[int, int]  # position of each parameter, by its id


@dataclass(frozen=True, slots=True)
class Call:
    """An action with its arguments, as the engine has them."""

    action: Action
    args: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ActionRef:
    """Action in a table's list of actions, and where it may be used."""

    action: Action
    in_entries: bool
    as_default: bool


@dataclass(frozen=True, slots=True)
class InitialEntry:
    """Entry that the program itself defines."""

    key: tuple[KeyField, ...]
    priority: int
    call: Call
    is_const: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """Action profile or selector."""

    id: int
    name: str
    size: int
    with_selector: bool
    max_group_size: int
    sum_of_members: bool  # True if sizes count members, not weights
    max_member_weight: int
    weights_disallowed: bool
    table_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a program."""

    id: int
    name: str
    fields: tuple[Field, ...]
    position: Mapping[int, int]  # position of each field, by its id
    anything: tuple[KeyField, ...]  # the key that matches everything, with a placeholder for exact fields
    required: frozenset[int]  # positions of the exact fields
    actions: Mapping[int, ActionRef]
    needs_priority: bool
    is_const: bool
    const_default: bool
    initial_default: Call | None
    initial_entries: tuple[InitialEntry, ...]
    profile: Profile | None
    has_counter: bool
    meter: MeterKind | None
    meter_name: str  # name of the direct meter; empty if there is none
    idle_timeout: bool
    room: int  # maximum number of entries
    direct: tuple[str, ...]  # direct registers and extern objects
    calls: dict[tuple[bytes, bool], Call] = field(default_factory=dict, compare=False)  # decoded actions


@dataclass(frozen=True, slots=True)
class MeterKind:
    """Type of a meter: its unit and rates."""

    two_rates: bool
    three_colours: bool


@dataclass(frozen=True, slots=True)
class Cells:
    """Indexed extern: a counter, meter or register array."""

    id: int
    name: str
    size: int
    meter: MeterKind | None = None
    type_spec: Message = None


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Value set of a parser."""

    id: int
    name: str
    fields: tuple[Field, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Digest:
    """Digest of a program."""

    id: int
    name: str
    type_spec: Message


@dataclass(slots=True)
class Pipeline:
    """Objects of a program that a controller can access."""

    p4info: Message
    program: ir.Program
    device_config: bytes  # the controller's config: BMv2 JSON, or PI's message that contains it
    tables: dict[int, Table] = field(default_factory=dict)
    actions: dict[int, Action] = field(default_factory=dict)
    profiles: dict[int, Profile] = field(default_factory=dict)
    counters: dict[int, Cells] = field(default_factory=dict)
    meters: dict[int, Cells] = field(default_factory=dict)
    registers: dict[int, Cells] = field(default_factory=dict)
    value_sets: dict[int, ValueSet] = field(default_factory=dict)
    digests: dict[int, Digest] = field(default_factory=dict)
    digest_of_list: dict[int, Digest] = field(default_factory=dict)  # digests by the JSON's learn list id
    packet_in: tuple[Value, ...] | None = None
    packet_out: tuple[Value, ...] | None = None
    port_width: int = field(init=False)


def load(p4info: Message, device_config: bytes) -> Pipeline:
    """Return the pipeline of a P4Info and its device config.

    Raises P4RuntimeError (INVALID_ARGUMENT) if they do not belong together.
    """
    return _load(p4info.SerializeToString(deterministic=True), device_config)


@functools.lru_cache(maxsize=16)
def _load(p4info: bytes, device_config: bytes) -> Pipeline:
    try:
        program = read(json.loads(_program(device_config)))
    except (ValueError, OverflowError, RecursionError) as error:
        invalid(f"p4_device_config: expected BMv2 JSON: {error}")
    except JsonError as error:
        invalid(f"p4_device_config: {error}")
    try:
        return _Loader(Pipeline(p4info_pb2.P4Info.FromString(p4info), program, device_config)).pipeline
    except (KeyError, ValueError, OverflowError) as error:
        invalid(f"p4_device_config: does not belong to this P4Info: {type(error).__name__}: {error}")


def _program(device_config: bytes) -> bytes:
    """Return the BMv2 JSON, which is the config itself or the `device_data` of PI's P4DeviceConfig."""
    if device_config.lstrip()[:1] in (b"{", b"["):
        return device_config
    try:
        data = P4DeviceConfig.FromString(device_config).device_data
    except DecodeError:
        return device_config
    return bytes(data) or device_config


_Array = TypeVar("_Array", ir.Counter, ir.Meter, ir.Register)


class _Loader:
    def __init__(self, pipeline: Pipeline) -> None:
        self.info = pipeline.p4info
        self.program = program = pipeline.program
        self.pipeline = pipeline
        self.pipeline.port_width = _port_width(program)
        self.tables = {table.name: table for each in program.pipelines for table in each.tables}
        self._actions()
        self._profiles()
        for table in self.info.tables:
            self.pipeline.tables[table.preamble.id] = self._table(table)
        self._cells()
        self._rest()

    def _actions(self) -> None:
        """Load the actions. All copies of an action that the compiler made have parameters of the same widths."""
        by_name = {action.name: action.params for action in reversed(self.program.actions)}
        for action in self.info.actions:
            name = action.preamble.name
            data = by_name.get(name)
            if data is not None and len(data) != len(action.params):
                invalid(f"action {name}: {len(action.params)} parameters in P4Info, {len(data)} in the BMv2 JSON")
            params = tuple(
                _value(p, p.bitwidth if data is None else width_of(data[i][1]) or 0, f"action {name}")
                for i, p in enumerate(action.params)
            )
            self.pipeline.actions[action.preamble.id] = Action(
                action.preamble.id, name, params, {p.id: i for i, p in enumerate(params)}
            )

    def _profiles(self) -> None:
        names = {profile.name for profile in self.program.profiles}
        for profile in self.info.action_profiles:
            name = profile.preamble.name
            if profile.table_ids:
                _expect(name in names, f"action profile {name}")
            self.pipeline.profiles[profile.preamble.id] = Profile(
                profile.preamble.id, name, profile.size, profile.with_selector, profile.max_group_size,
                profile.HasField("sum_of_members"), profile.sum_of_members.max_member_weight,
                profile.weights_disallowed, tuple(profile.table_ids),
            )

    def _table(self, table: Message) -> Table:
        name = table.preamble.name
        _expect(name in self.tables, f"table {name}")
        data = self.tables[name]
        keys = data.keys
        if len(keys) != len(table.match_fields):
            invalid(f"table {name}: {len(table.match_fields)} key fields in P4Info, {len(keys)} in the BMv2 JSON")
        fields = tuple(self._field(f"table {name}", f, k.match_kind, width_of(k.target.type) or 1)
                       for f, k in zip(table.match_fields, keys, strict=True))
        refs = {ref.id: ActionRef(self.pipeline.actions[ref.id], ref.scope in (0, 1), ref.scope in (0, 2))
                for ref in table.action_refs}
        by_name = {ref.action.name: ref.action for ref in refs.values()}
        direct = set(table.direct_resource_ids)
        meter = next((m for m in self.info.direct_meters if m.preamble.id in direct), None)
        return Table(
            id=table.preamble.id,
            name=name,
            fields=fields,
            position={f.id: i for i, f in enumerate(fields)},
            anything=tuple(f.anything for f in fields),
            required=frozenset(i for i, f in enumerate(fields) if f.kind == "exact"),
            actions=refs,
            needs_priority=any(f.kind in ("ternary", "range", "optional") for f in fields),
            is_const=table.is_const_table,
            const_default=table.const_default_action_id != 0 or data.default_const,
            initial_default=_call(data.default, by_name) if data.default else _no_action(refs.values()),
            initial_entries=self._entries(data, fields, by_name, table.is_const_table),
            profile=self.pipeline.profiles.get(table.implementation_id),
            has_counter=any(c.preamble.id in direct for c in self.info.direct_counters),
            meter=None if meter is None else _meter_kind(meter.spec),
            meter_name=data.meter,
            idle_timeout=table.idle_timeout_behavior != 0,
            room=data.room,
            direct=tuple(data.direct),
        )

    def _field(self, where: str, info: Message, engine_kind: str, width: int) -> Field:
        kind = _KINDS.get(info.match_type)
        if kind is None:
            other = info.other_match_type or "none"
            invalid(f"{where}: field {info.name}: match kind {other} is not one of P4Runtime's")
        if engine_kind not in _IN_JSON.get(kind, (kind,)):
            invalid(f"{where}: field {info.name} is {kind} in P4Info, {engine_kind} in the BMv2 JSON")
        value = _value(info, width, where)
        return Field(value.id, value.name, value.bits, value.width, value.size, kind,
                     "exact" if engine_kind == "valid" else engine_kind)

    @staticmethod
    def _entries(
        table: ir.Table, fields: tuple[Field, ...], actions: Mapping[str, Action], is_const: bool
    ) -> tuple[InitialEntry, ...]:
        """Return initial entries in reverse order: low priorities win in BMv2, and high ones in P4Runtime."""
        entries = table.entries or []
        ranked = any(f.kind in ("ternary", "range", "optional") for f in fields)
        # Negative numbers are negated priorities that the program declares.
        lowest = max((entry.priority for entry in entries), default=0)
        top = 0 if lowest < 0 else lowest + 1
        result = []
        for entry in entries:
            key = tuple(_initial_key(f, part) for f, part in zip(fields, entry.keys, strict=True))
            call = _call(entry.call, actions)
            if call is None:
                invalid(f"table {table.name}: an initial entry has an action that P4Info does not list")
            const = is_const if entry.const is None else entry.const
            result.append(InitialEntry(key, top - entry.priority if ranked else 0, call, const))
        return tuple(result)

    def _cells(self) -> None:
        for counter in self.info.counters:
            name = counter.preamble.name
            self._array("counter", counter, self.program.counters)
            self.pipeline.counters[counter.preamble.id] = Cells(counter.preamble.id, name, counter.size)
        for meter in self.info.meters:
            name = meter.preamble.name
            data = self._array("meter", meter, self.program.meters)
            units = {1: "bytes", 2: "packets"}
            unit = units.get(meter.spec.unit, "bytes or packets")
            if data.unit != unit:
                invalid(f"meter {name}: counts {unit} in P4Info, {data.unit} in the BMv2 JSON")
            self.pipeline.meters[meter.preamble.id] = Cells(
                meter.preamble.id, name, meter.size, _meter_kind(meter.spec)
            )
        for register in self.info.registers:
            name = register.preamble.name
            array = self._array("register", register, self.program.registers)
            widths = p4data.leaves(register.type_spec, self.info.type_info, f"register {name}")
            known = [width for width in widths if width is not None]
            # A cell is one number in the engine. The leaves of a value are bytes of it, so each must be whole bytes.
            fits = len(known) == 1 or not any(width % 8 for width in known)
            if len(known) == len(widths) and not (fits and sum(known) == array.width and known):
                invalid(f"register {name}: cells of {_bits(widths)} in P4Info, {array.width} in the BMv2 JSON")
            self.pipeline.registers[register.preamble.id] = Cells(
                register.preamble.id, name, register.size, type_spec=register.type_spec
            )

    @staticmethod
    def _check_digest(name: str, widths: list[int | None], learn_list: ir.FieldList) -> None:
        """Check that the data plane sends a digest in the format that P4Info describes."""
        sent = [
            each.type.width if isinstance(each, ir.FieldRef) and isinstance(each.type, ir.Bits) else None
            for each in learn_list.elements
        ]
        if None not in widths and None not in sent and sent != widths:
            invalid(f"digest {name}: {_bits(widths)} in P4Info, {_bits(sent)} in the BMv2 JSON")

    @staticmethod
    def _array(kind: str, info: Message, arrays: Iterable[_Array]) -> _Array:
        """Return an array of the program, and check that it has the size in P4Info."""
        name = info.preamble.name
        matching = [array for array in arrays if array.name == name]
        _expect(bool(matching), f"{kind} {name}")
        if matching[0].size != info.size:
            invalid(f"{kind} {name}: {info.size} cells in P4Info, {matching[0].size} in the BMv2 JSON")
        return matching[0]

    def _rest(self) -> None:
        for value_set in self.info.value_sets:
            name = value_set.preamble.name
            _expect(name in {known.name for known in self.program.value_sets}, f"value set {name}")
            fields = tuple(self._field(f"value set {name}", f, _KINDS.get(f.match_type, ""), f.bitwidth)
                           for f in value_set.match)
            ident = value_set.preamble.id
            self.pipeline.value_sets[ident] = ValueSet(ident, name, fields, value_set.size)
        widths: dict[str, list[int | None]] = {}
        for digest in self.info.digests:
            ident = digest.preamble.id
            widths[digest.preamble.name] = p4data.leaves(
                digest.type_spec, self.info.type_info, f"digest {digest.preamble.name}"
            )
            self.pipeline.digests[ident] = Digest(ident, digest.preamble.name, digest.type_spec)
        by_name = {d.name: d for d in self.pipeline.digests.values()}
        for learn_list in self.program.learn_lists:
            if digest := by_name.get(learn_list.name):
                self._check_digest(digest.name, widths[digest.name], learn_list)
                self.pipeline.digest_of_list[learn_list.number] = digest
        for header in self.info.controller_packet_metadata:
            values = tuple(_value(m, m.bitwidth, header.preamble.name) for m in header.metadata)
            if header.preamble.name == "packet_in":
                self.pipeline.packet_in = values
            elif header.preamble.name == "packet_out":
                self.pipeline.packet_out = values


def _port_width(program: ir.Program) -> int:
    """Return the width of a port number in the program."""
    path = path_of(program)
    header, _, name = path.port.partition(".")
    ports = (each.type.find(name) for each in program.headers if each.name == header)
    return next((width_of(port.type) for port in ports if port is not None), None) or WIDTH_BITS


def _bits(widths: Iterable[int | None]) -> str:
    return "+".join(map(str, widths)) + " bits"


def _expect(present: bool, what: str) -> None:
    if not present:
        invalid(f"{what}: in P4Info, but not in the BMv2 JSON; expected both of one program")


def _value(info: Message, width: int, where: str) -> Value:
    """Return a key field, parameter or packet metadata field of P4Info, which has `width` bits in the data plane."""
    bits = info.bitwidth
    if bits <= 0 < width:
        invalid(f"{where}: {info.name} has no bit width in P4Info; translation to strings is not supported")
    if bits != width and not info.HasField("type_name"):  # only translated types may have different widths
        invalid(f"{where}: {info.name} has {bits} bits in P4Info, {width} in the BMv2 JSON")
    return Value(info.id, info.name, min(bits, width), width, size(width))


def _no_action(refs: Iterable[ActionRef]) -> Call | None:
    return next((Call(ref.action, ()) for ref in refs if ref.action.name == "NoAction"), None)


def _meter_kind(spec: Message) -> MeterKind:
    return MeterKind(two_rates=spec.type == 0, three_colours=spec.type != 2)


def _call(call: ir.ActionCall, actions: Mapping[str, Action]) -> Call | None:
    action = actions.get(call.action.name)
    if action is None:
        return None
    pairs = zip(call.args, action.params, strict=True)
    return Call(action, tuple((a & (1 << p.width) - 1).to_bytes(p.size, "big") for a, p in pairs))


def _initial_key(f: Field, value: ir.KeyValue) -> KeyField:
    """Return a key field of an entry of the program."""
    def fixed(number: int) -> bytes:
        return (number & f.maximum).to_bytes(f.size, "big")

    assert value is not None
    if not isinstance(value, tuple):
        return (fixed(value), b"")
    first, second = value
    if f.engine_kind == "range":
        return (fixed(first), fixed(second))
    if f.engine_kind == "lpm":
        return (fixed(first & second), second.bit_count())
    if f.engine_kind == "ternary":
        return (fixed(first & second), fixed(second))
    return (fixed(first), b"") if second else f.anything
