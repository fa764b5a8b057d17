"""s-PERC's program: the example of the thesis packet by packet, dropped packets, and the reference bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane import programs
from control_plane.programs.base import SwitchView
from control_plane.programs.sperc import CONTROL_PACKET_BYTES
from host_agents.cc.one_rc import SPECULATIVE
from host_agents.cc.sperc import CONTROL, RECORDS
from host_agents.cc.sperc_link import MAX_WEIGHT, NEW_FLOW, NO_LIMIT, B, E, Link, Record
from p4switch.engine import pipeline_cost
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig, MakeStepwiseRig
from tests.p4src.packets import BTH, NOT_ECT, Flow
from tests.p4src.rigs import BuiltinRig, Rig, Sent

GBPS = 1_000_000  # kb/s
AFTER_BTH = 54
ROUND = VIEW.base_rtt_ns * 3 // 2
DIGITS = 2**-18  # relative error of twenty digits

REGISTERS = ("sum_e", "num_b", "max_e", "max_e_next", "round_end", "interval")

# The flows of these tests leave by port 2 or 3, according to their destination.
DESTINATIONS = {2: "10.0.0.3", 3: "10.0.9.9"}


@dataclass
class FlowState:
    """State of a flow's control packet from one round trip to the next."""

    records: list[dict[str, int]] = field(default_factory=lambda: [{} for _ in range(RECORDS)])
    weight: int = 1

    def frame(self, port: int, *, psn: int = 0, weight: int = 1, **values: int) -> bytes:
        values = {"old_weight": self.weight, "new_weight": weight, **values}
        body = CONTROL.encode(self.records, **values)
        above = BTH(opcode=CONTROL.opcode, psn=psn, dest_qp=7)
        return Flow(destination=DESTINATIONS[port]).frame(above, body + bytes(4), psn=psn, ecn=NOT_ECT, dscp=48)


def view(gbps: Mapping[int, int]) -> SwitchView:
    return replace(VIEW, port_rates_bps={port: gbps.get(port, 100) * 10**9 for port in VIEW.port_rates_bps})


def through(rig: Rig, port: int, frame: bytes, now: int) -> bytes:
    """Send a frame to port 1, and return the packet that leaves by `port`."""
    received = rig.run([Sent(1, frame, now)])
    assert {p: len(frames) for p, frames in received.items()} == {port: 1}
    return received[port][0]


def link_of(rig: BuiltinRig, port: int) -> dict[str, int]:
    return {name: int.from_bytes(rig.switch.register_read(f"{name}_of", port), "big") for name in REGISTERS}


def state_of(link: Link) -> dict[str, int]:
    return {
        "sum_e": link.sum_e,
        "num_b": link.num_b,
        "max_e": link.max_e,
        "max_e_next": link.max_e_next,
        "round_end": link.round_end,
        "interval": link.interval_ns,
    }


def test_a_control_packet_takes_158_bytes_of_a_link() -> None:
    assert len(FlowState().frame(2)) == CONTROL_PACKET_BYTES


# The example: L1 (port 2) has 9 Gb/s, and L2 (port 3) has 12 Gb/s


class Example:
    """Flows of the example: f1 uses L1, f2 uses both links, and f3 to f5 use L2.

    The same switch has both links, so f2's packet passes it twice.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.now = 0
        self.flows = {name: FlowState() for name in ("f1", "f2", "f3", "f4", "f5")}

    def link(self, name: str, port: int, place: int, **values: int) -> tuple[float, int, int]:
        """Return b in Gb/s, state and ignore bit of a flow at a link. `place` is the index of the link's record."""
        self.now += 100
        flow = self.flows[name]
        flow.records = flow.records[place:] + flow.records[:place]
        frame = through(self.rig, port, flow.frame(port, switches_passed=place, **values), self.now)
        records = CONTROL.decode_records(frame, AFTER_BTH)
        assert CONTROL.get("switches_passed", frame, AFTER_BTH) == place + 1
        flow.records = records[-place - 1 :] + records[: -place - 1]
        record = flow.records[place]
        return record["b"] / GBPS, record["state"], record["ignore"]

    def x(self, name: str) -> float:
        return min(r["x"] for r in self.flows[name].records if r["state"] != NEW_FLOW) / GBPS

    def l1(self, name: str, **values: int) -> tuple[float, int, int]:
        return self.link(name, 2, 0, **values)

    def l2(self, name: str, **values: int) -> tuple[float, int, int]:
        return self.link(name, 3, 1 if name == "f2" else 0, **values)


