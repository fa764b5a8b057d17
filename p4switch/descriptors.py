"""Reserve of file descriptors, for cleaning up after others have run out."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType

_KEPT = 8  # removing a folder needs one open descriptor for each level


class Reserve:
    """Context manager that holds file descriptors open, and closes them before clean-up begins.

    Enter it after the contexts whose exit needs descriptors, and before any work that may use up
    all other descriptors.
    """

    def __init__(self) -> None:
        self._kept: list[int] = []
        with contextlib.suppress(OSError):  # hardly any are left now
            self._kept += (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_KEPT))

    def free(self) -> None:
        """Release the reserve."""
        while self._kept:
            os.close(self._kept.pop())

    def __enter__(self) -> Reserve:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()
