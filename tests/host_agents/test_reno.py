"""TCP Reno's window, step by step (RFC 5681)."""

from typing import Any

import pytest

from host_agents.cc.base import Feedback
from host_agents.cc.reno import Reno
from host_agents.qp import QueuePair
from p4cc._link import Trouble, Wire, connect, pair
from tests.host_agents.narrow import of_kind
from tests.host_agents.windows import grown

PACKET = 1058


def reno(**parameters: Any) -> tuple[Reno, QueuePair]:
    a, b = pair("reno", parameters)
    qp, _ = connect(a, b)
    return of_kind(qp.reaction_point, Reno), qp


def ack(rp: Reno, acked_bytes: int = PACKET) -> None:
    feedback = Feedback()
    feedback.acked_bytes = acked_bytes
    rp.on_ack(feedback)


def test_slow_start_doubles_in_a_window_of_acks() -> None:
    rp, _ = reno(initial_window_packets=4.0)
    for _ in range(4):
        ack(rp)
    assert rp.window_bytes == 8 * PACKET


def test_congestion_avoidance_adds_a_segment_in_a_window_of_acks() -> None:
    rp, _ = reno(initial_window_packets=16.0)
    rp.on_nack(0, PACKET, False)
    assert rp.window_bytes == rp.ssthresh_bytes == 8 * PACKET
    for _ in range(8):
        ack(rp)
    assert rp.window_bytes == pytest.approx(grown(8, 8) * PACKET)


def test_one_cut_for_all_losses_of_a_window() -> None:
    rp, qp = reno(initial_window_packets=16.0)
    qp.post(1_000_000)
    sent = [qp.nic.next_frame(now) for now in range(0, 1600, 100)]
    assert None not in sent
    rp.on_nack(2000, PACKET, False)
    rp.on_nack(2000, PACKET, False)
    assert rp.window_bytes == 8 * PACKET
    qp.sender.on_ack(2000, 14)
    rp.on_nack(2000, PACKET, False)
    assert rp.window_bytes == 8 * PACKET  # the last packet of that window is not acknowledged
    qp.sender.on_ack(2000, 15)
    rp.on_nack(2000, PACKET, False)
    assert rp.window_bytes == 4 * PACKET


def lossy_window(scope: str, sender: int) -> list[int]:
    """Lose five packets of a window of `sender`, one of two queue pairs, and return its windows without repeats."""
    a, b = pair("reno", {"initial_window_packets": 40.0}, reliability="selective-repeat", cc_scope=scope)
    qps = [connect(a, b, n)[0] for n in (1, 2)]
    lost = {8, 11, 14, 17, 20}

    def lose(now_ns: int, frame: bytes) -> bytes | None:
        psn = int.from_bytes(frame[51:54], "big")
        if frame[42] < 0x11 and psn in lost:
            lost.remove(psn)
            return None
        return frame

    link = Wire(a, b, hook=lose)
    qps[sender].post(100_000)
    cuts = []
    for now in range(0, 100_000, 50):
        window = qps[sender].window_bytes
        link.run(now)
        if qps[sender].window_bytes < window:
            cuts.append(now)
    assert lost == set()
    return cuts


@pytest.mark.parametrize("scope", ["qp", "destination", "pair"])
@pytest.mark.parametrize("sender", [0, 1])
def test_five_losses_in_a_window_are_one_cut_whichever_queue_pair_sends(scope: str, sender: int) -> None:
    assert len(lossy_window(scope, sender)) == 1
    assert lossy_window(scope, sender) == lossy_window("qp", 0)


def test_a_timeout_leaves_one_segment_and_half_as_threshold() -> None:
    rp, _ = reno(initial_window_packets=16.0)
    rp.on_timeout(0)
    assert (rp.window_bytes, rp.ssthresh_bytes) == (PACKET, 8 * PACKET)


def test_the_threshold_is_two_segments_at_least() -> None:
    rp, _ = reno(initial_window_packets=1.0)
    rp.on_timeout(0)
    assert rp.ssthresh_bytes == 2 * PACKET


def test_the_window_is_the_receivers_at_most() -> None:
    rp, _ = reno()
    for _ in range(200):
        ack(rp)
    assert rp.window_bytes == 65_535


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_it_delivers_over_a_lossy_link(reliability: str) -> None:
    a, b = pair("reno", reliability=reliability, rto_ns=100_000)
    qa, qb = connect(a, b)
    qa.post(300_000)
    Wire(a, b, trouble=Trouble(loss=0.02, seed=3)).run(50_000_000)
    assert qb.stats.bytes_delivered == 300_000
    assert qa.stats.packets_retransmitted > 0
