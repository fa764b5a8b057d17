"""Runs in both worlds, made once in a test session by the first process that needs them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.measure.results import Result, load_all
from tests.mininet.networks import alone, needs_bmv2, p4cc

_ATTEMPTS = 3
Both = Callable[..., tuple[tuple[Result, ...], tuple[Result, ...]]]


@pytest.fixture(params=["builtin", pytest.param("bmv2", marks=needs_bmv2)])
def switch(request: pytest.FixtureRequest) -> str:
    """Return a value of `--switch`: the built-in switch, and BMv2 if it is installed."""
    return str(request.param)


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Both:
    """Return the results of `p4cc run ARGUMENTS` in the virtual and the Mininet world."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def run(*arguments: str) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
        name = hashlib.blake2s(" ".join(arguments).encode(), digest_size=8).hexdigest()
        folders = [shared / f"{world}-{name}" for world in ("virtual", "mininet")]
        with alone():
            for world, folder in zip(("virtual", "mininet"), folders, strict=True):
                if not folder.exists():
                    _run(world, arguments, folder)
        virtual, mininet = (tuple(load_all(folder)) for folder in folders)
        return virtual, mininet

    return run


def _run(world: str, arguments: tuple[str, ...], folder: Path) -> None:
    """Run, and repeat the run if it reports that the machine was too busy for real time."""
    for attempt in range(_ATTEMPTS):
        p4cc("run", *arguments, "--world", world, "--no-report", "--out", str(folder))
        reasons = [reason for r in load_all(folder) for reason in r.summary.get("fidelity", {}).get("reasons", ())]
        if not reasons or attempt + 1 == _ATTEMPTS:
            return
        shutil.rmtree(folder)
