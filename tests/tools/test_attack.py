"""A short run of each kind of attack; `make attack` runs all of them."""

from __future__ import annotations

import threading

import pytest

from tools.attack import session

# `pipelines`, `stored`, `mininet_runs` and `folders` have to build or set up too much. Their tests are
# tests/p4switch/engine/test_fuzz.py, tests/p4switch/test_native.py, tests/mininet/test_interruption.py and
# tests/e2e/test_working_folder.py.
KINDS = ("bfruntime", "documents", "frames", "hosts", "messages", "pages", "programs", "results", "workload_files")


@pytest.mark.parametrize("name", KINDS)
def test_one_turn(name: str) -> None:
    if reason := session.kind(name).missing():
        pytest.skip(reason)
    outcome = session.run(name, seed=1, seconds=500, turns=1)
    assert outcome.findings == []
    assert outcome.count > 0


def test_what_is_counted_until_it_is_to_stop_is_told() -> None:
    stop = threading.Event()
    threading.Timer(3.0, stop.set).start()
    outcome = session.run("hosts", seed=1, seconds=500, stop=stop)
    assert outcome.findings == []
    assert outcome.seconds < 500
