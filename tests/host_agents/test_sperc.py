"""s-PERC's reaction point: when control packets leave, their contents, and the reaction to a response."""

from typing import Any

import pytest

from host_agents import wire
from host_agents.cc import sperc
from host_agents.cc.sperc import Sperc
from host_agents.cc.sperc_link import NEW_FLOW, B, E, Link, Record
from host_agents.errors import ParameterError
from host_agents.qp import QueuePair
from host_agents.registry import resolve
from p4cc._link import Hook, Wire
from tests.host_agents.narrow import of_kind
from tests.host_agents.sperc_rig import GBPS, LINE, RTT, Switch, controls, is_control, nics, records, values

BDP = 100_000  # bytes
TWENTY_DIGITS = 95 * GBPS >> 7 << 7  # of 95 Gb/s


def data(link: Wire) -> list[int]:
    return [now for now, sender, frame in link.sent if sender == 0 and not is_control(frame)]


def setup(hook: Hook | None = None, **parameters: Any) -> tuple[Wire, QueuePair]:
    link, (qa,) = nics(hook, parameters=parameters)
    return link, qa


def own_link(qa: QueuePair) -> Link:
    return of_kind(qa.reaction_point.host.part("s-PERC link", lambda: None), Link)


def test_every_byte_of_a_control_packet() -> None:
    body = sperc.CONTROL.encode(
        [{"b": 0x01020304, "x": 0x05060708, "state": B, "ignore": 0}],
        response=1,
        leaving=1,
        switches_passed=2,
        epoch=0x0A0B,
        old_weight=3,
        new_weight=4,
        speculative_weight=5,
        let_through=0x0C0D0E,
        source_qp=0x111213,
        interval=0x21222324,
    )
    record = "0102030405060708" + "8000"
    assert body.hex() == "c0020a0b000300040005" + "0c0d0e111213" + "21222324" + record + ("00" * 8 + "2000") * 7


def test_a_flow_of_one_bdp_leaves_at_line_rate_and_is_not_counted() -> None:
    link, qa = setup()
    qa.post(BDP)
    link.run(20_000)
    assert controls(link, 0) == []
    assert data(link)[0] == 0
    assert qa.rate_bps == LINE


def test_a_longer_flow_waits_for_its_first_response() -> None:
    """The NIC's link of 95 Gb/s is the only one, with one control packet at a time. Its interval is 632 ns."""
    link, qa = setup(demand=False)
    qa.post(1_000_000)
    link.run(10_000)
    (asked, first), (again, _) = controls(link, 0)[:2]
    ((answered, _), *_) = controls(link, 1)
    own = records(first)[6]
    assert (asked, own["b"], own["x"], own["state"], own["ignore"]) == (0, TWENTY_DIGITS, TWENTY_DIGITS, B, 0)
    assert values(first)["interval"] == 8 * 158 * 50 // 100 == 632
    assert 0 < asked + 1_000 < answered < again
    assert min(data(link)) >= answered + 1_000
    assert qa.rate_bps == 1e3 * TWENTY_DIGITS


def test_the_rate_is_the_least_allocation() -> None:
    """A switch of 40 Gb/s has three flows, so 10 Gb/s remain. The NIC's link then counts the flow in E."""
    link, qa = setup(Switch(40, others=3), demand=False)
    qa.post(1_000_000)
    link.run(20_000)
    assert qa.rate_bps == 10e9
    assert own_link(qa).sum_e == 10 * GBPS
    assert own_link(qa).num_b == 0


def test_the_demand_is_a_record_and_a_flow_that_nothing_else_limits_goes_at_line_rate() -> None:
    """50 kB in 8 us are 50 Gb/s. A switch with 60 Gb/s allows it, and the NIC counts 50 of 95 Gb/s, too."""
    link, qa = setup(Switch(60), short_flow_bytes=1)
    qa.post(50_000)
    link.run(4_000)
    demand = records(controls(link, 0)[0][1])[7]
    assert demand["b"] == 50 * qa.reaction_point.path.wire_bytes * 8_000_000 // RTT
    assert demand["ignore"] == 0
    assert own_link(qa).sum_e == demand["b"]
    assert qa.rate_bps == LINE


