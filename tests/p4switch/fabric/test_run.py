"""Runs: order of events, limits, callbacks, exceptions and garbage collection."""

import gc
import os
import signal
import weakref
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4switch.fabric.stub import GBPS, NEVER, Host, Star, balance, examples, frame, ip, load, mark_of


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.one_of(st.integers(0, 100), st.integers(0, 10**5), st.integers(0, 10**12)), max_size=200),
       st.integers(0, 50))
def test_events_come_in_order_of_time_then_insertion(times: list[int], later: int) -> None:
    network = load().Fabric()
    seen: list[tuple[int, int]] = []
    inserted: list[tuple[int, int]] = []

    def add(time: int) -> None:
        number = len(inserted)
        inserted.append((time, number))

        def call(now: int) -> None:
            assert now == time == network.now_ns
            seen.append((time, number))
            if number < later:
                add(now + 37 * number**2)

        network.at(time, call)

    for time in times:
        add(time)
    assert network.run() == "idle"
    assert seen == sorted(inserted)
    assert network.events == len(inserted)


def test_until_is_inclusive_and_a_run_can_be_continued() -> None:
    a, b = Host([(0, frame(0, 1, 1000)) for _ in range(3)]), Host()
    star = Star([a, b], delay_ns=0)
    assert star.run(159) == "until"
    assert (b.got, star.fabric.now_ns) == ([], 159)
    star.run(160)
    assert len(b.got) == 1
    assert star.run(10_000) == "idle"
    assert star.fabric.now_ns == 10_000
    with pytest.raises(ValueError, match="until_ns"):
        star.run(9999)
    assert star.run() == "idle"


def test_slices_of_any_size_make_no_difference() -> None:
    logs = []
    for step in (1, 7, None):
        a, b = Host([(13 * i, frame(0, 1, 100 + i)) for i in range(50)]), Host()
        star = Star([a, b], rates={1: 10 * GBPS})
        while star.fabric.run(max_events=step) != "idle":
            pass
        logs.append((b.got, star.fabric.events, star.fabric.now_ns))
    assert logs[0] == logs[1] == logs[2]


def test_stop_from_a_callback() -> None:
    a, b = Host([(0, frame(0, 1, 1000)) for _ in range(10)]), Host()
    star = Star([a, b])
    star.fabric.at(2200, lambda now: star.fabric.stop())
    assert star.run() == "stopped"
    assert star.fabric.now_ns == 2200
    assert star.run() == "idle"
    assert len(b.got) == 10


def test_progress_is_called_every_so_many_events() -> None:
    a, b = Host([(0, frame(0, 1, 1000)) for _ in range(1000)]), Host()
    star = Star([a, b])
    seen: list[tuple[int, int]] = []
    star.fabric.run(progress=lambda now, events: seen.append((now, events)), progress_events=100)
    steps = [later - before for (_, before), (_, later) in pairwise(seen)]
    assert len(seen) > 10
    assert all(100 <= step < 200 for step in steps), "at the end of a window"
    assert seen == sorted(seen)


def test_wall_clock_limit() -> None:
    network = load().Fabric()

    def again(now: int) -> None:
        network.at(now + 1, again)

    network.at(0, again)
    assert network.run(max_wall_s=0.05) == "wall"


def test_kick_makes_a_host_send_at_once() -> None:
    a, b = Host(), Host()
    star = Star([a, b], delay_ns=0)

    def post(now: int) -> None:
        a.frames.append((now, frame(0, 1, 1000, mark=5)))
        star.fabric.kick(0)

    star.fabric.at(12_345, post)
    star.run()
    assert [(time, mark_of(data)) for time, data in b.got] == [(12_345 + 160, 5)]


def test_a_kick_from_within_an_endpoint_is_allowed() -> None:
    class Chatty(Host):
        def receive(self, now_ns: int, data: bytes) -> None:
            super().receive(now_ns, data)
            star.fabric.kick(0)
            star.fabric.kick(1)

    a, b = Chatty([(0, frame(0, 1))]), Chatty([(0, frame(1, 0))])
    star = Star([a, b])
    assert star.run() == "idle"
    assert len(a.got) == len(b.got) == 1