def test_the_example(make_stepwise_rig: MakeStepwiseRig) -> None:
    """The capacities are c = 9 and 12, and rates have twenty digits. No round ends during the test."""
    rig = make_stepwise_rig("sperc", {"headroom": 0.0, "round_rtts": 1e6}, view=view({2: 9, 3: 12}))
    net = Example(rig)
    assert net.l1("f1") == (9, B, 0)
    assert net.l1("f2") == (4.5, B, 0)
    assert net.l2("f2") == (12, E, 0)
    assert link_of(rig, 3)["sum_e"] == 4.5 * GBPS
    assert net.l2("f3") == (7.5, B, 0)
    assert net.l2("f4") == (3.75, B, 1)
    assert net.l2("f5") == (2.5, B, 1)
    assert link_of(rig, 3)["max_e"] == 4.5 * GBPS
    assert net.l1("f2") == (4.5, B, 0)
    assert net.l2("f2") == (3, B, 1)


def test_the_example_when_max_e_falls(make_stepwise_rig: MakeStepwiseRig) -> None:
    """Two rounds end before each packet. L2's 3 Gb/s count, and L1 has 6 Gb/s left for f1."""
    rig = make_stepwise_rig("sperc", {"headroom": 0.0, "round_rtts": 1 / VIEW.base_rtt_ns}, view=view({2: 9, 3: 12}))
    net = Example(rig)
    for _ in range(4):
        net.l1("f1")
        net.l1("f2")
        for name in ("f2", "f3", "f4", "f5"):
            net.l2(name)
    rates = {name: net.x(name) for name in net.flows}
    assert rates == pytest.approx({"f1": 6, "f2": 3, "f3": 3, "f4": 3, "f5": 3}, rel=DIGITS)
    assert net.l1("f2")[1] == E
    assert net.l2("f2")[1:] == (B, 0)

    # All flows leave, and no state remains.
    for name in ("f1", "f2"):
        net.l1(name, leaving=1)
    for name in ("f2", "f3", "f4", "f5"):
        net.l2(name, leaving=1)
    for port in (2, 3):
        left = link_of(rig, port)
        assert (left["sum_e"], left["num_b"], left["interval"]) == (0, 0, 0)


