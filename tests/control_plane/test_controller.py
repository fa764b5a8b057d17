"""The controller: its entries in P4Runtime, and networks that route after it has programmed them."""

from __future__ import annotations

import functools
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import topologies
from control_plane import controller, programs
from control_plane.controller import ControllerError, Program, Settings, SwitchSetup
from control_plane.programs.entries import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
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
from p4switch import engine
from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.compiler import compile_program
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.messages import p4info_pb2, p4runtime_pb2
from p4switch.p4runtime.server import P4RuntimeServer
from p4switch.sources import SOURCE_DIRECTORY
from tests.p4switch.p4runtime import everything

PROGRAMS = SOURCE_DIRECTORY


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(everything.p4info(), everything.device_config())


@pytest.fixture(scope="module")
def ecn() -> Any:
    return compile_program(PROGRAMS / "ecn.p4")


def table_entry(program: Program, entry: Any) -> Any:
    return program.updates(entry)[0].entity.table_entry


def test_names_become_ids_and_numbers_byte_strings(program: Program) -> None:
    match: dict[str, Match] = {
        "e": Exact(7), "l": Lpm(0x0A000000, 8), "t": Ternary(0x1200, 0xFF00), "r": Range(3, 300 - 100),
    }  # fmt: skip
    (update,) = program.updates(TableEntry("mixed", match, Action("send", {"port": 300}), priority=5))
    info = next(t for t in program.p4info.tables if t.preamble.alias == "mixed")
    entry = update.entity.table_entry
    assert update.type == p4runtime_pb2.Update.INSERT
    assert (entry.table_id, entry.priority) == (info.preamble.id, 5)
    assert entry.match[0].exact.value == b"\x07"
    assert (entry.match[1].lpm.value, entry.match[1].lpm.prefix_len) == (b"\x0a\0\0\0", 8)
    assert (entry.match[2].ternary.value, entry.match[2].ternary.mask) == (b"\x12\0", b"\xff\0")
    assert (entry.match[3].range.low, entry.match[3].range.high) == (b"\x03", b"\xc8")
    assert entry.action.action.params[0].value == b"\x01\x2c"
    (full,) = program.updates(
        TableEntry("EverythingIngress.mixed", match, Action("EverythingIngress.send", {"port": 300}), 5)
    )
    assert full == update


def test_dont_care_is_left_out(program: Program) -> None:
    assert not table_entry(program, TableEntry("lpm_one", {"l": Lpm(0, 0)}, Action("drop"))).match
    entry = table_entry(program, TableEntry("mixed", {"e": Exact(1), "t": Ternary(0, 0)}, Action("drop"), 1))
    assert [m.field_id for m in entry.match] == [1]


def test_groups_are_one_shots(program: Program) -> None:
    members = (Action("send", {"port": 1}), Action("send", {"port": 2}))
    entry = table_entry(program, TableEntry("selected", {"o": Exact(1)}, members))
    actions = entry.action.action_profile_action_set.action_profile_actions
    assert [(a.weight, a.action.params[0].value) for a in actions] == [(1, b"\x01"), (1, b"\x02")]


def test_defaults_groups_and_sessions(program: Program) -> None:
    (default,) = program.updates(DefaultAction("lpm_one", Action("send", {"port": 1})))
    assert default.type == p4runtime_pb2.Update.MODIFY
    assert default.entity.table_entry.is_default_action
    (update,) = program.updates(MulticastGroup(3, ((1, 0), (300, 2))))
    group = update.entity.packet_replication_engine_entry
    assert [(r.port, r.instance) for r in group.multicast_group_entry.replicas] == [(b"\x01", 0), (b"\x01\x2c", 2)]
    (update,) = program.updates(CloneSession(5, ((1, 0),), 64))
    session = update.entity.packet_replication_engine_entry
    assert session.clone_session_entry.packet_length_bytes == 64


def test_limits_of_a_meter() -> None:
    info = p4info_pb2.P4Info()
    info.meters.add().preamble.CopyFrom(p4info_pb2.Preamble(id=9, name="Ingress.rates", alias="rates"))
    known = Program(info, b"{}")
    (update,) = known.updates(MeterLimit("rates", 3, 1000, 60))
    config = p4runtime_pb2.MeterConfig(cir=1000, cburst=60, pir=1000, pburst=60)
    cell = p4runtime_pb2.MeterEntry(meter_id=9, index=p4runtime_pb2.Index(index=3), config=config)
    assert update == p4runtime_pb2.Update(type="MODIFY", entity=p4runtime_pb2.Entity(meter_entry=cell))
    with pytest.raises(ControllerError, match="the program has no meter 'rate'; expected one of"):
        known.updates(MeterLimit("rate", 3, 1000, 60))


