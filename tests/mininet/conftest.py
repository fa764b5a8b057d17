"""Runs in both worlds, made once a test session, whichever of its processes asks first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from harness.measure.results import Result, load_all
from tests.mininet.networks import alone, p4cc

Both = Callable[..., tuple[tuple[Result, ...], tuple[Result, ...]]]


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Both:
    """The results of `p4cc run ARGUMENTS` in the virtual and the Mininet world."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def run(*arguments: str) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
        name = hashlib.blake2s(" ".join(arguments).encode(), digest_size=8).hexdigest()
        folders = [shared / f"{world}-{name}" for world in ("virtual", "mininet")]
        with alone():
            for world, folder in zip(("virtual", "mininet"), folders, strict=True):
                if not folder.exists():
                    p4cc("run", *arguments, "--world", world, "--no-report", "--out", str(folder))
        virtual, mininet = (tuple(load_all(folder)) for folder in folders)
        return virtual, mininet

    return run
