"""Variable AI and sampling frequency: algorithms 1 and 2 line by line, then inside HPCC and Swift."""

from typing import Any

import pytest

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.cc.hpcc import Hpcc, HpccParameters
from host_agents.cc.sf import SamplingFrequency, SfParameters
from host_agents.cc.swift import Swift, SwiftParameters
from host_agents.cc.vai import VaiParameters, VariableAi
from host_agents.registry import resolve

T_NS = 8_000
BDP = 100_000.0
INCREASE = 50.0
PATH = Path(100e9, T_NS, 1000, 1058, 80)


def variable_ai(**parameters: Any) -> VariableAi:
    p = VaiParameters(**parameters)
    return VariableAi(p, p.token_threshold_bytes, p.bytes_per_token)


class TestTokens:
    def test_no_tokens_up_to_the_threshold(self) -> None:
        vai = variable_ai()
        vai.observe(50_000.0, True)
        vai.end_rtt()
        assert (vai.bank, vai.dampener) == (0.0, 0.0)
        assert vai.multiplier(True) == 1.0

    def test_the_worst_congestion_of_an_rtt_mints(self) -> None:
        vai = variable_ai()
        for queue in (10_000.0, 150_000.0, 20_000.0):
            vai.observe(queue, True)
        vai.end_rtt()
        assert vai.bank == 150.0  # a token for each kB
        assert vai.dampener == 3.0  # 150 kB over 50 kB
        vai.end_rtt()  # nothing measured: nothing minted
        assert vai.bank == 150.0

    def test_the_bank_is_capped(self) -> None:
        vai = variable_ai()
        for _ in range(5):
            vai.observe(400_000.0, True)
            vai.end_rtt()
        assert vai.bank == 1000.0
        assert vai.dampener == 40.0

    def test_tokens_are_spent_only_when_the_reference_moves(self) -> None:
        vai = variable_ai()
        vai.bank = 150.0
        assert vai.multiplier(False) == 100.0  # the cap
        assert vai.bank == 150.0
        assert vai.multiplier(True) == 100.0
        assert vai.bank == 50.0
        assert vai.multiplier(True) == 50.0
        assert vai.bank == 0.0
        assert vai.multiplier(True) == 1.0

    def test_the_dampener_divides_what_is_spent(self) -> None:
        vai = variable_ai()
        vai.bank, vai.dampener = 100.0, 24.0
        assert vai.multiplier(False) == 100.0 / (24.0 / 8.0 + 1.0)

    def test_the_dampener_falls_only_with_an_empty_bank(self) -> None:
        vai = variable_ai()
        vai.bank, vai.dampener = 1.0, 5.0
        vai.end_rtt()
        assert vai.dampener == 5.0
        vai.bank = 0.0
        vai.observe(1_000.0, True)  # some congestion: a step
        vai.end_rtt()
        assert vai.dampener == 4.0
        vai.observe(1_000.0, False)  # none in the whole RTT: at once
        vai.end_rtt()
        assert vai.dampener == 0.0
        vai.observe(1_000.0, True)
        vai.end_rtt()
        assert vai.dampener == 0.0


def test_sampling_frequency_counts_acks_between_decreases() -> None:
    sampling = SamplingFrequency(SfParameters(acks_per_decrease=3))
    assert [sampling.may_update(True, False) for _ in range(7)] == [False, False, True, False, False, True, False]
    assert not sampling.may_update(False, False)  # increases: by the RTT only, but they are ACKs, too
    assert sampling.may_update(False, True)
    assert sampling.may_update(True, True)


def test_sampling_frequency_may_also_decrease_when_an_rtt_is_over() -> None:
    sampling = SamplingFrequency(SfParameters(acks_per_decrease=3, at_least_once_an_rtt=True))
    ended = [False, True, False, False, False, False, False]
    assert [sampling.may_update(True, over) for over in ended] == [False, True, False, False, True, False, False]


class Link:
    """A link on which every ACK shows the requested load and queue over exactly T."""

    def __init__(self, rp: ReactionPoint) -> None:
        self.rp = rp
        self.time_ns = self.units = 0

    def ack(self, order: int, load: float, queue_cells: int = 0) -> None:
        self.time_ns += T_NS
        self.units += round(load * BDP / 128)
        word = 10 << 60 | self.time_ns % 2**24 << 36 | self.units % 2**20 << 16 | queue_cells
        feedback = Feedback()
        feedback.now_ns, feedback.order, feedback.int_hops = self.time_ns, order, 1
        feedback.frame = word.to_bytes(8, "big")
        self.rp.on_ack(feedback)


