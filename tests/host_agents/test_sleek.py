"""SLEEK step by step: the start of a recovery, its retransmissions, its end, and probes.

Packets have 1058 bytes; the base RTT is 8 us, so a BDP is 94 packets.
"""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents import wire
from host_agents.errors import ParameterError
from host_agents.nic import Nic
from host_agents.nic_tables import SleekConfig
from host_agents.selective_repeat import SelectiveRepeatSender
from host_agents.sleek import Sleek
from host_agents.timers import NEVER
from p4cc._link import Trouble, Wire, connect, pair
from p4switch.errors import UserError, validate
from tests.host_agents.narrow import of_kind, replace_method

PACKET = 1058
BASE_NS = 8_000


def psn_of(frame: bytes) -> int:
    return int.from_bytes(frame[51:54], "big")


def drain(nic: Nic, now_ns: int) -> list[bytes]:
    found = []
    while (frame := nic.next_frame(now_ns)) is not None:
        found.append(frame)
    return found


class Rig:
    """A sender with a window of this number of packets; time advances by 100 ns for each packet."""

    def __init__(self, window: int = 10, packets: int = 200, **config: Any) -> None:
        defaults: dict[str, Any] = {"loss_packets": 0, "sleek": SleekConfig(windows=1.5), "rto_ns": 1 << 39}
        self.a, self.b = pair(reliability="selective-repeat", **defaults | config)
        self.qa, self.qb = connect(self.a, self.b)
        self.qa.reaction_point.set_window(window * PACKET)
        self.qa.post(1000 * packets)
        self.now_ns = 0
        self.frames: dict[int, bytes] = {}

    def send(self) -> list[int]:
        """Return the PSNs of all packets that may leave now, in order."""
        sent = []
        while (frame := self.a.next_frame(self.now_ns)) is not None:
            sent.append(psn_of(frame))
            self.frames[sent[-1]] = frame
            self.now_ns += 100
        return sent

    def arrive(self, *numbers: int) -> None:
        """Deliver these packets, and their acknowledgements."""
        for number in numbers:
            self.now_ns += 1
            self.b.receive(self.now_ns, self.frames[number])
            for answer in drain(self.b, self.now_ns):
                self.a.receive(self.now_ns, answer)


def test_a_recovery_begins_when_early_packets_are_worth_one_and_a_half_windows() -> None:
    rig = Rig()
    assert rig.send() == list(range(10))
    early = 0
    while early < 14:
        early += 1
        rig.arrive(early)
        assert rig.send() == [9 + early]
    rig.arrive(15)
    assert rig.send()[0] == 0


def test_five_early_packets_at_least() -> None:
    rig = Rig(window=2)
    rig.send()
    for early in range(1, 5):
        rig.arrive(early)
        assert rig.send() == [1 + early]
    rig.arrive(5)
    assert rig.send()[0] == 0


def test_how_many_early_packets_at_least_is_a_parameter() -> None:
    rig = Rig(window=2, sleek=SleekConfig(windows=1.5, least_packets=8))
    rig.send()
    for early in range(1, 8):
        rig.arrive(early)
        assert 0 not in rig.send()
    rig.arrive(8)
    assert rig.send()[0] == 0


