"""Links that go down, come up and change their rate while the network runs."""

from stub import GBPS, Host, Star, balance, frame, load, mark_of


def test_what_is_on_the_wire_and_in_the_queue_is_lost():
    a = Host([(0, frame(0, 1, 1000, mark=i)) for i in range(10)])
    sink = Host()
    star = Star([a, sink], rates={1: 10 * GBPS}, delay_ns=1000)
    star.fabric.at(3000, lambda now: star.fabric.set_link_up(star.links[1], False))
    star.run()
    # at 3,000 ns: frame 0 is out since 1,880 (due 2,880, there); 1 and 2 are on the wire or being sent; 7 wait
    assert [mark_of(data) for _, data in sink.got] == [0]
    assert balance(star.fabric)["drop_link_down"] == 9


def test_frames_for_a_link_that_is_down_are_lost_until_it_is_up():
    a = Host([(1000 * i, frame(0, 1, 1000, mark=i)) for i in range(10)])
    sink = Host()
    star = Star([a, sink], delay_ns=0)
    star.fabric.set_link_up(star.links[1], False)
    star.fabric.at(4500, lambda now: star.fabric.set_link_up(star.links[1], True))
    star.run()
    assert [mark_of(data) for _, data in sink.got] == [5, 6, 7, 8, 9]
    assert balance(star.fabric)["drop_link_down"] == 5


def test_a_host_sends_into_a_dead_link_at_its_rate():
    a = Host([(0, frame(0, 1, 1000, mark=i)) for i in range(100)])
    sink = Host()
    star = Star([a, sink], delay_ns=0)
    star.fabric.at(800, lambda now: star.fabric.set_link_up(star.links[0], False))
    star.fabric.at(1600, lambda now: star.fabric.set_link_up(star.links[0], True))
    star.run()
    got = [mark_of(data) for _, data in sink.got]
    assert got == [*range(9), *range(20, 100)]
    assert balance(star.fabric)["drop_link_down"] == 11


def test_half_the_rate_from_the_next_frame_on():
    a = Host([(0, frame(0, 1, 1000)) for _ in range(6)])
    sink = Host()
    network = load().Fabric()
    link = network.connect(network.add_host(a), 0, network.add_host(sink), 0, rate_bps=100 * GBPS, delay_ns=0)
    network.at(200, lambda now: network.set_link_rate(link, 50 * GBPS))
    network.run()
    assert [time for time, _ in sink.got] == [80, 160, 240, 400, 560, 720]


def test_one_direction_only():
    a, b = Host([(0, frame(0, 1, 1000))]), Host([(0, frame(1, 0, 1000))])
    network = load().Fabric()
    link = network.connect(network.add_host(a), 0, network.add_host(b), 0, rate_bps=100 * GBPS, delay_ns=0)
    network.set_link_rate(link, 10 * GBPS, direction=1)
    network.run()
    assert (b.got[0][0], a.got[0][0]) == (80, 800)


def test_a_pause_ends_with_the_link_and_is_told_again():
    """Host 1's link is slow, so host 0 is paused; its link goes down and comes up, and the pause is sent anew."""
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
