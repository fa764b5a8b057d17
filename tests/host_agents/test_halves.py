"""The halves of a queue pair are created on demand, because there may be a million queue pairs."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.columns.flows import all_columns
from harness.worlds.host_session import Connect, HostSession, Post
from host_agents.cc.base import ReactionPoint
from host_agents.cc.sperc import CONTROL
from host_agents.errors import HostError
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from host_agents.receiver import Receiver
from host_agents.registry import resolve
from host_agents.sender import Sender
from host_agents.timers import NEVER
from host_agents.wire import AFTER_BTH, BTH
from p4cc._link import Wire, connect, pair

MANY = 20  # queue pairs


def alive(*kinds: type) -> list[int]:
    """Return the number of living objects of each class, with derived classes.

    Types are counted first, because a process of many tests has millions of objects.
    """
    of_type = Counter(map(type, gc.get_objects()))
    return [sum(count for one, count in of_type.items() if issubclass(one, kind)) for kind in kinds]


@contextmanager
def without_garbage_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def many_that_send(a: Nic, b: Nic, size_bytes: int) -> list[QueuePair]:
    """Return many queue pairs from one NIC to the other, each with a message."""
    opened = [connect(a, b, number)[0] for number in range(1, MANY + 1)]
    for qa in opened:
        qa.post(size_bytes)
    return opened


class TestHalves:
    @pytest.mark.parametrize("protocol", ["hpcc", "dcqcn"])  # whose receivers answer marks with CNPs
    @pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
    def test_an_end_that_only_sends_or_only_receives_has_one(self, protocol: str, reliability: str) -> None:
        kinds = (Sender, RateLimiter, ReactionPoint, LoadBalancer, Receiver)
        a, b = pair(protocol, reliability=reliability)
        gc.collect()
        before = alive(*kinds)
        opened = [connect(a, b, number) for number in range(1, MANY + 1)]
        assert alive(*kinds) == before
        messages = [qa.post(5000) for qa, _ in opened]
        Wire(a, b).run(10_000_000)
        assert all(message.completed_ns > 0 for message in messages)
        assert [now - then for now, then in zip(alive(*kinds), before, strict=True)] == [MANY] * len(kinds)

    def test_an_end_that_has_received_sends(self) -> None:
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

    def test_an_end_takes_the_same_path_whichever_of_them_sends_first(self) -> None:
        """The load balancer's seed is drawn when a queue pair is opened."""

        def entropies(order: Iterable[int]) -> dict[int, int]:
            a, b = pair("hpcc")
            opened = [connect(a, b, number)[0] for number in (1, 2, 3)]
            return {number: opened[number].load_balancer.next_entropy(0) for number in order}

        assert entropies((0, 1, 2)) == entropies((2, 0, 1))

    @pytest.mark.parametrize("protocol", ["none", "dcqcn", "hpcc", "swift", "timely", "bbr", "dctcp", "reno"])
    @pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
    def test_an_end_that_retires_frees_its_sending_half_at_once(self, protocol: str, reliability: str) -> None:
        """No object stays for the garbage collector, which rarely runs during a run."""
        kinds = (Sender, RateLimiter, ReactionPoint, LoadBalancer)
        a, b = pair(protocol, reliability=reliability)
        with without_garbage_collector():
            before = alive(*kinds)
            opened = many_that_send(a, b, 50_000)
            Wire(a, b).run(20_000_000)
            assert all(qa.stats.bytes_acked == 50_000 for qa in opened)
            for qa in opened:
                qa.retire()
            assert alive(*kinds) == before

    @pytest.mark.parametrize("protocol", ["accurate", "sperc", "sperc+1rc+weights"])
    def test_an_end_whose_protocol_has_packets_retires_too(self, protocol: str) -> None:
        """Other packets of the protocol that come afterwards are ignored."""
        kinds = (Sender, RateLimiter, ReactionPoint, LoadBalancer)
        a, b = pair(protocol)
        answers: list[bytes] = []
        control = resolve(protocol).info.packets[0]

        def keep(now_ns: int, frame: bytes) -> bytes:
            if frame[BTH] == control.opcode and frame[AFTER_BTH] & 0x80 >> (2 * (protocol == "accurate")):
                answers.append(frame)
            return frame

        with without_garbage_collector():
            before = alive(*kinds)
            opened = many_that_send(a, b, 300_000)
            Wire(a, b, hook=keep).run(20_000_000)
            assert all(qa.retire() for qa in opened)
            assert alive(*kinds) == before
            a.receive(21_000_000, answers[-1])
            assert alive(*kinds) == before
        assert a.next_wakeup_ns() >= NEVER
        assert a.stats.malformed == 0

    def test_an_end_retires_only_when_its_flow_has_left_the_links(self) -> None:
        """Without the last response, s-PERC's flow is removed four intervals later."""
        a, b = pair("sperc")
        qa, _ = connect(a, b)
        done: list[int] = []
        a.on_complete = lambda message: done.append(message.completed_ns)

        def lost(now_ns: int, frame: bytes) -> bytes | None:
            return None if frame[BTH] == CONTROL.opcode and qa.stats.bytes_acked > 100_000 else frame

        qa.post(300_000)
        wire = Wire(a, b, hook=lost)
        while not done:
            wire.run(wire.now_ns + 100)
        assert not qa.retire()
        assert qa.limiter.reaction_point.closed is False
        wire.run(wire.now_ns + 200_000)
        assert qa.retire()
        (leaving,) = [frame for _, side, frame in wire.sent if side == 0 and frame[BTH] == CONTROL.opcode][-1:]
        assert leaving[AFTER_BTH] & 0x40

    @pytest.mark.parametrize(("protocol", "kept"), [("sperc", 2), ("accurate", 2), ("hpcc", 2), ("expresspass", MANY)])
    def test_finished_flows_keep_no_sending_halves(self, protocol: str, kept: int) -> None:
        """The last one stays until another queue pair is opened. ExpressPass' senders answer late credits."""
        a, b = pair(protocol)
        session = HostSession(a, lambda event: None, all_columns(["rate_bps"]), samples=False)
        wire = Wire(a, b)
        gc.collect()
        (before,) = alive(Sender)
        for number in range(1, MANY + 1):
            session.connect(Connect(number, b.config.address, wire.now_ns))
            b.open_qp(a.config.address, number, number)
            session.post(Post(number, number, 300_000, wire.now_ns, None, only=True), wire.now_ns)
            wire.run(wire.now_ns + 1_000_000)
        assert session.report({}).unfinished == {}
        gc.collect()
        assert alive(Sender) == [before + kept]

    def test_what_is_answered_after_an_end_has_retired_is_counted(self) -> None:
        a, b = pair("hpcc")
        qa, _ = connect(a, b)
        answers: list[bytes] = []

        def keep(now_ns: int, frame: bytes) -> bytes:
            answers.append(frame)
            return frame

        wire = Wire(a, b, hook=keep)
        qa.post(3000)
        wire.run(10_000_000)
        heard = qa.stats.acks_received
        qa.retire()
        a.receive(11_000_000, answers[-1])
        assert qa.stats.acks_received == heard + 1
        assert a.next_wakeup_ns() == NEVER
        with pytest.raises(HostError, match="retired"):
            qa.post(1)

    def test_an_end_has_the_entropy_of_the_data_that_it_sends(self) -> None:
        """An end that has sent nothing has the entropy of its first data packet; a retired one keeps its own."""
        gc.collect()
        others = alive(Sender)
        a, b = pair("dcqcn")
        qa, qb = connect(a, b)
        qa.post(3000)
        Wire(a, b).run(10_000_000)
        own = qa.data_entropy()
        assert own == qa.load_balancer.next_entropy(0)
        qa.retire()
        assert (qa.data_entropy(), qa.control_entropy(0)) == (own, own)
        before = qb.data_entropy()
        gc.collect()
        assert alive(Sender) == others
        assert before == qb.load_balancer.next_entropy(0)

    def test_an_end_with_something_to_send_does_not_retire(self) -> None:
        a, b = pair("hpcc")
        qa, _ = connect(a, b)
        qa.post(3000)
        Wire(a, b).run(1_000)
        with pytest.raises(HostError, match="still has messages to send"):
            qa.retire()

    @pytest.mark.parametrize(("protocol", "options"), [("rcp", {}), ("hpcc", {"cc_scope": "pair"})])
    def test_a_sending_half_that_others_speak_through_stays(self, protocol: str, options: dict[str, Any]) -> None:
        a, b = pair(protocol, **options)
        qa, _ = connect(a, b)
        qa.post(3000)
        Wire(a, b).run(10_000_000)
        qa.retire()
        assert qa.post(3000).sequence == 1
