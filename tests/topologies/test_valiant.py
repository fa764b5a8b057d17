"""Valiant routing on dragonflies: its paths, their cost, and the load on links between groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

import topologies
from control_plane import programs
from control_plane.controller import Settings, switch_view
from control_plane.programs.entries import Action, Lpm, TableEntry
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from topologies import Topology, routes
from topologies.edges import written
from topologies.group_paths import group_paths
from topologies.model import Host, Neighbour
from topologies.routing import Route, base_rtts, departures, transit_ns

DATA_BYTES, ACK_BYTES = 1058, 64
SMALL = {"groups": 4, "switches_per_group": 3, "hosts_per_switch": 2, "global_links": 2}


def dragonfly(**parameters: Any) -> Topology:
    return topologies.build("dragonfly", {"routing": "valiant", **parameters})


def route(topology: Topology, switch: str, host: Host) -> Route:
    return next(route for route in routes(topology, switch) if host.address in route.prefix)


def departs(topology: Topology, switch: str, source: Host) -> bool:
    return any(source.address in prefix for prefix in departures(topology, switch))


def walks(topology: Topology, source: Host, destination: Host) -> Iterator[list[Neighbour]]:
    """Yield the paths that entries allow, by the number of the detour and the choice among equal ports."""
    first = topology.uplink(source)
    assert topology.detours == departs(topology, first.node, source)
    for number in range(len(route(topology, first.node, destination).detours) or 1):
        pending = [[first]]
        while pending:
            links = pending.pop()
            assert len(links) <= 9, "a loop"
            last = links[-1].node
            if last == destination.name:
                yield links
                continue
            found = route(topology, last, destination)
            departing = found.detours and departs(topology, last, source)
            ports = found.detours[number : number + 1] if departing else found.ports
            pending += [[*links, topology.ports[last][port]] for port in ports]


def groups_of(topology: Topology, links: list[Neighbour]) -> list[int]:
    """Return the groups that a path passes, in order."""
    passed = [topology.route_groups[link.node] for link in links[:-1]]
    return [group for i, group in enumerate(passed) if i == 0 or passed[i - 1] != group]


@pytest.mark.parametrize("parameters", [{}, SMALL, {**SMALL, "nic_switches": True}, {"groups": 3, "global_links": 1}])
def test_a_path_has_one_group_between_its_ends_and_at_most_three_links_more(parameters: dict[str, Any]) -> None:
    """The third group can be any, over each global link that leads there."""
    topology = dragonfly(**parameters)
    source, count = topology.hosts[0], len(set(topology.route_groups.values()))
    for destination in topology.hosts[1:]:
        ends = [topology.route_groups[topology.uplink(host).node] for host in (source, destination)]
        found = [(groups_of(topology, links), links) for links in walks(topology, source, destination)]
        if ends[0] == ends[1]:
            assert [passed for passed, _ in found] == [ends[:1]]
            continue
        assert {len(passed) for passed, _ in found} == {3}
        assert all([passed[0], passed[2]] == ends for passed, _ in found)
        assert {passed[1] for passed, _ in found} == set(range(count)) - {*ends}
        shortest = len(topologies.routing.path(topology, source, destination))
        assert all(shortest <= len(links) + 1 for _, links in found)
        more = 2 * bool(parameters.get("nic_switches"))
        assert all(4 <= len(links) - more <= 7 for _, links in found)


@pytest.mark.parametrize("parameters", [SMALL, {**SMALL, "global_delay_ns": 5000}, {**SMALL, "nic_switches": True}])
def test_base_rtts_are_of_the_longest_detours(parameters: dict[str, Any]) -> None:
    topology = dragonfly(**parameters)
    largest: dict[int, int] = {}
    for source in topology.hosts:
        for destination in topology.hosts:
            if source is destination:
                continue
            back_ns = max(transit_ns(links, ACK_BYTES, 400) for links in walks(topology, destination, source))
            for links in walks(topology, source, destination):
                rtt_ns = transit_ns(links, DATA_BYTES, 400) + back_ns  # what goes back may take another way
                largest[len(links) - 1] = max(rtt_ns, largest.get(len(links) - 1, 0))
    found = base_rtts(topology, DATA_BYTES, ACK_BYTES, 400).by_switches
    assert found == largest
    direct = base_rtts(dragonfly(**{**parameters, "routing": "minimal"}), DATA_BYTES, ACK_BYTES, 400).by_switches
    assert max(found) == max(direct) + 2


@pytest.mark.parametrize("parameters", [{}, SMALL, {**SMALL, "nic_switches": True}])
def test_minimal_routes_have_one_link_between_groups(parameters: dict[str, Any]) -> None:
    topology = dragonfly(**{**parameters, "routing": "minimal"})
    largest: dict[int, int] = {}
    for source in topology.hosts:
        for destination in topology.hosts:
            if source is destination:
                continue
            back_ns = max(transit_ns(links, ACK_BYTES, 400) for links in walks(topology, destination, source))
            ends = [topology.route_groups[topology.uplink(host).node] for host in (source, destination)]
            for links in walks(topology, source, destination):
                assert groups_of(topology, links) == list(dict.fromkeys(ends))
                rtt_ns = transit_ns(links, DATA_BYTES, 400) + back_ns
                largest[len(links) - 1] = max(rtt_ns, largest.get(len(links) - 1, 0))
    assert base_rtts(topology, DATA_BYTES, ACK_BYTES, 400).by_switches == largest


@pytest.mark.parametrize("parameters", [SMALL, {**SMALL, "global_delay_ns": 5000}])
def test_with_ugal_base_rtts_are_of_all_paths(parameters: dict[str, Any]) -> None:
    """Check direct paths and detours, each with both for the return."""
    both = [dragonfly(**{**parameters, "routing": routing}) for routing in ("minimal", "valiant")]
    largest: dict[int, int] = {}
    for one in range(len(both[0].hosts)):
        for other in range(len(both[0].hosts)):
            if one == other:
                continue
            there = [links for t in both for links in walks(t, t.hosts[one], t.hosts[other])]
            back = [links for t in both for links in walks(t, t.hosts[other], t.hosts[one])]
            back_ns = max(transit_ns(links, ACK_BYTES, 400) for links in back)
            for links in there:
                rtt_ns = transit_ns(links, DATA_BYTES, 400) + back_ns
                largest[len(links) - 1] = max(rtt_ns, largest.get(len(links) - 1, 0))
    assert base_rtts(dragonfly(**{**parameters, "routing": "ugal"}), DATA_BYTES, ACK_BYTES, 400).by_switches == largest


def test_the_mean_length_with_ugal_is_between_those_of_direct_paths_and_of_detours() -> None:
    ends = "s0-0", "s3-2"
    minimal, ugal, valiant = (
        paths.mean_links(*ends)
        for routing in ("minimal", "ugal", "valiant")
        if (paths := group_paths(dragonfly(**SMALL, routing=routing))) is not None
    )
    assert ugal == pytest.approx((minimal + valiant) / 2)


def test_entries_say_which_switch_is_first_and_where_paths_leave_the_group() -> None:
    topology = dragonfly(**SMALL, routing="ugal")
    parameters = programs.parameters("ecn", {})
    exits_seen = Counter[bool]()
    for switch in topology.switches:
        entries = parameters.entries(switch_view(topology, switch, Settings()))
        actions = [(e.table, e.match, e.action) for e in entries if isinstance(e, TableEntry)]
        first = [match["src_addr"] for _, match, action in actions if action == Action("departs", {"is_first": True})]
        own = {host.address for host in topology.hosts if topology.uplink(host).node == switch.name}
        assert first == [Lpm(int(min(own)) & ~0xFF, 24)]
        for table, _, action in actions:
            if table == "detour" and isinstance(action, Action):
                there = topology.ports[switch.name][action.params["port"]].node
                leaves = topology.route_groups[there] != topology.route_groups[switch.name]
                assert action.params["is_exit"] == leaves
                exits_seen[leaves] += 1
    assert min(exits_seen[True], exits_seen[False]) > 0


def test_ugal_needs_groups_in_which_all_switches_are_linked(tmp_path: Path) -> None:
    expected = "expected one between each two switches of a group"
    with pytest.raises(UserError, match=f"no link between s0-0 and nic-h0-1-2; {expected}"):
        dragonfly(**SMALL, routing="ugal", nic_switches=True)
    topology = dragonfly(**SMALL)
    links = tuple(link for link in topology.links if {link.a, link.b} != {"s0-0", "s0-1"})
    (tmp_path / "links.toml").write_text(written(replace(topology, links=links)))
    values = {"file": str(tmp_path / "links.toml")}
    assert topologies.build("edges", {**values, "routing": "valiant"}).detours
    with pytest.raises(UserError, match=f"no link between s0-0 and s0-1; {expected}"):
        topologies.build("edges", {**values, "routing": "ugal"})


def test_the_mean_length_is_that_of_all_detours() -> None:
    topology = dragonfly(**SMALL)
    paths = group_paths(topology)
    assert paths is not None
    for destination in topology.hosts[1:]:
        lengths = [len(links) - 2 for links in walks(topology, topology.hosts[0], destination)]
        ends = [topology.uplink(host).node for host in (topology.hosts[0], destination)]
        if len(lengths) == 1 or len(set(lengths)) == 1:
            assert paths.mean_links(*ends) == pytest.approx(lengths[0])
        assert min(lengths) <= paths.mean_links(*ends) <= max(lengths)


def test_without_a_link_between_two_groups_detours_go_by_the_others() -> None:
    topology = dragonfly(**SMALL)
    group = topology.route_groups
    left = tuple(link for link in topology.links if {group.get(link.a), group.get(link.b)} != {0, 1})
    assert len(left) < len(topology.links)
    cut = replace(topology, links=left)
    here, one, other = (
        next(host for host in cut.hosts if group[cut.uplink(host).node] == number) for number in (0, 1, 2)
    )
    assert {tuple(groups_of(cut, links)) for links in walks(cut, here, one)} == {(0, 2, 1), (0, 3, 1)}
    assert {tuple(groups_of(cut, links)) for links in walks(cut, here, other)} == {(0, 3, 2)}


def test_planes_of_dragonflies_have_detours_of_their_own() -> None:
    of = {"name": "dragonfly", "routing": "valiant", **SMALL}
    topology = topologies.build("multi-plane", {"planes": 2, "of": of})
    second = len(topology.hosts) // 2
    (one, other) = topology.hosts[second], topology.hosts[-1]
    passed = {tuple(groups_of(topology, links)) for links in walks(topology, one, other)}
    assert passed == {(4, 5, 7), (4, 6, 7)}
    assert not routes(topology, topology.uplink(one).node)[-1].prefix.supernet_of(
        routes(topology, topology.uplink(topology.hosts[0]).node)[0].prefix
    )


def test_a_list_of_links_has_groups(tmp_path: Path) -> None:
    topology = dragonfly(**SMALL)
    file = tmp_path / "links.toml"
    file.write_text(written(topology))
    again = topologies.build("edges", {"file": str(file), "routing": "valiant"})
    assert (again.route_groups, again.detours) == (topology.route_groups, True)
    one, other = again.host_by_name["h0-0-2"], again.host_by_name["h3-2-3"]
    assert {tuple(groups_of(again, links)) for links in walks(again, one, other)} == {(0, 1, 3), (0, 2, 3)}
    assert topologies.build("edges", {"file": str(file)}).route_groups == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"s0-1", kind = "switch", tier = 0, group = 0', '"s0-1", kind = "switch"', "switch s0-1 has no group"),
        ('tier = 0, group = 3', 'tier = 0, group = 2', "group 2: no path in it from s2-0 to s3-0"),
        (', group = 3', ', group = 9', None),
    ],
)
def test_groups_of_a_list_are_whole_and_linked(tmp_path: Path, old: str, new: str, message: str | None) -> None:
    """Check a list without the links between groups 2 and 3."""
    topology = dragonfly(**SMALL)
    group = topology.route_groups
    links = tuple(link for link in topology.links if {group.get(link.a), group.get(link.b)} != {2, 3})
    text = written(replace(topology, links=links))
    assert old in text
    (tmp_path / "links.toml").write_text(text.replace(old, new))
    with pytest.raises(UserError, match=message or "no link between groups 2 and 9"):
        topologies.build("edges", {"file": str(tmp_path / "links.toml"), "routing": "minimal"})


def test_a_rack_in_two_groups_departs_host_by_host() -> None:
    """Hosts of one rack may belong to two groups."""
    topology = dragonfly(**SMALL)
    hosts = tuple(replace(host, address=IPv4Address(f"10.0.0.{host.index + 2}")) for host in topology.hosts)
    mixed = replace(topology, hosts=hosts)
    found = {str(prefix): is_first for prefix, is_first in departures(mixed, "s1-0").items()}
    assert found == {f"10.0.0.{byte}/32": byte < 10 for byte in range(8, 14)}
    found = {str(prefix): is_first for prefix, is_first in departures(topology, "s1-0").items()}
    assert found == {"10.1.0.0/24": True, "10.1.1.0/24": False, "10.1.2.0/24": False}


def adversarial(folder: Path, **tables: Any) -> Run:
    """Return a run in which all hosts of a group send to the next group, over a single link."""
    return between_groups(folder, lambda _: 1, **tables)


def between_groups(folder: Path, away: Callable[[int], int], **tables: Any) -> Run:
    """Return a run in which each host sends to a host this number of groups away."""
    hosts, own = 72, 8  # of all groups, and of one
    flows = [f"{host} {(host + own * away(host)) % hosts} 3 100 200000 0" for host in range(hosts)]
    (folder / "flows.txt").write_text("\n".join([str(hosts), *flows, ""]))
    values: dict[str, Any] = {
        "topology": {"name": "dragonfly"},
        "workload": {"name": "ns3", "file": "flows.txt"},
        "cc": "dctcp",
        "lb": "spray",
        "switch": {"buffer_bytes": "none"},
    }
    for name, table in tables.items():
        values[name] = {**values[name], **table} if isinstance(table, dict) else table
    (run,) = plan("adversarial", check(values), folder)
    return run


def global_loads(run: Run) -> tuple[Counter[tuple[str, str]], int]:
    """Return the bytes on the links between groups, by direction, and the end of the run."""
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    group = {switch.name: int(switch.name[1:].split("-")[0]) for switch in run.topology.switches}
    loads: Counter[tuple[str, str]] = Counter()
    stats = recording.port_stats
    for number, port, sent_bytes in zip(stats["node"], stats["port"], stats["tx_bytes"], strict=True):
        node = recording.node_names[number]
        there = run.topology.ports[node][int(port)].node if node in group else node
        if there in group and group[node] != group[there]:
            loads[node, there] += int(sent_bytes)
    return loads, recording.end_ns


def test_valiant_spreads_what_minimal_routing_concentrates(tmp_path: Path) -> None:
    """At least eight hosts of a group send into one link; with detours each of 72 directions has its share."""
    minimal, slow_ns = global_loads(adversarial(tmp_path, topology={"routing": "minimal"}))
    spread, fast_ns = global_loads(adversarial(tmp_path, topology={"routing": "valiant"}))
    assert max(minimal.values()) > 8 * 200_000
    assert len(spread) == 72
    assert max(spread.values()) < 0.5 * max(minimal.values())
    assert max(spread.values()) < 1.3 * sum(spread.values()) / len(spread)
    assert fast_ns < 0.5 * slow_ns


def test_ugal_takes_detours_around_full_queues_alone(tmp_path: Path) -> None:
    """Where minimal routing spreads the traffic evenly, all packets go directly."""
    found = {
        (name, routing): global_loads(between_groups(tmp_path, away, topology={"routing": routing}))
        for name, away in (("one link", lambda host: 1), ("all links", lambda host: 1 + host % 8))
        for routing in ("minimal", "valiant", "ugal")
    }
    ends_ns = {which: end_ns for which, (_, end_ns) in found.items()}
    assert ends_ns["one link", "ugal"] < ends_ns["one link", "valiant"] < 0.5 * ends_ns["one link", "minimal"]
    assert ends_ns["all links", "ugal"] < 0.9 * ends_ns["all links", "valiant"]
    assert found["all links", "ugal"] == found["all links", "minimal"]


def test_a_flow_that_ecmp_keeps_on_its_path_has_one_detour(tmp_path: Path) -> None:
    run = adversarial(tmp_path, topology={"routing": "valiant"}, lb="ecmp")
    assert run.switch_programs[0].load_balancer.name == "valiant"
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    assert sum(flow.columns["retransmitted"] for flow in recording.flows) == 0  # nothing came out of order


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"switch": {"load_balancing": "valiant"}}, "'valiant' sends packets through other groups of switches"),
        (
            {"topology": {"routing": "valiant"}, "switch": {"load_balancing": "drill"}},
            "'drill' does not take the paths of topology.routing = 'valiant'; expected 'valiant', or",
        ),
        (
            {"topology": {"routing": "valiant"}, "switch": {"load_balancing": "ugal"}},
            "'ugal' does not take the paths of topology.routing = 'valiant'; expected 'valiant', or",
        ),
        ({"topology": {"routing": "ugal"}, "switch": {"load_balancing": "valiant"}}, "'valiant' does not take the"),
        ({"topology": {"routing": "valiant"}, "cc": "dart", "lb": "ecmp"}, "topology.routing: 'dart' knows of routes"),
        (
            {"topology": {"routing": "valiant"}, "cc": "expresspass", "lb": "ecmp"},
            "topology.routing: cc 'expresspass' expects answers",
        ),
        ({"topology": {"routing": "valiant"}, "cc": "hpcc"}, "may have the same id in telemetry"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, tables: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        adversarial(tmp_path, **tables)
