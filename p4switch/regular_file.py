"""Files of others, opened only where they are regular ones: nothing is waited for, whatever stands in their place."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from p4switch.errors import UserError


class _Unwaiting(io.FileIO):
    """A file that is read without waiting. Raises BlockingIOError where there is nothing to read yet."""

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        if count is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return count


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file, or what a link to one leads to, to read it.

    Some files of /proc call themselves regular, and have whoever reads them wait; here that is an error of the reading.
    Raises UserError for a pipe, a socket, a device or a folder, and OSError.
    """
    refused = UserError(f"{path}: expected a regular file")
    if not stat.S_ISREG(path.stat().st_mode):  # to open a device may be an act in itself
        raise refused
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):  # something else by now
        os.close(number)
        raise refused
    return io.BufferedReader(_Unwaiting(number))


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file. Raises UserError, also for one with over `most_bytes`, and OSError."""
    with open_regular(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        content = b"" if size_bytes > most_bytes else file.read(most_bytes + 1)
    if (size_bytes := max(size_bytes, len(content))) > most_bytes:
        raise UserError(f"{path}: {size_bytes:,} bytes; expected at most {most_bytes:,}")
    return content