def test_a_flow_leaves_when_all_is_sent_and_nothing_stays() -> None:
    switch = Switch(40)
    link, qa = setup(switch)
    qa.post(200_000)
    link.run(200_000)
    sent = controls(link, 0)
    assert [values(frame)["leaving"] for _, frame in sent] == [0] * (len(sent) - 1) + [1]
    assert sent[-1][0] >= data(link)[-1]
    assert len(controls(link, 1)) == len(sent) - 1  # it is not answered
    for one in (switch.link, own_link(qa)):
        assert (one.sum_e, one.num_b, one.interval_ns) == (0, 0, 0)


def test_the_mean_weight_is_that_of_the_time_for_which_the_flow_is_counted() -> None:
    link, (qa, qb) = nics(Switch(40), "sperc+1rc+weights", queue_pairs=2)
    assert of_kind(qa.reaction_point, Sperc).mean_weight is None
    qa.post(200_000)
    link.run(5_000)
    assert of_kind(qa.reaction_point, Sperc).mean_weight == 1
    qb.post(100_000)
    link.run(200_000)
    left = {value["source_qp"]: time_ns for time_ns, value in map(valued, controls(link, 0)) if value["leaving"]}
    begin_ns, first_ns, last_ns = 5_000, left[qb.qpn], left[qa.qpn]
    assert begin_ns < first_ns < last_ns
    alone_ns, shared_ns = begin_ns + last_ns - first_ns, first_ns - begin_ns
    mean = (alone_ns + shared_ns / 2) / last_ns
    # Control packets wait for frames to end.
    assert of_kind(qa.reaction_point, Sperc).mean_weight == pytest.approx(mean, rel=2e-3)
    assert of_kind(qb.reaction_point, Sperc).mean_weight == 1 / 2
    qa.post(200_000)
    link.run(201_000)
    assert of_kind(qa.reaction_point, Sperc).mean_weight == 1


def valued(sent: tuple[int, bytes]) -> tuple[int, dict[str, int]]:
    """Return a frame's time and its values."""
    time_ns, frame = sent
    return time_ns, values(frame)


def data_packets(link: Wire, after_ns: int) -> list[tuple[int, int]]:
    """Return the times and PSNs of data packets."""
    return [
        (now, wire.psn(frame))
        for now, sender, frame in link.sent
        if sender == 0 and now >= after_ns and not is_control(frame)
    ]


class Outage:
    """A hook: the link behind a switch is down for a while."""

    def __init__(self, down_ns: int, up_ns: int, switch: Hook | None = None) -> None:
        self.switch = switch
        self._down = range(down_ns, up_ns)

    def __call__(self, now: int, frame: bytes) -> bytes | None:
        on_its_way = frame if self.switch is None else self.switch(now, frame)
        return None if now in self._down else on_its_way


def test_without_a_response_within_four_intervals_it_begins_anew() -> None:
    """It does so when a data packet has shown that packets arrive. The base RTT counts, as it exceeds an interval."""
    link, qa = setup(Outage(0, 4 * RTT), demand=False)
    qa.post(1_000_000)
    link.run(40_000)
    (_, first), (again, second) = controls(link, 0)[:2]
    (probe, psn), (following, _) = data_packets(link, 0)[:2]
    ((acknowledged, _), *_) = [(now, frame) for now, side, frame in link.sent if side == 1 and not is_control(frame)]
    assert (probe, psn) == (4 * RTT, 0)
    assert again == pytest.approx(acknowledged + 1_000, abs=10)
    assert following > again + 2_000  # it waits for the response
    assert all(r["state"] == NEW_FLOW for r in records(second)[:6])
    assert wire.psn(second) == wire.psn(first) + 1
    assert qa.rate_bps == 1e3 * TWENTY_DIGITS  # the NIC's link has not counted it twice