def test_what_is_missing_is_sent_again_once_and_though_the_window_is_closed() -> None:
    rig = Rig()
    rig.send()
    for early in range(2, 15):
        rig.arrive(early)
        rig.send()
    rig.qa.reaction_point.set_window(PACKET // 2)  # nothing fits, but a recovery's packets leave
    rig.arrive(15)
    rig.arrive(16)
    assert rig.qa.sender.has_urgent()
    assert rig.send() == [0]  # at most a window from the first missing one: here one packet
    rig.qa.reaction_point.set_window(10 * PACKET)
    rig.arrive(17)
    assert rig.send()[0] == 1
    rig.arrive(18)
    assert not {0, 1} & set(rig.send())


def test_what_left_after_the_packet_that_is_acknowledged_is_not_lost() -> None:
    rig = Rig(window=8, packets=40)
    rig.send()
    for early in range(1, 13):
        rig.arrive(early)
        rig.send()
    assert rig.qa.stats.packets_retransmitted == 1  # 0; 13 to 19 are under way
    rig.arrive(14)
    assert 13 not in rig.send()  # beyond a window from the first missing packet
    rig.arrive(0)
    assert 13 in rig.send()


@pytest.mark.parametrize(("as_simulated", "again"), [(False, {0, 1}), (True, {0, 1, 3, 4, 5})])
def test_as_simulated_what_left_later_is_sent_again_as_well(as_simulated: bool, again: set[int]) -> None:
    rig = Rig(sleek=SleekConfig(windows=0.5, as_simulated_resend=as_simulated))
    rig.send()
    rig.arrive(9, 8, 7, 6)
    rig.send()
    rig.arrive(2)  # the fifth early packet, half a window of them
    assert set(rig.send()) & set(range(10)) == again


def test_it_ends_when_all_that_had_been_sent_when_it_began_has_arrived() -> None:
    rig = Rig()
    rig.send()
    for early in range(1, 16):
        rig.arrive(early)
        rig.send()
    sleek = of_kind(of_kind(rig.qa.sender, SelectiveRepeatSender)._sleek, Sleek)
    limiter = rig.qa.limiter
    assert (sleek.recovering, limiter.recovering) == (True, 1)
    until = sleek._until
    rig.arrive(0, *range(16, until - 1))
    assert sleek.recovering
    rig.arrive(until - 1)
    assert (sleek.recovering, limiter.recovering) == (False, 0)


class TestProbes:
    def probes(self, rig: Rig, until_ns: int) -> list[tuple[int, int, bytes]]:
        """Return the times of probes: SENDs without payload, of a packet that has arrived."""
        found = []
        while (due := rig.a.next_wakeup_ns()) <= until_ns:
            rig.now_ns = due
            for frame in drain(rig.a, due):
                assert (frame[wire.BTH], wire.wire_bytes(frame), frame[wire.TOS]) == (4, 58, 24 << 2 | 2)
                found.append((due, psn_of(frame), frame))
        return found

    def test_after_three_base_rtts_and_then_every_five(self) -> None:
        rig = Rig()
        rig.send()
        rig.arrive(0, 1)
        rig.send()
        heard_ns = rig.now_ns - 200
        found = self.probes(rig, heard_ns + 14 * BASE_NS)
        assert [psn for _, psn, _ in found] == [1, 1, 1]
        times = [at - heard_ns for at, _, _ in found]
        assert times == pytest.approx([3 * BASE_NS, 8 * BASE_NS, 13 * BASE_NS], abs=2)

    def test_after_two_where_nothing_waits_to_be_sent(self) -> None:
        rig = Rig(packets=5)
        rig.send()
        rig.arrive(0)
        (first, *_) = self.probes(rig, rig.now_ns + 2 * BASE_NS)
        assert first[0] - rig.now_ns == pytest.approx(0, abs=1)

    @pytest.mark.parametrize(("rtt_ns", "again"), [(2 * BASE_NS - 1, [1, 2, 3, 4]), (2 * BASE_NS, [])])
    def test_an_answer_without_much_delay_says_that_what_is_missing_is_lost(
        self, rtt_ns: int, again: list[int]
    ) -> None:
        rig = Rig(packets=5)
        rig.send()
        rig.arrive(0)
        ((sent_ns, _, probe),) = self.probes(rig, rig.now_ns + 2 * BASE_NS)
        rtts = []
        replace_method(rig.qa.reaction_point, "on_ack", lambda feedback: rtts.append(feedback.rtt_ns))
        rig.b.receive(sent_ns + 1_000, probe)
        (answer,) = drain(rig.b, sent_ns + 1_000)
        rig.now_ns = sent_ns + rtt_ns
        rig.a.receive(rig.now_ns, answer)
        assert rtts == [rtt_ns]
        assert rig.send() == again

    @pytest.mark.parametrize(("packets", "times_rtts"), [(200, [1, 5, 9]), (5, [2, 6, 10])])
    def test_its_times_are_parameters(self, packets: int, times_rtts: list[int]) -> None:
        sleek = SleekConfig(
            windows=1.5, probe_after_base_rtts=1.0, probe_after_end_base_rtts=2.0, probe_again_base_rtts=4.0
        )
        rig = Rig(packets=packets, sleek=sleek)
        rig.send()
        rig.arrive(0)
        heard_ns = rig.now_ns
        rig.send()
        found = self.probes(rig, heard_ns + (times_rtts[-1] + 1) * BASE_NS)
        assert [at - heard_ns for at, _, _ in found] == pytest.approx([n * BASE_NS for n in times_rtts], abs=200)

    def test_one_that_nothing_was_acknowledged_before(self) -> None:
        """The time-out comes first; a probe of packet -1 is answered nevertheless."""
        rig = Rig(packets=5)
        rig.send()
        of_kind(rig.qa.sender, SelectiveRepeatSender).send_probe(rig.now_ns)
        (probe,) = drain(rig.a, rig.now_ns)
        assert psn_of(probe) == wire.PSN_MASK
        rig.b.receive(rig.now_ns, probe)
        (answer,) = drain(rig.b, rig.now_ns)
        rig.now_ns += 1_000
        rig.a.receive(rig.now_ns, answer)
        assert rig.send() == [0, 1, 2, 3, 4]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=4),
    window=st.sampled_from([1, 4, 30]),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    reorder=st.sampled_from([0.0, 0.5]),
    ack_every_bytes=st.sampled_from([0, 4 * PACKET]),
    as_simulated=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_every_byte_arrives_and_nothing_is_left(
    sizes: list[int], window: int, loss: float, reorder: float, ack_every_bytes: int, as_simulated: bool, seed: int
) -> None:
    sleek = SleekConfig(windows=1.5, as_simulated_resend=as_simulated)
    rig = Rig(window, 0, sleek=sleek, rto_ns=200_000, ack_every_bytes=ack_every_bytes)
    qa, qb = rig.qa, rig.qb
    for size in sizes:
        qa.post(size)
    Wire(rig.a, rig.b, trouble=Trouble(loss=loss, reorder=reorder, seed=seed)).run(1_000_000_000)
    if rig.a.stats.retries_exceeded:
        return
    assert qb.stats.bytes_delivered == qa.stats.bytes_acked == sum(sizes)
    assert qa.inflight_bytes == qa.sender.early == qa.limiter.recovering == 0
    assert rig.a.next_wakeup_ns() == 1 << 61


