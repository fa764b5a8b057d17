"""Opening of regular files in folders of other users.

Opening never blocks, even if there is a pipe or a device instead of the file. Links are not followed, because a link in
someone else's folder may name any file that this user may read.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from p4switch.errors import UserError


class _Unwaiting(io.FileIO):
    """File that is read without blocking. Raises BlockingIOError if no data is available yet."""

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        if count is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return count


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it.

    Some files of /proc look like regular files but block their readers. Reading such a file raises BlockingIOError
    instead of blocking. Opening raises UserError for a link, a pipe, a socket, a device, a folder or a missing
    permission, and OSError for any other failure.
    """
    try:
        expect_regular(path, path.lstat())  # opening a device may have an effect
        try:
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            expect_regular(path, path.lstat())  # replaced in the meantime
            raise
    except PermissionError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    try:
        expect_regular(path, os.fstat(number))
    except UserError:
        os.close(number)
        raise
    return io.BufferedReader(_Unwaiting(number))


def expect_regular(path: Path, status: os.stat_result) -> None:
    """Raise UserError unless the `lstat` of `path` shows a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = "a link; " if stat.S_ISLNK(status.st_mode) else ""
        raise UserError(f"{path}: {kind}expected a regular file")


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises UserError and OSError like `open_regular`, and UserError for a file of more than `most_bytes`.
    """
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        content = b"" if size_bytes > most_bytes else file.read(most_bytes + 1)
    if (size_bytes := max(size_bytes, len(content))) > most_bytes:
        raise UserError(f"{path}: {size_bytes:,} bytes; expected at most {most_bytes:,}")
    return content
