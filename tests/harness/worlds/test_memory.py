"""A run that needs more memory than its limit ends with one line."""

from __future__ import annotations

import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds import building, memory, virtual
from harness.worlds.local import LocalWorld
from harness.worlds.memory import MemoryLimit
from harness.worlds.parallel import Crew
from harness.worlds.partitioned import PartitionedWorld
from harness.worlds.virtual import VirtualWorld
from p4cc.cli import main
from p4switch.errors import UserError

GIB = 1 << 30


class OneOfTwo:
    """Worker of two, of which the other one has gathered 4 GiB."""

    count = 2

    def __init__(self, first: bool, own_memory: bool = True) -> None:
        self.first, self.own_memory = first, own_memory

    def gather(self, value: int) -> list[int]:
        return [value, 4 * GIB] if self.first else []


def look(limit: MemoryLimit, crew: OneOfTwo, queue_samples: int = 0) -> None:
    whole = PartitionedWorld(cast(LocalWorld, None), cast(Crew, crew), {})
    whole.look_at_memory(limit, 1000, queue_samples)


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
    held_bytes = psutil.Process().memory_info().rss
    limit.look(1000, 0, held_bytes)
    limit.look(1000, 40_000_000, held_bytes)
    with pytest.raises(UserError, match=r"x: out of memory after 1 us of model time.* 48,000,000 queue samples"):
        limit.look(1000, 48_000_000, held_bytes)


def test_a_network_that_cannot_fit_is_not_built() -> None:
    with pytest.raises(UserError, match=r"small-dcqcn-seed1: 16 hosts and 20 switches take some 0.00 GiB before"):
        world(topology={"name": "fat-tree", "k": 4}, memory_bytes=100_000)


def test_a_network_counts_once_for_each_rank_that_builds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = MemoryLimit("x", 3 * GIB)
    limit.foresee(GIB, "16 hosts", 3, 4)
    with pytest.raises(UserError, match=r"^x: 4 times 16 hosts take some 4.00 GiB before .* at most 3.00 GiB"):
        limit.foresee(GIB, "16 hosts", 4, 1)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=3 * GIB, total=0))
    MemoryLimit("x", None).foresee(GIB, "16 hosts", 4, 3)  # the other one is on a machine of its own
    with pytest.raises(UserError, match=r"^x: 4 times 16 hosts take"):
        MemoryLimit("x", None).foresee(GIB, "16 hosts", 4, 4)


def test_what_all_workers_hold_counts() -> None:
    held_bytes = psutil.Process().memory_info().rss
    look(MemoryLimit("x", held_bytes + 5 * GIB), OneOfTwo(first=True))
    look(MemoryLimit("x", 1), OneOfTwo(first=False))  # the first one's to say
    with pytest.raises(UserError, match="x: out of memory"):
        look(MemoryLimit("x", held_bytes + 3 * GIB), OneOfTwo(first=True))


def test_each_rank_looks_at_its_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=GIB, total=64 * GIB))
    limit = MemoryLimit("x", None)
    look(limit, OneOfTwo(first=False, own_memory=False))  # the first one's machine
    with pytest.raises(UserError, match=r"x: out of memory .* 0 queue samples"):
        look(limit, OneOfTwo(first=False), 48_000_000)


def test_workers_look_together_while_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "_SAMPLES_A_LOOK", 1)
    looked: list[int] = []
    original = MemoryLimit.look

    def counted(limit: MemoryLimit, now_ns: int, *others: Any) -> None:
        looked.append(now_ns)
        original(limit, now_ns, *others)

    monkeypatch.setattr(MemoryLimit, "look", counted)
    record = {"queue_interval_ns": 1_000, "rate_interval_ns": 3_000}
    run = world(memory_bytes=1 << 40, record=record).run_plan
    assert VirtualWorld(run, workers=2).run().ended == "done"
    assert len(looked) > 5


def test_what_a_forked_worker_takes_ends_the_run() -> None:
    taken: list[bytes] = []

    def take(rank: int) -> None:
        if rank == 1:
            taken.append(b"x" * (GIB // 4))

    run = world(memory_bytes=psutil.Process().memory_info().rss + GIB // 8).run_plan
    with pytest.raises(UserError, match="out of memory"):
        VirtualWorld(run, workers=2, on_start=take).run()
    assert VirtualWorld(run, workers=2).run().ended == "done"


def a_small_machine(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free_bytes, total=free_bytes))


@pytest.mark.parametrize("sweep", [False, True])
def test_a_plan_says_that_a_run_does_not_fit_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, sweep: bool
) -> None:
    a_small_machine(monkeypatch, 150_000_000)
    scenario = ["run", "incast-star", "--cc", "dcqcn"]
    if sweep:
        file = tmp_path / "two.toml"
        file.write_text('scenario = "incast-star"\naxes.workload.senders = [2, 4]\nset.cc = "dcqcn"\n')
        scenario = ["sweep", str(file)]
    with pytest.raises(SystemExit) as ended:
        main([*scenario, "--dry-run"])
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert "0.2 GB" in told.out  # the plan is told all the same
    assert "does not fit here: it will take some 0.2 GB of memory, and 0.1 GB are free; expected" in told.err
    assert told.err.count("\n") == 1


def test_a_run_that_does_not_fit_is_not_begun_unless_the_user_says_what_it_may_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_small_machine(monkeypatch, 150_000_000)
    with pytest.raises(UserError, match=r"^small-dcqcn-seed1: does not fit here: it will take some 0\.2 GB"):
        world()
    world(memory_bytes=4 * GIB)


def test_ulimit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped_bytes = psutil.Process().memory_info().vms
    monkeypatch.setattr(memory, "_RESERVE_OF_LIMIT", 0.0)
    monkeypatch.setattr(memory, "_LEAST_RESERVE_BYTES", 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (mapped_bytes + 100_000_000, resource.RLIM_INFINITY))
    with pytest.raises(UserError, match="does not fit here"):
        world()


def test_set_up_tells_how_far_it_is() -> None:
    shares: list[float] = []
    with building.reported_to(shares.append):
        world()
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(1 / 8)
    assert shares[-1] == 1.0
    world()  # nobody is told any more
    assert len(shares) == 5
