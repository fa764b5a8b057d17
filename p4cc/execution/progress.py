"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_LINE_EVERY_S = 10.0
_LEAST_SHARE = 0.01  # share that has to be done before the remaining time is shown


class RunProgress:
    """Progress of several runs: share of the current run, or number of finished ones if runs are concurrent.

    It is a context manager.
    """

    def __init__(self, runs: int, one_by_one: bool = True, bar: bool = True) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._runs = runs
        self._over = 0
        self._since_s = self._run_since_s = time.monotonic()
        self._writing_since_s = 0.0
        self._last_line = 0.0
        self._label = ""
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._of_all: TaskID | None = None
        if bar and self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[status]}"),
                TimeElapsedColumn(),
                console=self._console,
            )
            if not one_by_one:
                self._of_all = self._bar.add_task("runs", total=runs, status=f"0 of {runs} done")

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
        """Start the next run; only one run is shown at a time."""
        self._label = self._numbered(label)
        self._last_line = self._run_since_s = time.monotonic()
        if self._bar:
            self._task = self._bar.add_task(self._label, total=None, status="setting up")

    def building(self, share: float) -> None:
        """Show that `share` of the run's network is built."""
        self._tell(share, f"setting up, {share:.0%}")

    def update(self, share: float, done: int, known: int, now_ns: int) -> None:
        """Show that `share` of the run is done.

        At model time `now_ns`, `done` of the `known` flows and collective hosts are done.
        """
        self._tell(share, f"{done} of {known} done, {now_ns / 1e3:,.0f} µs of model time{self._left(share)}")

    def writing(self, share: float) -> None:
        """Show that `share` of the trace is written, after the run."""
        if share == 0:
            self._writing_since_s = time.monotonic()
        left = f", {share:.0%}, {_duration(self._writing_since_s, share)}" if share >= _LEAST_SHARE else ""
        self._tell(share, f"writing the trace{left}")

    def _tell(self, share: float, words: str) -> None:
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=share, total=1.0, status=words)
        elif time.monotonic() - self._last_line > _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self._console.print(f"{self._label}: {words}", soft_wrap=True)

    def _left(self, share: float) -> str:
        """Return the completed share of the run and of all runs, and the expected remaining time."""
        if share < _LEAST_SHARE:
            return ""
        of_all = (self._over + share) / self._runs
        shown = f", {share:.0%}, {_duration(self._run_since_s, share)}"
        return shown if self._runs == 1 else f"{shown} (all runs: {of_all:.0%}, {_duration(self._since_s, of_all)})"

    def end(self, label: str, line: str) -> None:
        """End a run."""
        numbered = self._numbered(label)
        self._over += 1
        if self._bar and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        if self._bar and self._of_all is not None:
            left = _duration(self._since_s, self._over / self._runs)
            so_far = f"{self._over} of {self._runs} done, {left}"
            self._bar.update(self._of_all, completed=self._over, status=so_far)
        self._console.print(f"{numbered}: {line}", soft_wrap=True)

    def _numbered(self, label: str) -> str:
        return f"[{self._over + 1}/{self._runs}] {label}"


def _duration(since_s: float, share: float) -> str:
    """Return the remaining time of work that began at `since_s` and is done to `share`, at constant speed."""
    left_s = (time.monotonic() - since_s) * (1 - share) / share
    return f"about {left_s:.0f} s left" if left_s < 100 else f"about {left_s / 60:.0f} min left"
