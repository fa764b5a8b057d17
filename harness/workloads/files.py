"""Reading traffic files of other simulators."""

from __future__ import annotations

from pathlib import Path

from harness.workloads.base import Setting
from p4switch.errors import UserError


def read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Line numbers from 1 and the words of each line. Raises UserError when there is no such text file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"workload.file: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"workload.file: {path}: not a text file") from None
    return [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]


def host(where: str, index: int, setting: Setting) -> int:
    """`index`, if the network has such a host. Raises UserError."""
    if not 0 <= index < setting.hosts:
        raise UserError(
            f"{where}: no host {index}; topology {setting.topology.name!r} has hosts 0 to {setting.hosts - 1}"
        )
    return index