def test_cells_of_the_packet_path() -> None:
    """The second state of the packet path of TNA holds the mirror sessions."""
    known = Program(p4info_pb2.P4Info(), b"", PACKET_PATHS.find("tna.Switch"))
    (update,) = known.updates(PathCell("$mirror", 7, {"enabled": 1}))
    cell = update.entity.extern_entry
    assert update.type == p4runtime_pb2.Update.MODIFY
    assert (cell.extern_id, cell.entry.value[:5]) == (2, bytes([0, 0, 0, 7, 1]))
    with pytest.raises(ControllerError, match=r"the packet path has no state '\$mirrors'"):
        known.updates(PathCell("$mirrors", 7, {"enabled": 1}))
    with pytest.raises(ControllerError, match=r"\$mirror: entries of the packet path are for programs that p4cc comp"):
        Program(p4info_pb2.P4Info(), b"").updates(PathCell("$mirror", 7, {"enabled": 1}))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (TableEntry("nowhere", {}, Action("drop")), "no table 'nowhere'; expected one of"),
        (TableEntry("lpm_one", {"x": Exact(1)}, Action("drop")), "lpm_one has no match field 'x'; expected one of l"),
        (TableEntry("lpm_one", {}, Action("fly")), "lpm_one has no action 'fly'"),
        (TableEntry("lpm_one", {}, Action("send", {"prt": 1})), "send has no parameter 'prt'; expected one of port"),
    ],
)
def test_wrong_names(program: Program, entry: TableEntry, says: str) -> None:
    with pytest.raises(ControllerError, match=says):
        program.updates(entry)


class Network:
    """The switches of a topology on the real engine, programmed by the controller, in this process."""

    def __init__(
        self, topology: topologies.Topology, name: str, compiled: Any, settings: Settings | None = None
    ) -> None:
        library = str(engine.build(compiled.program))
        self.topology = topology
        self.switches = {s.name: engine.load().Switch(library, device_id=s.device_id) for s in topology.switches}
        self.clients: dict[str, LocalClient] = {}
        program = Program.of(compiled)
        for switch in topology.switches:
            device = Device(functools.partial(self._pipe, switch.name), switch.device_id)
            client = self.clients[switch.name] = LocalClient(device)
            setup = SwitchSetup(program, programs.parameters(name, {}))
            view = setup.view(topology, switch, settings or Settings())
            controller.install(client, program, setup.parameters, view)

    def _pipe(self, name: str, _: object) -> Any:
        return self.switches[name]

    def walk(self, source: topologies.Host, destination: topologies.Host, entropy: int) -> list[str]:
        """Return the nodes that a packet passes. The switches themselves choose its ports."""
        frame = roce(source, destination, entropy)
        there = self.topology.uplink(source)
        path = []
        while there.node in self.switches:
            path.append(there.node)
            assert len(path) < 10, path
            ((port, frame),) = self.switches[there.node].process(there.port, frame)
            there = self.topology.ports[there.node][port]
        return [*path, there.node]


@functools.cache
def _rocev2(source: str, destination: str) -> bytes:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    ip = IP(src=source, dst=destination, tos=24 << 2, ttl=64)
    return bytes(
        Ether(dst="02:00:00:00:00:02") / ip / UDP(dport=4791, chksum=0) / bytes.fromhex("0a40ffff0000000100000000")
    )


def roce(source: topologies.Host, destination: topologies.Host, entropy: int) -> bytes:
    """Return a frame with this UDP source port."""
    frame = _rocev2(str(source.address), str(destination.address))
    return frame[:34] + entropy.to_bytes(2, "big") + frame[36:]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("fat-tree", {"k": 4}), ("dumbbell", {}), ("parking-lot", {}), ("single-switch", {})],
)
def test_every_pair_of_hosts_is_connected(ecn: Any, name: str, parameters: dict[str, Any]) -> None:
    network = Network(topologies.build(name, parameters), "ecn", ecn)
    hosts = network.topology.hosts
    for source in hosts:
        for destination in hosts:
            if source is not destination:
                assert network.walk(source, destination, 50000)[-1] == destination.name


def test_ecmp_spreads_over_all_paths_and_seeds_change_them(ecn: Any) -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    source, destination = topology.hosts[0], topology.hosts[-1]

    def paths(seed: int) -> list[tuple[str, ...]]:
        network = Network(topology, "ecn", ecn, Settings(seed=seed))
        return [tuple(network.walk(source, destination, 49152 + e)) for e in range(400)]

    first = paths(1)
    counts = Counter(first)
    assert len(counts) == 4  # (k/2)^2: no polarization
    assert min(counts.values()) > 50
    assert first == paths(1)
    assert first != paths(2)


def test_settings_reach_the_program() -> None:
    topology = topologies.build("single-switch", {})
    switch = topology.switches[0]
    settings = Settings(cell_bytes=0, tick_ns=Fraction(1, 2), frame_overhead_bytes=24, seed=9, priority_of_dscp={1: 2})
    view = controller.switch_view(topology, switch, settings)
    assert (view.device_id, view.cell_bytes, view.tick_ns) == (switch.device_id, 0, Fraction(1, 2))
    assert (view.frame_overhead_bytes, view.seed, view.priority_of_dscp) == (24, 9, {1: 2})
    assert view.port_rates_bps.keys() == topology.ports[switch.name].keys()
    assert len(view.routes) == len(topology.hosts)


