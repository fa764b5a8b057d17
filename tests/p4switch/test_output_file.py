"""Output files: regular files are complete or unchanged, and others are written directly."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from p4switch.errors import UserError
from p4switch.output_file import check_writable, write_files


def test_a_regular_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"before")
    old.chmod(0o640)
    with old.open("rb") as reader:
        write_files({old: b"after", tmp_path / "new": b"made"})
        assert reader.read() == b"before"
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (b"after", 0o640)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there")
    write_files({tmp_path / "link": b"first"})
    write_files({tmp_path / "link": b"text"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == b"text"


def test_a_device_stays_one(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices are made by root")
    before = device.lstat()
    write_files({device: b"text"})
    after = device.lstat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_files({tmp_path / "pipe": b"text"})
    reader.join()
    assert read == [b"text"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("bad", ["folder", "no/such/file", "x" * 300])
def test_all_or_none(tmp_path: Path, bad: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "good").write_bytes(b"before")
    with pytest.raises(UserError, match=f"cannot write '.*{bad}': "):
        write_files({tmp_path / "good": b"after", tmp_path / bad: b"text"})
    assert (tmp_path / "good").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "good"]


def test_what_cannot_be_written_later_is_told_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_writable(Path("file"), "--stats")
    check_writable(Path("/dev/null"), "--stats")
    with pytest.raises(UserError, match="--stats no/file: no folder 'no'"):
        check_writable(Path("no/file"), "--stats")
    with pytest.raises(UserError, match=r"--stats \.: Is a directory"):
        check_writable(Path(), "--stats")
