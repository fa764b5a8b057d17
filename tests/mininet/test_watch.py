"""The page of a run on real frames during the run."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import numpy as np
import pytest

from reports.replay.pack import unpacked
from tests.e2e.runs import MAIN
from tests.mininet.networks import alone, needs_mininet

PATIENCE_S = 120
SCENARIO = """
[topology]
name = "dumbbell"

[workload]
name = "incast"
senders = 2
size_bytes = 50_000_000
"""


def told(url: str) -> dict[str, np.ndarray]:
    """Return the page's data when there are two intervals."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        time.sleep(0.5)
        try:
            arrays = unpacked(urlopen(url + "data").read())[1]
        except HTTPError:
            continue  # the network is being set up
        if len(arrays.get("link_time", ())) > 1:
            return arrays
    raise TimeoutError


class Told:
    """A switch that answers when the test asks it to, and the recorder of its answers."""

    def __init__(self) -> None:
        self.wrote_ns = 0
        self.asked = 0
        self.looks: list[Mapping[str, int]] = []

    def count(self) -> None:
        self.asked += 1

    def counted_so_far(self) -> Mapping[str, Any] | None:
        return {"monotonic_ns": self.wrote_ns} if self.wrote_ns else None

    def look(self, times_ns: Mapping[str, int], *_: object) -> None:
        self.looks.append(times_ns)


@needs_mininet
def test_an_answer_has_the_time_when_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two switches is late: its old answer is not shown, and it is not asked again before it answers."""
    from harness.worlds.mininet import watching

    monkeypatch.setattr(watching, "_EVERY_S", 0)
    quick, late, watcher = Told(), Told(), Told()
    epoch_ns = time.monotonic_ns()
    switches: Any = {"s0": quick, "s1": late}
    tell = watching.watched(cast(Any, watcher), switches, epoch_ns, 10, [], None)
    tell(0, 0, 0, 0)
    quick.wrote_ns = late.wrote_ns = epoch_ns + 3_600_000_000_000
    tell(0, 0, 0, 0)
    assert watcher.looks == [{"s0": 360_000_000_000, "s1": 360_000_000_000}]
    assert quick.asked == late.asked == 2
    late.wrote_ns = epoch_ns  # before the question
    tell(0, 0, 0, 0)
    assert len(watcher.looks) == 1
    assert quick.asked == late.asked == 2
    late.wrote_ns = epoch_ns + 7_200_000_000_000
    tell(0, 0, 0, 0)
    assert watcher.looks[1:] == [{"s0": 360_000_000_000, "s1": 720_000_000_000}]
    assert quick.asked == late.asked == 3


@needs_mininet
def test_switches_tell_meanwhile_and_the_server_ends_with_the_run(tmp_path: Path) -> None:
    scenario = tmp_path / "watched.toml"
    scenario.write_text(SCENARIO)
    command = ["run", str(scenario), "--world", "mininet", "--cc", "dcqcn", "--dilation", "50000", "--watch"]
    with alone():
        running = subprocess.Popen([*MAIN, *command, "--out", str(tmp_path / "out")], stderr=subprocess.PIPE, text=True)
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        url = next(line for line in lines if line.startswith("watch it: ")).split()[-1]
        try:
            arrays = told(url)
        finally:
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=PATIENCE_S)
    assert len(arrays["flow"]) == 2
    assert arrays["link_tx_bytes"].sum() > 0
    assert not (tmp_path / "out").exists()
    with pytest.raises(URLError):
        urlopen(url)
