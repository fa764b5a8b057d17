"""Runs of several workers write the same bytes as one worker, and end when one of them fails.

This holds for every assignment of nodes, and however late a worker is.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, cast

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import DeadWorkerError
from harness.measure import results
from harness.plan.how import How, Tracing
from harness.plan.inputs import resolved_text
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.parallel import Workers, workers_of
from harness.worlds.virtual import VirtualWorld
from host_agents.nic import Nic
from host_agents.timers import NEVER
from p4switch.errors import UserError
from p4switch.fabric import Fabric

EXAMPLES = int(os.environ.get("P4CC_WORKER_EXAMPLES", "4"))
LEAF_SPINE = {"name": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 3}
PROTOCOLS = ("dcqcn", "hpcc", "swift", "eqds", "smartt", "bbr", "accurate", "pause-only")
TRAINING: dict[str, Any] = {
    "name": "training", "data": 2, "tensor": 2, "pipeline": 1, "micro_batches": 2, "gradient_bytes": 20_000,
    "tensor_bytes": 9_000, "forward_ns": 6_000, "backward_ns": 12_000,
}  # fmt: skip
WORKLOADS: list[dict[str, Any]] = [
    {"name": "permutation", "size_bytes": 12_000},
    {"name": "incast", "senders": 4, "starts_together": 4, "size_bytes": 15_000},
    {"name": "poisson", "load": 0.5, "duration_ns": 60_000, "distribution": "hadoop"},
    {"name": "alltoall", "size_bytes": 3_000},  # flows that start when others are done, ...
    {"name": "allreduce", "size_bytes": 12_000},
    TRAINING,
    {"name": "multicast", "size_bytes": 9_000},  # ... and copies
]


def planned(**tables: Any) -> Run:
    given = {"cc": "dcqcn", "topology": LEAF_SPINE, "limit_ns": 400_000, **tables}
    return plan("x", check(given), Path())[0]


def written(run: Run, folder: Path, **how: Any) -> dict[str, str]:
    """Return digests of all that a run writes, except its cost."""
    world = VirtualWorld(run, **how)
    recording = world.run()
    results.write(folder, results.files(run, recording, How(), {}))
    world.write_more(folder)
    files = {file.name: file for file in folder.rglob("*") if file.is_file()}
    del files["performance.json"], files["provenance.json"]
    assert {"flows.parquet", "queues.parquet", "links.parquet", "rates.parquet", "summary.json"} <= files.keys()
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}


def late_by(seed: int) -> Callable[[int], object]:
    """Delay the start of each worker by this time."""
    return lambda rank: time.sleep(random.Random(1000 * seed + rank).random() * 0.01)


def compare(run: Run, workers: int, **how: Any) -> None:
    with TemporaryDirectory() as folder:
        common = {key: how[key] for key in ("trace", "capture", "coverage") if key in how}
        one = written(run, Path(folder) / "one", **common)
        assert written(run, Path(folder) / "many", workers=workers, **how) == one


@st.composite
def runs(draw: st.DrawFn) -> Run:
    topology = draw(
        st.sampled_from(
            [
                LEAF_SPINE,
                {**LEAF_SPINE, "link_delay_ns": 300},
                {"name": "fat-tree", "k": 4},
                {"name": "single-switch", "hosts": 5},
                {"name": "dumbbell", "pairs": 3},
            ]
        )
    )
    tables: dict[str, Any] = {
        "cc": draw(st.sampled_from(PROTOCOLS)),
        "topology": topology,
        "workload": draw(st.sampled_from(WORKLOADS)),
        "seeds": [draw(st.integers(0, 99))],
        "record": {"queue_interval_ns": 2_000, "rate_interval_ns": draw(st.sampled_from([3_000, 10_000]))},
    }
    tables["switch"] = draw(
        st.sampled_from(
            [{"pfc": {"enabled": True, "xoff_bytes": 2000}}, {"pfc": {"enabled": False}, "queue_bytes": 9000}]
        )
    )
    return planned(**tables)


@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_workers_write_what_one_writes(data: st.DataObject) -> None:
    run = data.draw(runs())
    workers = data.draw(st.integers(2, 4))
    seed = data.draw(st.integers(0, 99))
    owners = None
    if data.draw(st.booleans()):
        rng = random.Random(seed)
        owners = {name: rng.randrange(workers) for name in run.topology.ports}
    compare(run, workers, owners=owners, on_start=late_by(seed))


def test_traces_captures_and_coverage_are_the_same() -> None:
    run = planned(cc="hpcc", workload={"name": "incast", "senders": 4, "starts_together": 4, "size_bytes": 9_000})
    compare(run, 3, trace=Tracing(2), capture=True, coverage=True)


@pytest.mark.parametrize(("cc", "trims"), [("nscc", True), ("rccc", True), ("rccc+nscc", True), ("nscc", False)])
def test_runs_of_ultra_ethernet_are_the_same(cc: str, trims: bool) -> None:
    """Packets are sprayed. The traffic manager trims one of two packets at random, or drops it and SLEEK repairs."""
    run = planned(
        cc=cc,
        lb="mixed",
        program="trim",
        workload={"name": "incast", "senders": 5, "starts_together": 5, "size_bytes": 60_000},
        switch={"pfc": {"enabled": False}},
        nic={"ack_every_bytes": 16_384, "rto_ns": 60_000, "sleek": {"windows": 0.0 if trims else 1.5}},
        programs={
            "trim": {
                "trimming": trims,
                "trimmed_by": "traffic-manager" if trims else "program",
                "trim_last_hop_dscp": 50,
                "queue_bytes": 20_000,
            }
        },
        protocols={"nscc": {"trimming": trims}, "rccc": {"oversubscription": 2}},
    )
    compare(run, 3)


def test_pauses_link_changes_and_probes_are_the_same() -> None:
    links = [{"between": ["leaf1", "spine*"], "loss": 0.1}, {"nodes": ["h0-2-*"], "rate_bps": 25 * 10**9}]
    topology = {"name": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 3, "links": links}
    run = planned(
        cc="none",
        topology=topology,
        workload={"name": "incast", "senders": 8, "starts_together": 8, "size_bytes": 60_000},
        switch={"pfc": {"enabled": True, "xoff_bytes": 3000}},
        events=[
            {"time_ns": 9_000, "link": ["leaf0", "spine0"], "up": False},
            {"time_ns": 9_000, "link": ["leaf1", "spine1"], "rate_fraction": 0.25},
            {"time_ns": 15_000, "link": ["leaf2", "spine0"], "delay_ns": 90, "loss": 0.2},
            {"time_ns": 21_000, "link": ["leaf0", "spine0"], "up": True},
            {"time_ns": 25_000, "link": ["leaf2", "spine0"], "delay_ns": 1500, "loss": 0.05},
        ],
        record={
            "probes": [
                {"name": "marks", "kind": "queue", "reads": "depth_bytes", "interval_ns": 5_000},
                {"name": "drops", "kind": "queue", "reads": "drop_bytes", "interval_ns": 5_000},
            ]
        },
    )
    of_rack = {"leaf0": 0, "leaf1": 1, "leaf2": 2}
    owners = dict.fromkeys(run.topology.ports, 1) | of_rack
    owners |= {host.name: of_rack[run.topology.uplink(host).node] for host in run.topology.hosts}
    compare(run, 3, capture=True, owners=owners)  # the link that fails is between two workers
    recording = VirtualWorld(run, workers=2).run()
    assert recording.conservation["balance"] == recording.conservation["pfc_balance"] == 0
    assert recording.conservation["pfc_sent"] > 20
    assert recording.conservation["drop_link_down"] > 0
    assert recording.conservation["drop_link_loss"] > 0


@pytest.mark.parametrize("workload", [{"name": "alltoall", "size_bytes": 20_000}, TRAINING])
def test_flows_that_fail_while_others_follow_are_the_same(workload: dict[str, Any]) -> None:
    """The link of a host fails permanently and hosts give up at once, so flows that depend on these do not start."""
    run = planned(
        workload=workload,
        nic={"retry_count": 0, "rto_ns": 20_000},
        events=[{"time_ns": 9_000, "link": ["h0-0-3", "leaf0"], "up": False}],
        limit_ns=2_000_000,
    )
    recording = VirtualWorld(run).run()
    assert any(record.completed_ns < 0 for record in recording.flows)
    assert any(record.completed_ns > 0 for record in recording.flows)
    owners = {name: index % 3 for index, name in enumerate(run.topology.ports)}
    compare(run, 3, owners=owners, on_start=late_by(1))


@pytest.mark.parametrize(
    "tables",
    [
        {"workload": TRAINING, "limit_ns": 41_000},
        {"workload": {"name": "alltoall", "size_bytes": 20_000, "window": 2}, "limit_ns": 12_000},
        {
            "workload": {"name": "alltoall", "size_bytes": 20_000},
            "attack": {"kind": "staggered", "hosts": [0, 4], "pieces": 3, "gap_ns": 500},
        },
    ],
)
def test_flows_that_have_followed_by_the_end_are_the_same(tables: dict[str, Any]) -> None:
    """Some are incomplete, some have not started, and some are pieces of others."""
    run = planned(**tables)
    owners = {name: index % 3 for index, name in enumerate(run.topology.ports)}
    compare(run, 3, owners=owners)


def test_hosts_draw_random_numbers_in_the_same_order() -> None:
    """A host continues after its turn when the connections that were opened before have their random numbers."""
    compare(
        planned(
            cc="expresspass",
            topology={"name": "fat-tree", "k": 4},
            workload={"name": "alltoall", "size_bytes": 30_000},
            switch={"load_balancing": "symmetric"},
        ),
        2,
    )


def test_a_worker_without_starting_hosts_opens_the_ends_of_their_connections() -> None:
    """Host 0 starts all first flows, and the hosts that receive them belong to another worker."""
    run = planned(workload={**TRAINING, "data": 1, "tensor": 1, "pipeline": 2})
    owners = {name: int(name != "h0-0-2") for name in run.topology.ports}
    assert VirtualWorld(run, workers=2, owners=owners).run().ended == "done"
    compare(run, 2, owners=owners)


@pytest.mark.parametrize("response_order", ["fifo", "random"])
def test_collectives_are_the_same(response_order: str) -> None:
    """Switches lose packets; members of a group and of a pair belong to different workers."""
    run = planned(
        cc="3cpo",
        framing="flits",
        workload={
            "name": "collectives",
            "response_order": response_order,
            "spread_cycles": 500,
            "applications": [
                {"kind": "random", "sets": 3, "set_operations": [9, 20], "idle_cycles": [9, 99], "unicast_every": 2},
                {"kind": "all_reduce", "operations": 9, "members": [0, 1, 4, 5]},
            ],
        },
        switch={"loss": 0.02, "pfc": {"priorities": [3, 4]}},
        nic={"mtu_bytes": 144, "rto_ns": 20_000},
    )
    owners = {name: place % 3 for place, name in enumerate(run.topology.ports)}
    compare(run, 3, owners=owners, on_start=late_by(1))
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    assert recording.tables["operations"]["repeats"].sum() > 0


def test_all_of_them_see_that_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check flows that one session starts, and flows that each host starts by itself."""
    monkeypatch.setattr(Nic, "next_frame", lambda self, now_ns: None)
    monkeypatch.setattr(Nic, "next_wakeup_ns", lambda self: NEVER)
    for workload in (WORKLOADS[0], WORKLOADS[4]):
        run = planned(workload=workload, limit_ns=1_000_000_000)
        one, several = VirtualWorld(run).run(), VirtualWorld(run, workers=2).run()
        assert (one.ended, one.end_ns, one.still_since_ns) == ("idle", 1000 * run.base_rtt_ns(), 0)
        assert (several.ended, several.end_ns, several.still_since_ns) == (one.ended, one.end_ns, 0)