def test_a_late_wake_up_is_replaced_by_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = Host([(1_000_000, frame(0, 1, 1000, mark=1))]), Host([(0, frame(1, 0, 1000))])
    star = Star([a, b], delay_ns=0)
    seen: list[int] = []

    class Wake(Host):
        def receive(self, now_ns: int, data: bytes) -> None:
            a.frames.insert(0, (50_000, frame(0, 1, 1000, mark=2)))

    monkeypatch.setattr(star.hosts[0], "receive", Wake().receive)  # bound before: add_host took the method
    star.run()
    seen = [mark_of(data) for _, data in b.got]
    assert seen == [1]


class Failing(Host):
    def __init__(self, where: str, frames: Iterable[tuple[int, bytes]]) -> None:
        super().__init__(frames)
        self.where = where

    def receive(self, now_ns: int, data: bytes) -> None:
        super().receive(now_ns, data)
        if self.where == "receive":
            self.where = ""
            raise LookupError("receive")

    def next_frame(self, now_ns: int) -> bytes | None:
        if self.where == "next_frame":
            self.where = ""
            raise LookupError("next_frame")
        return super().next_frame(now_ns)

    def next_wakeup_ns(self) -> int:
        if self.where == "next_wakeup_ns":
            self.where = ""
            raise LookupError("next_wakeup_ns")
        return super().next_wakeup_ns()


@pytest.mark.parametrize("where", ["receive", "next_frame", "next_wakeup_ns"])
def test_an_exception_of_an_endpoint_comes_out_and_the_run_can_go_on(where: str) -> None:
    a = Host([(0, frame(0, 1, 1000)) for _ in range(5)])
    b = Failing(where, [(7000, frame(1, 0, 1000)) for _ in range(5)])
    star = Star([a, b])
    with pytest.raises(LookupError, match=where):
        star.fabric.run()
    balance(star.fabric)
    assert star.run() == "idle"
    assert (len(a.got), len(b.got)) == (5, 5)


def test_an_exception_of_a_callback() -> None:
    star = Star([Host([(0, frame(0, 1))]), Host()])

    def fail(now: int) -> None:
        raise ZeroDivisionError

    star.fabric.at(100, fail)
    with pytest.raises(ZeroDivisionError):
        star.fabric.run()
    assert star.run() == "idle"
    star.fabric.at(star.fabric.now_ns, fail)
    with pytest.raises(ZeroDivisionError):
        star.fabric.run()


def test_endpoints_that_break_the_contract() -> None:
    class Liar(Host):
        def next_wakeup_ns(self) -> int:
            return 0

    with pytest.raises(RuntimeError, match="host 0"):
        Star([Liar(), Host()]).fabric.run()

    class Wrong(Host):
        def next_frame(self, now_ns: int) -> bytes | None:
            return "frame"  # type: ignore[return-value]  # wrong on purpose

    with pytest.raises(TypeError, match="bytes"):
        Star([Wrong(), Host()]).fabric.run()
    with pytest.raises(ValueError, match="13 bytes"):
        Star([Host([(0, bytes(13)), (0, bytes(16))]), Host()]).fabric.run()


def test_never_may_be_any_large_int() -> None:
    class Huge(Host):
        def next_wakeup_ns(self) -> int:
            return 2**200 if super().next_wakeup_ns() == NEVER else super().next_wakeup_ns()

    star = Star([Huge([(500, frame(0, 1))]), Huge()])
    assert star.run() == "idle"
    assert len(star.hosts[1].got) == 1


def test_ctrl_c() -> None:
    network = load().Fabric()

    def again(now: int) -> None:
        network.at(now + 1, again)
        if now == 1000:
            os.kill(os.getpid(), signal.SIGINT)

    network.at(0, again)
    with pytest.raises(KeyboardInterrupt):
        network.run()
    assert network.run(network.now_ns + 10) == "until"


def test_ctrl_c_without_python_in_the_loop() -> None:
    """Frames go round in a ring of switches and no endpoint is called, so the signal is seen between slices."""
    engine = load()
    network = engine.Fabric()
    nodes = [network.add_switch(engine.Switch({1: [1]})) for _ in range(2)]
    network.connect(nodes[0], 1, nodes[1], 1, rate_bps=GBPS, delay_ns=1)
    network.inject(nodes[0], 0, frame(0, 1))
    previous = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            network.run()
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert balance(network)["entered"] == 1