def test_as_long_as_no_response_comes_one_packet_leaves_in_four_intervals_and_no_control_packet() -> None:
    link, qa = setup(Outage(0, 100 * RTT), demand=False, short_flow_bytes=1)
    qa.post(50_000)
    link.run(200 * RTT)
    during = [now for now, _ in data_packets(link, 0) if now <= 100 * RTT]
    assert during == list(range(4 * RTT, 101 * RTT, 4 * RTT))
    assert len([now for now, _ in controls(link, 0) if now < 100 * RTT]) == 1
    assert (qa.stats.bytes_acked, qa.stats.timeouts) == (50_000, 0)
    assert own_link(qa).num_b == own_link(qa).interval_ns == 0


@pytest.mark.parametrize("outage_ns", [100_000, 900_000, 5_000_000])
@pytest.mark.parametrize("protocol", ["sperc", "sperc+1rc", "sperc+1rc+weights"])
def test_a_flow_whose_links_have_answered_is_counted_once_whatever_is_lost(protocol: str, outage_ns: int) -> None:
    """Check the switch before the loss, too, which has one other flow."""
    outage = Outage(50_000, 50_000 + outage_ns, Switch(40, others=1))
    link, (qa,) = nics(outage, protocol, {"demand": False})
    qa.post(10**9)
    link.run(48_000)
    assert qa.rate_bps == 20e9
    link.run(50_000 + outage_ns + 2_000_000)
    assert qa.rate_bps == 20e9
    assert (of_kind(outage.switch, Switch).link.num_b, of_kind(outage.switch, Switch).link.sum_e) == (2 << 20, 0)
    assert (own_link(qa).num_b, own_link(qa).sum_e) == (0, 20_000_000)
    late = data_packets(link, 50_000 + outage_ns + 1_500_000)
    assert len(late) == pytest.approx(500_000 * 20 / 8 / 1_058, abs=1)


def test_a_nic_tells_what_its_link_has_of_flows() -> None:
    link, qa = setup(demand=False)
    qa.post(300_000)
    link.run(10_000)
    found = {"num_b of the s-PERC link": 1 << 20, "interval of the s-PERC link": 632}
    assert qa.reaction_point.host.residue() == found
    link.run(100_000)
    assert qa.reaction_point.host.residue() == {}


def test_a_control_packet_takes_of_the_nics_link_what_frames_cost_there() -> None:
    """Check 182 bytes for its 158, with 24 bytes between frames."""
    link, (qa,) = nics(parameters={"demand": False}, frame_overhead_bytes=24)
    qa.post(1_000_000)
    link.run(10_000)
    assert values(controls(link, 0)[0][1])["interval"] == 8 * 182 * 50 // 100 == 728


def test_a_flow_that_no_link_has_answered_is_counted_once_too_often_at_most() -> None:
    """The switch before the loss cannot recognize the flow, so its first share stays."""
    outage = Outage(0, 3_000_000, Switch(40))
    link, qa = setup(outage, demand=False)
    qa.post(10**8)
    link.run(4_000_000)
    assert of_kind(outage.switch, Switch).link.num_b == 2 << 20
    assert (own_link(qa).num_b, own_link(qa).sum_e) == (0, 20_000_000)


@pytest.mark.parametrize("protocol", ["sperc", "sperc+1rc"])
def test_a_flow_whose_last_response_is_lost_leaves_all_the_same(protocol: str) -> None:
    """Its packets have arrived, so no packet is sent to find that out."""
    switch = Switch(40)
    sent_before: list[int] = []

    def lose(now: int, frame: bytes) -> bytes | None:
        found = switch(now, frame)
        last = is_control(frame) and values(frame)["response"] and qa.reaction_point.traffic.waiting_bytes == 0
        if last:
            sent_before.append(qa.stats.packets_sent)
        return None if last else found

    link, (qa,) = nics(lose, protocol, {"demand": False})
    qa.post(300_000)
    link.run(400_000)
    assert len(sent_before) == 1
    assert qa.stats.packets_sent == sent_before[0]
    assert values(controls(link, 0)[-1][1])["leaving"]
    for one in (switch.link, own_link(qa)):
        assert (one.sum_e, one.num_b, one.interval_ns) == (0, 0, 0)


