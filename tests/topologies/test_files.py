"""Networks from files are read as in their simulators, and each mistake is reported with its line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topologies
from p4switch.errors import Doubt, UserError
from tests.topologies.test_topologies import ALL
from topologies import Topology, edges

GBPS = 10**9
NS3 = """4 1 3
1
0 1 25Gbps 1000ns 0.000000
1 2 100Gb/s 0.001ms 0
3 1 0.5Gbps 2us 0.01
"""
TOPO = """# two tiers
Nodes 8
tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 500
Switch_Latency_ns 0
Oversubscribed 2

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 1000
"""
CSV = "a,b,rate_bps,delay_ns,loss\ns0,h0,25 Gb/s,500 ns,\ns0,h1,100e9,,0.5\ns0,s1,,1000,\ns1,h2,,,\n"


def build(folder: Path, name: str, text: str, suffix: str = ".txt", **values: Any) -> Topology:
    file = folder / f"network{suffix}"
    file.write_text(text)
    return topologies.build(name, {"file": str(file), **values})


def told(topology: Topology) -> set[tuple[frozenset[str], int, int, float]]:
    return {(frozenset((link.a, link.b)), link.rate_bps, link.delay_ns, link.loss) for link in topology.links}


def test_ns3_has_a_rate_a_delay_and_a_loss_of_each_link(tmp_path: Path) -> None:
    topology = build(tmp_path, "ns3", NS3)
    assert [host.name for host in topology.hosts] == ["h0", "h2", "h3"]
    assert topology.host_numbers == {0: 0, 2: 1, 3: 2}
    assert told(topology) == {
        (frozenset(("h0", "s1")), 25 * GBPS, 1000, 0.0),
        (frozenset(("h2", "s1")), 100 * GBPS, 1000, 0.0),
        (frozenset(("h3", "s1")), GBPS // 2, 2000, 0.01),
    }
    assert {port: there.node for port, there in topology.ports["s1"].items()} == {1: "h0", 2: "h2", 3: "h3"}


def test_ns3_reads_words_wherever_lines_end_and_nothing_behind_the_last(tmp_path: Path) -> None:
    words = build(tmp_path, "ns3", NS3.replace("\n", " ").replace(" ", "\n") + "\nand so on")
    assert told(words) == told(build(tmp_path, "ns3", NS3))


@pytest.mark.parametrize(
    ("rate", "bps"),
    [("1Gbps", GBPS), ("8Mb/s", 8_000_000), ("2GB/s", 16 * GBPS), ("1KiB/s", 8192), ("1000", 1000), ("2.5kbps", 2500)],
)
def test_rates_of_ns3(tmp_path: Path, rate: str, bps: int) -> None:
    assert build(tmp_path, "ns3", NS3.replace("25Gbps", rate)).links[0].rate_bps == bps


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("25Gbps", "25Gb"), ":3: expected a rate, as in 100Gbps, got '25Gb'"),
        (("25Gbps", "1e999999Gbps"), ":3: expected a rate"),
        (("25Gbps", "0Gbps"), ":3: expected a rate of at most 100 Tb/s, and above 0"),
        (("1000ns", "1e9s"), ":3: expected a delay of at most 10 s"),
        (("0.001ms", "1µs"), ":4: expected a delay, as in 1000ns"),
        (("0.01\n", "1.0\n"), ":5: expected the share of packets that a link loses, below 1, got '1.0'"),
        (("4 1 3", "4 1 4"), ":5: ends where the number of a node should follow"),
        (("4 1 3", "5 1 3"), "host h4 has no link; expected one"),
        (("4 1 3", "9999999999 1 3"), ":1: expected the number of nodes from 0 to 262143"),
        (("4 1 3\n1", "4 1 3\n7"), ":2: expected the number of a switch from 0 to 3, got '7'"),
        (("4 1 3\n1", "4 2 3\n1 1"), ":2: switch 1 for the second time"),
        (("3 1 0.5", "3 0 0.5"), ":5: a link between the hosts h3 and h0; expected a switch between"),
        (("3 1 0.5", "1 1 0.5"), ":5: a link from s1 to itself"),
        (("3 1 0.5", "2 1 0.5"), ": host h3 has no link; expected one"),
    ],
)
def test_mistakes_in_ns3_files(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in NS3
    with pytest.raises(UserError) as error:
        build(tmp_path, "ns3", NS3.replace(*change))
    assert message in str(error.value)
    assert str(error.value).startswith("topology.file: ")
    assert len(str(error.value)) < 400


def test_htsim_is_a_tree_of_tiers(tmp_path: Path) -> None:
    topology = build(tmp_path, "htsim", TOPO, ".topo")
    assert [host.name for host in topology.hosts] == [f"h{i}" for i in range(8)]
    assert Counter(switch.tier for switch in topology.switches) == {0: 2, 1: 2}
    assert [topology.uplink(host).node for host in topology.hosts] == 4 * ["tor0"] + 4 * ["tor1"]
    assert Counter((link.delay_ns, link.rate_bps) for link in topology.links) == {
        (500, 100 * GBPS): 8,
        (1000, 100 * GBPS): 4,
    }
    assert nx.is_connected(nx.Graph((link.a, link.b) for link in topology.links))


def test_the_default_fat_tree_of_htsim_is_the_textbooks(tmp_path: Path) -> None:
    """It has the graph of this package's k-ary fat-tree, and bundles are parallel links."""
    tier = "Downlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down {}\n"
    text = "Nodes 16\nTiers 3\nPodsize 4\nTier 0\n" + tier.format(2) + "Radix_Up 2\nTier 1\n" + tier.format(2)
    three = build(tmp_path, "htsim", text + "Radix_Up 2\nTier 2\n" + tier.format(4), ".topo")
    ours = topologies.build("fat-tree", {"k": 4})
    graph, expected = (nx.Graph((link.a, link.b) for link in topology.links) for topology in (three, ours))
    assert nx.is_isomorphic(graph, expected)
    bundled = build(
        tmp_path,
        "htsim",
        text + "Radix_Up 4\nTier 2\n" + tier.format(8).replace("100", "50", 1) + "Bundle 2\n",
        ".topo",
    )
    up = Counter((link.a, link.b) for link in bundled.links if link.b.startswith("core"))
    assert set(up.values()) == {2}
    assert {link.rate_bps for link in bundled.links if link.b.startswith("core")} == {50 * GBPS}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("Nodes 8", "Nodes 9"), "nodes should be a multiple of podsize"),
        (("Nodes 8\n", ""), "has no nodes"),
        (("tiers 2", "tiers 4"), "4 tiers; expected 2 or 3"),
        (("tiers 2", "tiers 3"), "does not describe tier 2"),
        (("Radix_Up 2", "Radix_Up 3"), "tier 0: radix_down over radix_up should be oversubscribed"),
        (("Radix_Up 2\n", ""), "tier 0 has no radix_up"),
        (("Tier 1", "Tier 3"), ":14: expected a tier from 0 to 2, got '3'"),
        (("Oversubscribed 2", "Oversubscribed ²"), ":12: expected oversubscribed from 0"),
        (("Oversubscribed 2", "Oversubscrbed 2"), ":12: no key 'oversubscrbed'; did you mean 'oversubscribed'?"),
        (
            ("Switch_Latency_ns 0", "Switch_Latency_ns 300"),
            ":11: switch_latency_ns 300; expected 0, and switch.latency_ns",
        ),
        (("Radix_Down 4", "Radix_Down 4\nRadix_Down 4"), ":9: radix_down for the second time"),
        (("Podsize 8", "Podsize"), ":4: expected a key and a number"),
        (("Podsize 8", "Pods 8"), ":4: 'Pods' before the first tier"),
    ],
)
def test_mistakes_in_htsim_files(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in TOPO
    with pytest.raises(UserError) as error:
        build(tmp_path, "htsim", TOPO.replace(*change), ".topo")
    assert message in str(error.value)


def test_queue_sizes_of_htsim_are_told_not_to_be_used(tmp_path: Path) -> None:
    with pytest.warns(Doubt, match=r":8: queue_down is not used; queues are the scenario's"):
        build(tmp_path, "htsim", TOPO.replace("Radix_Down 4", "Queue_Down 100\nRadix_Down 4"), ".topo")


def test_csv_leaves_out_what_the_topology_says(tmp_path: Path) -> None:
    topology = build(tmp_path, "edges", CSV, ".csv", link_rate_bps=40 * GBPS, link_delay_ns=7)
    assert told(topology) == {
        (frozenset(("s0", "h0")), 25 * GBPS, 500, 0.0),
        (frozenset(("s0", "h1")), 100 * GBPS, 7, 0.5),
        (frozenset(("s0", "s1")), 40 * GBPS, 1000, 0.0),
        (frozenset(("s1", "h2")), 40 * GBPS, 7, 0.0),
    }
    assert [host.name for host in topology.hosts] == ["h0", "h1", "h2"]  # those with one link


def test_rules_are_for_links_of_files_too(tmp_path: Path) -> None:
    topology = build(tmp_path, "edges", CSV, ".csv", links=[{"nodes": ["h2"], "rate_bps": GBPS}])
    assert topology.uplink(topology.hosts[2]).rate_bps == GBPS


def test_which_nodes_are_hosts_is_said_by_patterns_or_hosts_are_added(tmp_path: Path) -> None:
    ring = "a,b\nx0,x1\nx1,x2\nx2,x0\n"
    topology = build(tmp_path, "edges", ring, ".csv", hosts_per_switch=2)
    assert [host.name for host in topology.hosts] == [f"x{i}.h{j}" for i in range(3) for j in range(2)]
    with pytest.raises(UserError, match=r"0 nodes have one link, as hosts have unless topology.hosts names them"):
        build(tmp_path, "edges", ring, ".csv")
    with pytest.raises(UserError, match=r"topology.hosts: no node of .* is called so; it has x0, x1, x2"):
        build(tmp_path, "edges", ring, ".csv", hosts=["y*"])
    with pytest.raises(UserError, match=r"hosts_per_switch: .* has hosts of its own"):
        build(tmp_path, "edges", CSV, ".csv", hosts=["h*"], hosts_per_switch=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,speed\n", ":1: no column 'speed'"),
        ("a,rate_bps\n", ":1: expected the columns a and b"),
        ("a,b\nx\n", ":2: 1 cells; expected 2: a,b"),
        ("", "has no line of columns"),
        ("a,b,rate_bps\ns,h0,fast\n", ":2: rate_bps"),
        ("a,b,rate_bps\ns,h0,1e999\n", ":2: rate_bps"),
        ("a,b,rate_bps\ns,h0,100 Gm/s\n", ":2: rate_bps: no unit 'Gm/s' here"),
        ("a,b,loss\ns,h0,1.5\n", ":2: loss"),
        ('a,b\n"s,h0\n', ": not a CSV file"),
        ("a,b\ns,../../x\ns,h1\n", "a node called '../../x'"),
        ("a,b\ns,\x1b[31m\ns,h1\n", "a node called '\\x1b[31m'"),
    ],
)
def test_mistakes_in_csv_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        build(tmp_path, "edges", text, ".csv")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("links = [", "not a TOML file"),
        ("link = []", "no key 'link'; expected links"),
        ("links = 3", "links should be a list of tables"),
        ('links = [{ a = "x" }]', "links.0: expected a and b"),
        ('links = [{ a = "x", b = "y", rate = 3 }]', "links.0: rate: no such key"),
        ('nodes = [{ name = "x", kind = "router" }]', "nodes.0: kind"),
        ('nodes = [{ name = "x" }, { name = "x" }]', "nodes.1: 'x' for the second time"),
    ],
)
def test_mistakes_in_toml_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        build(tmp_path, "edges", text, ".toml")
    assert message in str(error.value)