def test_run_within_run_is_refused() -> None:
    network = load().Fabric()
    network.at(0, lambda now: network.run())
    with pytest.raises(RuntimeError, match="running"):
        network.run()


def test_the_fabric_and_its_endpoints_are_collected() -> None:
    class Linked(Host):
        fabric: object = None

    def build() -> weakref.ref[Host]:
        a = Linked([(0, frame(0, 1)) for _ in range(100)])
        star = Star([a, Host()], rates={1: GBPS})
        a.fabric = star.fabric
        star.fabric.at(10**9, lambda now: a.receive(now, b""))
        star.run(3000)
        return weakref.ref(a)

    ref = build()
    gc.collect()
    assert ref() is None


def test_callbacks_of_an_instant_come_before_its_frames() -> None:
    a, b = Host([(0, frame(0, 1, 1000))]), Host()
    star = Star([a, b], delay_ns=0)
    seen = []
    for host in (1, None):
        star.fabric.at(160, lambda now, host=host: seen.append((now, host, len(b.got))), host=host)
    star.fabric.at(161, lambda now: seen.append((now, None, len(b.got))))
    star.run()
    assert seen == [(160, None, 0), (160, 1, 0), (161, None, 1)]


@pytest.mark.parametrize("independent", [False, True])
def test_messages_posted_at_their_time_leave_at_their_time(independent: bool) -> None:
    a, b = Host(), Host()
    star = Star([a, b], delay_ns=1000, independent_hosts=independent)

    def post(now: int) -> None:
        a.frames.append((now, frame(0, 1, 1000, mark=now)))
        star.fabric.kick(0)
        if now < 10_000:
            star.fabric.at(now + 300, post, host=0)

    star.fabric.at(100, post, host=0)
    star.run()
    assert [time - mark_of(data) for time, data in b.got] == [2160] * 34


