"""Speculative packets in a class below that of data, in the virtual world: how long scheduled packets wait."""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure.recording import Recording
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld

DATA, LOWER = 3, 1
HOSTS = 5
RATE_BPS = 10e9
FLOWS = st.lists(
    st.tuples(st.integers(0, HOSTS - 1), st.integers(1, HOSTS - 1), st.integers(1, 60_000), st.integers(0, 60_000)),
    min_size=1,
    max_size=10,
)


def run(flows: list[tuple[int, int, int, int]], priority: int) -> tuple[Recording, int]:
    """Return the most speculative packets, with that on the link, that a scheduled packet waited for at a port.

    A flow is (source, destination after the source, bytes, start in ns).
    """
    streams: list[dict[str, Any]] = [
        {"name": str(i), "source": source, "destination": (source + d) % HOSTS, "size_bytes": size, "start_ns": start}
        for i, (source, d, size, start) in enumerate(flows)
    ]
    tables = {
        "cc": "sperc+1rc",
        "topology": {"name": "single-switch", "hosts": HOSTS, "link_rate_bps": RATE_BPS, "link_delay_ns": 2_000},
        "workload": {"name": "streams", "flows": streams},
        "protocols": {"sperc+1rc": {"1rc": {"speculative_priority": priority}}},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
    }
    world = VirtualWorld(plan("x", check(tables), Path())[0])
    world.fabric.trace(0)
    recording = world.run()
    waiting: dict[int, deque[int]] = defaultdict(deque)  # by port: times at which scheduled packets came
    ends: dict[int, list[int]] = defaultdict(list)  # by port: when the last bit of a speculative packet left
    most = 0
    for time_ns, _, event, port, found, _, wire_bytes, *_ in world.trace_records():
        if event == "enqueue" and found == DATA:
            waiting[port].append(time_ns)
        elif event == "transmit" and found == LOWER:
            ends[port].append(time_ns + int(8 * wire_bytes * 1e9 / RATE_BPS))
        elif event == "transmit" and found == DATA:
            came_ns = waiting[port].popleft()
            most = max(most, sum(end_ns > came_ns for end_ns in ends[port]))
    return recording, most


@settings(max_examples=6, deadline=None)
@given(FLOWS)
def test_a_scheduled_packet_waits_for_at_most_one_speculative_packet(flows: list[tuple[int, int, int, int]]) -> None:
    recording, most = run(flows, LOWER)
    assert recording.ended == "done"
    assert recording.residue == {}
    assert most <= 1


def test_a_queue_of_speculative_packets_does_not_delay_scheduled_ones() -> None:
    """Check a long flow and three bursts of a BDP at once to one host, the case in which a delay could occur."""
    flows = [(1, 4, 100_000, 0), *((source, HOSTS - source, 10_000, 30_000) for source in (2, 3, 4))]
    recording, most = run(flows, LOWER)
    assert recording.ended == "done"
    assert most == 1