class TestHpcc:
    def test_the_reference_falls_every_30_acks_and_rises_every_rtt(self) -> None:
        rp = Hpcc(HpccParameters(), PATH, None, SamplingFrequency(SfParameters()))
        link = Link(rp)
        rp.traffic.sent_packets = 1000  # one RTT from here on
        link.ack(0, 1.0)
        references = []
        for order in range(1, 91):
            link.ack(order, 1.9)
            references.append(rp.reference_bytes)
        changes = [i + 1 for i in range(1, 90) if references[i] != references[i - 1]]
        assert changes == [30, 60, 90]
        for order in range(91, 200):
            link.ack(order, 0.5)
            assert rp.reference_bytes == references[-1]
        rp.traffic.sent_packets = 1200
        link.ack(1000, 0.5)
        assert rp.reference_bytes == pytest.approx(references[-1] + INCREASE)
        assert rp.update_order == 1200

    def test_between_updates_the_window_follows_from_the_reference(self) -> None:
        rp = Hpcc(HpccParameters(), PATH, None, SamplingFrequency(SfParameters()))
        link = Link(rp)
        rp.traffic.sent_packets = 1000
        link.ack(0, 1.0)
        link.ack(1, 1.9)
        first = rp.window_bytes
        link.ack(2, 1.9)
        assert rp.window_bytes == pytest.approx(first, rel=1e-3)
        assert first == pytest.approx(BDP / 2, rel=2e-3)

    def test_a_long_queue_speeds_up_the_additive_increase(self) -> None:
        vai = variable_ai()
        rp = Hpcc(HpccParameters(), PATH, vai)
        link = Link(rp)
        rp.traffic.sent_packets = 5
        link.ack(0, 1.0)
        link.ack(1, 1.9, queue_cells=1500)  # 120 kB
        assert vai.bank == 0.0  # the RTT is not over
        rp.traffic.sent_packets = 10
        link.ack(5, 1.9)
        # 120 tokens, of which 100 are spent; the dampener is 120 / 50 = 2.4.
        assert vai.bank == 20.0
        assert vai.dampener == pytest.approx(2.4)
        tokens = 100.0 / (2.4 / 8.0 + 1.0)
        assert rp.reference_bytes == pytest.approx(BDP / (rp.utilization / 0.95) + tokens * INCREASE)


def swift_ack(rp: ReactionPoint, order: int, rtt_ns: int, now_ns: int = 0) -> None:
    feedback = Feedback()
    feedback.now_ns, feedback.order, feedback.rtt_ns, feedback.hops = now_ns, order, rtt_ns, 1
    feedback.acked_bytes = 1058
    rp.on_ack(feedback)


class TestSwift:
    def test_decreases_come_from_the_reference_and_always_add(self) -> None:
        rp = Swift(SwiftParameters(), PATH, None, SamplingFrequency(SfParameters(acks_per_decrease=3)))
        rp.traffic.sent_packets = 1000
        target = 7_000.0  # 5 us and one hop; no flow-based scaling
        assert rp.target_ns(1) == target
        expected = BDP * (1 - 0.8 * 1_000 / 8_000) + INCREASE
        for order in (0, 1):
            swift_ack(rp, order, 8_000)
            assert rp.window_bytes == pytest.approx(expected)
            assert rp.reference_bytes == BDP
        swift_ack(rp, 2, 8_000)  # the third ACK
        assert rp.reference_bytes == rp.window_bytes == pytest.approx(expected)
        swift_ack(rp, 3, 7_999 - 1_000)  # under the target, within the RTT
        assert rp.reference_bytes == pytest.approx(expected)
        assert rp.window_bytes == pytest.approx(expected + INCREASE)
        swift_ack(rp, 1000, 6_999)  # the RTT is over
        assert rp.reference_bytes == pytest.approx(expected + INCREASE)

    def test_variable_ai_counts_delay_beyond_the_target(self) -> None:
        p = VaiParameters()
        vai = VariableAi(p, p.token_threshold_ns, p.ns_per_token)
        rp = Swift(SwiftParameters(), PATH, vai)
        rp.traffic.sent_packets = 5
        swift_ack(rp, 0, 7_000 + 6_000)  # ends the first RTT: 6 us beyond the target are 200 tokens
        assert vai.bank == 100.0
        assert vai.dampener == 1.5
        tokens = 100.0 / (1.5 / 8.0 + 1.0)
        assert rp.window_bytes == pytest.approx(BDP * (1 - 0.8 * 6_000 / 13_000) + tokens * INCREASE)


@pytest.mark.parametrize("name", ["hpcc+vai", "hpcc+sf", "hpcc+vai+sf", "swift+vai", "swift+sf", "swift+vai+sf"])
def test_they_compose_by_name(name: str) -> None:
    protocol = resolve(name, {"vai": {"ai_cap_tokens": 50}} if "vai" in name else {})
    rp = protocol.reaction_point(PATH)
    assert isinstance(rp, Hpcc | Swift)
    assert (rp.variable_ai is not None) == ("vai" in name)
    assert (rp.sampling is not None) == ("sf" in name)
    if rp.variable_ai:
        assert rp.variable_ai.ai_cap == 50.0
        assert rp.variable_ai.threshold == (50_000.0 if "hpcc" in name else 4_000.0)
