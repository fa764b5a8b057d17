"""Real NICs in the virtual fabric: the rules of seam 4 for a host with nothing to do."""

import pytest

from host_agents.timers import NEVER
from p4cc._link import connect, pair
from p4switch import fabric


def test_hosts_and_fabric_mean_the_same_by_never() -> None:
    assert fabric.NEVER_NS == NEVER


@pytest.mark.parametrize("protocol", ["none", "dcqcn", "eqds"])
def test_a_run_without_an_end_ends_when_nothing_is_left_to_happen(protocol: str) -> None:
    nics = pair(protocol)
    network = fabric.Fabric()
    nodes = [network.add_host(nic) for nic in nics]
    network.connect(nodes[0], 0, nodes[1], 0, rate_bps=100_000_000_000, delay_ns=1_000)
    qa, qb = connect(*nics)
    message = qa.post(100_000)
    assert network.run() == "idle"
    assert qb.stats.bytes_delivered == 100_000
    assert 0 < message.completed_ns <= network.now_ns < 10_000_000


def test_a_host_that_says_never_is_not_asked_again() -> None:
    nics = pair()
    network = fabric.Fabric()
    for nic in nics:
        network.add_host(nic)
    network.connect(0, 0, 1, 0, rate_bps=100_000_000_000, delay_ns=1_000)
    assert network.run() == "idle"
    assert network.now_ns == 0
