"""The halves of a queue pair: each is there once it is needed, since there may be a million queue pairs."""

import gc

import pytest

from harness.worlds.link import Wire, connect, pair
from host_agents.cc.base import ReactionPoint
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.receiver import Receiver
from host_agents.sender import Sender

MANY = 20  # queue pairs


def alive(kind: type) -> int:
    """How many objects of a class, or of one derived from it, there are."""
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


class TestHalves:
    @pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
    def test_an_end_that_only_sends_or_only_receives_has_one(self, reliability):
        kinds = (Sender, RateLimiter, ReactionPoint, LoadBalancer, Receiver)
        a, b = pair("hpcc", reliability=reliability)
        before = [alive(kind) for kind in kinds]
        opened = [connect(a, b, number) for number in range(1, MANY + 1)]
        assert [alive(kind) for kind in kinds] == before
        messages = [qa.post(5000) for qa, _ in opened]
        Wire(a, b).run(10_000_000)
        assert all(message.completed_ns > 0 for message in messages)
        assert [alive(kind) - count for kind, count in zip(kinds, before, strict=True)] == [MANY] * len(kinds)

    def test_an_end_that_has_received_sends(self):
        a, b = pair("hpcc")
        qa, qb = connect(a, b)
        first = qa.post(5000)
        wire = Wire(a, b)
        wire.run(10_000_000)
        answer = qb.post(3000)
        wire.run(20_000_000)
        assert first.completed_ns > 0
        assert answer.completed_ns > 0
        assert (qa.stats.bytes_delivered, qb.stats.bytes_delivered) == (3000, 5000)

    def test_an_end_takes_the_same_path_whichever_of_them_sends_first(self):
        """The load balancer's seed is drawn when a queue pair is opened."""

        def entropies(order):
            a, b = pair("hpcc")
            opened = [connect(a, b, number)[0] for number in (1, 2, 3)]
            return {number: opened[number].load_balancer.next_entropy(0) for number in order}

        assert entropies((0, 1, 2)) == entropies((2, 0, 1))
