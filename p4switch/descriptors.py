"""Reserve of file descriptors, for cleaning up after others have run out."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType

_KEPT = 8  # removing a folder needs one open descriptor for each level


class Reserve:
    """Reserve of file descriptors until the block ends, which frees them for its clean-up.

    Create it after the objects to be removed, and before anything that may use up all other descriptors.
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
