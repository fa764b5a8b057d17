"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_LINE_EVERY_S = 10.0


class RunProgress:
    """Shows how far each of several runs is. A context manager."""

    def __init__(self, runs: int) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._runs = runs
        self._started = 0
        self._last_line = 0.0
        self._label = ""
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed} of {task.total} done, {task.fields[model]}"),
                TimeElapsedColumn(),
                console=self._console,
            )

    def __enter__(self) -> RunProgress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, label: str) -> None:
        """The next run starts."""
        self._started += 1
        self._label = f"[{self._started}/{self._runs}] {label}"
        self._last_line = time.monotonic()
        if self._bar:
            self._task = self._bar.add_task(self._label, total=None, model="setting up")

    def update(self, done: int, known: int, now_ns: int) -> None:
        """`done` of `known` flows, and hosts with collectives, are complete at model time `now_ns`."""
        model = f"{now_ns / 1e3:,.0f} µs of model time"
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=known, model=model)
        elif time.monotonic() - self._last_line > _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self._console.print(f"{self._label}: {done} of {known} done, {model}", soft_wrap=True)

    def end(self, line: str) -> None:
        """The run is over."""
        if self._bar and self._task is not None:
            self._bar.remove_task(self._task)
        self._console.print(f"{self._label}: {line}", soft_wrap=True)