class NoFabric:
    """Fabric that workers join without meeting."""

    def join(self, *_: object, waiting: Callable[[], object], **__: object) -> None:
        self.look_at_others = waiting


def test_one_that_is_done_is_there_until_the_first_is_done() -> None:
    fabric, (done, at_end) = NoFabric(), os.pipe()
    crew = Workers(cast(Fabric, fabric), [0, 1], 2, hear=list)
    with crew.at_work():
        if crew.first:
            os.close(at_end)
            assert os.read(done, 1) == b"."
            assert not select([done], [], [], 0.2)[0]  # it holds the other end as long as it is there
            fabric.look_at_others()
        else:
            os.write(at_end, b".")
    assert os.read(done, 1) == b""
    os.close(done)


def test_one_that_cannot_be_started_is_a_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, answers = os.fork, iter([True, False])

    def refused() -> int:
        if next(answers):
            return fork()
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refused)
    crew = Workers(cast(Fabric, NoFabric()), [0, 1, 2], 3, hear=list)
    process = psutil.Process()
    before = process.num_fds(), process.children()
    words = r"^--workers 3: cannot start a worker: Resource .*; expected fewer$"
    with pytest.raises(UserError, match=words), crew.at_work():
        pytest.fail("only two are there")
    assert (process.num_fds(), process.children()) == before


