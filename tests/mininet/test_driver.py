"""The driver handles events at their nominal times and in order, however late it is called."""

from __future__ import annotations

from collections import deque

import pytest

from harness.worlds.mininet.driver import Driver
from host_agents import wire
from host_agents.config import NicConfig
from host_agents.messages import Delivery, Message
from host_agents.nic import Nic
from host_agents.registry import resolve, resolve_load_balancer
from host_agents.timers import NEVER

DILATION = 1000
EPOCH_NS = 5_000_000
RATE_BPS = 10_000_000_000
DELAY_NS = 500


class Wire:
    """A port into which the test puts the frames."""

    def __init__(self) -> None:
        self.arrived: deque[tuple[int, bytes]] = deque()
        self.sent: list[bytes] = []

    def receive(self) -> list[tuple[int, bytes]]:
        taken = list(self.arrived)
        self.arrived.clear()
        return taken

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)


class Host:
    def __init__(self, address: str, check_icrc: bool = False) -> None:
        config = NicConfig(address=address, line_rate_bps=RATE_BPS, base_rtt_ns=4000, check_icrc=check_icrc)
        self.nic = Nic(config, resolve("none"), resolve_load_balancer("ecmp"))
        self.wire = Wire()
        self.driver = Driver(
            self.nic, self.wire, rate_bps=RATE_BPS, delay_ns=DELAY_NS, framing_bytes=0, dilation=DILATION
        )
        self.driver.epoch_ns = EPOCH_NS
        self.delivered: list[Delivery] = []
        self.completed: list[Message] = []
        self.nic.on_delivered = self.delivered.append
        self.nic.on_complete = self.completed.append


def pair(check_icrc: bool = False) -> tuple[Host, Host]:
    a, b = Host("10.0.0.2", check_icrc), Host("10.0.0.3", check_icrc)
    b.nic.open_qp("10.0.0.2", 7, 7)
    return a, b


def wall(model_ns: float) -> int:
    return EPOCH_NS + round(model_ns * DILATION)


def send(a: Host, size_bytes: int, start_ns: int) -> None:
    qp = a.nic.open_qp("10.0.0.3", 7, 7)
    a.driver.at(start_ns, lambda now_ns: qp.post(size_bytes, start_ns=now_ns))


def test_frames_reach_the_switch_after_their_time_on_the_link_and_its_delay() -> None:
    a, _ = pair()
    send(a, 3000, 2000)
    frame_ns = 1058 * 8e9 / RATE_BPS  # 846.4
    a.driver.run(wall(10_000))
    assert a.driver.sent == 3
    for number in (1, 2, 3):
        due = 2000 + number * frame_ns + DELAY_NS
        a.driver.flush(lambda due=due: wall(due) - DILATION)  # type: ignore[misc]
        assert len(a.wire.sent) == number - 1
        a.driver.flush(lambda due=due: wall(due) + DILATION)  # type: ignore[misc]
        assert len(a.wire.sent) == number


def test_frames_are_whole_and_have_an_icrc() -> None:
    a, _ = pair()
    send(a, 1000, 0)
    a.driver.run(wall(2000))
    a.driver.flush(lambda: wall(10_000))
    (frame,) = a.wire.sent
    assert len(frame) == 1058
    assert wire.icrc_holds(frame)


def exchange(step_ns: int) -> tuple[Host, Host]:
    """Exchange a message and its acknowledgements in steps of this many ns of model time."""
    a, b = pair()
    send(a, 20_000, 1000)
    for now_ns in range(0, 200_000, 100):
        now = wall(now_ns)
        for host, other in ((a, b), (b, a)):
            # The wire is exact: what is due arrives, whoever looks when.
            while host.driver._flight and host.driver._flight[0][0] <= now:
                other.wire.arrived.append(host.driver._flight.popleft())
        if not now_ns % step_ns:
            a.driver.run(now)
            b.driver.run(now)
    return a, b


def test_lateness_below_the_delay_changes_nothing() -> None:
    a, b = exchange(100)
    late_a, late_b = exchange(400)
    (delivery,), (late_delivery,) = b.delivered, late_b.delivered
    assert late_delivery.time_ns == delivery.time_ns
    assert late_a.completed[0].completed_ns == a.completed[0].completed_ns
    # The last of 20 packets that leave back to back.
    assert delivery.time_ns == 1000 + 20 * 1058 * 8e9 / RATE_BPS + DELAY_NS


