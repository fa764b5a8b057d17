"""Output folders: written whole or not at all.

A folder is filled under a hidden name beside its place, and gets its name when all is there. Until then a note says
where it is, so that `p4cc clean` can remove what a killed command left:

    $P4CC_CACHE/unfinished/<id>      the hidden folder's path; locked by the process that fills it, as long as it lives
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from p4switch import cache
from p4switch.errors import UserError

_BEING_WRITTEN = ".new"  # a note that is not locked yet


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends well and vanishes otherwise. Raises UserError."""
    exists = UserError(f"output folder {str(target)!r} exists; expected a name that does not")
    if target.exists() or target.is_symlink():
        raise exists
    made = [folder for folder in target.parents if not folder.exists()]
    with _note(target.absolute()) as scratch:
        try:
            scratch.mkdir(mode=0o755, parents=True)
        except OSError as error:
            _discard(scratch, made)
            raise UserError(f"output folder {str(target)!r}: {error.strerror}") from None
        try:
            yield scratch
            try:
                os.rename(scratch, target)
            except OSError:
                raise exists from None
        except BaseException as error:
            _discard(scratch, made)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise UserError(f"output folder {str(target)!r}: {error.strerror}") from None
            raise


def _discard(scratch: Path, made: list[Path]) -> None:
    """Also the folders that were made for it, but for those that somebody else uses by now."""
    shutil.rmtree(scratch, ignore_errors=True)
    for folder in made:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _notes() -> Path:
    return cache.root() / "unfinished"


@contextlib.contextmanager
def _note(target: Path) -> Iterator[Path]:
    """The name under which `target` is to be filled, noted during the block. Raises UserError."""
    path, file = _locked_file()
    note = path.with_suffix("")
    with file:
        scratch = target.with_name(f".{target.name}-{note.name}")
        file.write(str(scratch))
        file.flush()
        os.rename(path, note)
        try:
            yield scratch
        finally:
            note.unlink(missing_ok=True)


def _locked_file() -> tuple[Path, IO[str]]:
    """A new note. Raises UserError."""
    try:
        _notes().mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(suffix=_BEING_WRITTEN, prefix="", dir=_notes())
        fcntl.flock(number, fcntl.LOCK_EX)
    except OSError as error:
        text = f"folder {_notes()}: {error.strerror}; P4CC_CACHE names a folder that can be written to"
        raise UserError(text) from None
    return Path(name), os.fdopen(number, "w", encoding="utf-8")


def clean() -> list[str]:
    """Removes what commands that were killed had written so far; says what was done."""
    done = []
    for note in sorted(_notes().glob("*")):
        if note.suffix == _BEING_WRITTEN:
            continue
        with note.open("r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # it is being filled
            scratch = Path(file.read())
            if scratch.is_dir() and not scratch.is_symlink():
                try:
                    shutil.rmtree(scratch)
                except OSError as error:
                    done.append(f"could not remove {scratch}: {error.strerror}")
                    continue
                done.append(f"removed {scratch}, which a killed command had begun to write")
            note.unlink()
    return done