def ends_by(what: Callable[[], object]) -> Callable[[int], object]:
    return lambda rank: what() if rank == 1 else None


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(1000)


def refuse() -> None:
    raise UserError("too much")


def refuse_at_length() -> None:
    raise UserError(100_000 * "much, " + "too much")


def fail() -> None:
    raise LookupError("of a worker's own")


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        (
            kill,
            DeadWorkerError,
            r"^worker 2 of 3 \(process \d+\) was ended by SIGKILL before the run was done; .*memory\?$",
        ),
        (interrupt, KeyboardInterrupt, "^$"),
        (refuse, UserError, "^too much$"),
        (refuse_at_length, UserError, "^(much, |uch, |ch, |h, |, | )(much, ){400,}too much$"),
        (fail, RuntimeError, r"(?s)^worker 2 of 3:\n.*LookupError: of a worker's own"),
    ],
)
def test_one_that_ends_early_ends_the_run_and_leaves_nothing(
    what: Callable[[], object], error: type[Exception], words: str
) -> None:
    world = VirtualWorld(planned(workload=WORKLOADS[0]), workers=3, on_start=ends_by(what))
    others = set(psutil.Process().children())  # of other tests
    over = Event()
    Thread(target=over.wait, daemon=True).start()  # gets signals, too, as those of libraries do
    with pytest.raises(error, match=words):
        world.run()
    over.set()
    assert not [c for c in psutil.Process().children() if c not in others and c.status() != psutil.STATUS_ZOMBIE]


