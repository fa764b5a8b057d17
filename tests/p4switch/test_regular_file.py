"""Files of others are opened only if they are regular, and opening never blocks."""

from __future__ import annotations

import errno
import io
import os
import shutil
import socket
from pathlib import Path

import pytest

from p4switch.errors import UserError
from p4switch.regular_file import _Unwaiting, open_regular, read_regular


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "device", "link", "link to a device"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("x")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("x")
    elif kind == "device":
        path = Path(os.devnull)
    elif kind == "link":
        Path("file").write_text("what only this user may read")
        path.symlink_to("file")
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(UserError, match="expected a regular file"):
        open_regular(path)


def test_sizes_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    assert read_regular(tmp_path / "file", 4) == b"text"
    with pytest.raises(UserError, match="4 bytes; expected at most 3"):
        read_regular(tmp_path / "file", 3)
    with pytest.raises(UserError, match="expected at most 3"):  # says that it has none
        read_regular(Path("/proc/self/environ"), 3)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 3)


def test_what_becomes_a_link_after_it_was_looked_at_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("what only this user may read")
    path = tmp_path / "x"
    path.write_text("x")
    opened = os.open

    def late(name: Path, flags: int) -> int:
        path.unlink()
        path.symlink_to("file")
        return opened(name, flags)

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(UserError, match="x: a link; expected a regular file"):
        open_regular(path)


@pytest.mark.parametrize("call", ["lstat", "open"])
def test_a_missing_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(path: Path, *_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    path = tmp_path / "x"
    path.touch()
    monkeypatch.setattr(Path if call == "lstat" else os, call, refuse)
    with pytest.raises(UserError, match=r"x: Permission denied$"):
        open_regular(path)


def test_nothing_is_waited_for() -> None:
    """Check a file like /proc/kmsg, which counts as regular, but blocks."""
    there, here = os.pipe2(os.O_NONBLOCK)
    with open(here, "wb"), io.BufferedReader(_Unwaiting(there)) as file:
        for read in (file.read1, lambda: file.read(5), lambda: shutil.copyfileobj(file, io.BytesIO())):
            with pytest.raises(BlockingIOError):
                read()