def test_what_leaves_late_is_recorded() -> None:
    a, _ = pair()
    send(a, 1000, 0)
    a.driver.run(wall(2000))
    due = a.driver.next_due_ns()
    a.driver.flush(lambda: due + 5000)
    assert a.driver.lag_sum_ns == 5000
    assert a.driver.lag_log2_ns[12] == 1  # 4096 to 8191 ns


def test_a_frozen_nic_says_nothing_more() -> None:
    a, _ = pair()
    send(a, 3000, 0)
    a.driver.run(wall(1000))
    assert a.driver.unsent == 2  # one is out, one is in transmission
    a.driver.freeze()
    a.driver.flush(lambda: wall(100_000))
    assert a.driver.unsent == 0
    assert a.driver.next_due_ns() == NEVER


@pytest.mark.parametrize("check_icrc", [False, True])
def test_a_wrong_icrc_is_counted(check_icrc: bool) -> None:
    """Check that it counts once as a malformed frame, either by the driver or by the NIC."""
    a, b = pair(check_icrc)
    send(a, 1000, 0)
    a.driver.run(wall(2000))
    a.driver.flush(lambda: wall(2000))
    frame = bytearray(a.wire.sent[0])
    frame[60] ^= 1
    b.wire.arrived.append((wall(2000), bytes(frame)))
    b.driver.run(wall(3000))
    assert (b.driver.bad_icrc, b.nic.stats.malformed) == ((0, 1) if check_icrc else (1, 0))
    b.wire.arrived.append((wall(3000), a.wire.sent[0]))
    b.driver.run(wall(4000))
    assert [delivery.size_bytes for delivery in b.delivered] == [1000]


def test_a_link_that_fails_loses_what_is_on_it_and_what_is_sent_into_it() -> None:
    a, _ = pair()
    send(a, 10_000, 2000)
    driver, frame_ns = a.driver, 1058 * 8e9 / RATE_BPS  # 846.4
    # The first two have reached the switch, the third is behind its link, the fourth is being sent.
    driver.at(round(2000 + 3.5 * frame_ns), lambda _: driver.change_link(False, RATE_BPS))
    driver.at(round(2000 + 6.5 * frame_ns), lambda _: driver.change_link(True, RATE_BPS))
    driver.run(wall(20_000))
    driver.flush(lambda: wall(20_000))
    assert driver.sent == 10
    assert driver.lost == 5
    numbers = [int.from_bytes(frame[51:54], "big") for frame in a.wire.sent]
    assert numbers == [0, 1, 7, 8, 9]


def test_a_link_that_loses_at_random_loses_what_its_seed_says() -> None:
    def numbers(seed: int) -> list[int]:
        a, _ = pair()
        send(a, 20_000, 2000)
        a.driver.change_link(True, RATE_BPS, None, 0.3, seed)
        a.driver.run(wall(60_000))
        a.driver.flush(lambda: wall(60_000))
        assert a.driver.sent == 20
        assert a.driver.lost_at_random + len(a.wire.sent) == 20
        return [int.from_bytes(frame[51:54], "big") for frame in a.wire.sent]

    assert 0 < len(numbers(1)) < 20
    assert numbers(1) == numbers(1) != numbers(2)


def test_a_link_that_slows_down() -> None:
    a, _ = pair()
    send(a, 2000, 2000)
    driver, frame_ns = a.driver, 1058 * 8e9 / RATE_BPS
    driver.at(2100, lambda _: driver.change_link(True, RATE_BPS // 4))  # not for the packet that is being sent
    driver.run(wall(20_000))
    for number, sent_ns in ((1, frame_ns), (2, 5 * frame_ns)):
        driver.flush(lambda at=sent_ns: wall(2000 + at + DELAY_NS) - 2 * DILATION)  # type: ignore[misc]
        assert len(a.wire.sent) == number - 1
        driver.flush(lambda at=sent_ns: wall(2000 + at + DELAY_NS) + 2 * DILATION)  # type: ignore[misc]
        assert len(a.wire.sent) == number