def test_a_trace_needs_flows_that_are_known() -> None:
    with pytest.raises(UserError, match=r"^--trace: flows start when others are done; expected --workers 1 with it$"):
        VirtualWorld(planned(workload={"name": "alltoall", "size_bytes": 3_000}), workers=2, trace=Tracing(0))


@pytest.mark.parametrize("wanted", ["0", "-1", "two", "65", "1e1", "\u0661"])
def test_numbers_of_workers(wanted: str) -> None:
    with pytest.raises(UserError, match=f"^--workers {wanted}: expected auto, or a number from 1 to 64$"):
        workers_of(wanted)


def test_a_small_network_gets_one_worker() -> None:
    assert workers_of("auto")(planned(workload=WORKLOADS[0])) == 1
    assert workers_of("3")(planned(workload=WORKLOADS[0])) == 3


@pytest.mark.parametrize(
    ("workload", "traced", "workers"), [("permutation", True, 9), ("alltoall", False, 9), ("alltoall", True, 1)]
)
def test_a_long_run_gets_as_many_as_there_is_work_for(
    workload: str, traced: bool, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(9), raising=False)
    sized = {"name": workload, "size_bytes": 30_000_000}
    long = planned(topology={"name": "fat-tree", "k": 8}, workload=sized, limit_ns=1_000_000_000)
    assert workers_of("auto", traced)(long) == workers
    short = planned(topology={"name": "fat-tree", "k": 8}, workload={"name": workload, "size_bytes": 1})
    assert workers_of("auto", traced)(short) == 1


def test_a_scenario_says_how_many_and_the_command_line_goes_before_it() -> None:
    run = planned(workload=WORKLOADS[0], workers=3)
    assert (workers_of(None)(run), workers_of("2")(run), workers_of(None)(planned(workload=WORKLOADS[0]))) == (3, 2, 1)
    assert b"workers" not in resolved_text(run)  # what is written is the same
