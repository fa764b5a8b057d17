"""RCP's hosts: no data before the first response, the newest response counts, a request each quarter of an RTT."""

from __future__ import annotations

from host_agents import wire
from host_agents.cc.base import UNLIMITED, Host, NotificationOutlet, Path, ReactionOutlet, Traffic
from host_agents.cc.rcp import RATE, Rcp, RcpParameters, RcpReceiver
from host_agents.packets import Packet
from host_agents.timers import TimerQueue

LINE_BPS = 10e9
RTT_NS = 8_000
PATH = Path(LINE_BPS, RTT_NS, 1460, 1518, 80)


class Questions(ReactionOutlet):
    def __init__(self, host: Host) -> None:
        super().__init__(host, Traffic())
        self.said: list[tuple[int, dict[str, int]]] = []

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        assert packet is RATE
        self.said.append((psn, RATE.decode(body, 0)))


class Answers(NotificationOutlet):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.said: list[tuple[int, dict[str, int]]] = []

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        assert packet is RATE
        self.said.append((psn, RATE.decode(body, 0)))


def made() -> tuple[Rcp, Questions, TimerQueue]:
    timers = TimerQueue()
    outlet = Questions(Host(timers=timers))
    point = Rcp(RcpParameters(), PATH)
    point.bind(outlet)
    return point, outlet, timers


def response(psn: int, rate_kbps: int) -> tuple[bytes, int]:
    body = RATE.encode(response=1, rate=rate_kbps)
    start = wire.header(1, 2, 3, RATE.opcode, 4, after_bth_bytes=len(body)) + psn.to_bytes(4, "big")
    return start + body, len(start)


def test_nothing_leaves_before_the_first_response() -> None:
    point, outlet, _ = made()
    point.on_start(0)
    assert outlet.said == [(1, {"response": 0, "reserved": 0, "rate": 10_000_000})]
    assert not point.may_send(0)
    point.on_control(10, RATE.opcode, *response(1, 4_000_000))
    assert point.may_send(0)
    assert (point.rate_bps, point.window_bytes) == (4e9, UNLIMITED)


def test_the_newest_response_counts_and_line_rate_is_the_most() -> None:
    point, _, timers = made()
    point.on_start(0)
    for _ in range(3):
        timers.serve_first()
    for psn, rate_kbps in ((3, 2_000_000), (2, 9_000_000), (4, 40_000_000)):
        point.on_control(10, RATE.opcode, *response(psn, rate_kbps))
        assert point.rate_bps == (2e9 if psn < 4 else LINE_BPS)


def test_a_response_to_what_was_not_sent_is_none() -> None:
    point, _, timers = made()
    point.on_start(0)
    timers.serve_first()
    for psn, rate_kbps in ((3, 1_000_000), (900_000, 1_000_000), (2, 4_000_000)):
        point.on_control(10, RATE.opcode, *response(psn, rate_kbps))
    assert point.rate_bps == 4e9


def test_a_question_each_quarter_of_an_rtt_while_there_is_something_to_send() -> None:
    point, outlet, timers = made()
    point.on_start(0)
    point.on_start(5)  # another queue pair: the same burst
    asked = []
    for _ in range(4):
        asked.append(timers.first_ns)
        timers.serve_first()
    assert asked == [2_000, 4_000, 6_000, 8_000]
    point.on_idle(9_000)
    assert timers.first_ns == 10_000
    point.on_idle(9_500)
    assert timers.first_ns > 1 << 60
    assert [psn for psn, _ in outlet.said] == [1, 2, 3, 4, 5]
    point.on_start(20_000)  # another burst: what was told before does not hold
    point.on_control(20_001, RATE.opcode, *response(5, 1_000_000))
    assert not point.may_send(0)


def test_the_destination_sends_it_back() -> None:
    point = RcpReceiver(PATH)
    outlet = Answers(Host())
    point.bind(outlet)
    point.on_control(5, RATE.opcode, *response(7, 3))
    assert outlet.said == [(7, {"response": 1, "reserved": 0, "rate": 3})]
