"""Reading traffic files of other simulators."""

from __future__ import annotations

from pathlib import Path

from harness.workloads.base import Setting
from p4switch.errors import UserError

_MAX_BYTES = 1 << 30


def read_text(path: Path) -> str:
    """The content of a text file. Raises UserError where it is none, a device for instance, or has over 1 GiB."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: expected a regular file")
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"{path}: expected a file of at most {_MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError):  # ValueError: a name with a zero in it
        raise UserError(f"{path}: not a text file") from None


def read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Line numbers from 1 and the words of each line. Raises UserError when there is no such text file."""
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"workload.file: {error}") from None
    return [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]


def host(where: str, index: int, setting: Setting) -> int:
    """`index`, if the network has such a host. Raises UserError."""
    if not 0 <= index < setting.hosts:
        raise UserError(
            f"{where}: no host {index}; topology {setting.topology.name!r} has hosts 0 to {setting.hosts - 1}"
        )
    return index
