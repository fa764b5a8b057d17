"""Trimming by the traffic manager: the trimmed packet, its length, and the counts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.p4switch.fabric.stub import GBPS, Host, Star, balance, columns, examples, frame, mark_of

SIZE, LEFT = 1000, 64
DATA, TRIMMED = 1, 6


def star_of(sink: Host, sizes: list[int], rate_bps: int = GBPS, **trimming: object) -> Star:
    """Return a network in which frames of these sizes arrive back to back at 100 Gb/s for a slower port."""
    sender = Host([(0, frame(0, 1, size, priority=DATA, mark=i)) for i, size in enumerate(sizes)])
    star = Star([sender, sink], rates={1: rate_bps}, delay_ns=0)
    chosen = {"limit_bytes": 3 * SIZE, "trim_limit_bytes": None, "trim_size_bytes": LEFT, **trimming}
    star.fabric.set_trimming(star.switch, 1, priorities=[DATA], trim_priority=TRIMMED, **chosen)
    return star


def order(sink: Host) -> list[int]:
    return [mark_of(data) for _, data in sink.got]


def lengths(sink: Host) -> list[int]:
    """Return the bytes of each frame after the first; frames arrive without gaps, at one bit in a nanosecond."""
    times = [time for time, _ in sink.got]
    return [(b - a) // 8 for a, b in itertools.pairwise(times)]


def test_the_newest_is_trimmed_and_goes_first() -> None:
    """The first frame is sent at once, three wait, and all others are trimmed."""
    sink = Host()
    star = star_of(sink, [SIZE] * 9)
    star.run()
    assert order(sink) == [0, 4, 5, 6, 7, 8, 1, 2, 3]
    assert lengths(sink) == [LEFT] * 5 + [SIZE] * 3
    assert balance(star.fabric)["drop_buffer"] == 0
    queues = columns(star.fabric.queue_stats())
    assert (queues["priority"], queues["max_bytes"]) == ([DATA, TRIMMED], [3 * SIZE, 5 * LEFT])
    assert queues["dropped_packets"] == [0, 0]


def test_what_is_as_short_keeps_its_length() -> None:
    sink = Host()
    star_of(sink, [SIZE] * 4 + [LEFT - 4], limit_bytes=3 * SIZE).run()
    assert order(sink) == [0, 4, 1, 2, 3]
    assert lengths(sink)[0] == LEFT - 4


def test_a_full_queue_of_trimmed_packets_drops() -> None:
    sink = Host()
    star = star_of(sink, [SIZE] * 9, trim_limit_bytes=2 * LEFT)
    star.run()
    assert order(sink) == [0, 4, 5, 1, 2, 3]
    assert balance(star.fabric)["drop_buffer"] == 3
    assert columns(star.fabric.queue_stats())["dropped_packets"] == [0, 3]


def test_without_a_size_packets_are_dropped() -> None:
    sink = Host()
    star = star_of(sink, [SIZE] * 9, trim_size_bytes=None)
    star.run()
    assert order(sink) == [0, 1, 2, 3]
    assert columns(star.fabric.queue_stats())["dropped_packets"] == [5]


@pytest.mark.parametrize("size", [LEFT, None])
def test_a_fair_coin_takes_the_newest_or_the_youngest(size: int | None) -> None:
    """All places but the last keep their packets; the last has the packet that came after the last lost coin.

    Half of 2,000 coins are heads, within 4 standard deviations (22 each).
    """
    count = 2004
    sink = Host()
    star = star_of(sink, [SIZE] * count, 10**6, victim="newest_or_youngest", seed=3, trim_size_bytes=size)
    star.run()
    assert balance(star.fabric)["drop_buffer"] == (0 if size else count - 4)
    whole = order(sink)[-3:]
    assert whole[:2] == [1, 2]
    if size:
        cut = order(sink)[1:-3]
        assert sorted([0, *cut, *whole]) == list(range(count))
        # A packet that is trimmed when it comes follows in the order of arrival; one that has waited comes later.
        taken_at_once = sum(mark == at + 4 for at, mark in enumerate(cut))
        assert abs(taken_at_once - 1000) < 4 * 22.4


def test_the_coin_follows_the_seed() -> None:
    orders = []
    for seed in (1, 1, 2):
        sink = Host()
        star_of(sink, [SIZE] * 40, victim="newest_or_youngest", seed=seed).run()
        orders.append(order(sink))
    assert orders[0] == orders[1] != orders[2]


@settings(max_examples=examples(200), deadline=None)
@given(
    sizes=st.lists(st.integers(LEFT, 1500), max_size=60),
    limit=st.integers(0, 6000),
    trim_limit=st.none() | st.integers(0, 600),
    size=st.none() | st.integers(1, 200),
    buffer=st.none() | st.integers(0, 8000),
    alpha=st.none() | st.floats(0.1, 4),
    seed=st.integers(0, 1 << 40),
)
def test_nothing_is_lost_or_made(
    sizes: list[int],
    limit: int,
    trim_limit: int | None,
    size: int | None,
    buffer: int | None,
    alpha: float | None,
    seed: int,
) -> None:
    """Each packet arrives once or is a counted drop, and no queue exceeds its limit."""
    sender = Host([(0, frame(0, 1, n, priority=DATA, mark=i)) for i, n in enumerate(sizes)])
    sink = Host()
    shared: dict[str, Any] = {} if buffer is None else {"buffer_bytes": buffer, "alpha": alpha}
    star = Star([sender, sink], rates={1: 1 * GBPS}, delay_ns=0, **shared)
    star.fabric.set_trimming(
        star.switch, 1, priorities=[DATA], limit_bytes=limit, trim_priority=TRIMMED, trim_limit_bytes=trim_limit,
        trim_size_bytes=size, victim="newest_or_youngest", seed=seed,
    )
    star.run()
    ledger = balance(star.fabric)
    assert len(set(order(sink))) == len(sink.got)
    assert len(sink.got) + ledger["drop_buffer"] == len(sizes)
    queues = columns(star.fabric.queue_stats())
    for priority, held in zip(queues["priority"], queues["max_bytes"], strict=True):
        most = limit if priority == DATA else trim_limit
        assert most is None or held <= most
    assert not any(queues["depth_bytes"])
    assert columns(star.fabric.buffer_stats())["depth_bytes"] == [0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trim_priority": DATA}, "trim_priority: 1 is trimmed itself; expected another"),
        ({"trim_priority": 8}, "trim_priority = 8; expected 0 to 7"),
        ({"trim_size_bytes": 0}, "trim_size_bytes = 0; expected 1 to 65535"),
        ({"victim": "oldest"}, "victim = 'oldest'; expected newest or newest_or_youngest"),
        ({"priorities": [9]}, "priorities: priority 9; expected 0 to 7"),
    ],
)
def test_wrong_settings_are_named(changed: dict[str, object], message: str) -> None:
    star = Star([Host(), Host()])
    good = {"priorities": [DATA], "limit_bytes": 1, "trim_priority": 6, "trim_limit_bytes": 1, "trim_size_bytes": 64}
    with pytest.raises(ValueError, match=message):
        star.fabric.set_trimming(star.switch, 1, **{**good, **changed})


def test_a_port_that_takes_turns_cannot_trim() -> None:
    star = Star([Host(), Host()], scheduler="round_robin")
    with pytest.raises(ValueError, match="port 1: expected empty queues, first in, first out"):
        star.fabric.set_trimming(
            star.switch, 1, priorities=[1], limit_bytes=1, trim_priority=6, trim_limit_bytes=1, trim_size_bytes=64
        )