def test_what_a_flow_has_to_send_again_when_it_has_left_is_a_flow_too() -> None:
    """From some time on its data packets are lost, but no control packet. It has sent all data, and leaves."""
    switch = Switch(100)

    def lose(now: int, frame: bytes) -> bytes | None:
        return switch(now, frame) if is_control(frame) or not 60_000 < now < 200_000 else None

    link, qa = setup(lose, demand=False, short_flow_bytes=20_000)
    qa.post(1_100_000)
    link.run(10**7)
    assert qa.stats.bytes_acked == 1_100_000
    left = [now for now, frame in controls(link, 0) if values(frame)["leaving"]]
    assert len(left) == 2
    assert any(left[0] < now < left[1] for now, _ in controls(link, 0))
    for one in (switch.link, own_link(qa)):
        assert (one.sum_e, one.num_b, one.interval_ns) == (0, 0, 0)


def test_a_response_that_is_not_awaited_changes_nothing() -> None:
    link, qa = setup(demand=False)
    qa.post(1_000_000)
    link.run(5_000)
    before = (qa.rate_bps, of_kind(qa.reaction_point, Sperc).outstanding)
    stale = sperc.CONTROL.encode([{"b": 1, "x": 1, "state": E, "ignore": 0}], response=1, switches_passed=0)
    frame = qa.frames.control_frame(sperc.CONTROL.opcode, stale, psn=of_kind(qa.reaction_point, Sperc).sequence - 1)
    qa.reaction_point.on_control(5_000, sperc.CONTROL.opcode, frame, wire.AFTER_BTH)
    assert (qa.rate_bps, of_kind(qa.reaction_point, Sperc).outstanding) == before


def test_a_response_over_more_than_six_switches_is_malformed() -> None:
    link, qa = setup(demand=False)
    qa.post(1_000_000)
    link.run(1_000)
    body = sperc.CONTROL.encode(response=1, switches_passed=7)
    frame = qa.frames.control_frame(sperc.CONTROL.opcode, body, psn=of_kind(qa.reaction_point, Sperc).sequence)
    qa.reaction_point.on_control(1_000, sperc.CONTROL.opcode, frame, wire.AFTER_BTH)
    assert link.nics[0].stats.malformed == 1
    assert of_kind(qa.reaction_point, Sperc).outstanding


@pytest.mark.parametrize("scope", ["destination", "pair"])
def test_only_queue_pairs_have_rates(scope: str) -> None:
    with pytest.raises(ParameterError, match="cc_scope"):
        resolve("sperc", {}).scope(scope)


def test_the_smallest_rate_is_min_rate() -> None:
    """A link has no rate left; at rate 0 the flow would never end."""

    def nothing(now: int, frame: bytes) -> bytes:
        if is_control(frame) and not values(frame)["response"]:
            given = [{**r, "x": 0, "b": 0, "state": B, "ignore": 1} for r in records(frame)]
            return frame[: wire.AFTER_BTH] + sperc.CONTROL.encode(given, **values(frame)) + frame[-4:]
        return frame

    link, qa = setup(nothing, demand=False, min_rate_bps=5e6)
    qa.post(1_000_000)
    link.run(10_000)
    assert qa.rate_bps == 5e6


@pytest.mark.parametrize(
    ("tolerance", "digits", "state", "left"),
    [(2**-12, 20, B, 47_500_000), (2**-12, 12, B, 47_500_000), (0.0, 20, E, 64), (2**-12, 10, E, 103_872)],
)
def test_of_two_equal_links_the_second_limits_a_flow_unless_rounding_exceeds_the_tolerance(
    tolerance: float, digits: int, state: int, left: int
) -> None:
    """Otherwise the first flow counts as limited by its NIC, and the next is offered only the rounding error."""
    capacity = 95 * GBPS

    def link() -> Link:
        return Link(capacity, round(capacity * tolerance), RTT, 0, digits)

    switch = link()
    offered = []
    for _ in range(2):
        flow = [Record() for _ in range(sperc.RECORDS)]
        link().process(flow, sperc.RECORDS - 2, 1, 1, False, 0)  # its NIC's
        switch.process(flow, 0, 1, 1, False, 0)
        offered.append(flow[0])
    assert offered[0].state == state
    assert offered[1].b == pytest.approx(left, rel=2**-9)
