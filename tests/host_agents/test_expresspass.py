"""ExpressPass's hosts: algorithm 1 step by step, one packet for each credit, and lost credits."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from host_agents import wire
from host_agents.cc.base import Host, NotificationOutlet, Path, ReactionOutlet, Traffic
from host_agents.cc.expresspass import (
    CREDIT,
    CREDIT_BYTES,
    CREDIT_REQUEST,
    CreditMeter,
    ExpressPass,
    ExpressPassParameters,
    ExpressPassReceiver,
)
from host_agents.packets import Packet
from host_agents.timers import NEVER, TimerQueue

WIRE_BYTES = 1518
PATH = Path(10e9, 100_000, 1460, WIRE_BYTES, 80)
CREDIT_NS = (WIRE_BYTES + CREDIT_BYTES) * 8 / 10


class Requests(ReactionOutlet):
    def __init__(self) -> None:
        super().__init__(Host(timers=TimerQueue(), rto_ns=1_000_000), Traffic())
        self.said: list[tuple[int, int]] = []  # opcode, whether it is the end

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        self.said.append((packet.opcode, packet.get("stop", body, 0)))


class Credits(NotificationOutlet):
    def __init__(self) -> None:
        super().__init__(Host(timers=TimerQueue()))
        self.said: list[tuple[int, int]] = []  # opcode, number
        self.sizes: list[int] = []  # of what followed the BTH

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        self.said.append((packet.opcode, packet.get("number", body, 0)))
        self.sizes.append(len(body))


def control(packet: Packet, **values: int) -> tuple[int, bytes, int]:
    body = packet.encode((), **values)
    start = wire.header(1, 2, 3, packet.opcode, 4, after_bth_bytes=len(body)) + bytes(4)
    return packet.opcode, start + body, len(start)


def data(number: int) -> bytes:
    header = bytearray(wire.header(1, 2, 3, wire.SEND_MIDDLE, 4, after_bth_bytes=1460) + bytes(4))
    header[wire.BECN] = number & 0x3F
    return bytes(header)


def receiver(path: Path = PATH, **parameters: float) -> tuple[ExpressPassReceiver, Credits]:
    values: dict[str, Any] = {"jitter": 0.0, "credit_spread_bytes": 0, **parameters}
    point = ExpressPassReceiver(ExpressPassParameters(**values), path)
    outlet = Credits()
    point.bind(outlet)
    return point, outlet


def test_algorithm_1() -> None:
    """Check two increases in a row, a loss of one half, and an increase (w = 1/16, target loss 1/8)."""
    point, _ = receiver()
    shares, weights = [], []
    for loss in (0.0, 0.125, 0.5, 0.1):
        point.update(loss)
        shares.append(point.credit_share)
        weights.append(point.weight)
    first = 15 / 16 / 16 + 1 / 16 * 1.125
    second_weight = (1 / 16 + 1 / 2) / 2
    second = (1 - second_weight) * first + second_weight * 1.125
    third = second * 0.5 * 1.125
    fourth = (1 - second_weight / 2) * third + second_weight / 2 * 1.125
    assert shares == pytest.approx([first, second, third, fourth])
    assert weights == pytest.approx([1 / 16, second_weight, second_weight / 2, second_weight / 2])


def test_the_weight_has_a_least_and_a_most() -> None:
    point, _ = receiver()
    for _ in range(30):
        point.update(0.0)
    assert point.weight == pytest.approx(0.5)
    assert point.credit_share == pytest.approx(1.125)
    for _ in range(30):
        point.update(1.0)
    assert point.weight == 0.01


def test_credits_leave_at_the_rate_from_request_to_stop() -> None:
    point, outlet = receiver(initial_rate=0.5)
    timers = outlet.host.timers
    point.on_control(0, *control(CREDIT_REQUEST, stop=0))
    times = [0]
    for _ in range(4):
        times.append(timers.first_ns)
        timers.serve_first()
    assert outlet.said == [(CREDIT.opcode, i + 1) for i in range(5)]
    assert [b - a for a, b in itertools.pairwise(times)] == [round(2 * CREDIT_NS)] * 4
    point.on_control(times[-1], *control(CREDIT_REQUEST, stop=1))
    assert timers.first_ns == NEVER


def test_what_data_tells_of_credits_is_what_was_lost() -> None:
    """Data arrives for credits 1, 2, 5 and 10 of ten, so six are lost, and the rate falls after the update period."""
    point, outlet = receiver(initial_rate=1.0, update_base_rtts=0.2)
    timers = outlet.host.timers
    point.on_control(0, *control(CREDIT_REQUEST, stop=0))
    for _ in range(9):
        timers.serve_first()
    for number in (1, 2, 5, 10, 10, 3):
        point.on_data(15_000, False, data(number))
    while timers.first_ns < 22_000:
        timers.serve_first()
    assert point.credit_share == pytest.approx(0.4 * 1.125)


def test_the_receivers_own_link_drops_credits_beyond_a_burst() -> None:
    meter = CreditMeter(1_000.0, 8)
    assert [meter.passes(0, 1.0) for _ in range(10)] == [True] * 8 + [False] * 2
    assert [meter.passes(now_ns, 1.0) for now_ns in (999, 1_000, 1_001, 2_000)] == [False, True, False, True]
    assert meter.dropped == 4


def test_a_larger_credit_takes_more_of_the_link() -> None:
    meter = CreditMeter(1_000.0, 1)
    assert [meter.passes(now_ns, 1.1) for now_ns in (0, 1_099, 1_100)] == [True, False, True]


@pytest.mark.parametrize("overhead_bytes", [0, 24])
def test_a_link_that_charges_framing_carries_fewer_packets_and_credits(overhead_bytes: int) -> None:
    point, outlet = receiver(Path(10e9, 100_000, 1460, WIRE_BYTES, 80, (), overhead_bytes), initial_rate=1.0)
    point.on_control(0, *control(CREDIT_REQUEST, stop=0))
    assert outlet.host.timers.first_ns == round((WIRE_BYTES + CREDIT_BYTES + 2 * overhead_bytes) * 8 / 10)


def test_of_a_link_that_charges_flits_a_credit_takes_one() -> None:
    """Credits of 62 to 70 bytes would leave 4 to 12 bytes of two flits; every credit takes the same."""
    path = Path(10e9, 100_000, 1460, WIRE_BYTES, 80, (), -58)
    point, outlet = receiver(path, initial_rate=1.0, credit_spread_bytes=8)
    for _ in range(3):
        point.on_control(0, *control(CREDIT_REQUEST, stop=0))
        assert outlet.host.timers.first_ns == round((WIRE_BYTES - 58 + 16) * 8 / 10)
        point.on_control(0, *control(CREDIT_REQUEST, stop=1))


def test_gaps_and_sizes_of_credits_are_random() -> None:
    """They vary by 10% and by up to eight bytes. Otherwise credits of several flows would synchronize."""
    point, outlet = receiver(initial_rate=1.0, jitter=0.1, credit_spread_bytes=8, update_base_rtts=1e3)
    timers = outlet.host.timers
    point.on_control(0, *control(CREDIT_REQUEST, stop=0))
    times = [0]
    for _ in range(300):
        times.append(timers.first_ns)
        timers.serve_first()
    mean_ns = CREDIT_NS + 4 * 0.8
    gaps = [(b - a) / mean_ns for a, b in itertools.pairwise(times)]
    assert min(gaps) == pytest.approx(0.9, abs=0.01)
    assert max(gaps) == pytest.approx(1.1, abs=0.01)
    assert set(outlet.sizes[1:]) == set(range(CREDIT.size_bytes, CREDIT.size_bytes + 9))


def test_a_rate_is_never_below_a_credit_in_an_update_period() -> None:
    """A receiver that sends no credit sees no loss, and so could not detect that a link is free."""
    point, _ = receiver()
    for _ in range(20):
        point.update(0.9)
    assert point.credit_share == pytest.approx(CREDIT_NS / PATH.base_rtt_ns)


def test_as_simulated_a_full_link_is_the_most_and_a_loss_counts_by_what_came() -> None:
    point, _ = receiver(initial_rate=0.5)
    shares = []
    for loss, came in ((0.0, 0.5), (0.06, 0.4), (0.0, 0.4), (0.0, 0.4)):
        point.update_as_simulated(loss, came)
        shares.append(point.credit_share)
    first = 0.5 * 15 / 16 + 1 / 16
    second = 0.4 * (1 + (1 - first) / 8)
    third = second * 31 / 32 + 1 / 32
    fourth_weight = 1 / 32 + 0.05
    assert shares == pytest.approx([first, second, third, third * (1 - fourth_weight) + fourth_weight])
    for _ in range(40):
        point.update_as_simulated(0.0, 1.0)
    assert 0.999 < point.credit_share <= 1.0
    point.update_as_simulated(0.01, 0.99)  # nothing is to be lost at a full link
    assert point.credit_share < 0.991


def test_a_credit_draws_one_packet() -> None:
    point = ExpressPass(ExpressPassParameters(), PATH)
    outlet = Requests()
    point.bind(outlet)
    outlet.traffic.waiting_bytes = 2 * WIRE_BYTES
    point.on_start(0)
    assert outlet.said == [(CREDIT_REQUEST.opcode, 0)]
    assert not point.may_send(0)
    for number in (70, 71):
        point.on_control(10, *control(CREDIT, number=number))
        assert point.may_send(0)
        assert point.data_headers(10, data(0), 0, 3_000, False, False)[wire.BECN] == number & 0x3F
        outlet.traffic.waiting_bytes -= WIRE_BYTES
        point.on_sent(10, WIRE_BYTES)
        assert not point.may_send(0)
    assert outlet.said[1:] == [(CREDIT_REQUEST.opcode, 1)]
    point.on_control(20, *control(CREDIT, number=72))  # the receiver has not heard of the end
    assert (point.credits_wasted, outlet.said[2:]) == (1, [(CREDIT_REQUEST.opcode, 1)])


def test_who_hears_nothing_asks_again() -> None:
    point = ExpressPass(ExpressPassParameters(), PATH)
    outlet = Requests()
    point.bind(outlet)
    outlet.traffic.waiting_bytes = WIRE_BYTES
    point.on_start(0)
    assert outlet.host.timers.first_ns == 1_000_000
    outlet.host.timers.serve_first()
    assert outlet.said == [(CREDIT_REQUEST.opcode, 0)] * 2


def test_credits_wait_for_their_packets_as_many_as_links_let_through_at_once() -> None:
    """While the link is busy or paused, up to eight credits wait for packets. Others, and unused ones, are wasted."""
    point, outlet = ExpressPass(ExpressPassParameters(), PATH), Requests()
    point.bind(outlet)
    outlet.traffic.waiting_bytes = 7 * WIRE_BYTES
    point.on_post(0)
    for number in range(1, 11):
        point.on_control(10, *control(CREDIT, number=number))
    assert point.credits_wasted == 2
    drawn = []
    while point.may_send(0):
        drawn.append(point.data_headers(20, data(0), 0, 3_000, False, False)[wire.BECN])
        outlet.traffic.waiting_bytes -= WIRE_BYTES
        point.on_sent(20, WIRE_BYTES)
    assert drawn == [1, 2, 3, 4, 5, 6, 7]
    assert point.credits_wasted == 3
