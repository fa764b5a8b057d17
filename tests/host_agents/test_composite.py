"""A protocol that combines others, without a NIC or a link."""

import pytest

from host_agents.cc.base import UNLIMITED, Feedback, Host, Path, ReactionOutlet, ReactionPoint, Traffic
from host_agents.cc.composite import CompositeReactionPoint
from host_agents.errors import HostError
from host_agents.registry import resolve

PATH = Path(100e9, 8_000, 1000, 1058, 80)


class Recorder(ReactionOutlet):
    """Keeps the requests that it gets."""

    def __init__(self) -> None:
        super().__init__(Host(), Traffic())
        self.said: list[str] = []

    def rate_changed(self) -> None:
        self.said.append("rate")

    def window_opened(self) -> None:
        self.said.append("window")


class Steps(ReactionPoint):
    """Part that reduces the rate by a step at every ACK."""

    def __init__(self, rate_step_bps: float, window_bytes: float) -> None:
        super().__init__(PATH)
        self.rate_step_bps = rate_step_bps
        self.window_bytes = window_bytes
        self.told: list[tuple[str, int]] = []

    def on_ack(self, feedback: Feedback) -> None:
        self.rate_bps -= self.rate_step_bps
        self.window_bytes -= feedback.acked_bytes

    def on_post(self, now_ns: int) -> None:
        self.told.append(("post", now_ns))


def composite(*parts: ReactionPoint) -> tuple[CompositeReactionPoint, Recorder]:
    outlet = Recorder()
    point = CompositeReactionPoint(PATH, list(parts))
    point.bind(outlet)
    return point, outlet


def test_the_smallest_rate_and_window_count() -> None:
    a, b = Steps(10e9, 50_000.0), Steps(20e9, 90_000.0)
    point, outlet = composite(a, b)
    assert (point.rate_bps, point.window_bytes) == (100e9, 50_000.0)
    feedback = Feedback()
    feedback.acked_bytes = 1000
    point.on_ack(feedback)
    assert (point.rate_bps, point.window_bytes) == (80e9, 49_000.0)
    assert outlet.said == ["rate"]
    assert point.may_send(48_999)
    assert not point.may_send(49_000)


def test_its_own_limit_counts_too() -> None:
    point, _ = composite(Steps(0.0, UNLIMITED))
    point.own_rate_bps = 25e9
    point.own_window_bytes = 5_000.0
    point.follow()
    assert (point.rate_bps, point.window_bytes) == (25e9, 5_000.0)


def test_parts_hear_of_everything_and_see_the_same_traffic() -> None:
    a, b = Steps(0.0, UNLIMITED), Steps(0.0, UNLIMITED)
    point, outlet = composite(a, b)
    point.on_post(7)
    assert a.told == b.told == [("post", 7)]
    assert point.traffic is a.traffic is b.traffic is outlet.traffic


@pytest.mark.parametrize(("name", "value"), [("own_headers", True), ("alone_bytes", 0)])
def test_a_part_that_changes_data_packets_is_refused(name: str, value: bool | int) -> None:
    part = Steps(0.0, UNLIMITED)
    setattr(part, name, value)
    with pytest.raises(HostError, match=r"Steps cannot be a part of another protocol: .* expected a part that sets"):
        composite(part)


def test_a_part_that_widens_its_window_by_itself_wakes_the_sender() -> None:
    a = Steps(0.0, 5_000.0)
    point, outlet = composite(a)
    a.set_window(9_000.0)
    assert point.window_bytes == 9_000.0
    assert outlet.said == ["window"]


def test_a_part_with_timers_sets_the_rate_between_events() -> None:
    """DCQCN's cut comes by its own timer, 4 us after the first CNP; then it recovers."""
    dcqcn = resolve("dcqcn").reaction_point(PATH)
    point, outlet = composite(dcqcn)
    point.on_cnp(1_000)
    assert point.rate_bps == 100e9
    outlet.host.timers.serve(5_001)
    cut_bps = 100e9 * (1 - (255 / 256) ** 4 / 2)  # alpha decays each microsecond
    assert point.rate_bps == dcqcn.rate_bps == pytest.approx(cut_bps)
    outlet.host.timers.serve(305_001)
    assert point.rate_bps == pytest.approx((cut_bps + 100e9) / 2)
    point.close()
    assert outlet.host.timers.first_ns > 1 << 60


class Counts(Steps):
    """Part that reduces the rate with the bytes sent."""

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        self.window_bytes -= wire_bytes


def test_parts_that_react_to_sent_packets_are_told_of_them() -> None:
    point, _ = composite(Steps(0.0, 50_000.0), Counts(0.0, 20_000.0))
    point.on_sent(0, 1000)
    assert point.window_bytes == 19_000.0


def test_it_is_at_rest_when_all_parts_are() -> None:
    class Restless(Steps):
        @property
        def at_rest(self) -> bool:
            return len(self.told) > 0

    restless = Restless(1e9, 50_000.0)
    point, _ = composite(Steps(1e9, 50_000.0), restless)
    assert not point.at_rest
    restless.on_post(1)
    assert point.at_rest
