"""A run that needs more memory than it may have ends with one line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from harness.plan.experiment import plan
from harness.plan.scenario import check
from harness.worlds.memory import MemoryLimit
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError

GIB = 1 << 30


def world(**settings: Any) -> VirtualWorld:
    tables = {
        "cc": "dcqcn",
        "topology": {"name": "single-switch", "hosts": 4},
        "workload": {"name": "incast", "senders": 3, "size_bytes": 100_000, "starts_together": 3},
        **settings,
    }
    return VirtualWorld(plan("small", check(tables), Path())[0])


def test_a_run_that_holds_more_than_it_may_ends() -> None:
    held_bytes = psutil.Process().memory_info().rss
    with pytest.raises(UserError, match=r"small-dcqcn-seed1: out of memory after .* us of model time"):
        world(memory_bytes=held_bytes // 2).run()
    assert world(memory_bytes=held_bytes + GIB).run().ended == "done"


def test_a_run_that_only_waits_and_samples_ends_before_its_samples_fill_the_memory() -> None:
    """Its frames are lost with the link, and its time-out is far away."""
    down = [{"time_ns": 0, "link": ["h0-0-2", "s0"], "up": False}]
    held_bytes = psutil.Process().memory_info().rss
    waiting = world(
        events=down,
        nic={"rto_ns": 900_000_000},
        record={"queue_interval_ns": 100},
        memory_bytes=held_bytes + GIB // 4,
    )
    with pytest.raises(UserError, match=r"to come for the table of .* queue samples"):
        waiting.run()
    assert waiting.fabric.now_ns < 200_000_000


def test_what_the_machine_has_left_is_the_limit_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4 * GIB, total=16 * GIB))
    limit = MemoryLimit("x", None)
    limit.look(1000, 0)
    limit.look(1000, 40_000_000)
    with pytest.raises(UserError, match=r"x: out of memory after 1 us of model time.* 48,000,000 queue samples"):
        limit.look(1000, 48_000_000)


def test_a_network_that_cannot_fit_is_not_built() -> None:
    with pytest.raises(UserError, match=r"small-dcqcn-seed1: 16 hosts and 20 switches take some 0.00 GiB before"):
        world(topology={"name": "fat-tree", "k": 4}, memory_bytes=100_000)


def test_what_workers_hold_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    child = SimpleNamespace(memory_full_info=lambda: SimpleNamespace(uss=4 * GIB))
    monkeypatch.setattr(psutil.Process, "children", lambda self: [child])
    held_bytes = psutil.Process().memory_info().rss
    MemoryLimit("x", held_bytes + 5 * GIB).look(1000, 0)
    with pytest.raises(UserError, match="x: out of memory"):
        MemoryLimit("x", held_bytes + 3 * GIB).look(1000, 0)
