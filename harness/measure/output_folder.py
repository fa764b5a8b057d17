"""Output folders that are written completely or not at all.

A folder is filled under a hidden name in the same parent folder, and is renamed when it is
complete. The hidden name follows from the folder's name, so that a second command with the same
target fails at once. Two files identify a hidden folder, so that `p4cc clean` removes only
leftovers of killed commands:

    $P4CC_CACHE/unfinished/<id>      the hidden folder's path; locked by the process that fills it, as long as it lives
    .<name>.unfinished/.p4cc         <id>, in the hidden folder

Each file is flushed to the disk before the object that it describes, so that the two files are also
reliable after a power failure.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from p4switch import cache
from p4switch.descriptors import Reserve
from p4switch.errors import UserError
from p4switch.memory import free_reserve
from p4switch.processes import SignalsWait
from p4switch.regular_file import open_regular

# Errors of a disk, for example a full one.
_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_BEING_WRITTEN = ".new"  # suffix of a note that is not locked yet
_ID = re.compile(r"[a-z0-9_]{8}")  # a name in the form that tempfile makes
_HIDDEN = re.compile(r"\..+\.unfinished", re.DOTALL)
_MARK = ".p4cc"
# Folders that this process fills: hidden folder, note, and parent folders made for it.
_filled: list[tuple[Path, Path, Sequence[Path]]] = []


class _TakenError(UserError):
    """Another command fills, or filled, a folder with this target."""


@contextlib.contextmanager
def new_folder(target: Path, *, instead: bool = False, without: Collection[str] = ()) -> Iterator[Path]:
    """Yield a folder to fill, which becomes `target` if the block succeeds and is removed otherwise.

    With `instead` the folder `target` exists, and the new one replaces it at the end of the block.
    Contents of the old folder that the new one lacks are moved to it, except for the names in
    `without`.

    Raises UserError if the folder exists without `instead`, if another command is writing it, or if
    it cannot be written.
    """
    if instead:
        target = target.resolve()  # renames the folder itself, not a link to it
        if os.path.ismount(target):
            raise UserError(f"output folder {str(target)!r} is where a file system is mounted; expected one inside it")
    exists = UserError(f"output folder {str(target)!r} exists; expected a name that does not")
    aside = target.absolute().with_name(f".{target.name}.before")
    # Bytes that are not UTF-8 become surrogates; pages and tables name the folder.
    if not str(target).isprintable():
        raise UserError(f"output folder {str(target)!r}: expected a name that can be printed")
    try:
        if os.path.lexists(target) and not instead:
            raise exists
        if instead and os.path.lexists(aside):
            raise UserError(
                f"output folder {str(target)!r}: a killed command that continued it has left its runs in "
                f"{str(aside)!r}; expected you to look at that folder, and to remove or rename it"
            )
        parents = [folder for folder in target.absolute().parents if not folder.exists()]
    except OSError as error:
        raise _refused(target, error) from None
    scratch = _hidden(target.absolute())
    with _note(scratch) as number, _open(scratch, number, parents), Reserve() as reserve:
        try:
            _make(target, scratch, number)
            yield scratch
            with SignalsWait():
                if instead:
                    _take_place(scratch, target, aside)
                else:
                    try:
                        os.rename(scratch, target)
                    except OSError:
                        raise exists from None
                (target / _MARK).unlink(missing_ok=True)
                if instead:
                    _keep_others(aside, target, without)
        except _TakenError:
            raise
        except BaseException as error:
            free_reserve()
            reserve.free()
            with SignalsWait():
                _discard(scratch, parents)
            for_the_user = for_user(target, error)
            if for_the_user is not error:
                raise for_the_user from None
            raise


@contextlib.contextmanager
def _open(scratch: Path, number: str, parents: Sequence[Path]) -> Iterator[None]:
    """Register the folder for `removal` during the block."""
    what = (scratch, _notes() / number, parents)
    _filled.append(what)
    try:
        yield
    finally:
        _filled.remove(what)


def removal(message: str) -> list[bytes]:
    """Return a command that removes the unfinished folders of this process and reports it.

    It is for a process that cannot remove them itself. The command ends with status 2. If there is
    no unfinished folder, the returned list is empty.
    """
    if not _filled:
        return []
    parts = [f"rm -rf -- {shlex.quote(str(scratch))} {shlex.quote(str(note))}" for scratch, note, _ in _filled]
    parts += [f"rmdir -- {shlex.quote(str(folder))} 2>/dev/null" for *_, parents in _filled for folder in parents]
    parts += [f"printf '%s\\n' {shlex.quote(message)} >&2", "exit 2"]
    return [os.fsencode(word) for word in ("/bin/sh", "-c", "; ".join(parts))]


def _take_place(scratch: Path, target: Path, aside: Path) -> None:
    """Rename `scratch` to `target`, and the old `target` to `aside`.

    Raises UserError if that fails; then both folders have their old names.
    """
    try:
        os.rename(target, aside)
        try:
            os.rename(scratch, target)
        except OSError:
            os.rename(aside, target)
            raise
    except OSError as error:
        raise _refused(target, error) from None


def _keep_others(aside: Path, target: Path, without: Collection[str]) -> None:
    """Move contents of the old folder to `target` if it lacks them, and remove the rest."""
    for path in aside.iterdir():
        if path.name not in without and not os.path.lexists(target / path.name):
            os.rename(path, target / path.name)
    shutil.rmtree(aside)


def machine_error(error: BaseException) -> str | None:
    """Return the reason of an error that the machine causes, such as a full disk; None for others."""
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        return os.strerror(error.errno)
    if isinstance(error, PermissionError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


def for_user(target: Path, error: BaseException) -> BaseException:
    """Return a UserError if the machine causes `error`; else `error`."""
    reason = machine_error(error)
    return error if reason is None else UserError(f"output folder {str(target)!r}: {reason}")


def copy_content(source: Path, target: Path) -> None:
    """Copy the contents of a folder, which may be somebody else's, into the existing `target`.

    Files get the owner and the mode of new files of this process. So the copy has no set-user-ID
    files and no folders that everybody may write to. Raises UserError for links, which may lead to
    files that only this process may read, for pipes, sockets and devices, and for unreadable files.
    """
    folders = [Path()]
    for below in folders:  # the list grows during the loop
        try:
            for name in sorted(os.listdir(source / below)):
                path = source / below / name
                if stat.S_ISDIR(path.lstat().st_mode):
                    (target / below / name).mkdir()
                    folders.append(below / name)
                    continue
                with open_regular(path) as file, (target / below / name).open("xb") as copy:
                    shutil.copyfileobj(file, copy)
        except OSError as error:
            if error.errno in _OF_THE_DISK:
                raise
            raise UserError(f"{source / below}: cannot be copied: {error.strerror}") from None


def is_taken(target: Path) -> bool:
    """Return whether `target` exists or is being written."""
    return os.path.lexists(target) or os.path.lexists(_hidden(target))


def unused(path: Path) -> Path:
    """Return `path`, or the first of path-2, path-3, ... that does not exist and is not being written."""
    candidate, number = path, 1
    while is_taken(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _hidden(target: Path) -> Path:
    return target.with_name(f".{target.name}.unfinished")


def _refused(target: Path, error: OSError) -> UserError:
    return UserError(f"output folder {str(target)!r}: {error.strerror}")


def _make(target: Path, scratch: Path, number: str) -> None:
    """Create the hidden folder with its mark.

    Raises UserError if the folder exists or cannot be made.
    """
    try:
        try:
            scratch.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
        try:
            scratch.mkdir(mode=0o755)
        except FileExistsError:
            raise _TakenError(
                f"output folder {str(target)!r}: another command is writing it, or was killed while it did; "
                f"then 'p4cc clean' removes {str(scratch)!r}"
            ) from None
        with (scratch / _MARK).open("xb") as mark:
            _write_through(mark, number.encode())
        _sync_folder(scratch)
    except OSError as error:
        raise _refused(target, error) from None


def _discard(scratch: Path, parents: list[Path]) -> None:
    """Remove the hidden folder, and the parent folders made for it unless others use them."""
    shutil.rmtree(scratch, ignore_errors=True)
    for folder in parents:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _notes() -> Path:
    return cache.root() / "unfinished"


@contextlib.contextmanager
def _note(scratch: Path) -> Iterator[str]:
    """Write the note of `scratch` for the duration of the block, and yield the note's name.

    Raises UserError if the note cannot be written.
    """
    path, file = _locked_file()
    note = path.with_suffix("")
    with file:
        try:
            _write_through(file, os.fsencode(scratch))
            os.rename(path, note)
            _sync_folder(note.parent)
        except OSError as error:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                file.close()  # retries the write
            raise _cannot_note(error) from None
        try:
            yield note.name
        finally:
            note.unlink(missing_ok=True)


def _locked_file() -> tuple[Path, BinaryIO]:
    """Return a new locked note.

    Raises UserError if it cannot be made.
    """
    try:
        _notes().mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(suffix=_BEING_WRITTEN, prefix="", dir=_notes())
        fcntl.flock(number, fcntl.LOCK_EX)
    except OSError as error:
        raise _cannot_note(error) from None
    return Path(name), os.fdopen(number, "wb")


def _cannot_note(error: OSError) -> UserError:
    return UserError(f"folder {_notes()}: {error.strerror}; P4CC_CACHE names a folder that can be written to")


def _write_through(file: BinaryIO, content: bytes) -> None:
    """Write the content through to the disk."""
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def clean() -> list[str]:
    """Remove the unfinished results of killed commands, and return a description."""
    done = []
    for note in sorted(_notes().glob("*")):
        if note.suffix == _BEING_WRITTEN:
            continue
        try:
            if not _ID.fullmatch(note.name):
                raise ValueError("its name is not one of p4cc's")
            with _opened(note) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                removed = _remove(os.fsdecode(file.read()), note.name)
                note.unlink(missing_ok=True)
        except (BlockingIOError, FileNotFoundError):
            continue  # its folder is being filled or has just been renamed
        except ValueError as error:
            done.append(f"left note {note} alone: {error}")
        except OSError as error:
            done.append(f"could not remove {error.filename or note}: {error.strerror}")
        else:
            if removed is not None:
                done.append(f"removed {removed}, which a killed command had begun to write")
    return done


def _opened(note: Path) -> BinaryIO:
    """Open a note.

    Raises OSError for a link or an unreadable file, and ValueError for a file of another user.
    """
    file = os.fdopen(os.open(note, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "r+b")
    if os.fstat(file.fileno()).st_uid != os.geteuid():
        file.close()
        raise ValueError("it is another user's")
    return file


def _remove(text: str, number: str) -> Path | None:
    """Remove the hidden folder that note `number` names; return None if it no longer exists.

    Raises ValueError, and removes nothing, if p4cc did not make the folder.
    """
    if not text:
        return None  # a note of an older version that was not flushed: the path is lost
    scratch = Path(text)
    if not scratch.is_absolute() or not _HIDDEN.fullmatch(scratch.name) or "\0" in text or ".." in scratch.parts:
        raise ValueError(f"{text!r} is not where p4cc writes")
    if scratch.is_symlink() or not scratch.is_dir():
        return None
    if not any(scratch.iterdir()):
        scratch.rmdir()
        return scratch
    mark = scratch / _MARK
    if mark.is_symlink() or not mark.is_file() or mark.read_bytes() != number.encode():
        raise ValueError(f"{text!r} has no mark of it")
    shutil.rmtree(scratch)
    return scratch