def test_a_switch_knows_what_is_behind_its_ports() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    switch = next(switch for switch in topology.switches if switch.tier == 0)
    view = controller.switch_view(topology, switch, Settings())
    assert (view.name, view.tier) == (switch.name, 0)
    assert len(view.host_ports) == len(view.ports_to_tier(1)) == 2
    assert not view.ports_to_tier(2)
    for port in view.host_ports:
        there, host = view.neighbours[port], topology.host_by_name[view.neighbours[port].node]
        assert (there.tier, there.address, there.rate_bps) == (None, host.address, view.port_rates_bps[port])
    own = view.tree(topology.hosts[-1].name).ports(view.name)
    assert set(own) >= set(view.host_ports)
    assert len(own) == 3  # both hosts, and one way up


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (MulticastGroup(3, ((1, 0), (77, 0))), "multicast group 3: no port 77; expected one of 1, 2, 3"),
        (CloneSession(4, ((0, 0),)), "clone session 4: no port 0; expected one of 1, 2, 3"),
    ],
)
def test_copies_to_ports_that_there_are_not(ecn: Any, entry: Entry, says: str) -> None:
    topology = topologies.build("single-switch", {"hosts": 3})
    client = LocalClient(Device(lambda _: engine.load().Switch(str(engine.build(ecn.program))), 1))
    compiled = Program.of(ecn)
    view = controller.switch_view(topology, topology.switches[0], Settings())
    with pytest.raises(ControllerError, match=f"^switch {view.name}: {says}$"):
        controller.program_switch(client, compiled, [entry], view)


def test_a_group_of_ports_needs_a_table_of_such(program: Program) -> None:
    with pytest.raises(ControllerError, match="the program has no table of a group's ports; expected one with"):
        program.updates(PortGroup(1, (2, 3)))


def test_refusals_name_the_switch(ecn: Any, program: Program) -> None:
    client = LocalClient(Device(lambda _: engine.load().Switch(str(engine.build(ecn.program))), 42))
    compiled = Program.of(ecn)
    twice = TableEntry("ipv4_lpm", {"dst_addr": Lpm(0x0A000000, 8)}, Action("forward", {"port": 1}))
    with pytest.raises(ControllerError, match=r"switch 42: .*ALREADY_EXISTS") as caught:
        controller.program_switch(client, compiled, [twice, twice])
    assert "\n" not in str(caught.value)


def test_the_same_over_grpc(ecn: Any) -> None:
    from p4switch.p4runtime.client import GrpcClient

    topology = topologies.build("fat-tree", {"k": 4})
    switch = topology.switches[0]
    compiled = Program.of(ecn)
    entries = programs.parameters("ecn", {}).entries(controller.switch_view(topology, switch, Settings()))
    library = str(engine.build(ecn.program))
    devices = [Device(lambda _: engine.load().Switch(library), switch.device_id) for _ in range(2)]
    server = P4RuntimeServer(devices[1], "127.0.0.1:0")
    server.start()
    try:
        local = LocalClient(devices[0])
        controller.program_switch(local, compiled, entries)
        with GrpcClient(f"127.0.0.1:{server.port}", switch.device_id) as remote:
            controller.program_switch(remote, compiled, entries)
            query = [p4runtime_pb2.Entity(table_entry={})]
            assert list(remote.read(query)) == list(local.read(query))
    finally:
        server.stop()


def test_a_large_network_is_programmed_through_aggregated_routes(ecn: Any) -> None:
    topology = topologies.build("fat-tree", {"k": 8})
    compiled = Program.of(ecn)
    parameters = programs.parameters("ecn", {})
    updates = [
        update
        for switch in topology.switches
        for entry in parameters.entries(controller.switch_view(topology, switch, Settings()))
        for update in compiled.updates(entry)
    ]
    assert len(topology.switches) == 80
    assert len(updates) < 80 * 40  # of 128 hosts


def test_equal_entries_are_one_message_whichever_switch_they_are_for(ecn: Any) -> None:
    compiled = Program.of(ecn)

    def route(port: int) -> TableEntry:
        return TableEntry("ipv4_lpm", {"dst_addr": Lpm(0x0A000000, 8)}, Action("forward", {"port": port}))

    (one,), (same,), (other,) = (compiled.shared_updates(route(port)) for port in (1, 1, 2))
    assert one is same
    assert one != other
    (own,) = compiled.updates(route(1))  # may be changed
    assert own == one
    assert own is not one
    group = compiled.shared_updates(PortGroup(1, (2, 3)))
    assert compiled.shared_updates(PortGroup(1, (2, 3))) is group
    several = TableEntry("ipv4_lpm", {"dst_addr": Lpm(0, 8)}, [Action("forward", {"port": 1})])  # type: ignore[arg-type]
    assert compiled.shared_updates(several) == compiled.updates(several)
