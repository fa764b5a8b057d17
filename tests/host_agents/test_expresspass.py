"""ExpressPass's hosts: algorithm 1 step by step, one packet a credit, which credits were lost."""

from __future__ import annotations

import itertools

import pytest

from host_agents import wire
from host_agents.cc.base import Host, Outlet, Path, Traffic
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


class Voice(Outlet):
    def __init__(self) -> None:
        super().__init__(Host(timers=TimerQueue(), rto_ns=1_000_000), Traffic())
        self.said: list[tuple[int, int]] = []  # opcode, number or whether it is the end

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        name = "number" if packet is CREDIT else "stop"
        self.said.append((packet.opcode, packet.get(name, body, 0)))


def control(packet: Packet, **values: int) -> tuple[int, bytes, int]:
    body = packet.encode(**values)
    start = wire.header(1, 2, 3, packet.opcode, 4, after_bth_bytes=len(body)) + bytes(4)
    return packet.opcode, start + body, len(start)


def data(number: int) -> bytes:
    header = bytearray(wire.header(1, 2, 3, wire.SEND_MIDDLE, 4, after_bth_bytes=1460) + bytes(4))
    header[wire.BECN] = number & 0x3F
    return bytes(header)


def receiver(**parameters: float) -> tuple[ExpressPassReceiver, Voice]:
    point = ExpressPassReceiver(ExpressPassParameters(jitter=0.0, **parameters), PATH)  # type: ignore[arg-type]
    voice = Voice()
    point.bind(voice)
    return point, voice


def test_algorithm_1() -> None:
    """w from 1/16 with target loss 1/8: an increase, a second one in a row, a loss of a half, an increase again."""
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
    point, voice = receiver(initial_rate=0.5)
    timers = voice.host.timers
    point.on_control(0, *control(CREDIT_REQUEST, stop=0))
    times = [0]
    for _ in range(4):
        times.append(timers.first_ns)
        timers.serve_first()
    assert voice.said == [(CREDIT.opcode, i + 1) for i in range(5)]
    assert [b - a for a, b in itertools.pairwise(times)] == [round(2 * CREDIT_NS)] * 4
    point.on_control(times[-1], *control(CREDIT_REQUEST, stop=1))
    assert timers.first_ns == NEVER


def test_what_data_tells_of_credits_is_what_was_lost() -> None:
    """Of ten credits data comes for 1, 2, 5 and 10: six are lost. So the rate falls after the update period."""
    point, voice = receiver(initial_rate=1.0, update_base_rtts=0.2)
    timers = voice.host.timers
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
    assert [meter.passes(0) for _ in range(10)] == [True] * 8 + [False] * 2
    assert [meter.passes(now_ns) for now_ns in (999, 1_000, 1_001, 2_000)] == [False, True, False, True]
    assert meter.dropped == 4


def test_a_credit_draws_one_packet_now_or_never() -> None:
    point = ExpressPass(ExpressPassParameters(), PATH)
    voice = Voice()
    point.bind(voice)
    voice.traffic.waiting_bytes = 2 * WIRE_BYTES
    point.on_start(0)
    assert voice.said == [(CREDIT_REQUEST.opcode, 0)]
    assert not point.may_send(0)
    for number in (70, 71):
        point.on_control(10, *control(CREDIT, number=number))
        assert point.may_send(0)
        assert point.data_headers(10, data(0), 0, 3_000, False, False)[wire.BECN] == number & 0x3F
        voice.traffic.waiting_bytes -= WIRE_BYTES
        point.on_sent(10, WIRE_BYTES)
        assert not point.may_send(0)
    assert voice.said[1:] == [(CREDIT_REQUEST.opcode, 1)]
    point.on_control(20, *control(CREDIT, number=72))  # the receiver has not heard of the end
    assert (point.credits_wasted, voice.said[2:]) == (1, [(CREDIT_REQUEST.opcode, 1)])


def test_who_hears_nothing_asks_again() -> None:
    point = ExpressPass(ExpressPassParameters(), PATH)
    voice = Voice()
    point.bind(voice)
    voice.traffic.waiting_bytes = WIRE_BYTES
    point.on_start(0)
    assert voice.host.timers.first_ns == 1_000_000
    voice.host.timers.serve_first()
    assert voice.said == [(CREDIT_REQUEST.opcode, 0)] * 2


def test_a_credit_that_takes_the_place_of_one_that_drew_nothing_counts_as_wasted() -> None:
    point, voice = ExpressPass(ExpressPassParameters(), PATH), Voice()
    point.bind(voice)
    voice.traffic.waiting_bytes = 2 * WIRE_BYTES
    point.on_post(0)
    point.on_control(10, *control(CREDIT, number=1))
    point.on_control(20, *control(CREDIT, number=2))
    point.on_sent(20, WIRE_BYTES)
    point.on_control(30, *control(CREDIT, number=3))
    assert point.credits_wasted == 1