@pytest.mark.parametrize("start", [0, (1 << 48) - ROUND // 10, (1 << 48) - ROUND // 2, (1 << 48) - 5 * ROUND // 2])
def test_the_example_after_two_rounds(start: int) -> None:
    """Check the whole example. A rate that is ignored while MaxE is 4.5 counts two rounds later.

    This also holds if the clock, which has 48 bits, wraps during the test.
    """
    rig = BuiltinRig("sperc", programs.parameters("sperc", {"headroom": 0.0}).entries(view({2: 9, 3: 12})))
    net = Example(rig)
    net.now = start
    order = [(net.l1, "f1"), (net.l1, "f2"), *((net.l2, name) for name in ("f2", "f3", "f4", "f5"))]
    for link, name in order:
        link(name)
    assert net.l1("f2") == (4.5, B, 0)
    assert net.l2("f2") == (3, B, 1)
    for rounds in range(1, 5):
        net.now += ROUND
        for link, name in order:
            link(name)
        assert (net.x("f1") == 4.5) == (rounds < 4)
    rates = {name: net.x(name) for name in net.flows}
    assert rates == pytest.approx({"f1": 6, "f2": 3, "f3": 3, "f4": 3, "f5": 3}, rel=DIGITS)
    assert net.l2("f2")[1:] == (B, 0)


# Packets that pass, and packets that are dropped


def test_responses_and_data_pass_untouched(make_rig: MakeRig) -> None:
    response = FlowState().frame(2, psn=1, response=1, switches_passed=6)
    data = Flow().data(psn=2)
    received = make_rig("sperc").run([Sent(1, response), Sent(1, data)])
    assert sorted(frame[34:] for frame in received[2]) == sorted((response[34:], data[34:]))


def malformed() -> dict[str, bytes]:
    whole = FlowState()
    frames = {
        "old weight 0": whole.frame(2, old_weight=0),
        "new weight 0": whole.frame(2, new_weight=0),
        "speculative weight 0": whole.frame(2, speculative_weight=0),
        "old weight over 1023": whole.frame(2, old_weight=MAX_WEIGHT + 1),
        "new weight over 1023": whole.frame(2, new_weight=MAX_WEIGHT + 1),
        "over six switches": whole.frame(2, switches_passed=6),
    }
    for place in (0, RECORDS - 1):
        states = [{"state": 3} if place == i else {} for i in range(RECORDS)]
        frames[f"state 3 in record {place}"] = FlowState(states).frame(2)
    for missing in (4 + 1, 4 + 50, 4 + 99):  # programs do not read the ICRC
        frame = whole.frame(2)
        frames[f"{missing} bytes are missing"] = frame[:-missing]
    return frames


@pytest.mark.parametrize("what", malformed())
def test_what_cannot_be_is_dropped_as_malformed(make_rig: MakeRig, what: str) -> None:
    rig = make_rig("sperc", {"headroom": 0.0})
    received = rig.run([Sent(1, malformed()[what]), Sent(1, FlowState().frame(2, psn=5))])
    assert len(received[2]) == 1
    # The next flow finds the link in its initial state.
    (record,) = CONTROL.decode_records(received[2][0], AFTER_BTH)[-1:]
    assert (record["b"], record["state"]) == (100 * GBPS, B)
    assert rig.counter("ingress_drops", 0) == 1


def test_a_flow_that_was_not_there_takes_nothing_away_when_it_leaves(make_rig: MakeRig) -> None:
    rig = make_rig("sperc")
    if not isinstance(rig, BuiltinRig):
        pytest.skip("BMv2's registers are not read")
    for state in (E, B):
        unknown = FlowState([{"state": state, "x": 5 * GBPS}])
        through(rig, 2, unknown.frame(2, leaving=1), 0)
        left = link_of(rig, 2)
        assert (left["sum_e"], left["num_b"], left["interval"]) == (0, 0, 0)


def test_control_packets_carry_the_largest_interval(make_rig: MakeRig) -> None:
    """158 bytes, and 20 between frames, take 712 ns for each flow at 2% of a link of 100 Gb/s."""
    rig = make_rig("sperc", view=replace(VIEW, frame_overhead_bytes=20))
    frames = rig.run([Sent(1, FlowState().frame(2, psn=i, interval=known)) for i, known in enumerate((0, 0, 5000))])[2]
    assert sorted(CONTROL.get("interval", frame, AFTER_BTH) for frame in frames) == [712, 1424, 5000]


@pytest.mark.parametrize("other", [1, 9])
def test_rates_go_by_weights(make_stepwise_rig: MakeStepwiseRig, other: int) -> None:
    """Two flows share a link. NumB is 1/n + 1/m, and is updated when the first flow changes from n to m."""
    rig = make_stepwise_rig("sperc", {"headroom": 0.0, "round_rtts": 1e6})
    first = CONTROL.decode_records(through(rig, 2, FlowState(weight=4).frame(2, weight=4), 0), AFTER_BTH)[-1]
    assert first["b"] == pytest.approx(400 * GBPS, rel=2e-5)
    second = CONTROL.decode_records(through(rig, 2, FlowState(weight=2).frame(2, weight=2), 1), AFTER_BTH)[-1]
    assert second["b"] == pytest.approx(100 * GBPS / 0.75, rel=2e-5)
    changed = through(rig, 2, FlowState([first], weight=4).frame(2, weight=other), 2)
    expected = 100 * GBPS / float(Fraction(1, 2) + Fraction(1, other))
    assert CONTROL.decode_records(changed, AFTER_BTH)[-1]["b"] == pytest.approx(expected, rel=2e-5)


# Bit for bit


@cache
def kept_rig(capacity_gbps: int, digits: int) -> BuiltinRig:
    entries = programs.parameters("sperc", {}).entries(view({2: capacity_gbps}))
    return BuiltinRig("sperc", entries, SPERC_DIGITS=str(digits))


def reference(capacity_gbps: int, digits: int) -> Link:
    capacity = round(capacity_gbps * GBPS * 0.95)
    control_ns = round(8 * CONTROL_PACKET_BYTES * 50 / capacity_gbps)
    return Link(capacity, round(capacity / 4096), ROUND, control_ns, digits)


def packed(record: Record) -> dict[str, int]:
    return {"b": record.b, "x": record.x, "state": record.state, "ignore": record.ignore}


RATES = st.one_of(st.integers(0, NO_LIMIT), st.integers(0, 200 * GBPS), st.just(NO_LIMIT))
WEIGHTS = st.one_of(st.integers(1, 3), st.integers(1, MAX_WEIGHT))
ELSEWHERE = st.lists(st.tuples(RATES, st.integers(0, 1)), max_size=RECORDS - 1)
STEPS = st.lists(
    st.tuples(st.integers(0, 7), WEIGHTS, ELSEWHERE, st.sampled_from((0, 10, ROUND // 2, ROUND, 3 * ROUND))),
    max_size=40,
)


@dataclass
class Follower:
    """State of a flow at its source: its record of the link, and n."""

    record: Record = field(default_factory=Record)
    weight: int = 1
    active: bool = False


class Both:
    """The program and its reference, side by side."""

    def __init__(self, capacity_gbps: int, digits: int = 20) -> None:
        self.rig = kept_rig(capacity_gbps, digits)
        for name in REGISTERS:
            self.rig.switch.register_write(f"{name}_of", 2, bytes(len(self.rig.switch.register_read(f"{name}_of", 2))))
        self.link = reference(capacity_gbps, digits)

    def packet(
        self, flow: Follower, weight: int, elsewhere: Sequence[tuple[int, int]], leaving: bool, now: int
    ) -> None:
        others = [Record(b, 0, NEW_FLOW, ignore) for b, ignore in elsewhere]
        others += [Record() for _ in range(RECORDS - 1 - len(others))]
        before = FlowState([packed(r) for r in (flow.record, *others)], flow.weight)
        after = through(self.rig, 2, before.frame(2, weight=weight, leaving=int(leaving), interval=7), now)
        self.link.process([flow.record, *others], 0, flow.weight, weight, leaving, now)
        records = CONTROL.decode_records(after, AFTER_BTH)
        expected = [packed(r) | {"reserved": 0} for r in (*others, flow.record)]
        assert records == expected
        assert CONTROL.get("interval", after, AFTER_BTH) == max(7, self.link.interval_ns)
        assert link_of(self.rig, 2) == state_of(self.link)
        flow.weight = weight
        flow.active = not leaving
        if leaving:
            flow.record = Record()


def test_what_the_benchmark_measures_are_control_packets() -> None:
    """Check the benchmark's frames. They are built from bytes, because p4switch does not import host_agents."""
    for flow, frame in enumerate(pipeline_cost.control_packets()):
        own = CONTROL.decode(frame, AFTER_BTH)
        assert own["old_weight"] == own["new_weight"] == 1 + flow % 3
        assert (own["switches_passed"], own["let_through"], own["source_qp"]) == (3, 0xFFFFFF, flow)
        states = [record["state"] for record in CONTROL.decode_records(frame, AFTER_BTH)]
        assert states == [E if flow % 2 == 0 else B, *4 * [NEW_FLOW], B, B, B]


@settings(max_examples=60, deadline=None)
@given(capacity_gbps=st.sampled_from((10, 100, 6400)), digits=st.sampled_from((12, 20)), steps=STEPS)
def test_the_program_is_the_reference_and_forgets_all_who_leave(
    capacity_gbps: int, digits: int, steps: list[tuple[int, int, list[tuple[int, int]], int]]
) -> None:
    both = Both(capacity_gbps, digits)
    flows = [Follower() for _ in range(8)]
    now = 0
    for number, weight, elsewhere, later in steps:
        now += later
        both.packet(flows[number], weight, elsewhere, False, now)
        counted = sum((1 << 20) // f.weight for f in flows if f.active and f.record.state == B)
        assert both.link.num_b == counted
    for flow in flows:
        if flow.active:
            both.packet(flow, flow.weight, (), True, now)
    assert (both.link.sum_e, both.link.num_b, both.link.interval_ns) == (0, 0, 0)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.builds(Record, RATES, RATES, st.integers(0, 2), st.integers(0, 1)), WEIGHTS, WEIGHTS, st.booleans()
        ),
        max_size=20,
    )
)
def test_the_program_is_the_reference_whatever_control_packets_say(
    steps: list[tuple[Record, int, int, bool]],
) -> None:
    both = Both(100)
    for now, (record, old, new, leaving) in enumerate(steps):
        both.packet(Follower(record, old), new, [(record.x, 0)], leaving, now * 1_000)


# 1RC, figures 5.1 to 5.4. The BDP is 4 packets, and an epoch has 13 steps.

WINDOWS = {"headroom": 0.0, "round_rtts": 1e6}  # rounds never end, so that time has no effect on either switch
FOUR_PACKETS = replace(view({2: 8}), base_rtt_ns=4 * VIEW.packet_bytes)


class Network:
    """Network with a link as in figures 5.1 to 5.4. Flows start at a tick of the hosts' clocks."""

    def __init__(self, make_stepwise_rig: MakeStepwiseRig, **parameters: int) -> None:
        self.rig = make_stepwise_rig("sperc", {**WINDOWS, **parameters}, view=FOUR_PACKETS)

    def starts(self, step: int, weight: int = 1, new_weight: int = 1, let_through: int = 0xFFFFFF) -> int:
        """Send the first control packet of a flow that starts at that tick, and return its let_through."""
        frame = FlowState(weight=new_weight).frame(
            2, weight=new_weight, epoch=step // 13 & 0xFFFF, speculative_weight=weight, let_through=let_through
        )
        return CONTROL.get("let_through", through(self.rig, 2, frame, step), AFTER_BTH)

    def passes(self, step: int, sequence: int, weight: int = 1) -> bool:
        body = SPECULATIVE.encode(epoch=step // 13 & 0xFFFF, weight=weight, sequence=sequence)
        frame = Flow().frame(BTH(opcode=SPECULATIVE.opcode + 1, dest_qp=7), body + bytes(64))
        received = self.rig.run([Sent(1, frame, step)])
        assert [f[34:] for f in received[2]] in ([], [frame[34:]])
        return bool(received[2])

    def passed(self, step: int, sequences: Sequence[int] = range(4), weight: int = 1) -> list[int]:
        return [sequence for sequence in sequences if self.passes(step, sequence, weight)]


def test_figure_5_1(make_stepwise_rig: MakeStepwiseRig) -> None:
    """Flow 1 starts at step 11 and flow 2 at step 15. The entries are 4 and 2."""
    network = Network(make_stepwise_rig)
    assert network.starts(11) == 4
    assert network.passed(11, (0, 1)) == [0, 1]
    assert network.starts(15) == 2
    assert network.passed(11, (2, 3)) == [2, 3]
    assert network.passed(15) == [0, 1]
    assert network.rig.counter("speculative_drops", 0) == 2


@pytest.fixture
def with_entry_2(make_stepwise_rig: MakeStepwiseRig) -> Network:
    """Return the state of figures 5.2 to 5.4, in which the half of another flow makes the entry 2 in step 15."""
    network = Network(make_stepwise_rig)
    network.starts(11)
    network.starts(15)
    return network


def test_figure_5_2_two_flows_of_a_host_pass_four(with_entry_2: Network) -> None:
    assert [with_entry_2.passed(15), with_entry_2.passed(15)] == [[0, 1], [0, 1]]


def test_figure_5_2_with_weights_alone_they_pass_three(with_entry_2: Network) -> None:
    assert [with_entry_2.passed(15), with_entry_2.passed(15, weight=2)] == [[0, 1], [0]]


def test_figure_5_3_shared_sequence_numbers(with_entry_2: Network) -> None:
    first, second = with_entry_2.passed(15, (0, 2)), with_entry_2.passed(15, (1, 3))
    assert sorted(first + second) == [0, 1]


@pytest.mark.parametrize(("weight", "expected"), [(2, [0]), (1, [0, 1])])
def test_figure_5_4_the_weight_at_the_epochs_start(with_entry_2: Network, weight: int, expected: list[int]) -> None:
    """If weights shared numbers, flow 2's new weight 2 would reduce its packets twice."""
    sent = [(0, 1), (1, weight), (2, 1), (3, weight)]
    assert [s for s, w in sent if with_entry_2.passes(15, s, w)] == expected
    assert with_entry_2.starts(15, weight, new_weight=2) == len(expected)


def test_later_control_packets_leave_an_entry_as_it_is(make_stepwise_rig: MakeStepwiseRig) -> None:
    """When 16 flows start together, each may send a full window, which is a limitation of 1RC."""
    network = Network(make_stepwise_rig)
    assert [network.starts(11) for _ in range(16)] == [4] * 16
    assert [network.passed(11) for _ in range(16)] == [[0, 1, 2, 3]] * 16


def test_at_least_one_passes_and_the_least_number_is_brought_back(with_entry_2: Network) -> None:
    assert with_entry_2.passed(15, weight=1000) == [0]
    assert with_entry_2.starts(15, weight=1000) == 1
    assert with_entry_2.starts(15, let_through=1) == 1
    assert with_entry_2.starts(15, let_through=0) == 0  # a switch before this one lets none pass


def test_an_epoch_that_has_lost_its_slot_passes_nothing(make_stepwise_rig: MakeStepwiseRig) -> None:
    network = Network(make_stepwise_rig)
    assert not network.passes(11, 0)  # there is no entry yet
    assert network.starts(11) == 4
    newer = 11 + 13 * 16
    assert network.starts(newer) == 2
    assert network.starts(11) == 0
    assert (network.passed(11), network.passed(newer)) == ([], [0, 1])
    assert network.rig.counter("speculative_drops", 1) == 5


def test_epochs_wrap(make_stepwise_rig: MakeStepwiseRig) -> None:
    network = Network(make_stepwise_rig)
    last = 13 * 0xFFFF
    assert [network.starts(last), network.starts(last + 13 * 16)] == [4, 2]
    assert (network.passed(last), network.passed(last + 13 * 16)) == ([], [0, 1])


@pytest.mark.parametrize("idle", [256, 2_048, 0x7FF0, 0x8000, 0xFF00])
def test_an_entry_from_before_an_idle_time_is_not_a_newer_one(make_stepwise_rig: MakeStepwiseRig, idle: int) -> None:
    """Check idle times after which old epoch numbers are ahead of new ones modulo 2^16."""
    network = Network(make_stepwise_rig)
    before, after = 13 * 5, 13 * (5 + idle)
    assert network.starts(before) == 4
    assert network.starts(after) == 2
    assert network.passed(after) == [0, 1]
    assert network.passed(before) == []


def test_what_an_idle_time_of_all_epoch_numbers_leaves(make_stepwise_rig: MakeStepwiseRig) -> None:
    """As documented, the old entry counts as that of a newer epoch, and finally as that of the same epoch."""
    network = Network(make_stepwise_rig)
    assert network.starts(13 * 32) == 4
    assert network.starts(13 * 0x10010) == 0  # epoch 32 is newer than epoch 16
    assert network.starts(13 * 0x10020) == 4


def test_more_flows_than_num_b_can_count_fail_an_assertion() -> None:
    """After 4,095 flows of weight 1, the next flow would always get a wrong rate."""
    rig = BuiltinRig("sperc", programs.parameters("sperc", {}).entries(VIEW))
    for left_until_then, failed in (((1 << 20) + 1, 0), (1 << 20, 1), (0, 1)):
        rig.switch.register_write("num_b_of", 2, (0xFFFF_FFFF - left_until_then).to_bytes(4, "big"))
        before = rig.switch.failed_asserts
        rig.switch.process(1, FlowState().frame(2))
        assert rig.switch.failed_asserts - before == failed


def test_a_speculative_packet_of_weight_0_or_cut_off_is_malformed(make_rig: MakeRig) -> None:
    rig = make_rig("sperc", WINDOWS)
    bth = BTH(opcode=SPECULATIVE.opcode, dest_qp=7)
    frames = [FlowState().frame(2), Flow().frame(bth, SPECULATIVE.encode(weight=0) + bytes(64))]
    frames.append(Flow().frame(bth, SPECULATIVE.encode()[:-1]))
    assert len(rig.run([Sent(1, frame) for frame in frames])[2]) == 1
    assert rig.counter("ingress_drops", 0) == 2


def test_a_window_is_of_packets_as_the_link_has_them(make_rig: MakeRig) -> None:
    """In 10,580 ns a link of 8 Gb/s sends ten packets of 1,058 bytes, or nine with 20 bytes between frames."""
    there = replace(FOUR_PACKETS, base_rtt_ns=10_580)
    for overhead_bytes, packets in ((0, 10), (20, 9)):
        rig = make_rig("sperc", WINDOWS, view=replace(there, frame_overhead_bytes=overhead_bytes))
        (control,) = rig.run([Sent(1, FlowState().frame(2))])[2]
        assert CONTROL.get("let_through", control, AFTER_BTH) == packets


def test_a_round_shorter_than_a_tick_is_a_mistake() -> None:
    with pytest.raises(UserError, match="round_rtts: should make a round of at least a tick"):
        programs.parameters("sperc", {"round_rtts": 1e-6}).entries(VIEW)


@dataclass
class Window:
    """Model of a slot of the window table."""

    epoch: int
    packets: int


EPOCHS = st.integers(0xFFF0, 0x10010)  # epoch numbers that wrap
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("starts"), EPOCHS, st.integers(1, 3)),
        st.tuples(st.just("sends"), EPOCHS, st.integers(1, 3)),
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(entries=st.sampled_from((2, 4)), events=EVENTS)
def test_what_passes_is_what_the_window_table_has_for_the_epoch(
    entries: int, events: list[tuple[str, int, int]]
) -> None:
    """A host numbers its speculative packets of an epoch. At most max(1, entry / weight) of them pass.

    The first control packet of an epoch writes the entry, unless a newer epoch has the slot.
    """
    rig = windows_rig(entries)
    for name in REGISTERS:
        rig.switch.register_write(f"{name}_of", 2, bytes(len(rig.switch.register_read(f"{name}_of", 2))))
    for slot in range(entries):
        rig.switch.register_write("window_table", 2 * entries + slot, bytes(4))
    table: dict[int, Window] = {}
    sent: dict[tuple[int, int], int] = {}
    passed: dict[tuple[int, int], int] = {}
    for kind, epoch, weight in events:
        window = table.get(epoch % entries)
        if kind == "starts":
            frame = FlowState().frame(2, epoch=epoch & 0xFFFF, speculative_weight=weight)
            after = through(rig, 2, frame, 0)
            let_through = CONTROL.get("let_through", after, AFTER_BTH)
            if window is None or window.epoch < epoch:
                rate = CONTROL.decode_records(after, AFTER_BTH)[-1]["b"]
                packets = max(1, min(rate * 1_000 * FOUR_PACKETS.base_rtt_ns // (8 * 10**9 * 1_058), 0xFFFF))
                window = table[epoch % entries] = Window(epoch, packets)
            expected = max(1, window.packets // weight) if window.epoch == epoch else 0
            assert let_through == expected
        else:
            number = sent[epoch, weight] = sent.get((epoch, weight), -1) + 1
            body = SPECULATIVE.encode(epoch=epoch & 0xFFFF, weight=weight, sequence=number)
            frame = Flow().frame(BTH(opcode=SPECULATIVE.opcode + 1, dest_qp=7), body + bytes(64))
            passes = bool(rig.run([Sent(1, frame, 0)])[2])
            least = max(1, window.packets // weight) if window is not None and window.epoch == epoch else 0
            assert passes == (number < least)
            passed[epoch, weight] = passed.get((epoch, weight), 0) + passes
            assert passed[epoch, weight] <= 4  # no entry is larger


@cache
def windows_rig(entries: int) -> BuiltinRig:
    parameters = programs.parameters("sperc", {**WINDOWS, "window_entries": entries})
    return BuiltinRig("sperc", parameters.entries(FOUR_PACKETS), SPERC_WINDOW_ENTRIES=str(entries))
