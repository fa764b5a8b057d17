"""The measurement of docs/performance.md: what it counts, never how long it took."""

import pytest

from host_agents import host_cost as measured
from host_agents import registry
from host_agents.host_cost import host_cost


@pytest.mark.parametrize("protocol", registry.protocols())
def test_every_protocol_sends_what_is_measured(protocol: str) -> None:
    """Also those whose receivers grant: their pulls come after the data, at a pace of their own."""
    cost = host_cost(protocol, packets=450, queue_pairs=2)
    assert 450 <= cost.packets < 450 + measured.BATCH
    assert (cost.protocol, cost.queue_pairs) == (protocol, 2)
    assert cost.total_ns > 0


def test_a_sender_that_stops_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anything from the receiver the window stays closed."""
    monkeypatch.setattr(measured, "_control", lambda nic, now_ns, until_ns: [])
    with pytest.raises(RuntimeError, match=r"hpcc: after \d+ packets nothing is sent for 10000000 ns"):
        host_cost("hpcc", packets=5_000)
