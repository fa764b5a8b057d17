"""The controller: translates a P4 program's entries to P4Runtime messages, and programs all switches.

    settings = Settings(cell_bytes=80, seed=1)
    for switch in topology.switches:
        client = LocalClient(device_of[switch.name])       # or GrpcClient(address, switch.device_id)
        view = SwitchSetup(program, parameters).view(topology, switch, settings)
        install(client, program, parameters, view)

The controller speaks nothing but P4Runtime, so it is the same for the built-in switch in this process, the built-in
switch as a process, and BMv2.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, get_args

from control_plane import entry_files
from control_plane.program_ledger import accounts
from control_plane.programs import ProgramParameters, SwitchView
from control_plane.programs.base import DSCP_OF_PRIORITY, PortView
from control_plane.programs.entries import (
    Action,
    BfRuntimeScript,
    CloneSession,
    DefaultAction,
    Entry,
    EntryFile,
    Exact,
    Lpm,
    Match,
    MeterLimit,
    MulticastGroup,
    PathCell,
    PortGroup,
    Range,
    TableEntry,
    Ternary,
)
from p4switch.architectures.packet_path import PacketPath, path_of
from p4switch.compiler import Compiled
from p4switch.errors import UserError
from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.path_states import cell_entry
from topologies import Switch, Topology, routes
from topologies.collectives import CollectiveGroup
from topologies.groups import Group
from topologies.model import Neighbour
from topologies.nic_switches import nic_switch_name
from topologies.routing import BaseRtts, departures, exits

_INSERT, _MODIFY = p4runtime_pb2.Update.INSERT, p4runtime_pb2.Update.MODIFY
_T = TypeVar("_T")
_ENTRIES = get_args(Entry)
_SHARED_ENTRIES = 1 << 14


class ControllerError(UserError):
    """A program and its entries do not fit each other, or a switch refused what was written."""


@dataclass(frozen=True)
class Settings:
    """Settings that all switches of a run share; see `SwitchView`."""

    cell_bytes: int = 80
    tick_ns: Fraction = Fraction(1)
    frame_overhead_bytes: int = 0
    seed: int = 1
    base_rtt_ns: int = SwitchView.base_rtt_ns
    base_rtts: BaseRtts | None = None  # by the kind of link of the hosts
    packet_bytes: int = SwitchView.packet_bytes
    priority_of_dscp: Mapping[int, int] = field(
        default_factory=lambda: {DSCP_OF_PRIORITY * priority: priority for priority in range(8)}
    )
    groups: Sequence[Group] = ()
    collectives: Sequence[CollectiveGroup] = ()


def switch_view(
    topology: Topology, switch: Switch, settings: Settings, loopback_ports: Sequence[int] = ()
) -> SwitchView:
    """Return one switch of a network in the form that programs use."""
    return SwitchView(
        device_id=switch.device_id,
        port_rates_bps={port: there.rate_bps for port, there in topology.ports[switch.name].items()},
        routes=routes(topology, switch.name),
        cell_bytes=settings.cell_bytes,
        tick_ns=settings.tick_ns,
        frame_overhead_bytes=settings.frame_overhead_bytes,
        seed=settings.seed,
        base_rtt_ns=settings.base_rtt_ns,
        packet_bytes=settings.packet_bytes,
        priority_of_dscp=settings.priority_of_dscp,
        name=switch.name,
        tier=switch.tier,
        neighbours={port: _behind(topology, there) for port, there in topology.ports[switch.name].items()},
        network=topology,
        groups=settings.groups,
        collectives=settings.collectives,
        loopback_ports=loopback_ports,
        port_base_rtts_ns=_port_base_rtts_ns(topology, switch, settings.base_rtts),
        departures=departures(topology, switch.name),
        exits=exits(topology, switch.name),
        port_extra_bytes={port: there.extra_bytes for port, there in topology.ports[switch.name].items()},
    )


def _port_base_rtts_ns(topology: Topology, switch: Switch, rtts: BaseRtts | None) -> dict[int, int]:
    """Return, for each port, the base RTT of the hosts that can fill the port's link.

    On the switch of a NIC both ports have the base RTT of the NIC's host.
    """
    if rtts is None:
        return {}
    if len(rtts.rates_bps) == 1:
        return dict.fromkeys(topology.ports[switch.name], rtts.filling[None])
    hosts = topology.host_by_name
    beside = next((hosts[there.node] for there in topology.ports[switch.name].values() if there.node in hosts), None)
    base_rtts_ns = {}
    for port, there in topology.ports[switch.name].items():
        host = hosts.get(there.node)
        if host is None and beside is not None and switch.name == nic_switch_name(beside.name):
            host = beside
        base_rtts_ns[port] = rtts.filling[None if host is None else rtts.kinds[host.index]]
    return base_rtts_ns


def _behind(topology: Topology, there: Neighbour) -> PortView:
    host = topology.host_by_name.get(there.node)
    if host is not None:
        return PortView(there.node, there.rate_bps, there.delay_ns, address=host.address)
    return PortView(there.node, there.rate_bps, there.delay_ns, topology.switch_by_name[there.node].tier)


@dataclass(frozen=True)
class _Table:
    name: str
    id: int
    fields: Mapping[str, int]  # ids by name
    actions: Mapping[str, _Action]
    selects: bool  # entries may select among a group of actions


@dataclass(frozen=True)
class _Action:
    id: int
    params: Mapping[str, int]  # ids by name


class Program:
    """Compiled program for the controller: P4Info by name, and the device config.

    All switches with the program share it. `device_config` is BMv2 JSON. Names are P4Info's full
    names or aliases. Raises UserError for an invalid annotation of the ledger
    (`control_plane.program_ledger`).
    """

    def __init__(
        self,
        p4info: Message,
        device_config: bytes,
        path: PacketPath | None = None,
        scripted: Callable[[BfRuntimeScript], list[Message]] | None = None,
    ) -> None:
        """Prepare the program.

        `path` is the packet path, whose state entries may set; None if no entry does. `scripted`
        returns the updates of a script's entries; None if there are no scripts.
        """
        self.p4info = p4info
        self._path = path
        self._scripted = scripted
        self.device_config = device_config
        self.accounts = accounts(p4info)
        # Switches of the same kind have many equal entries, so their updates are cached. Entries
        # that differ by switch, such as salts, are evicted again.
        self._shared = lru_cache(maxsize=_SHARED_ENTRIES)(lambda entry: tuple(self.updates(entry)))
        actions = {a.preamble.id: _Action(a.preamble.id, {p.name: p.id for p in a.params}) for a in p4info.actions}
        preambles = {a.preamble.id: a.preamble for a in p4info.actions}
        selectors = {profile.preamble.id for profile in p4info.action_profiles if profile.with_selector}
        self._meters = {name: m.preamble.id for m in p4info.meters for name in (m.preamble.name, m.preamble.alias)}
        self._tables: dict[str, _Table] = {}
        for table in p4info.tables:
            named = {}
            for ref in table.action_refs:
                named[preambles[ref.id].name] = named[preambles[ref.id].alias] = actions[ref.id]
            fields = {f.name: f.id for f in table.match_fields}
            preamble, selects = table.preamble, table.implementation_id in selectors
            entry = _Table(preamble.name, preamble.id, fields, named, selects)
            self._tables[preamble.name] = self._tables[preamble.alias] = entry

    @classmethod
    def of(cls, compiled: Compiled, scripted: Callable[[BfRuntimeScript], list[Message]] | None = None) -> Program:
        """Return a compiled program."""
        return cls(compiled.p4info, json.dumps(compiled.json).encode(), path_of(compiled.program), scripted)

    @property
    def tables(self) -> frozenset[str]:
        """Names that entries may use: P4Info's full names and aliases."""
        return frozenset(self._tables)

    @property
    def architecture(self) -> str:
        """Name of the program's architecture."""
        return self.p4info.pkg_info.arch or SwitchView.architecture

    def updates(self, entry: Entry) -> list[Message]:
        """Return the P4Runtime Updates that write an entry.

        Raises ControllerError for a name that is not in P4Info.
        """
        if isinstance(entry, EntryFile):
            return self._updates_of_file(entry.path)
        if isinstance(entry, BfRuntimeScript):
            if self._scripted is None:
                raise ControllerError(f"{entry.path}: entries of a script are for programs that p4cc compiles")
            return self._scripted(entry)
        entries = self.entries_of_group(entry) if isinstance(entry, PortGroup) else [entry]
        return [self._update(one) for one in entries]

    def shared_updates(self, entry: Entry) -> Sequence[Message]:
        """Return the updates, shared by equal entries of all switches: do not change them."""
        try:
            alone = isinstance(entry, EntryFile | BfRuntimeScript)
            return self.updates(entry) if alone else self._shared(entry)
        except TypeError:  # an entry with a list instead of a tuple is not hashable and may change
            return self.updates(entry)

    def _updates_of_file(self, path: Path) -> list[Message]:
        try:
            return [
                update
                for message in entry_files.read(path, self.p4info)
                for update in (self.updates(message) if isinstance(message, _ENTRIES) else [message])
            ]
        except ControllerError as error:
            raise ControllerError(f"{path}: {error}") from None

    def entries_of_group(self, group: PortGroup) -> list[TableEntry]:
        """Return the table entries of a group of ports.

        Raises ControllerError if the program has no table for them.
        """
        entries = []
        for table in {table.id: table for table in self._tables.values()}.values():
            action = next((name for name, action in table.actions.items() if list(action.params) == ["port"]), None)
            if action is None:
                continue
            takes = [Action(action, {"port": port}) for port in group.ports]
            group_id = Exact(group.group_id)
            if table.selects and list(table.fields) == ["group_id"]:
                entries.append(TableEntry(table.name, {"group_id": group_id}, tuple(takes)))
            elif table.fields.keys() == {"group_id", "member"}:
                entries += [
                    TableEntry(table.name, {"group_id": group_id, "member": Exact(member)}, take)
                    for member, take in enumerate(takes)
                ]
        if not entries:
            raise ControllerError(
                "the program has no table of a group's ports; expected one with the match field group_id and an action "
                "selector, or with group_id and member, and with an action whose parameter is port"
            )
        return entries

    def _update(
        self, entry: TableEntry | DefaultAction | MulticastGroup | CloneSession | MeterLimit | PathCell
    ) -> Message:
        if isinstance(entry, MeterLimit):
            update = p4runtime_pb2.Update(type=_MODIFY)
            cell = update.entity.meter_entry
            cell.meter_id = _find("meter", entry.meter, self._meters, "the program")
            cell.index.index = entry.index
            cell.config.cir = cell.config.pir = entry.rate_per_s
            cell.config.cburst = cell.config.pburst = entry.burst
            return update
        if isinstance(entry, PathCell):
            if self._path is None:
                raise ControllerError(f"{entry.state}: entries of the packet path are for programs that p4cc compiles")
            update = p4runtime_pb2.Update(type=_MODIFY)
            try:
                update.entity.extern_entry.CopyFrom(cell_entry(self._path, entry.state, entry.index, entry.members))
            except P4RuntimeError as error:
                raise ControllerError(str(error)) from None
            return update
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
    entity = known.get(name)
    if entity is None:
        raise ControllerError(f"{where} has no {what} {name!r}; expected one of {', '.join(sorted(set(known)))}")
    return entity


