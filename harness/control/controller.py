"""The controller: turns what a P4 program wants written into P4Runtime messages, and programs all switches.

    settings = Settings(cell_bytes=80, seed=1)
    for switch in topology.switches:
        client = LocalClient(device_of[switch.name])       # or GrpcClient(address, switch.device_id)
        view = switch_view(topology, switch, settings)
        program_switch(client, program, parameters.entries(view))

`program_network` does that for all switches. The controller speaks nothing but P4Runtime, so it is the same for the
built-in switch in this process, the built-in switch as a process, and BMv2.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from harness.control.programs import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    ProgramParameters,
    Range,
    SwitchView,
    TableEntry,
    Ternary,
)
from harness.control.programs.base import DSCP_OF_PRIORITY
from p4switch.errors import UserError
from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from topologies import Switch, Topology, routes

_INSERT, _MODIFY = p4runtime_pb2.Update.INSERT, p4runtime_pb2.Update.MODIFY
_T = TypeVar("_T")


class ControllerError(UserError):
    """A program and its entries do not fit each other, or a switch refused what was written."""


@dataclass(frozen=True)
class Settings:
    """What all switches of a run have in common; see `SwitchView`."""

    cell_bytes: int = 80
    tick_ns: Fraction = Fraction(1)
    frame_overhead_bytes: int = 0
    seed: int = 1
    priority_of_dscp: Mapping[int, int] = field(
        default_factory=lambda: {DSCP_OF_PRIORITY * priority: priority for priority in range(8)}
    )


def switch_view(topology: Topology, switch: Switch, settings: Settings) -> SwitchView:
    """What a program may know of one switch of a network."""
    return SwitchView(
        device_id=switch.device_id,
        port_rates_bps={port: there.rate_bps for port, there in topology.ports[switch.name].items()},
        routes=routes(topology, switch.name),
        cell_bytes=settings.cell_bytes,
        tick_ns=settings.tick_ns,
        frame_overhead_bytes=settings.frame_overhead_bytes,
        seed=settings.seed,
        priority_of_dscp=settings.priority_of_dscp,
    )


@dataclass(frozen=True)
class _Table:
    id: int
    fields: Mapping[str, int]  # ids by name
    actions: Mapping[str, _Action]


@dataclass(frozen=True)
class _Action:
    id: int
    params: Mapping[str, int]  # ids by name


class Program:
    """A compiled program as the controller needs it: P4Info by name, and the device config. Shared by all its switches.

    `device_config` is BMv2 JSON. Names are P4Info's full names or aliases.
    """

    def __init__(self, p4info: Message, device_config: bytes) -> None:
        self.p4info = p4info
        self.device_config = device_config
        actions = {a.preamble.id: _Action(a.preamble.id, {p.name: p.id for p in a.params}) for a in p4info.actions}
        preambles = {a.preamble.id: a.preamble for a in p4info.actions}
        self._tables: dict[str, _Table] = {}
        for table in p4info.tables:
            named = {}
            for ref in table.action_refs:
                named[preambles[ref.id].name] = named[preambles[ref.id].alias] = actions[ref.id]
            entry = _Table(table.preamble.id, {f.name: f.id for f in table.match_fields}, named)
            self._tables[table.preamble.name] = self._tables[table.preamble.alias] = entry

    def update(self, entry: Entry) -> Message:
        """The P4Runtime Update that writes an entry. Raises ControllerError for a name that is not in P4Info."""
        if isinstance(entry, MulticastGroup):
            update = p4runtime_pb2.Update(type=_INSERT)
            group = update.entity.packet_replication_engine_entry.multicast_group_entry
            group.multicast_group_id = entry.group_id
            _add_replicas(group, entry.replicas)
            return update
        if isinstance(entry, CloneSession):
            update = p4runtime_pb2.Update(type=_INSERT)
            session = update.entity.packet_replication_engine_entry.clone_session_entry
            session.session_id = entry.session_id
            session.packet_length_bytes = entry.truncate_bytes
            _add_replicas(session, entry.replicas)
            return update
        table = _find("table", entry.table, self._tables, "the program")
        update = p4runtime_pb2.Update(type=_MODIFY if isinstance(entry, DefaultAction) else _INSERT)
        message = update.entity.table_entry
        message.table_id = table.id
        if isinstance(entry, DefaultAction):
            message.is_default_action = True
        else:
            self._match(table, entry, message)
        if isinstance(entry.action, Action):
            self._action(table, entry.table, entry.action, message.action.action)
        else:
            for member in entry.action:
                slot = message.action.action_profile_action_set.action_profile_actions.add(weight=1)
                self._action(table, entry.table, member, slot.action)
        return update

    @staticmethod
    def _match(table: _Table, entry: TableEntry, message: Message) -> None:
        message.priority = entry.priority
        for name, match in entry.match.items():
            field_id = _find("match field", name, table.fields, entry.table)
            if not _matches_anything(match):
                _set_match(message.match.add(field_id=field_id), match)

    @staticmethod
    def _action(table: _Table, where: str, action: Action, message: Message) -> None:
        known = _find("action", action.name, table.actions, where)
        message.action_id = known.id
        for name, value in action.params.items():
            message.params.add(param_id=_find("parameter", name, known.params, action.name), value=canonical(value))


def _find(what: str, name: str, known: Mapping[str, _T], where: str) -> _T:
    found = known.get(name)
    if found is None:
        raise ControllerError(f"{where} has no {what} {name!r}; expected one of {', '.join(sorted(set(known)))}")
    return found


def _matches_anything(match: Match) -> bool:
    """P4Runtime leaves such a match out. (A range does not know how wide its field is.)"""
    return (isinstance(match, Lpm) and not match.prefix_len) or (isinstance(match, Ternary) and not match.mask)


def _set_match(field_match: Message, match: Match) -> None:
    if isinstance(match, Exact):
        field_match.exact.value = canonical(match.value)
    elif isinstance(match, Lpm):
        field_match.lpm.value = canonical(match.value)
        field_match.lpm.prefix_len = match.prefix_len
    elif isinstance(match, Ternary):
        field_match.ternary.value = canonical(match.value)
        field_match.ternary.mask = canonical(match.mask)
    elif isinstance(match, Range):
        field_match.range.low = canonical(match.low)
        field_match.range.high = canonical(match.high)


def _add_replicas(entry: Message, replicas: Iterable[tuple[int, int]]) -> None:
    for port, instance in replicas:
        entry.replicas.add(port=canonical(port), instance=instance)


def program_switch(client: Client, program: Program, entries: Iterable[Entry]) -> None:
    """Installs the pipeline and writes all entries in one batch. Raises ControllerError."""
    updates = [program.update(entry) for entry in entries]
    with _refusals(client):
        client.set_pipeline(program.p4info, program.device_config)
        client.write(updates)


def write(client: Client, program: Program, entries: Iterable[Entry]) -> None:
    """Writes more entries into a switch that runs the program, in one batch. Raises ControllerError."""
    updates = [program.update(entry) for entry in entries]
    with _refusals(client):
        client.write(updates)


@contextlib.contextmanager
def _refusals(client: Client) -> Iterator[None]:
    try:
        yield
    except P4RuntimeError as error:
        raise ControllerError(f"switch {client.device_id}: {error}") from error


def program_network(
    topology: Topology,
    program: Program,
    parameters: ProgramParameters,
    client_of: Callable[[Switch], Client],
    settings: Settings | None = None,
) -> dict[str, Client]:
    """Programs every switch of a network; returns the clients by name of switch. Raises ControllerError."""
    settings = settings or Settings()
    clients = {}
    for switch in topology.switches:
        client = clients[switch.name] = client_of(switch)
        program_switch(client, program, parameters.entries(switch_view(topology, switch, settings)))
    return clients
