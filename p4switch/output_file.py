"""Files that a user named for output.

A regular file is replaced by the new content completely or not at all. A device, a pipe or a link is kept and written
to.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from p4switch.errors import UserError


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write `contents`, which maps paths to the bytes of the files.

    If one file cannot be written, no regular file is changed. Raises UserError that names the file.
    """
    scratch: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in contents.items():
            if _is_replaced(path):
                scratch[path] = path.with_name(f".{secrets.token_hex(8)}")
                with scratch[path].open("xb") as file:
                    file.write(content)
                    with contextlib.suppress(FileNotFoundError):
                        os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        for path, content in contents.items():
            if path not in scratch:
                path.write_bytes(content)
        for path, new in scratch.items():
            new.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from None
    finally:
        for new in scratch.values():
            new.unlink(missing_ok=True)


def check_writable(path: Path, what: str) -> None:
    """Raise UserError if `path` is a folder, or if the folder that should contain it is missing.

    A command calls this before its work begins. `what` names the option.
    """
    if path.is_dir():
        raise UserError(f"{what} {path}: Is a directory")
    if not path.absolute().parent.is_dir():
        raise UserError(f"{what} {path}: no folder {str(path.parent)!r}")


def check_folder(path: Path, what: str) -> None:
    """Raise UserError if `path` is not a writable folder and cannot become one.

    A command calls this before its work begins. `what` names the option.
    """
    there = next((one for one in (path.absolute(), *path.absolute().parents) if os.path.lexists(one)), path)
    if not there.is_dir():
        raise UserError(f"{what} {path}: expected a folder, and {str(there)!r} is none")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{what} {path}: {str(there)!r} cannot be written to")


def _is_replaced(path: Path) -> bool:
    """Return whether `path` is a regular file, or does not exist and will be created as one.

    Raises OSError if its folder cannot be read.
    """
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True
