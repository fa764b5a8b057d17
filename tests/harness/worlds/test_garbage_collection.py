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
from harness.worlds.garbage_collection import rare_collection
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


def test_objects_of_a_run_are_not_walked_when_it_ends() -> None:
    walked: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        walked.append(phase)

    gc.callbacks.append(note)
    try:
        with rare_collection():
            made: list[list[int]] = [[] for _ in range(5_000)]
            walked.clear()
        more: list[list[int]] = [[] for _ in range(100)]
    finally:
        gc.callbacks.remove(note)
    assert len(made) + len(more) == 5_100
    assert not walked