def _matches_anything(match: Match) -> bool:
    """Return whether a match matches any value, so that P4Runtime omits it.

    A range does not have the width of its field, so it is always written.
    """
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


@dataclass(frozen=True)
class SwitchSetup:
    """Compiled program of one or more switches, with the parameters that determine its entries.

    On a switch with several pipes, it is the program of pipe number `pipe`, and of all
    `program_pipes`.
    """

    program: Program
    parameters: ProgramParameters
    loopback_ports: Sequence[int] = ()
    pipe: int = 0
    program_pipes: Sequence[int] = (0,)

    def view(self, topology: Topology, switch: Switch, settings: Settings) -> SwitchView:
        """Return one of the switches in the form that the program uses."""
        view = switch_view(topology, switch, settings, self.loopback_ports)
        return replace(
            view,
            architecture=self.program.architecture,
            tables=self.program.tables,
            pipe=self.pipe,
            program_pipes=self.program_pipes,
        )


def install(client: Client, program: Program, parameters: ProgramParameters, view: SwitchView) -> None:
    """Install a program with its parameters' entries on one switch, whose view has the program's tables.

    Raises ControllerError if an entry does not fit the program or the switch refuses.
    """
    program_switch(client, program, parameters.entries(view), view)


def program_switch(client: Client, program: Program, entries: Iterable[Entry], view: SwitchView | None = None) -> None:
    """Install the pipeline and write all entries in one batch.

    Raises ControllerError before anything is written: for names that the program does not have, and
    for a copy to a port that the switch of `view` does not have.
    """
    updates = [update for entry in entries for update in program.shared_updates(entry)]
    if view is not None:
        _check_replicas(updates, view)
    with _refusals(client):
        client.set_pipeline(program.p4info, program.device_config)
        client.write(updates)


def write(client: Client, program: Program, entries: Iterable[Entry]) -> None:
    """Write more entries into a switch that runs the program, in one batch.

    Raises ControllerError if an entry does not fit the program or the switch refuses.
    """
    updates = [update for entry in entries for update in program.shared_updates(entry)]
    with _refusals(client):
        client.write(updates)


@contextlib.contextmanager
def _refusals(client: Client) -> Iterator[None]:
    try:
        yield
    except P4RuntimeError as error:
        raise ControllerError(f"switch {client.device_id}: {error}") from error


def _check_replicas(updates: Iterable[Message], view: SwitchView) -> None:
    for update in updates:
        entry = update.entity.packet_replication_engine_entry
        for what, group in (
            (f"multicast group {entry.multicast_group_entry.multicast_group_id}", entry.multicast_group_entry),
            (f"clone session {entry.clone_session_entry.session_id}", entry.clone_session_entry),
        ):
            for replica in group.replicas:
                port = int.from_bytes(replica.port, "big") if replica.port else replica.egress_port
                known = {*view.port_rates_bps, *view.loopback_ports}
                if port not in known:
                    ports = ", ".join(map(str, sorted(known)))
                    raise ControllerError(f"switch {view.name}: {what}: no port {port}; expected one of {ports}")
