"""The page of a run on real frames, while it goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import numpy as np
import pytest

from harness.replay.pack import unpacked
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
    """Once there are two intervals."""
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