def test_a_callback_sees_the_network_as_it_is_at_its_time() -> None:
    """Check that counts are exact in a callback that an endpoint schedules within a window."""
    star = Star([Host([(0, frame(0, 2, 1000)) for _ in range(100)]), Host([(100, frame(1, 0, 100))]), Host()],
                rates={2: 10 * GBPS}, delay_ns=1000)
    f = star.fabric
    seen = []

    class Asks(Host):
        def receive(self, now_ns: int, data: bytes) -> None:
            seen.append((now_ns, f.conservation()["queued"]))
            f.at(now_ns + 300, lambda now: seen.append((now, f.conservation()["queued"])))

    # 100 bytes reach host 0 at 100 + 8 + 1000 + 8 + 1000 = 2116: frames are in since 1080, one leaves each 800 ns.
    star = Star([Asks([(0, frame(0, 2, 1000)) for _ in range(100)]), Host([(100, frame(1, 0, 100))]), Host()],
                rates={2: 10 * GBPS}, delay_ns=1000)
    f = star.fabric
    star.run()
    arrived = [(2116 - 1000) // 80, (2416 - 1000) // 80]
    assert seen == [(2116, arrived[0] - 2), (2416, arrived[1] - 2)]


def test_independent_hosts_may_not_change_the_network_from_within() -> None:
    class Cuts(Host):
        def receive(self, now_ns: int, data: bytes) -> None:
            star.fabric.set_link_up(star.links[0], False)

    star = Star([Host([(0, frame(0, 1))]), Cuts()], independent_hosts=True)
    with pytest.raises(RuntimeError, match="set_link_up"):
        star.fabric.run()
    assert star.run() == "idle"


def test_independent_hosts_may_kick_each_other() -> None:
    class Passes(Host):
        def receive(self, now_ns: int, data: bytes) -> None:
            super().receive(now_ns, data)
            other.frames.append((now_ns, frame(2, 0)))
            star.fabric.kick(2)

    other = Host()
    star = Star([Host([(0, frame(0, 1))]), Passes(), other], delay_ns=1000, independent_hosts=True)
    star.run()
    assert len(star.hosts[0].got) == 1


def test_injected_frames_enter_at_a_switch() -> None:
    sink = Host()
    star = Star([Host(), sink], delay_ns=0)
    star.fabric.inject(star.switch, 300, frame(0, 1, 1000, mark=9))
    star.run()
    assert [(time, mark_of(data)) for time, data in sink.got] == [(80, 9)]


def receivers(failing: bool) -> tuple[Any, list[Host]]:
    """Return two switches in a row; as they come first, the failing host, number 1, is on the second side."""
    engine = load()
    network = engine.Fabric(independent_hosts=True)
    for s in range(2):
        network.add_switch(engine.Switch({h: [h if h % 2 == s else 9] for h in range(4)}))
    ends = [(a, 1, 40 * i) for i in range(20) for a in (0, 2)] + [(1, 0, 500), (3, 2, 3), (0, 3, 7)]
    hosts = [Host([(time, frame(a, b, 200 + time, mark=time)) for a, b, time in ends if a == h]) for h in range(4)]
    if failing:
        hosts[1] = Failing("receive", hosts[1].frames)
    for h, host in enumerate(hosts):
        network.connect(network.add_host(host), 0, h % 2, h, rate_bps=100 * GBPS, delay_ns=1000)
    network.connect(0, 9, 1, 9, rate_bps=100 * GBPS, delay_ns=1700)
    for a in range(4):
        for b in range(4):
            network.flow(ip(a), ip(b), 7)
    network.trace(0)
    return network, hosts


@pytest.mark.parametrize("then", ["run", "slices", "calls", "kicks", "events"])
def test_after_an_error_of_an_independent_host_all_goes_on_as_if_there_had_been_none(then: str) -> None:
    network, hosts = receivers(failing=True)
    seen: list[int] = []
    with pytest.raises(LookupError):
        network.run()
    stood_ns = network.now_ns
    if then == "slices":
        for until in range(stood_ns, stood_ns + 3000):
            assert network.run(until) in ("until", "idle")
    elif then == "calls":
        for time in range(stood_ns, stood_ns + 3000, 10):
            network.at(time, seen.append)
    elif then == "kicks":
        for node in range(2, 6):
            network.kick(node)
    elif then == "events":
        while network.run(max_events=1) == "events":
            pass
    network.run(1_000_000)
    balance(network)
    assert seen == sorted(seen)
    assert len(seen) == (300 if then == "calls" else 0)
    other, others = receivers(failing=False)
    other.run(1_000_000)
    assert [host.got for host in hosts] == [host.got for host in others]
    assert network.trace_records() == other.trace_records()
    assert network.port_stats() == other.port_stats()


def test_nothing_is_changed_while_an_error_has_left_hosts_at_different_times() -> None:
    network, _ = receivers(failing=True)
    with pytest.raises(LookupError):
        network.run()
    with pytest.raises(RuntimeError, match="after an error"):
        network.set_link_up(0, False)
    network.run()
    network.set_link_up(0, False)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("when", ["at first", "in a callback", "between runs"])
def test_links_that_come_late_and_are_shorter(independent: bool, when: str) -> None:
    hosts = [Host([(0, frame(0, 1, 1000)) for _ in range(5)]), Host(), Host([(3000, frame(2, 3, 1000))]), Host()]
    star = Star(hosts[:2], independent_hosts=independent, routes={i: [i] for i in range(4)})
    late = [star.fabric.add_host(host) for host in hosts[2:]]

    def connect(now: int) -> None:
        for port, node in enumerate(late, 2):
            star.fabric.connect(node, 0, star.switch, port, rate_bps=100 * GBPS, delay_ns=7)

    if when == "in a callback":
        star.fabric.at(1500, connect)
    else:
        if when == "between runs":
            star.fabric.run(max_events=3)
        connect(0)
    assert star.run() == "idle"
    assert [time for time, _ in hosts[3].got] == [3000 + 2 * (80 + 7)]
    assert len(hosts[1].got) == 5


def test_a_link_that_a_host_connects_is_in_use_at_once() -> None:
    class Connects(Host):
        def receive(self, now_ns: int, data: bytes) -> None:
            super().receive(now_ns, data)
            for port, node in enumerate(late, 2):
                star.fabric.connect(node, 0, star.switch, port, rate_bps=100 * GBPS, delay_ns=1)

    hosts = [Host([(0, frame(0, 1, 1000))]), Connects(), Host([(0, frame(2, 3, 1000))]), Host()]
    star = Star(hosts[:2], routes={i: [i] for i in range(4)})
    late = [star.fabric.add_host(host) for host in hosts[2:]]
    star.run()
    assert [time for time, _ in hosts[3].got] == [hosts[1].got[0][0] + 2 * (80 + 1)]
