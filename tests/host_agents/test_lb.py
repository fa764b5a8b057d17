"""Load balancers: the entropies that they send, and that the transport works with spraying."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from host_agents import wire
from host_agents.cc.base import Path
from host_agents.config import SELECTIVE_REPEAT
from host_agents.lb.base import LoadBalancer
from host_agents.lb.plb import Plb
from host_agents.lb.reps import Reps
from host_agents.registry import load_balancers, protocols, resolve_load_balancer
from p4cc._link import Trouble, Wire, connect, pair
from tests.host_agents.narrow import due_frame, of_kind, replace_method

PATH = Path(100e9, 8_000, 1000, 1058, 80)


def test_ecmp_keeps_its_entropy_and_queue_pairs_differ() -> None:
    def entropies(seed: int) -> set[int]:
        return {resolve_load_balancer("ecmp").create(seed, PATH).next_entropy(t) for t in range(5)}

    assert len(entropies(1)) == 1
    assert entropies(1) != entropies(2)


def test_spray_uses_all_entropies_evenly() -> None:
    balancer = resolve_load_balancer("spray", {"entropies": 16}).create(7, PATH)
    counts = Counter(balancer.next_entropy(0) for _ in range(16_000))
    assert set(counts) == set(range(0xC000, 0xC010))
    assert max(counts.values()) < 1_150
    assert min(counts.values()) > 850


@pytest.mark.parametrize("name", sorted(load_balancers()))
def test_entropies_are_in_range_and_repeatable(name: str) -> None:
    first, second = (resolve_load_balancer(name).create(3, PATH) for _ in range(2))
    drawn = [first.next_entropy(t) for t in range(100)]
    assert drawn == [second.next_entropy(t) for t in range(100)]
    assert all(0xC000 <= entropy <= 0xFFFF for entropy in drawn)


def test_the_sender_learns_the_entropy_and_mark_of_every_packet() -> None:
    a, b = pair(load_balancer="spray", reliability="selective-repeat")
    qa, _ = connect(a, b)
    seen = []
    replace_method(qa.load_balancer, "on_ack", lambda now_ns, entropy, marked: seen.append((entropy, marked)))
    qa.post(20_000)
    link = Wire(a, b)
    link.run(1_000_000)
    sent = [int.from_bytes(f[34:36], "big") for _, side, f in link.sent if side == 0]
    assert seen == [(entropy, False) for entropy in sent]
    assert len(set(sent)) > 15


def test_spraying_reorders_and_nothing_is_sent_twice() -> None:
    a, b = pair(load_balancer="spray", reliability="selective-repeat", loss_packets=0)
    qa, qb = connect(a, b)
    qa.post(1_000_000)
    Wire(a, b, trouble=Trouble(reorder=0.5, reorder_ns=4_000)).run(1_000_000)
    assert qb.stats.bytes_delivered == 1_000_000
    assert qb.stats.out_of_order > 300
    assert qa.stats.packets_retransmitted == 0


SPRAYING = sorted(name for name, info in load_balancers().items() if info.per_packet)
SPRAYED = sorted(
    name for name, info in protocols().items()
    if info.nic is None and not info.single_path and SELECTIVE_REPEAT in info.reliabilities
)


@pytest.mark.parametrize("balancer", SPRAYING)
@pytest.mark.parametrize("protocol", [*SPRAYED, "eqds+smartt", "rccc+nscc"])
def test_every_protocol_of_several_paths_works_with_every_balancer(protocol: str, balancer: str) -> None:
    a, b = pair(protocol, load_balancer=balancer, reliability=SELECTIVE_REPEAT, loss_packets=0)
    qa, qb = connect(a, b)
    qa.post(100_000)
    link = Wire(a, b, trouble=Trouble(reorder=0.5, reorder_ns=4_000))
    link.run(3_000_000)
    assert qb.stats.bytes_delivered == qa.stats.bytes_acked == 100_000
    assert qa.stats.packets_retransmitted == 0
    entropies = {frame[34:36] for _, side, frame in link.sent if side == 0}
    assert balancer == "plb" or len(entropies) > 8  # PLB changes the path only after congestion


@pytest.mark.parametrize(
    ("order", "config", "told"),
    [
        ([3, 0, 2, 1, 4, 5, 6, 7], {}, [3, 7]),  # 1 is answered, too, for all that waits
        ([7, 0, 1, 2, 3, 4, 5, 6], {}, [7, 3]),
        ([0, 1, 3, 2], {"ack_every_packets": 1}, [0, 1, 3, 2]),
        ([0, 1, 3, 2], {"loss_packets": 3}, [3, 2]),  # what is early is answered, too
    ],
)
def test_of_what_is_answered_because_it_was_late_a_load_balancer_is_not_told(
    order: list[int], config: dict[str, Any], told: list[int]
) -> None:
    """Check that late packets are not reported, as REPS would reuse the slowest paths."""
    config = {"loss_packets": 0, "ack_every_packets": 4} | config
    a, b = pair(load_balancer="spray", reliability="selective-repeat", **config)
    qa, _ = connect(a, b)
    seen = []
    replace_method(qa.load_balancer, "on_ack", lambda now_ns, entropy, marked: seen.append(entropy))
    qa.post(8_000)
    frames, now = [due_frame(a, i * 100) for i in range(8)], 1_000
    for number in order:
        now += 100
        b.receive(now, frames[number])
        while (sack := b.next_frame(now)) is not None:
            a.receive(now + 1_000, sack)
    assert seen == [int.from_bytes(frames[number][34:36], "big") for number in told]


def test_nacks_and_timeouts_reach_the_load_balancer() -> None:
    a, b = pair(reliability="selective-repeat", rto_ns=50_000)
    qa, qb = connect(a, b)
    told = []
    replace_method(qa.load_balancer, "on_nack", lambda now_ns, entropy: told.append(entropy))
    replace_method(qa.load_balancer, "on_timeout", told.append)
    qa.post(1000)
    frame = due_frame(a, 0)
    qb.receiver.send_nack(0, frame)
    a.receive(100, due_frame(b, 50))
    assert a.next_frame(100) is not None
    assert a.next_frame(50_100) is not None
    assert told == [int.from_bytes(frame[wire.SOURCE_PORT : 36], "big"), 50_100]


class TestReps:
    """Ports are written as entropies: their distance from the first port of this queue pair."""

    def reps(self, entropies: int = 4, bdp_packets: int = 4, seed: int = 3, **parameters: Any) -> LoadBalancer:
        path = Path(100e9, 8_000, 1000, 100_000 // bdp_packets, 80)
        balancer = resolve_load_balancer("reps", {"entropies": entropies, **parameters}).create(seed, path)
        self.first = 0xC000 + seed
        return balancer

    def sent(self, balancer: LoadBalancer) -> int:
        return balancer.next_entropy(0) - self.first

    def ack(self, balancer: LoadBalancer, entropy: int, marked: bool = False) -> None:
        balancer.on_ack(0, self.first + entropy, marked)

    def test_figure_5a(self) -> None:
        """All entropies are tried. An unmarked ACK's entropy is used again; a marked ACK leads to the next in turn."""
        reps = self.reps()
        assert [self.sent(reps) for _ in range(4)] == [0, 1, 2, 3]
        self.ack(reps, 0)
        assert self.sent(reps) == 0
        self.ack(reps, 1, marked=True)
        assert self.sent(reps) == 0  # the next in turn, after all four
        self.ack(reps, 2)
        assert self.sent(reps) == 2
        self.ack(reps, 3, marked=True)
        assert self.sent(reps) == 1
        self.ack(reps, 0)
        assert self.sent(reps) == 0

    def test_an_ack_names_the_path_of_one_packet(self) -> None:
        """Packets sent before the next ACK continue in turn. Otherwise a whole window would take one path."""
        reps = self.reps()
        for _ in range(4):
            self.sent(reps)
        self.ack(reps, 2)
        assert [self.sent(reps) for _ in range(8)] == [2, 0, 1, 2, 3, 0, 1, 2]

    def test_algorithm_4_stays_on_it_until_the_next_ack(self) -> None:
        reps = self.reps(use_once=False)
        for _ in range(4):
            self.sent(reps)
        self.ack(reps, 2)
        assert [self.sent(reps) for _ in range(8)] == [2] * 8

    @pytest.mark.parametrize("use_once", [True, False])
    def test_after_a_timeout_all_are_tried_again(self, use_once: bool) -> None:
        reps = self.reps(use_once=use_once)
        for _ in range(4):
            self.sent(reps)
        self.ack(reps, 2)
        reps.on_timeout(0)
        assert [self.sent(reps) for _ in range(10)] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
        self.ack(reps, 3)
        assert [self.sent(reps) for _ in range(4)] == [3] * 4  # a path that is gone is not tried again

    def test_explores_for_one_bdp_at_most(self) -> None:
        reps = self.reps(entropies=256, bdp_packets=10)
        assert self.sent(reps) == 0
        self.ack(reps, 0)
        assert [self.sent(reps) for _ in range(9)] == list(range(1, 10))  # the first BDP explores, ACK or not
        assert [self.sent(reps), self.sent(reps)] == [0, 10]

    def test_explores_each_entropy_once(self) -> None:
        reps = self.reps(entropies=4, bdp_packets=10)
        self.sent(reps)
        self.ack(reps, 0)
        assert [self.sent(reps) for _ in range(5)] == [1, 2, 3, 0, 0]  # the last one: in turn

    def test_goes_on_in_turn_until_the_first_ack(self) -> None:
        reps = self.reps(entropies=3, bdp_packets=5)
        assert [self.sent(reps) for _ in range(8)] == [0, 1, 2, 0, 1, 2, 0, 1]
        self.ack(reps, 1)
        assert [self.sent(reps) for _ in range(3)] == [1, 2, 0]

    def test_trimmed_packets_are_marks(self) -> None:
        reps = self.reps()
        for _ in range(4):
            self.sent(reps)
        self.ack(reps, 2)
        reps.on_nack(0, self.first + 2)
        assert self.sent(reps) == 0

    @pytest.mark.parametrize("cc", ["smartt", "eqds"])
    def test_data_packets_alone_explore(self, cc: str) -> None:
        """Check that neither opening a queue pair nor an RTS of EQDS uses an entropy."""
        a, b = pair(cc, load_balancer="reps", reliability="selective-repeat", loss_packets=0)
        qa, _ = connect(a, b)
        qa.post(1_000_000)
        frames = [due_frame(a, now) for now in range(0, 1000, 100)]
        data = [frame for frame in frames if frame[wire.BTH] < 0x11]
        assert len(data) == {"smartt": 10, "eqds": 9}[cc]
        ports = [int.from_bytes(frame[wire.SOURCE_PORT : 36], "big") for frame in data]
        assert [port - 0xC000 - of_kind(qa.load_balancer, Reps).first for port in ports] == list(range(len(data)))

    def test_control_packets_that_nothing_answers_try_one_path_after_the_other(self) -> None:
        reps = self.reps()
        assert {reps.control_entropy(t) - self.first for t in range(4)} == {0, 1, 2, 3}
        assert self.sent(reps) == 0

    def test_ports_wrap_within_their_range(self) -> None:
        reps = self.reps(entropies=256, bdp_packets=400, seed=0x3FFF)
        ports = [reps.next_entropy(0) for _ in range(256)]
        assert (ports[0], ports[1]) == (0xFFFF, 0xC000)
        assert len(set(ports)) == 256
        reps.on_ack(0, 0xC000, False)
        assert reps.next_entropy(0) == 0xC000


