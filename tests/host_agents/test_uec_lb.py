"""Ultra Ethernet's load balancers step by step. Entropies are numbered from 0."""

from collections import Counter
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents.cc.base import Path
from host_agents.errors import ParameterError
from host_agents.lb.base import LoadBalancer
from host_agents.lb.bitmap import Bitmap
from host_agents.lb.mixed import Mixed
from host_agents.lb.oblivious import Oblivious, Rounds
from host_agents.lb.uec_reps import LegacyReps, UecReps
from host_agents.registry import resolve_load_balancer
from p4cc._link import Trouble, Wire, connect, pair
from tests.host_agents.narrow import due_frame, of_kind

PATH = Path(100e9, 8_000, 1000, 1058, 80)
NAMES = ("oblivious", "bitmap", "mixed", "uec-reps")


def balancer(name: str, seed: int = 7, **parameters: Any) -> LoadBalancer:
    return resolve_load_balancer(name, {"entropies": 16} | parameters).create(seed, PATH)


def rounds(lb: LoadBalancer) -> Rounds:
    """Return the order in which one of UEC's load balancers uses its entropies, by rounds."""
    assert isinstance(lb, Oblivious | Bitmap | Mixed | UecReps | LegacyReps)
    return lb.rounds


def penalties(lb: LoadBalancer) -> list[int]:
    """Return the penalty of each entropy."""
    assert isinstance(lb, Bitmap | Mixed)
    return lb.penalties.penalties


def numbers(lb: LoadBalancer, count: int, now_ns: int = 0) -> list[int]:
    return [rounds(lb).number(lb.next_entropy(now_ns)) for _ in range(count)]


def good(lb: LoadBalancer, *which: int, now_ns: int = 0) -> None:
    for number in which:
        lb.on_ack(now_ns, rounds(lb).port(number), False)


@pytest.mark.parametrize("name", ["oblivious", "bitmap", "mixed"])
def test_each_round_takes_every_entropy_once_in_another_order(name: str) -> None:
    lb = balancer(name)
    rounds = [tuple(numbers(lb, 16)) for _ in range(20)]
    assert all(sorted(round_) == list(range(16)) for round_ in rounds)
    assert len(set(rounds)) > 8
    assert all(round_[i] ^ round_[i + 1] == 1 for round_ in rounds for i in range(0, 16, 2))


@pytest.mark.parametrize("name", NAMES)
def test_the_upper_bits_are_a_queue_pairs_own(name: str) -> None:
    ports = [{balancer(name, seed).next_entropy(0) & ~15 for _ in range(9)} for seed in range(20)]
    assert all(len(own) == 1 for own in ports)
    assert len(set().union(*ports)) > 15


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_entropies_is_a_power_of_two(name: str) -> None:
    told = f"{name}( and mixed)?: parameter entropies: should be a power of two .got 12."
    with pytest.raises(ParameterError, match=told):
        balancer(name, entropies=12)
    assert balancer(name, entropies=1).next_entropy(0) >= 0xC000
    assert balancer(name, entropies=16384).next_entropy(0) <= 0xFFFF


