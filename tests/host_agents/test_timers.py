"""Timers fire at their nominal times and in order, after any sequence of arming, moving and cancelling."""

from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents.fifo import Fifo, RowFifo
from host_agents.timers import NEVER, Timer, TimerOwner, TimerQueue


class Recorder(TimerOwner):
    def __init__(self) -> None:
        self.fired: list[tuple[int, int]] = []

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self.fired.append((now_ns, timer.kind))


def test_a_timer_fires_once_at_its_own_time() -> None:
    queue, owner = TimerQueue(), Recorder()
    timer = Timer(queue, owner, 7)
    timer.arm(100)
    queue.serve(99)
    assert owner.fired == []
    queue.serve(250)
    assert owner.fired == [(100, 7)]
    assert not timer.is_armed()
    assert queue.first_ns == NEVER
    queue.serve(1000)
    assert len(owner.fired) == 1


def test_a_timer_armed_by_another_is_served_in_the_same_call() -> None:
    class Chain(TimerOwner):
        fired: tuple[int, ...] = ()

        def on_timer(self, now_ns: int, timer: Timer) -> None:
            self.fired += (now_ns,)
            if now_ns < 50:
                timer.arm(now_ns + 10)

    queue, owner = TimerQueue(), Chain()
    Timer(queue, owner).arm(10)
    queue.serve(45)
    assert owner.fired == (10, 20, 30, 40)
    assert queue.first_ns == 50


steps = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 30))), max_size=60)


@settings(deadline=None)
@given(steps)
def test_any_arming_and_cancelling_is_served_in_order(steps: list[tuple[int, int | None]]) -> None:
    queue, owner = TimerQueue(), Recorder()
    timers = [Timer(queue, owner, kind) for kind in range(10)]
    model: dict[int, tuple[int, int]] = {}
    for turn, (kind, at_ns) in enumerate(steps):
        if at_ns is None:
            timers[kind].cancel()
            model.pop(kind, None)
        else:
            timers[kind].arm(at_ns)
            model[kind] = (at_ns, turn)
        assert queue.first_ns == min((at for at, _ in model.values()), default=NEVER)
        assert timers[kind].is_armed() == (kind in model)
    queue.serve(100)
    assert owner.fired == [(at, kind) for (at, _), kind in sorted((when, kind) for kind, when in model.items())]


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers())))
def test_fifo_is_a_queue(steps: list[int | None]) -> None:
    fifo: Fifo[int] = Fifo()
    model: list[int] = []
    for item in steps:
        if item is not None:
            fifo.push(item)
            model.append(item)
            assert fifo.last() == item
        elif model:
            assert fifo.peek() == model[0]
            assert fifo.pop() == model.pop(0)
        assert fifo.size == len(model)
    assert [fifo.pop() for _ in range(fifo.size)] == model


@given(st.lists(st.one_of(st.none(), st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3)), max_size=100))
def test_rows_are_a_queue(steps: list[tuple[int, int, int] | None]) -> None:
    fifo, model = RowFifo(3), []
    for row in steps:
        if row is not None:
            at = fifo.push()
            for place, number in enumerate(row):
                fifo.rows[at + place] = number
            model.append(row)
        elif model:
            at = fifo.oldest()
            assert tuple(fifo.rows[at : at + 3]) == model.pop(0)
            fifo.drop()
        assert fifo.size == len(model)
