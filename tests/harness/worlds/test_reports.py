"""Exchange of hosts' reports between workers: values are the same after the transfer."""

from __future__ import annotations

import pytest

from harness.measure.flow_record import Sent
from harness.worlds.host_session import Completed, Delivered, Ended, Event, Failed
from harness.worlds.reports import packed, unpacked

SENT = Sent(3000, 10, 900, {"packets_sent": 3})


@pytest.mark.parametrize(
    "event",
    [Delivered(7, 2, 900, {"marked_received": 1}), Completed(5, SENT), Failed(5, SENT), Ended(900)],
)
def test_whole_events_are_told_whole(event: Event) -> None:
    assert unpacked(packed(900, 12, event, whole=True)) == (900, 12, event)


def test_of_a_flow_with_two_ends_its_times_are_told() -> None:
    delivered = unpacked(packed(900, 12, Delivered(7, 2, 900, {"marked_received": 1}), whole=False))
    assert delivered == (900, 12, Delivered(7, 2, 900, {}))
    completed = unpacked(packed(1 << 40, 3, Completed(5, Sent(3000, 10, 1 << 40, {"packets_sent": 3})), whole=False))
    assert completed == (1 << 40, 3, Completed(5, Sent(3000, -1, 1 << 40, {})))


def test_a_failure_is_always_told_whole() -> None:
    assert unpacked(packed(900, 12, Failed(5, SENT), whole=False)) == (900, 12, Failed(5, SENT))