class TestBitmap:
    def test_a_mark_costs_one_turn(self) -> None:
        lb = balancer("bitmap")
        lb.on_ack(0, rounds(lb).port(5), True)
        first = numbers(lb, 15)
        assert 5 not in first
        assert 5 in numbers(lb, 16)

    def test_a_trim_costs_four(self) -> None:
        lb = balancer("bitmap")
        lb.on_nack(0, rounds(lb).port(5))
        drawn = numbers(lb, 4 * 15)
        assert 5 not in drawn
        assert Counter(drawn) == dict.fromkeys(set(range(16)) - {5}, 4)
        assert 5 in numbers(lb, 16)

    def test_a_penalty_is_at_most_15(self) -> None:
        lb = balancer("bitmap")
        for _ in range(9):
            lb.on_nack(0, rounds(lb).port(5))
        assert penalties(lb)[5] == 15

    def test_the_largest_penalty_is_a_parameter(self) -> None:
        lb = balancer("bitmap", most_penalty=3)
        lb.on_nack(0, rounds(lb).port(5))
        assert penalties(lb)[5] == 3

    @pytest.mark.parametrize("name", ["bitmap", "mixed"])
    def test_a_time_out_is_the_lost_packets_or_as_simulated_that_of_entropy_0(self, name: str) -> None:
        for as_simulated, expected in ((False, 5), (True, 0)):
            lb = balancer(name, as_simulated_timeout=as_simulated)
            lb.on_expired(0, rounds(lb).port(5))
            assert {number: penalty for number, penalty in enumerate(penalties(lb)) if penalty} == {
                expected: 15
            }

    def test_one_that_comes_on_the_way_to_another_keeps_its_penalty(self) -> None:
        lb = balancer("bitmap")
        first, second = numbers(balancer("bitmap"), 2)
        for number in (first, second):
            lb.on_ack(0, rounds(lb).port(number), True)
        numbers(lb, 1)
        assert (penalties(lb)[first], penalties(lb)[second]) == (0, 1)

    def test_when_all_have_a_penalty_one_is_taken_all_the_same(self) -> None:
        lb = balancer("bitmap")
        for number in range(16):
            lb.on_nack(0, rounds(lb).port(number))
        assert len(numbers(lb, 1)) == 1
        assert sum(penalties(lb)) == 16 * 4 - 1

    def test_a_time_out_punishes_no_entropy(self) -> None:
        lb = balancer("bitmap")
        lb.on_timeout(0)
        assert sum(penalties(lb)) == 0


class TestMixed:
    def test_good_entropies_are_taken_once_and_in_order(self) -> None:
        lb = balancer("mixed")
        good(lb, 3, 9, 3)
        assert numbers(lb, 3) == [3, 9, 3]
        assert sorted(numbers(lb, 16)) == list(range(16))

    def test_marked_and_trimmed_ones_are_avoided(self) -> None:
        lb = balancer("mixed")
        lb.on_ack(0, rounds(lb).port(3), True)
        lb.on_nack(0, rounds(lb).port(9))
        assert set(numbers(lb, 14)) == set(range(16)) - {3, 9}


class TestReps:
    def test_without_good_ones_it_takes_any(self) -> None:
        assert len(set(numbers(balancer("uec-reps"), 200))) == 16

    def test_the_oldest_fresh_one_is_taken_and_is_stale_then(self) -> None:
        lb = balancer("uec-reps", entropies=16384)
        good(lb, 3, 9, 4)
        assert numbers(lb, 2) == [3, 9]
        good(lb, 6)
        assert numbers(lb, 2) == [4, 6]
        assert not set(numbers(lb, 8)) & {3, 9, 4, 6}

    def test_the_ring_keeps_the_latest_eight(self) -> None:
        lb = balancer("uec-reps")
        good(lb, *range(10))
        assert numbers(lb, 8) == list(range(2, 10))

    def test_a_marked_ack_and_a_trim_add_nothing(self) -> None:
        lb = balancer("uec-reps", entropies=16384)
        lb.on_ack(0, rounds(lb).port(3), True)
        lb.on_nack(0, rounds(lb).port(3))
        assert 3 not in numbers(lb, 50)

    def test_a_time_out_freezes_the_ring(self) -> None:
        """Stale entropies are also used in turn; good ones that come back are added. Then 16 packets explore."""
        lb = balancer("uec-reps", entropies=16384)
        good(lb, 3, 9, 4)
        numbers(lb, 2)
        lb.on_timeout(1_000)
        assert set(numbers(lb, 6, now_ns=2_000)) == {3, 9, 4}
        good(lb, 6, now_ns=3_000)
        assert set(numbers(lb, 8, now_ns=10_000_999)) == {3, 9, 4, 6}
        assert not set(numbers(lb, 1, now_ns=10_001_000)) & {3, 9, 4, 6}
        good(lb, 5, now_ns=10_001_000)
        explored = numbers(lb, 15, now_ns=10_001_000)
        assert 5 not in explored
        assert numbers(lb, 1, now_ns=10_001_000) == [5]

    def test_it_does_not_freeze_while_it_explores(self) -> None:
        lb = balancer("uec-reps")
        lb.on_timeout(0)
        numbers(lb, 1, now_ns=10_000_000)
        lb.on_timeout(10_000_001)
        assert of_kind(lb, UecReps).frozen_until_ns == -1

    def test_legacy(self) -> None:
        """The entropies 1, 2, 3 and so on serve a window of packets; then the queue does, which has no limit."""
        lb = balancer("uec-reps", legacy=True, legacy_first_bdp=0.1)
        assert numbers(lb, 9) == list(range(1, 10))
        good(lb, *range(12))
        assert numbers(lb, 12) == list(range(12))
        assert len(set(numbers(lb, 100))) > 10
        lb = balancer("uec-reps", legacy=True)
        assert numbers(lb, 16) == [*range(1, 16), 0]


