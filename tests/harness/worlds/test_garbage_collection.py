"""Release of a run's memory before the next run of the process, even if each run is a separate call."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.measure import results
from harness.plan.how import How
from p4cc.execution import runners


class World:
    """World whose network is a reference cycle."""

    def __init__(self) -> None:
        self.itself = self

    def run(self, progress: object) -> object:
        return self

    def write_more(self, folder: Path, writing: object) -> None:
        """Write no further file."""


@pytest.fixture
def no_chance() -> Iterator[None]:
    """Disable automatic collection, so that only explicit calls collect."""
    gc.disable()
    yield
    gc.enable()


def test_the_network_before_is_freed(no_chance: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[weakref.ref[World]] = []
    alive: list[bool] = []

    def make(run: object) -> Any:
        alive.append(any(ref() is not None for ref in made))
        world = World()
        made.append(weakref.ref(world))
        return world

    monkeypatch.setattr(runners, "inputs", lambda run: None)
    monkeypatch.setattr(results, "files", lambda *_: {})
    monkeypatch.setattr(results, "write", lambda *_: None)
    run: Any = None
    folders = iter([tmp_path / str(number) for number in range(4)])
    for runs in (2, 1, 1):
        several = [(run, next(folders), lambda: None) for _ in range(runs)]
        list(runners.one_by_one(several, make, How()))
    assert alive == [False] * 4
    assert made[-1]() is not None  # it is not walked when nothing follows
    made[-1]().__dict__.clear()
