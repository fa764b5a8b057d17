"""ExpressPass's limit on credits, and the load balancer that gives both directions the same path."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from control_plane import programs
from control_plane.programs.entries import MeterLimit
from host_agents.cc.expresspass import CREDIT, CREDIT_BYTES
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import BTH, NOT_ECT, Flow, reverse_of
from tests.p4src.rigs import BuiltinRig, Sent, T2naRig, TnaRig
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
    """Of twelve credits that arrive at once, a burst of eight passes.

    Later, one credit passes in each time that the link needs for a credit and its data packet. This
    also holds if the clock, which has 48 bits, wraps `left_ns` after the burst.
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
    """Also check a frame's overhead on the link, where it is charged at least a flit of 16 bytes."""
    view = replace(VIEW, frame_overhead_bytes=overhead_bytes)
    rig = make_rig("expresspass", {"burst_credits": 1}, view=view)
    if not rig.sets_clock:
        pytest.skip("BMv2's clock cannot be set")
    if rig.architecture is not None:
        pytest.skip("a meter does not know what a link charges")
    own, mean = (max(size + overhead_bytes, 16) for size in (CREDIT_BYTES + more_bytes, MEAN_BYTES))
    due_ns = own / mean * (mean + VIEW.packet_bytes + overhead_bytes) * 8 / 100
    times = [0, int(due_ns), int(due_ns) + 2]
    received = rig.run([Sent(1, credit(i, more_bytes), now) for i, now in enumerate(times)])[OUT]
    assert psns(received) == [0, 2]


@pytest.mark.parametrize("overhead_bytes", [0, 24, -58])
@pytest.mark.parametrize("chip", [TnaRig, T2naRig])
def test_a_chip_meters_the_bytes_of_a_credit_and_its_fcs(chip: type[BuiltinRig], overhead_bytes: int) -> None:
    """The burst is eight credits of 70 bytes. So seven of 74 bytes pass, and the next one 32 bytes later."""
    view = replace(chip.device_view(VIEW), frame_overhead_bytes=overhead_bytes)
    rig = chip("expresspass", programs.parameters("expresspass", {}).entries(view))
    sizes = [max(CREDIT_BYTES + more + overhead_bytes, 16) for more in range(9)]
    byte_ns = (sum(sizes) / 9 + VIEW.packet_bytes + overhead_bytes) * 8 / 100 / (MEAN_BYTES + 4)
    times = [0] * 8 + [int(32 * byte_ns) - 1, int(32 * byte_ns) + 2]
    received = rig.run([Sent(1, credit(i, 8), now) for i, now in enumerate(times)])[OUT]
    assert psns(received) == [*range(7), 9]


def test_a_meter_passes_the_largest_credit_of_a_burst_of_one() -> None:
    entries = programs.parameters("expresspass", {"burst_credits": 1}).entries(TnaRig.device_view(VIEW))
    assert {entry.burst for entry in entries if isinstance(entry, MeterLimit)} == {74}


def test_data_is_not_limited(make_rig: MakeRig) -> None:
    rig = make_rig("expresspass")
    assert len(rig.run([Sent(1, FLOW.data(psn=i)) for i in range(30)])[OUT]) == 30


def test_both_directions_take_one_path_and_pairs_of_hosts_several(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", load_balancer="symmetric")
    flows = [Flow("10.1.0.1", f"10.1.3.{i}", 49152 + i) for i in range(2, 42)]
    there = rig.run([Sent(1, flow.data(psn=i)) for i, flow in enumerate(flows)])
    # The switch at the other end, whose ports up have the same numbers.
    uplinks = replace(VIEW, device_id=6, routes=[Route(IPv4Network("10.0.0.0/8"), (5, 6, 7, 8))])
    rig = make_rig("ecn", view=uplinks, load_balancer="symmetric")
    back = rig.run([Sent(1, reverse_of(flow).data(psn=i)) for i, flow in enumerate(flows)])
    assert {port: sorted(psns(there[port])) for port in there} == {port: sorted(psns(back[port])) for port in back}
    assert sorted(there) == [5, 6, 7, 8]
