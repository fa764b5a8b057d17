"""Links that go down, come up and change their rate while the network runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.p4switch.fabric.stub import GBPS, Host, Star, balance, frame, load, mark_of

if TYPE_CHECKING:
    from p4switch.fabric import Fabric


def test_what_is_on_the_wire_and_in_the_queue_is_lost() -> None:
    a = Host([(0, frame(0, 1, 1000, mark=i)) for i in range(10)])
    sink = Host()
    star = Star([a, sink], rates={1: 10 * GBPS}, delay_ns=1000)
    star.fabric.at(3000, lambda now: star.fabric.set_link_up(star.links[1], False))
    star.run()
    # at 3,000 ns: frame 0 is out since 1,880 (due 2,880, there); 1 and 2 are on the wire or being sent; 7 wait
    assert [mark_of(data) for _, data in sink.got] == [0]
    assert balance(star.fabric)["drop_link_down"] == 9


def test_frames_for_a_link_that_is_down_are_lost_until_it_is_up() -> None:
    a = Host([(1000 * i, frame(0, 1, 1000, mark=i)) for i in range(10)])
    sink = Host()
    star = Star([a, sink], delay_ns=0)
    star.fabric.set_link_up(star.links[1], False)
    star.fabric.at(4500, lambda now: star.fabric.set_link_up(star.links[1], True))
    star.run()
    assert [mark_of(data) for _, data in sink.got] == [5, 6, 7, 8, 9]
    assert balance(star.fabric)["drop_link_down"] == 5


def test_a_host_sends_into_a_dead_link_at_its_rate() -> None:
    a = Host([(0, frame(0, 1, 1000, mark=i)) for i in range(100)])
    sink = Host()
    star = Star([a, sink], delay_ns=0)
    star.fabric.at(800, lambda now: star.fabric.set_link_up(star.links[0], False))
    star.fabric.at(1600, lambda now: star.fabric.set_link_up(star.links[0], True))
    star.run()
    got = [mark_of(data) for _, data in sink.got]
    assert got == [*range(9), *range(20, 100)]
    assert balance(star.fabric)["drop_link_down"] == 11


def test_half_the_rate_from_the_next_frame_on() -> None:
    a = Host([(0, frame(0, 1, 1000)) for _ in range(6)])
    sink = Host()
    network = load().Fabric()
    link = network.connect(network.add_host(a), 0, network.add_host(sink), 0, rate_bps=100 * GBPS, delay_ns=0)
    network.at(200, lambda now: network.set_link_rate(link, 50 * GBPS))
    network.run()
    assert [time for time, _ in sink.got] == [80, 160, 240, 400, 560, 720]


def test_one_direction_only() -> None:
    a, b = Host([(0, frame(0, 1, 1000))]), Host([(0, frame(1, 0, 1000))])
    network = load().Fabric()
    link = network.connect(network.add_host(a), 0, network.add_host(b), 0, rate_bps=100 * GBPS, delay_ns=0)
    network.set_link_rate(link, 10 * GBPS, direction=1)
    network.run()
    assert (b.got[0][0], a.got[0][0]) == (80, 800)


def test_a_pause_ends_with_the_link_and_is_told_again() -> None:
    """Host 1's link is slow, so host 0 is paused; its link goes down and comes up, and the pause is sent again."""
    a = Host([(0, frame(0, 1, 1000, priority=3)) for _ in range(400)], obeys_pfc_of=100 * GBPS)
    star = Star([a, Host()], rates={1: GBPS}, delay_ns=100)
    star.fabric.set_pfc(star.switch, priorities=[3], xoff_bytes=10_000)
    star.fabric.run(20_000)
    assert [data[19 + 6] for _, data in a.pauses] == [0xFF]
    star.fabric.set_link_up(star.links[0], False)
    star.fabric.set_link_up(star.links[0], True)
    star.fabric.run(30_000)
    assert [data[19 + 6] for _, data in a.pauses] == [0xFF, 0xFF]
    star.fabric.run()
    balance(star.fabric)


def _two(loss: float = 0.0, seed: int = 0, frames: int = 10_000, delay_ns: int = 100) -> tuple[Fabric, int, Host]:
    """Return two hosts on a link of 100 Gb/s, the first of which sends without a pause."""
    a, b = Host([(0, frame(0, 1, 1000, mark=i)) for i in range(frames)]), Host()
    network = load().Fabric()
    link = network.connect(
        network.add_host(a), 0, network.add_host(b), 0, rate_bps=100 * GBPS, delay_ns=delay_ns, loss=loss, seed=seed
    )
    return network, link, b


def test_a_link_loses_its_share_of_the_frames() -> None:
    """The number of losses is binomial; it must be within 5 standard deviations of its mean."""
    network, _, sink = _two(loss=0.02, seed=3)
    network.run()
    lost = balance(network)["drop_link_loss"]
    assert lost + len(sink.got) == 10_000
    assert abs(lost - 200) < 5 * (10_000 * 0.02 * 0.98) ** 0.5


def test_what_a_link_loses_follows_from_the_seed() -> None:
    def lost(seed: int) -> set[int]:
        network, _, sink = _two(loss=0.1, seed=seed, frames=200)
        network.run()
        return {mark_of(data) for _, data in sink.got}

    assert lost(1) == lost(1)
    assert lost(1) != lost(2)


def test_loss_begins_and_ends_at_a_time() -> None:
    network, link, sink = _two(frames=1000)
    network.at(8_000, lambda now: network.set_link_loss(link, 0.5))
    network.at(16_000, lambda now: network.set_link_loss(link, 0.0))
    network.run()
    lost = set(range(1000)) - {mark_of(data) for _, data in sink.got}
    assert lost
    assert lost <= set(range(100, 201))  # 80 ns each: frame 100 starts at 8,000 ns
    assert balance(network)["drop_link_loss"] == len(lost)


def test_no_frame_gets_ahead_on_a_link_that_becomes_shorter() -> None:
    network, link, sink = _two(frames=10, delay_ns=1000)
    network.at(200, lambda now: network.set_link_delay(link, 100))
    network.run()
    # frames 0 to 2 start before 200 ns and take the long way, until 1,240 ns; those behind wait for them
    assert [mark_of(data) for _, data in sink.got] == list(range(10))
    assert [time for time, _ in sink.got] == [1080, 1160, *[1240] * 8]


def test_a_link_becomes_longer_from_the_next_frame_on() -> None:
    network, link, sink = _two(frames=4, delay_ns=100)
    network.at(160, lambda now: network.set_link_delay(link, 1000))
    network.run()
    assert [time for time, _ in sink.got] == [180, 260, 1240, 1320]