class TestPlb:
    def rounds(self, plb: LoadBalancer, count: int, marked: Callable[[int], bool], start_ns: int = 0) -> int:
        """Deliver ACKs every 1 us for this number of rounds of 8 us, and return the time after them."""
        for i in range(8 * count):
            plb.next_entropy(start_ns + 1_000 * i)
            plb.on_ack(start_ns + 1_000 * i, 0, marked(i))
        return start_ns + 8_000 * count

    def test_stays_while_less_than_half_is_marked(self) -> None:
        plb = resolve_load_balancer("plb").create(3, PATH)
        first = plb.next_entropy(0)
        self.rounds(plb, 50, lambda i: i % 3 == 0)
        assert plb.next_entropy(400_000) == first

    def test_moves_after_twelve_congested_rounds(self) -> None:
        plb = resolve_load_balancer("plb").create(3, PATH)
        first = plb.next_entropy(0)
        end = self.rounds(plb, 11, lambda i: i % 2 == 0)
        assert plb.next_entropy(end) == first
        end = self.rounds(plb, 2, lambda i: True, end)
        assert plb.next_entropy(end) != first
        assert of_kind(plb, Plb).congested_rounds <= 1

    def test_moves_earlier_when_idle(self) -> None:
        plb = resolve_load_balancer("plb").create(3, PATH)
        first = plb.next_entropy(0)
        end = self.rounds(plb, 4, lambda i: True)
        assert plb.next_entropy(end) == first
        assert plb.next_entropy(end + 8_000) != first

    def test_moves_at_a_timeout(self) -> None:
        plb = resolve_load_balancer("plb").create(3, PATH)
        first = plb.next_entropy(0)
        plb.on_timeout(1)
        assert plb.next_entropy(1) != first

    def test_trimmed_packets_are_marks(self) -> None:
        plb = resolve_load_balancer("plb", {"rounds": 2}).create(3, PATH)
        first = plb.next_entropy(0)
        for t in range(0, 40_000, 4_000):
            plb.on_nack(t, first)
        assert plb.next_entropy(40_000) != first
