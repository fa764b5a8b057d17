"""The measurement of docs/performance.md: its counts, but not its times."""

import pytest

from host_agents import host_cost as measured
from host_agents import registry
from host_agents.host_cost import host_cost
from host_agents.nic import Nic


@pytest.mark.parametrize("protocol", registry.protocols())
def test_every_protocol_sends_what_is_measured(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check receivers that grant, too: their pulls come after the data, at their own rate."""
    receive, heard = Nic.receive, set()

    def heard_by(nic: Nic, now_ns: int, frame: bytes) -> None:
        heard.add(nic)
        receive(nic, now_ns, frame)

    monkeypatch.setattr(Nic, "receive", heard_by)
    cost = host_cost(protocol, packets=1500, queue_pairs=2)
    assert len(heard) == (1 if protocol == "udp" else 2)  # nobody answers datagrams
    assert 1500 <= cost.packets <= 1500 + measured.BASE_RTT_NS // 2 // measured.PACKET_NS + measured.TOGETHER
    assert (cost.protocol, cost.queue_pairs) == (protocol, 2)
    assert cost.total_ns > 0


def test_a_sender_that_stops_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a sender whose window stays closed because the receiver does not answer."""
    go_on = measured._Side.go_on
    monkeypatch.setattr(measured._Side, "go_on", lambda side, until_ns, came: go_on(side, until_ns, []))
    with pytest.raises(RuntimeError, match=r"hpcc: after \d+ packets nothing is sent for 10000000 ns"):
        host_cost("hpcc", packets=5_000)
