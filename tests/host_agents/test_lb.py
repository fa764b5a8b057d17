"""Load balancers: which entropies go out, and that the transport stands what spraying does."""

from collections import Counter

import pytest

from host_agents import wire
from host_agents.registry import load_balancers, resolve_load_balancer
from host_agents.testing import Trouble, Wire, connect, pair


def test_ecmp_keeps_its_entropy_and_queue_pairs_differ():
    def entropies(seed):
        return {resolve_load_balancer("ecmp").create(seed).next_entropy(t) for t in range(5)}

    assert len(entropies(1)) == 1
    assert entropies(1) != entropies(2)


def test_spray_uses_all_entropies_evenly():
    balancer = resolve_load_balancer("spray", {"entropies": 16}).create(7)
    counts = Counter(balancer.next_entropy(0) for _ in range(16_000))
    assert set(counts) == set(range(0xC000, 0xC010))
    assert max(counts.values()) < 1_150
    assert min(counts.values()) > 850


@pytest.mark.parametrize("name", sorted(load_balancers()))
def test_entropies_are_in_range_and_repeatable(name):
    first, second = (resolve_load_balancer(name).create(3) for _ in range(2))
    drawn = [first.next_entropy(t) for t in range(100)]
    assert drawn == [second.next_entropy(t) for t in range(100)]
    assert all(0xC000 <= entropy <= 0xFFFF for entropy in drawn)


def test_the_sender_learns_the_entropy_and_mark_of_every_packet():
    a, b = pair(load_balancer="spray", reliability="selective-repeat")
    qa, _ = connect(a, b)
    seen = []
    qa.load_balancer.on_ack = lambda now_ns, entropy, marked: seen.append((entropy, marked))
    qa.post(20_000)
    link = Wire(a, b)
    link.run(1_000_000)
    sent = [int.from_bytes(f[34:36], "big") for _, side, f in link.sent if side == 0]
    assert seen == [(entropy, False) for entropy in sent]
    assert len(set(sent)) > 15


def test_spraying_reorders_and_nothing_is_sent_twice():
    a, b = pair(load_balancer="spray", reliability="selective-repeat", loss_packets=0)
    qa, qb = connect(a, b)
    qa.post(1_000_000)
    Wire(a, b, trouble=Trouble(reorder=0.5, reorder_ns=4_000)).run(1_000_000)
    assert qb.stats.bytes_delivered == 1_000_000
    assert qb.stats.out_of_order > 300
    assert qa.stats.packets_retransmitted == 0


def test_nacks_and_timeouts_reach_the_load_balancer():
    a, b = pair(reliability="selective-repeat", rto_ns=50_000)
    qa, qb = connect(a, b)
    told = []
    qa.load_balancer.on_nack = lambda now_ns, entropy: told.append(entropy)
    qa.load_balancer.on_timeout = told.append
    qa.post(1000)
    frame = a.next_frame(0)
    qb.send_nack(0, frame)
    a.receive(100, b.next_frame(50))
    assert a.next_frame(100) is not None
    assert a.next_frame(50_100) is not None
    assert told == [int.from_bytes(frame[wire.SOURCE_PORT : 36], "big"), 50_100]