def test_early_packets_are_those_acknowledged_beyond_the_first_missing() -> None:
    rig = Rig(window=64, packets=64)
    rig.send()
    left = list(range(64))
    random.Random(1).shuffle(left)
    arrived = set()
    for number in left:
        rig.arrive(number)
        arrived.add(number)
        missing = next((each for each in range(64) if each not in arrived), 64)
        assert rig.qa.sender.early == sum(each > missing for each in arrived)


@pytest.mark.parametrize(
    "config", [{"reliability": "go-back-n"}, {"reliability": "selective-repeat", "loss_packets": 3}]
)
def test_it_needs_selective_repeat_without_other_detection(config: dict[str, str] | dict[str, str | int]) -> None:
    with pytest.raises(ParameterError, match=r"sleek\.windows 1\.5: expected 0, or selective-repeat with"):
        pair(sleek=SleekConfig(windows=1.5), **config)


@pytest.mark.parametrize(
    "constant",
    [
        {"windows": -1.0},
        {"least_packets": 0},
        {"probe_after_base_rtts": 0.0},
        {"probe_after_end_base_rtts": -1.0},
        {"probe_again_base_rtts": 0.0},
        {"probe_clear_base_rtts": 1e9},
    ],
)
def test_its_constants_have_ranges(constant: dict[str, float] | dict[str, int]) -> None:
    (name,) = constant
    with pytest.raises(UserError, match=rf"nic\.sleek\.{name}: should be "):
        validate(SleekConfig, constant, "nic.sleek")


def test_a_packet_of_expresspass_that_a_probe_found_missing_draws_credits() -> None:
    """The last packet is lost after the sender has reported that it needs no more credits."""
    a, b = pair("expresspass", reliability="selective-repeat", loss_packets=0, sleek=SleekConfig(windows=1.5))
    qa, _ = connect(a, b)
    qa.post(10_000)
    now_ns, lost = 0, 0
    while min(a.next_wakeup_ns(), b.next_wakeup_ns()) < NEVER:
        now_ns = max(now_ns + 100, min(a.next_wakeup_ns(), b.next_wakeup_ns()))
        assert now_ns < 10_000_000
        for sender, receiver in ((a, b), (b, a)):
            if (frame := sender.next_frame(now_ns)) is not None:
                if sender is a and frame[wire.BTH] <= wire.SEND_ONLY and psn_of(frame) == 9 and not lost:
                    lost += 1
                else:
                    receiver.receive(now_ns, frame)
    assert lost == 1
    assert (qa.stats.bytes_acked, qa.stats.packets_retransmitted, qa.stats.timeouts) == (10_000, 1, 0)
