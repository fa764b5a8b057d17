"""Process, such as a switch, whose output goes to a file."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

_END_S = 10.0


class LoggedProcess:
    """Process that ends with the block, however the block ends.

    Parameters
    ----------
    command
        The program and its arguments.
    log
        The file that its output goes to.
    folder
        Its working directory. None: this process's.
    """

    def __init__(self, command: Sequence[str], log: Path, folder: Path | None = None) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=folder, start_new_session=True
            )

    def __enter__(self) -> LoggedProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def over(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    @property
    def exit_status(self) -> int | None:
        """Exit status as `subprocess.Popen.returncode`; None: it is running."""
        return self._process.poll()

    def said(self) -> str:
        """Return the output so far."""
        return self._log.read_text(errors="replace").strip()

    def last_line(self) -> str:
        """Return the last line of the output; "" if there is none."""
        return next(reversed(self.said().splitlines()), "")

    def end(self) -> None:
        """End the process by SIGTERM, or by SIGKILL if it has not ended soon after."""
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
