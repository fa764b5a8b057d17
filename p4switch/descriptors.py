"""File descriptors that are kept, so that what a command leaves behind can be removed when there are no others."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType

_KEPT = 8  # a folder's removal has one open for each level


class Reserve:
    """Holds some file descriptors until the block ends, however it ends; then they are free for its clean-up.

    Make it after what is to be removed, and before what may use up all others.
    """

    def __init__(self) -> None:
        self._kept: list[int] = []
        with contextlib.suppress(OSError):  # there are hardly any left by now
            self._kept += (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_KEPT))

    def free(self) -> None:
        """Close them."""
        while self._kept:
            os.close(self._kept.pop())

    def __enter__(self) -> Reserve:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()
