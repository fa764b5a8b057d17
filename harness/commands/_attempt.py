"""What may fail without taking the results with it."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from pathlib import Path

ERROR_FILE = "report-error.txt"


def attempt(write_report: Callable[[], None], folder: Path) -> list[str]:
    """Writes a report on results that are in `folder`. They are kept whatever it does; returns what went wrong.

    Whatever it is, it is told in one line; `report-error.txt` has the traceback.
    """
    try:
        write_report()
    except Exception as error:
        with contextlib.suppress(OSError):
            (folder / ERROR_FILE).write_text(traceback.format_exc(), encoding="utf-8")
        reason = next(iter(str(error).splitlines()), "")
        return [f"the results are kept, but there is no report: {type(error).__name__}: {reason} (see {ERROR_FILE})"]
    return []