@pytest.mark.parametrize(("name", "parameters"), ALL)
def test_what_is_written_as_edges_reads_as_the_same_network(
    tmp_path: Path, name: str, parameters: dict[str, Any]
) -> None:
    rules = [{"nodes": ["s*", "t*", "leaf*", "n*"], "loss": 0.125}, {"tiers": ["hosts", 0], "rate_bps": 7 * GBPS}]
    topology = topologies.build(name, {**parameters, "links": rules})
    again = build(tmp_path, "edges", edges.written(topology), ".toml")
    assert again.links == topology.links
    assert again.switches == topology.switches
    assert [host.name for host in again.hosts] == [host.name for host in topology.hosts]
    if name not in ("random", "blades"):  # where hosts with one link need not be all there are
        assert told(build(tmp_path, "edges", edges.written_csv(topology), ".csv")) == told(topology)


def test_graphml_is_read_through_networkx(tmp_path: Path) -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edge("core", "west", LinkSpeedRaw=10e9, delay_ns=5000)
    graph.add_edge("core", "east", LinkSpeedRaw=40e9, loss=0.25)
    nx.write_graphml(graph, tmp_path / "zoo.graphml")
    values = {"file": str(tmp_path / "zoo.graphml"), "hosts_per_switch": 1, "attributes": {"rate_bps": "LinkSpeedRaw"}}
    topology = topologies.build("graphml", values)
    assert {
        (frozenset(("core", "west")), 10 * GBPS, 5000, 0.0),
        (frozenset(("core", "east")), 40 * GBPS, 1000, 0.25),
    } < told(topology)
    assert [host.name for host in topology.hosts] == ["core.h0", "west.h0", "east.h0"]
    with pytest.raises(UserError, match=r"topology.attributes: no attribute 'rate'; expected rate_bps, delay_ns, loss"):
        topologies.build("graphml", {**values, "attributes": {"rate": "x"}})


