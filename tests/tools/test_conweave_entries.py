"""Entries of conweave-p4's programs for leaves, which can be made without the programs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import topologies
from control_plane.controller import Settings, switch_view
from control_plane.programs.entries import EntryFile
from p4cc.programs import Action, CloneSession, Entry, Exact, Range, TableEntry
from p4switch.architectures.architecture import ARCHITECTURES
from tools import conweave_leaf
from tools.conweave_entries import LeafConweave, flow_control_message, marking
from topologies.model import Topology, renumbered


@pytest.fixture(scope="module", params=[2, 4])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Topology:
    path = tmp_path_factory.mktemp("network") / "network.toml"
    path.write_text(conweave_leaf.network_file(request.param))
    plain = topologies.build("edges", {"file": str(path)})
    panel = ARCHITECTURES.find("t2na").front_panel
    assert panel is not None
    return renumbered(plain, dict.fromkeys(plain.switch_by_name, tuple(panel.device_ports({16}))))


def entries(network: Topology, leaf: int, **parameters: object) -> tuple[list[Entry], str]:
    """Yield the entries of a leaf and the text of their file, which exists meanwhile."""
    view = switch_view(network, network.switch_by_name[f"leaf{leaf}"], Settings(), (6, 16))
    found, text = [], ""
    for entry in LeafConweave.model_validate(parameters).entries(view):
        found.append(entry)
        if isinstance(entry, EntryFile):
            text = Path(entry.path).read_text()
    return found, text


def keys(found: list[Entry], table: str) -> list[dict[str, int]]:
    of = [each for each in found if isinstance(each, TableEntry) and each.table == table]
    return [{name: key.value for name, key in each.match.items() if isinstance(key, Exact)} for each in of]


@pytest.mark.parametrize(("port", "queue", "mac", "mac_queue"), [(9, 2, 1, 18), (15, 13, 1, 125), (17, 5, 2, 21)])
def test_a_message_names_the_queue_of_a_mac(port: int, queue: int, mac: int, mac_queue: int) -> None:
    message = flow_control_message(port, queue)
    assert (message >> 31, message >> 29 & 3, message >> 25 & 15, message >> 15 & 0x7F) == (1, 0, mac, mac_queue)
    assert message & 0x7FFF == 0


def test_every_depth_has_at_most_one_probability_of_a_mark() -> None:
    depths = [each.match["eg_intr_md.deq_qdepth"] for each in marking() if each.table == "dcqcn_get_ecn_probability"]
    ranges = sorted((each.low, each.high) for each in depths if isinstance(each, Range))
    assert len(ranges) == 52
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))
    assert ranges[-1][1] == (1 << 19) - 1


def test_each_pair_of_hosts_at_different_leaves_is_a_connection(network: Topology) -> None:
    found, text = entries(network, 0, port_register=7)
    own = 16
    pairs = keys(found, "get_hashidx_basertt")
    assert len({tuple(pair.values()) for pair in pairs}) == len(pairs) == 2 * own * (len(network.hosts) - own)
    actions = [each.action for each in found if isinstance(each, TableEntry) and each.table == "get_hashidx_basertt"]
    cells = [action.params["idx"] for action in actions if isinstance(action, Action)]
    assert len(set(cells)) == len(pairs)
    assert max(cells) < 1 << 12
    assert text.count("register_id: 7 ") == len(pairs)


def test_each_reorder_queue_of_a_hosts_port_has_a_cell_of_its_own(network: Topology) -> None:
    found, _ = entries(network, 1)
    queues = keys(found, "do_get_idx_queue_occupancy_array_data_eg")
    assert len({tuple(queue.values()) for queue in queues}) == len(queues) == 12 * 16
    assert {each.session_id: each.replicas for each in found if isinstance(each, CloneSession)} == {
        220: ((6, 0),), 16: ((16, 0),), 8: ((8, 0),)
    }  # fmt: skip


def test_without_rerouting_packets_are_only_forwarded(network: Topology) -> None:
    found, text = entries(network, 0, reroutes=False)
    assert not text
    tables = {each.table for each in found if isinstance(each, TableEntry)}
    assert "nexthop" in tables
    assert "check_rdma_data" not in tables


def test_messages_have_a_link_of_their_own_and_data_have_the_spines(network: Topology) -> None:
    there = {port: there.node for port, there in network.ports["leaf1"].items()}
    assert there[8] == "messages"
    found, _ = entries(network, 1)
    (uplinks,) = (each.action for each in found if isinstance(each, TableEntry) and each.table == "nexthop_c1")
    assert isinstance(uplinks, tuple)
    assert [there[action.params["port"]] for action in uplinks] == [f"spine{number}" for number in range(8)]