FEEDBACK = st.lists(st.tuples(st.sampled_from("agnts"), st.integers(0, 0xFFFF)), max_size=200)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from((*NAMES, "legacy")), st.integers(0, 9), FEEDBACK, st.sampled_from((1, 2, 64)))
def test_whatever_comes_back_entropies_are_the_queue_pairs_own(
    name: str, seed: int, feedback: list[tuple[str, int]], entropies: int
) -> None:
    """Check forged ports, too: any port may come back."""
    parameters = {"legacy": True} if name == "legacy" else {}
    lb = balancer("uec-reps" if name == "legacy" else name, seed, entropies=entropies, **parameters)
    own = {rounds(lb).port(number) for number in range(entropies)}
    assert own <= set(range(0xC000, 0x10000))
    for (kind, port), now_ns in zip(feedback, cycle((1, 5_000_000, 20_000_000)), strict=False):
        if kind == "n":
            lb.on_nack(now_ns, port)
        elif kind == "t":
            lb.on_timeout(now_ns)
        elif kind == "s":
            assert lb.next_entropy(now_ns) in own
        else:
            lb.on_ack(now_ns, port, kind == "a")
    assert lb.next_entropy(30_000_000) in own


@pytest.mark.parametrize("name", NAMES)
def test_spraying_reorders_and_nothing_is_sent_twice(name: str) -> None:
    a, b = pair(load_balancer=name, reliability="selective-repeat", loss_packets=0)
    qa, qb = connect(a, b)
    qa.post(300_000)
    link = Wire(a, b, trouble=Trouble(reorder=0.5, reorder_ns=4_000))
    link.run(1_000_000)
    assert qb.stats.bytes_delivered == 300_000
    assert qa.stats.packets_retransmitted == 0
    assert len({frame[34:36] for _, side, frame in link.sent if side == 0}) > 20


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("name", ["bitmap", "mixed"])
def test_a_time_out_adds_to_the_penalty_of_the_path_that_lost_the_packet(name: str, reliability: str) -> None:
    a, b = pair(load_balancer=name, reliability=reliability)
    qa, _ = connect(a, b)
    qa.post(3_000)
    frames = [due_frame(a, now_ns) for now_ns in (0, 100, 200)]
    lost = int.from_bytes(frames[2][34:36], "big")
    for frame in frames[:2]:
        b.receive(8_000, frame)
        a.receive(9_000, due_frame(b, 8_000))
    while (again := a.next_frame(a.next_wakeup_ns())) is None:
        pass
    assert again[54:] == frames[2][54:]
    assert qa.stats.timeouts == 1
    balancer = qa.sender.load_balancer
    assert penalties(balancer)[rounds(balancer).number(lost)] == 15
    assert sum(penalties(balancer)) == 15