@pytest.mark.parametrize("text", ["", "<graphml", "<a/>", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>'])
def test_what_is_no_graphml(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"topology\.file"):
        build(tmp_path, "graphml", text, ".graphml")


@pytest.mark.parametrize("name", ["ns3", "htsim", "edges", "graphml"])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_are_users_errors(tmp_path: Path, name: str, data: st.DataObject) -> None:
    whole = {"ns3": NS3, "htsim": TOPO, "edges": CSV, "graphml": "".join(nx.generate_graphml(nx.path_graph(4)))}[name]
    at = data.draw(st.integers(0, len(whole)))
    junk = data.draw(
        st.sampled_from(["", "\x00", "1e999999", "9" * 5000, "²", "-1", "\n", ",", '"', "NaN", "\ud7ff", "inf "])
    )
    text = whole[:at] + junk + whole[at + data.draw(st.integers(0, 20)) :]
    suffix = {"edges": ".csv"}.get(name, ".txt")
    mistake = ""
    try:
        build(tmp_path, name, text, suffix)
    except UserError as error:
        mistake = str(error)
    assert len(mistake) < 1000
    assert "\n" not in mistake


def test_files_that_are_none(tmp_path: Path) -> None:
    for name in ("ns3", "htsim", "edges", "graphml"):
        for file, message in ((tmp_path / "none", "No such file"), (tmp_path, "expected a regular file"), ("a\0b", "")):
            with pytest.raises(UserError, match=r"topology\.file") as error:
                topologies.build(name, {"file": str(file)})
            assert message in str(error.value)


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    assert len(build(tmp_path, "ns3", NS3).hosts) == 3
    assert len(build(tmp_path, "ns3", NS3.replace("4 1 3", "3 1 2")).hosts) == 2
