"""ExpressPass's limit on credits, and the load balancer that sends both directions over one path."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from host_agents.cc.expresspass import CREDIT, CREDIT_BYTES
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import BTH, NOT_ECT, Flow, reverse_of
from tests.p4src.rigs import Sent
from topologies import Route

FLOW = Flow()
OUT = 2
MEAN_BYTES = CREDIT_BYTES + 4
CREDIT_NS = (MEAN_BYTES + VIEW.packet_bytes) * 8 / 100  # at 100 Gb/s


def credit(psn: int, more_bytes: int = 4) -> bytes:
    above = BTH(opcode=CREDIT.opcode, psn=psn, dest_qp=7)
    return FLOW.frame(above, CREDIT.encode(number=psn) + bytes(4 + more_bytes), psn=psn, ecn=NOT_ECT, dscp=48)


def psns(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(frame[51:54], "big") for frame in frames]


@pytest.mark.parametrize("left_ns", [None, int(CREDIT_NS) // 2, int(2 * CREDIT_NS), 1])
def test_a_link_lets_credits_through_as_it_can_carry_data(make_rig: MakeRig, left_ns: int | None) -> None:
    """Twelve at once: a burst of eight passes. Later one passes for each time of a credit and its packet.

    Also when the clock, which has 48 bits, begins anew `left_ns` after the burst.
    """
    rig = make_rig("expresspass")
    if not rig.sets_clock:
        pytest.skip("BMv2's clock cannot be set")
    start = 0
    if left_ns is not None:
        start = (1 << 48) - left_ns
        rig.run([Sent(1, credit(0), start - (1 << 40))])
    times = [0] * 12 + [int(CREDIT_NS) - 1, int(CREDIT_NS) + 1, int(CREDIT_NS) + 2, int(3 * CREDIT_NS) + 1]
    received = rig.run([Sent(1, credit(i), start + now) for i, now in enumerate(times)])[OUT]
    assert psns(received) == [0, 1, 2, 3, 4, 5, 6, 7, 13, 15]
    assert rig.counter("credit_drops", 0) == 6


@pytest.mark.parametrize(("more_bytes", "overhead_bytes"), [(0, 0), (8, 0), (8, 24), (0, -58), (8, -58)])
def test_a_credit_takes_the_link_by_its_size(make_rig: MakeRig, more_bytes: int, overhead_bytes: int) -> None:
    """Check the link's charge for a frame, too: a flit of 16 bytes at least."""
    view = replace(VIEW, frame_overhead_bytes=overhead_bytes)
    rig = make_rig("expresspass", {"burst_credits": 1}, view=view)
    if not rig.sets_clock:
        pytest.skip("BMv2's clock cannot be set")
    own, mean = (max(size + overhead_bytes, 16) for size in (CREDIT_BYTES + more_bytes, MEAN_BYTES))
    due_ns = own / mean * (mean + VIEW.packet_bytes + overhead_bytes) * 8 / 100
    times = [0, int(due_ns), int(due_ns) + 2]
    received = rig.run([Sent(1, credit(i, more_bytes), now) for i, now in enumerate(times)])[OUT]
    assert psns(received) == [0, 2]


def test_data_is_not_limited(make_rig: MakeRig) -> None:
    rig = make_rig("expresspass")
    assert len(rig.run([Sent(1, FLOW.data(psn=i)) for i in range(30)])[OUT]) == 30


def test_both_directions_take_one_path_and_pairs_of_hosts_several(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", load_balancer="symmetric")
    flows = [Flow("10.1.0.1", f"10.1.3.{i}", 49152 + i) for i in range(2, 42)]
    there = rig.run([Sent(1, flow.data(psn=i)) for i, flow in enumerate(flows)])
    # The other end, whose ports up are numbered alike.
    uplinks = replace(VIEW, device_id=6, routes=[Route(IPv4Network("10.0.0.0/8"), (5, 6, 7, 8))])
    rig = make_rig("ecn", view=uplinks, load_balancer="symmetric")
    back = rig.run([Sent(1, reverse_of(flow).data(psn=i)) for i, flow in enumerate(flows)])
    assert {port: sorted(psns(there[port])) for port in there} == {port: sorted(psns(back[port])) for port in back}
    assert sorted(there) == [5, 6, 7, 8]
