"""TCP Reno's window, step by step (RFC 5681)."""

import pytest

from host_agents.cc.base import Feedback
from host_agents.testing import Trouble, Wire, connect, pair

PACKET = 1058


def reno(**parameters):
    a, b = pair("reno", parameters)
    qp, _ = connect(a, b)
    return qp.reaction_point, qp


def ack(rp, acked_bytes=PACKET):
    feedback = Feedback()
    feedback.acked_bytes = acked_bytes
    rp.on_ack(feedback)


def test_slow_start_doubles_in_a_window_of_acks():
    rp, _ = reno(initial_window_packets=4.0)
    for _ in range(4):
        ack(rp)
    assert rp.window_bytes == 8 * PACKET


def test_congestion_avoidance_adds_a_segment_in_a_window_of_acks():
    rp, _ = reno(initial_window_packets=16.0)
    rp.on_nack(0, PACKET, False)
    assert rp.window_bytes == rp.ssthresh_bytes == 8 * PACKET
    for _ in range(8):
        ack(rp)
    assert rp.window_bytes == pytest.approx(9 * PACKET, rel=0.01)


def test_one_cut_for_all_losses_of_a_window():
    rp, qp = reno(initial_window_packets=16.0)
    qp.sender.fresh = 16
    rp.on_nack(0, PACKET, False)
    rp.on_nack(0, PACKET, False)
    assert rp.window_bytes == 8 * PACKET
    qp.sender.unacked = 16
    qp.sender.fresh = 24
    rp.on_nack(0, PACKET, False)
    assert rp.window_bytes == 4 * PACKET


def test_a_timeout_leaves_one_segment_and_half_as_threshold():
    rp, _ = reno(initial_window_packets=16.0)
    rp.on_timeout(0)
    assert (rp.window_bytes, rp.ssthresh_bytes) == (PACKET, 8 * PACKET)


def test_the_threshold_is_two_segments_at_least():
    rp, _ = reno(initial_window_packets=1.0)
    rp.on_timeout(0)
    assert rp.ssthresh_bytes == 2 * PACKET


def test_the_window_is_the_receivers_at_most():
    rp, _ = reno()
    for _ in range(200):
        ack(rp)
    assert rp.window_bytes == 65_535


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_it_delivers_over_a_lossy_link(reliability):
    a, b = pair("reno", reliability=reliability, rto_ns=100_000)
    qa, qb = connect(a, b)
    qa.post(300_000)
    Wire(a, b, trouble=Trouble(loss=0.02, seed=3)).run(50_000_000)
    assert qb.stats.bytes_delivered == 300_000
    assert qa.stats.packets_retransmitted > 0
