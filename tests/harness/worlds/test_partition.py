"""Assignment of nodes to workers: racks and pods stay together, with equal work."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.worlds.partition import partition
from topologies import Topology, build


def fat_tree(k: int) -> Topology:
    return build("fat-tree", {"k": k})


def cut(topology: Topology, owners: dict[str, int]) -> int:
    """Return the links between workers."""
    return sum(owners[link.a] != owners[link.b] for link in topology.links)


@pytest.mark.parametrize("workers", [2, 4])
def test_pods_of_a_fat_tree_stay_together_and_cores_are_shared_out(workers: int) -> None:
    topology = fat_tree(4)
    owners = partition(topology, workers)
    assert Counter(owners[host.name] for host in topology.hosts) == dict.fromkeys(range(workers), 16 // workers)
    assert Counter(owners[switch.name] for switch in topology.switches) == dict.fromkeys(range(workers), 20 // workers)
    pods = {str(host.address).split(".")[1]: owners[host.name] for host in topology.hosts}
    for host in topology.hosts:
        rack = topology.uplink(host).node
        assert owners[host.name] == owners[rack] == pods[str(host.address).split(".")[1]]
    # Only cores have links to others: each to all pods but those of its own worker.
    assert cut(topology, owners) == 16 - 16 // workers


@pytest.mark.parametrize(
    ("name", "parameters"), [("fat-tree", {"k": 4}), ("leaf-spine", {"leaves": 4, "spines": 2, "hosts_per_leaf": 3})]
)
def test_a_job_on_hosts_that_follow_each_other_is_shared_out(name: str, parameters: dict[str, int]) -> None:
    topology = build(name, parameters)
    owners = partition(topology, 2)
    job = topology.hosts[: len(topology.hosts) // 2]
    assert Counter(owners[host.name] for host in job) == {0: len(job) // 2, 1: len(job) // 2}


def test_of_a_chain_each_worker_has_one_end() -> None:
    topology = build("parking-lot", {"switches": 4})
    assert cut(topology, partition(topology, 2)) == 1


def test_of_hosts_that_start_each_others_flows_the_first_worker_has_all() -> None:
    topology = fat_tree(4)
    owners = partition(topology, 3, hosts_together=True)
    assert {owners[host.name] for host in topology.hosts} == {0}
    assert Counter(owners[switch.name] for switch in topology.switches)[0] < 4


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 3), st.integers(1, 5), st.booleans())
def test_every_node_has_a_worker(workers: int, leaves: int, spines: int, hosts: int, together: bool) -> None:
    topology = build("leaf-spine", {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts})
    owners = partition(topology, workers, together)
    assert owners.keys() == topology.ports.keys()
    assert all(0 <= rank < workers for rank in owners.values())
