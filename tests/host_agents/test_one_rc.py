"""1RC and weights in the hosts: speculative packets, how the host continues, and what receivers see."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents import wire
from host_agents.cc.sperc import CONTROL, RECORDS, control_body, read_records
from host_agents.cc.sperc_link import NEW_FLOW, NO_LIMIT, Link, Record
from host_agents.errors import ParameterError
from host_agents.headers import IP
from host_agents.qp import QueuePair
from host_agents.registry import resolve
from p4cc._link import Wire
from tests.host_agents.narrow import of_kind
from tests.host_agents.sperc_rig import (
    LINE,
    PACKET,
    RTT,
    Switch,
    controls,
    is_control,
    is_speculative,
    nics,
    records,
    speculative,
    values,
)

BDP_PACKETS = LINE * RTT // (8 * 10**9) // PACKET
EXACT = {"1rc": {"clock_error_ns": 0}}


def early(link: Wire, side: int = 0) -> list[tuple[int, bytes]]:
    return [(now, frame) for now, sender, frame in link.sent if sender == side and is_speculative(frame)]


def scheduled(link: Wire) -> list[tuple[int, bytes]]:
    return [
        (now, frame)
        for now, sender, frame in link.sent
        if sender == 0 and frame[wire.BTH] in (wire.SEND_FIRST, wire.SEND_MIDDLE, wire.SEND_LAST, wire.SEND_ONLY)
    ]


def assert_received_in_order(link: Wire, size_bytes: int) -> None:
    """Check that there was no gap, duplicate, reordering, NAK or time-out."""
    a, b = link.nics
    for qp in b.queue_pairs.values():
        stats = qp.stats
        assert (stats.out_of_order, stats.duplicates, stats.naks_sent) == (0, 0, 0)
    assert sum(qp.stats.timeouts + qp.stats.naks_received for qp in a.queue_pairs.values()) == 0
    assert sum(qp.stats.bytes_delivered for qp in b.queue_pairs.values()) == size_bytes


def assert_forgotten(switch: Switch, qp: QueuePair) -> None:
    own = of_kind(qp.reaction_point.host.part("s-PERC link", lambda: None), Link)
    for one in (switch.link, own):
        assert (one.sum_e, one.num_b, one.interval_ns) == (0, 0, 0)


def test_every_flow_sends_its_control_packet_and_then_speculative_ones_at_line_rate() -> None:
    link, (qa,) = nics(protocol="sperc+1rc", parameters=EXACT)
    qa.post(500)
    link.run(1_000)
    (asked, control), (first, frame) = link.sent[0][::2], link.sent[1][::2]
    assert is_control(control)
    assert first == asked + 8 * 158 * 10 // 1000 + 1
    assert (frame[wire.BTH], wire.wire_bytes(frame)) == (0xF4, 500 + 58 + 8)
    assert speculative(frame) == {"epoch": 0, "weight": 1, "sequence": 0, "reserved": 0}
    assert frame[wire.AFTER_BTH :] == bytes.fromhex("0000 0001 000000 00")


def test_up_to_one_bdp_leaves_before_the_response() -> None:
    link, (qa,) = nics(lambda now, frame: None if is_control(frame) else frame, "sperc+1rc", EXACT)
    qa.post(10**6)
    link.run(3 * RTT)
    sent = early(link)
    assert [speculative(frame)["sequence"] for _, frame in sent] == list(range(BDP_PACKETS))
    assert sent[-1][0] - sent[0][0] == pytest.approx((BDP_PACKETS - 1) * (PACKET + 8) * 0.08, abs=BDP_PACKETS)
    assert scheduled(link) == []


def test_the_epoch_is_that_of_the_hosts_clock() -> None:
    """The epoch is the clock over the base RTT; later control packets have the epoch of their own sending time."""
    link, (qa,) = nics(protocol="sperc+1rc", parameters={**EXACT, "demand": False})
    qa.post(10**6, start_ns=5 * RTT - 1)
    link.run(8 * RTT)
    assert {speculative(frame)["epoch"] for _, frame in early(link)} == {4}
    sent = controls(link, 0)
    assert len(sent) > 2
    assert [values(frame)["epoch"] for _, frame in sent] == [now // RTT for now, _ in sent]
    offsets = set()
    for seed in range(20):
        link, (qa,) = nics(protocol="sperc+1rc", parameters={"1rc": {"clock_error_ns": 3 * RTT}}, seed=seed)
        qa.post(1, start_ns=10 * RTT)
        link.run(11 * RTT)
        offsets.add(values(controls(link, 0)[0][1])["epoch"])
    assert offsets <= set(range(7, 14))
    assert min(offsets) < 10 < max(offsets)


def test_the_host_goes_on_from_the_first_packet_that_was_dropped() -> None:
    """With 40 Gb/s and three flows already present, 10 Gb/s remain, which is 9 packets in an RTT."""
    switch = Switch(40, others=3)
    link, (qa,) = nics(switch, "sperc+1rc", {**EXACT, "demand": False})
    qa.post(200_000)
    link.run(300_000)
    answered = controls(link, 1)[0][0] + 1_000
    assert [s for _, _, s in switch.passed] == list(range(9))
    assert [s for _, _, s in switch.dropped] == list(range(9, len(early(link))))
    again = scheduled(link)
    assert [wire.psn(frame) for _, frame in again] == list(range(9, 200))
    assert answered <= again[0][0] <= answered + 1_000
    assert qa.stats.packets_retransmitted == len(switch.dropped)
    assert_received_in_order(link, 200_000)
    gaps = {b - a for (a, _), (b, _) in itertools.pairwise(again[5:50])}
    assert gaps <= {PACKET * 8 // 10, PACKET * 8 // 10 + 1}  # 10 Gb/s


def test_where_all_pass_nothing_is_sent_again() -> None:
    switch = Switch(100)
    link, (qa,) = nics(switch, "sperc+1rc", EXACT)
    qa.post(20_000)
    link.run(100_000)
    assert (switch.dropped, qa.stats.packets_retransmitted, scheduled(link)) == ([], 0, [])
    assert_received_in_order(link, 20_000)
    assert [values(frame)["leaving"] for _, frame in controls(link, 0)] == [0, 1]
    assert_forgotten(switch, qa)


@pytest.mark.parametrize("protocol", ["sperc+1rc", "sperc+1rc+weights"])
@settings(max_examples=12, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 150_000), min_size=1, max_size=4),
    gap_ns=st.sampled_from((0, 700, RTT)),
    gbps=st.sampled_from((1, 10, 40, 100)),
    share=st.sampled_from(("host", "off")),
)
def test_receivers_see_no_gap_duplicate_or_reordering(
    protocol: str, sizes: list[int], gap_ns: int, gbps: int, share: str
) -> None:
    """Flows start at arbitrary times.

    The switch drops the packets from number let_through on, but no scheduled packet. With weights,
    the flows of a host share numbers, and no more packets of a host and epoch pass than its window.
    """
    switch = Switch(gbps)
    parameters = EXACT | ({"weights": {"share": share}} if "weights" in protocol else {})
    link, qps = nics(switch, protocol, parameters, queue_pairs=len(sizes))
    for i, (qp, size) in enumerate(zip(qps, sizes, strict=True)):
        qp.post(size, start_ns=i * gap_ns)
    link.run(10**7)
    assert_received_in_order(link, sum(sizes))
    assert_forgotten(switch, qps[0])
    assert sum(qp.stats.packets_retransmitted for qp in qps) == len(switch.dropped)
    if "weights" in protocol and share == "host":
        assert len(set(switch.passed)) == len(switch.passed)  # a number is used once
        for epoch, window in switch.windows.items():
            weights = {w for e, w, _ in switch.passed if e == epoch}
            assert len(weights) <= 1
            for weight in weights:
                assert sum(e == epoch for e, _, _ in switch.passed) <= max(1, window // weight)


def test_without_a_response_it_starts_anew_with_what_is_not_acknowledged() -> None:
    lost = []

    def lose(now: int, frame: bytes) -> bytes | None:
        """Lose the first response, and the speculative packets from the third on."""
        if now < 3 * RTT and is_control(frame) and values(frame)["response"]:
            lost.append(frame)
            return None
        if now < 3 * RTT and is_speculative(frame) and speculative(frame)["sequence"] >= 2:
            return None
        return frame

    link, (qa,) = nics(lose, "sperc+1rc", EXACT)
    qa.post(5_000)
    link.run(20 * RTT)
    assert len(lost) == 1
    ((found_out, frame),) = scheduled(link)
    assert (found_out, wire.psn(frame)) == (4 * RTT, 2)  # it shows that packets arrive
    assert [wire.psn(frame) for _, frame in early(link)] == [0, 1, 2, 3, 4, 3, 4]
    assert [speculative(frame)["sequence"] for _, frame in early(link)] == [0, 1, 2, 3, 4, 0, 1]
    assert early(link)[5][0] > 4 * RTT
    assert_received_in_order(link, 5_000)


# A lower priority of their own


def test_with_a_priority_of_their_own_scheduled_packets_wait_for_the_last_speculative_ones_ack() -> None:
    switch = Switch(40, others=3)
    parameters = {"1rc": {"clock_error_ns": 0, "speculative_priority": 1}, "demand": False}
    link, (qa,) = nics(switch, "sperc+1rc", parameters)
    held = []

    def late(now: int, frame: bytes) -> bytes | None:
        """Delay packets in a congested queue of the lower class by 30 us."""
        found = switch(now, frame)
        if found is not None and is_speculative(found):
            held.append(found)
            link._at(now + 30_000, lambda then: arrive(then, held.pop(0)))
            return None
        return found

    def arrive(then: int, frame: bytes) -> None:
        link.nics[1].receive(then, frame)
        link._plan(1)

    link.hook = late
    qa.post(100_000)
    link.run(400_000)
    assert {IP.get("dscp", frame, wire.IP) for _, frame in early(link)} == {8}
    assert {IP.get("dscp", frame, wire.IP) for _, frame in scheduled(link)} == {24}
    last_ack = [now for now, side, frame in link.sent if side == 1 and not is_control(frame)][8]
    assert scheduled(link)[0][0] >= last_ack + 1_000 > controls(link, 1)[0][0] + 20_000
    assert_received_in_order(link, 100_000)
    assert (switch.link.sum_e, switch.link.num_b) == (0, 3 << 20)  # the others


# Weights


def test_weights_need_1rc() -> None:
    with pytest.raises(ParameterError, match=r"'sperc\+weights': weights needs 1rc; expected sperc\+1rc\+weights"):
        resolve("sperc+weights")
    assert resolve("sperc+weights+1rc").mechanisms.keys() == {"1rc", "weights"}


def test_n_is_the_hosts_active_flows_and_rates_go_by_its_inverse() -> None:
    """Two flows of the host and one of another host share 90 Gb/s: 22.5 each, and 45 for the other."""
    switch = Switch(90, others=1)
    parameters = {**EXACT, "demand": False}
    link, qps = nics(switch, "sperc+1rc+weights", parameters, queue_pairs=2)
    for qp, start_ns in zip(qps, (0, 20_000), strict=True):
        qp.post(400_000, start_ns=start_ns)
    link.run(19_000)
    assert qps[0].rate_bps == pytest.approx(45e9, rel=1e-4)
    link.run(80_000)
    assert [qp.rate_bps for qp in qps] == [pytest.approx(22.5e9, rel=1e-4)] * 2
    first = [values(frame) for _, frame in controls(link, 0)]
    pairs = [(v["old_weight"], v["new_weight"]) for v in first]
    assert pairs[0] == (1, 1)
    assert {(1, 1), (1, 2), (2, 2)} == set(pairs)
    link.run(2_000_000)
    assert (2, 1) in {(values(f)["old_weight"], values(f)["new_weight"]) for _, f in controls(link, 0)}
    assert (switch.link.sum_e, switch.link.num_b) == (0, 1 << 20)
    assert_received_in_order(link, 800_000)


def test_the_speculative_weight_is_that_of_the_epochs_start_and_numbers_are_shared() -> None:
    """Two flows are active. Three start in epoch 10 with n = 2, and one in epoch 11 with n = 5."""
    link, qps = nics(protocol="sperc+1rc+weights", parameters={**EXACT, "demand": False}, queue_pairs=6)
    for qp, start_ns in zip(qps, (0, 0, 10 * RTT, 10 * RTT + 100, 10 * RTT + 200, 11 * RTT), strict=True):
        qp.post(2_000_000, start_ns=start_ns)
    link.run(13 * RTT)
    found: dict[tuple[int, int], list[int]] = {}
    for _, frame in early(link):
        found.setdefault((speculative(frame)["epoch"], speculative(frame)["weight"]), []).append(
            speculative(frame)["sequence"]
        )
    assert found.keys() == {(0, 1), (10, 2), (11, 5)}
    assert all(numbers == list(range(len(numbers))) for numbers in found.values())
    for now, frame in controls(link, 0):
        if records(frame)[0]["state"] == NEW_FLOW and now > 9 * RTT and values(frame)["old_weight"] == 1:
            assert values(frame)["speculative_weight"] == (5 if now >= 11 * RTT else 2)


def test_without_sharing_each_flow_has_numbers_of_its_own() -> None:
    parameters = {**EXACT, "weights": {"share": "off"}}
    link, qps = nics(protocol="sperc+1rc+weights", parameters=parameters, queue_pairs=2)
    for qp in qps:
        qp.post(3_000)
    link.run(RTT // 2)
    assert sorted(speculative(frame)["sequence"] for _, frame in early(link)) == [0, 0, 1, 1, 2, 2]


def test_the_demand_is_of_a_unit_of_weight() -> None:
    link, qps = nics(protocol="sperc+1rc+weights", parameters=EXACT, queue_pairs=3)
    for qp in qps:
        qp.post(10_000)
    link.run(1_000)
    demands = [records(frame)[7]["b"] for _, frame in controls(link, 0)]
    alone = 10 * PACKET * 8_000_000 // RTT
    assert demands == [alone, 2 * alone, 3 * alone]


# The codec


WORDS = st.one_of(st.integers(0, NO_LIMIT), st.sampled_from((0, 0x7FFFFFFF, 0x80000000, NO_LIMIT)))
STATES = st.builds(Record, WORDS, WORDS, st.integers(0, 2), st.integers(0, 1))


@settings(max_examples=50, deadline=None)
@given(
    made=st.lists(STATES, min_size=RECORDS, max_size=RECORDS),
    leaving=st.booleans(),
    epoch=st.integers(0, 0xFFFF),
    weights=st.tuples(*[st.integers(1, 1023)] * 3),
    source_qp=st.integers(1, 0xFFFFFF),
    interval_ns=WORDS,
    passed=st.integers(0, 6),
)
def test_control_packets_are_as_they_are_declared(
    made: list[Record],
    leaving: bool,
    epoch: int,
    weights: tuple[int, int, int],
    source_qp: int,
    interval_ns: int,
    passed: int,
) -> None:
    old, new, spec = weights
    body = control_body(made, leaving, epoch, old, new, spec, source_qp, interval_ns)
    packed = [{"b": r.b, "x": r.x, "state": r.state, "ignore": r.ignore} for r in made]
    expected = {"leaving": int(leaving), "epoch": epoch, "old_weight": old, "new_weight": new}
    expected |= {"speculative_weight": spec, "source_qp": source_qp, "interval": interval_ns}
    assert body == CONTROL.encode(packed, **expected)
    turned = CONTROL.encode(packed[passed:] + packed[:passed], **expected)
    read = [Record() for _ in range(RECORDS)]
    read_records(read, passed, b"\0" * wire.AFTER_BTH + turned, wire.AFTER_BTH)
    assert [(r.b, r.x, r.state, r.ignore) for r in read] == [(r.b, r.x, r.state, r.ignore) for r in made]
