"""Output folders are complete or do not exist, even after an interruption."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.measure.output_folder import clean, new_folder, unused
from p4switch.errors import UserError
from tests.e2e.runs import p4cc

FILL = """
import sys, time
from pathlib import Path
from harness.measure.output_folder import new_folder
with new_folder(Path(sys.argv[1])) as folder:
    (folder / "flows.parquet").write_bytes(b"half")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache that only this test uses, and its notes."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("P4CC_CACHE", str(folder))
    return folder


@contextmanager
def filling(target: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yield a process that fills `target`, and the folder in which it does so."""
    with subprocess.Popen([sys.executable, "-c", FILL, str(target)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_it_gets_its_name_when_all_is_there(tmp_path: Path) -> None:
    with new_folder(tmp_path / "new" / "out") as folder:
        (folder / "a").touch()
        assert not (tmp_path / "new" / "out").exists()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]
    assert (tmp_path / "new" / "out" / "a").exists()
    assert clean() == []


@pytest.mark.parametrize("end", [KeyboardInterrupt(), ValueError()])
def test_an_interrupted_run_leaves_nothing_half_written(tmp_path: Path, end: BaseException) -> None:
    def interrupted() -> None:
        with new_folder(tmp_path / "new" / "out") as folder:
            (folder / "flows.parquet").write_bytes(b"half")
            raise end

    with pytest.raises(type(end)):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    assert clean() == []


def test_a_signal_waits_until_all_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def interrupted(*arguments: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(*arguments, **options)

    def failed() -> None:
        with new_folder(tmp_path / "out") as folder:
            (folder / "flows.parquet").write_bytes(b"half")
            raise ValueError

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        failed()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("instead", [False, True])
def test_a_signal_waits_until_the_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instead: bool
) -> None:
    target, rename = tmp_path / "out", os.rename
    if instead:
        target.mkdir()
        (target / "a").touch()

    def interrupted(before: Path, after: Path) -> None:
        rename(before, after)
        if tmp_path in (before.parent, after.parent):
            signal.raise_signal(signal.SIGINT)

    def filled() -> None:
        with new_folder(target, instead=instead) as folder:
            (folder / "b").touch()

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        filled()
    assert list(tmp_path.iterdir()) == [target]
    assert sorted(path.name for path in target.iterdir()) == (["a", "b"] if instead else ["b"])
    assert clean() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS])
def test_an_error_of_the_disk_is_named(tmp_path: Path, number: int) -> None:
    reason = os.strerror(number)
    with pytest.raises(UserError, match=rf"output folder .*out': {reason}$"), new_folder(tmp_path / "out"):
        raise OSError(number, reason)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_permission_is_named_with_its_file(tmp_path: Path) -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/flows.parquet")
    with pytest.raises(UserError, match=r"out': /flows\.parquet: Permission denied$"), new_folder(tmp_path / "out"):
        raise error


def test_a_missing_permission_without_a_file_may_be_a_defect(tmp_path: Path) -> None:
    error = PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    with pytest.raises(PermissionError), new_folder(tmp_path / "out"):
        raise error


def test_a_name_that_is_taken_meanwhile(tmp_path: Path) -> None:
    def outpaced() -> None:
        with new_folder(tmp_path / "out"):
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "of somebody else").touch()

    with pytest.raises(UserError, match="exists"):
        outpaced()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "of somebody else"]


def test_clean_removes_what_kill_leaves_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".out-of-mine").mkdir()
    with filling(tmp_path / "out") as (process, scratch), filling(tmp_path / "other") as (_, other):
        assert scratch.parent == tmp_path
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (scratch / "flows.parquet").exists()
        done = p4cc("clean")
        assert done.stdout == f"removed {scratch}, which a killed command had begun to write\n"
        assert sorted(tmp_path.iterdir()) == sorted([tmp_path / ".out-of-mine", other])
        assert p4cc("clean").stdout == "nothing to clean\n"


def test_clean_does_not_follow_a_link_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "valuable").mkdir()
    with filling(tmp_path / "out") as (process, scratch):
        process.kill()
        process.wait()
    scratch.rename(tmp_path / "moved")
    scratch.symlink_to(tmp_path / "valuable")
    assert clean() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([scratch.name, "moved", "valuable"])


@pytest.mark.parametrize(
    "text", ["", ".", "..", "/", "v", ".v.unfinished", "{tmp}/v", "{tmp}/.v.unfinished", "\0", "\udcff"]
)
def test_clean_removes_only_what_p4cc_made(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    valuable = [tmp_path / "v" / "file", tmp_path / "v" / ".v.unfinished" / "file", tmp_path / ".v.unfinished" / "file"]
    for file in valuable:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path / "v")
    (cache / "unfinished").mkdir(parents=True)
    for name in ("x", "a1b2c3d4"):
        (cache / "unfinished" / name).write_bytes(os.fsencode(text.format(tmp=tmp_path)))
    told = clean()
    assert all(file.exists() for file in valuable)
    assert not any(line.startswith("removed") for line in told)
    assert any("left note" in line and line.endswith("x alone: its name is not one of p4cc's") for line in told)


def test_clean_takes_no_note_of_what_is_no_file(tmp_path: Path, cache: Path) -> None:
    (tmp_path / ".v.unfinished").mkdir()
    (tmp_path / "note").write_text(str(tmp_path / ".v.unfinished"))
    (cache / "unfinished" / "a1b2c3d4").mkdir(parents=True)
    (cache / "unfinished" / "a1b2c3d5").symlink_to(tmp_path / "note")
    os.mkfifo(cache / "unfinished" / "a1b2c3d6")
    assert not any(line.startswith("removed") for line in clean())
    assert (tmp_path / ".v.unfinished").exists()


def test_notes_are_on_the_disk_before_the_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(list(tmp_path.iterdir()) == []))
    with new_folder(tmp_path / "out"):
        assert synced[:2] == [True, True]  # the note, and its name


def test_a_second_command_with_the_same_target_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with filling(tmp_path / "out") as (process, scratch):
        with pytest.raises(UserError, match="'out': another command is writing it"), new_folder(Path("out")):
            pytest.fail("it was started")
        assert unused(Path("out")) == Path("out-2")
        process.kill()
        process.wait()
        assert (scratch / "flows.parquet").exists()
    assert clean() == [f"removed {scratch}, which a killed command had begun to write"]
    with new_folder(Path("out")):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


def test_a_name_that_the_file_system_refuses(tmp_path: Path) -> None:
    for name in ("x" * 300, "x" * 250):
        with pytest.raises(UserError, match=r"output folder .*File name too long"), new_folder(tmp_path / name):
            pass
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"output folder .*Not a directory"), new_folder(tmp_path / "file" / "out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_in_one_line(
    tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # a cache of its own would have the engine compiled first
    code = "import os; from p4cc.cli import main; import harness.plan.resolve as e; "
    code += f"e.plan = lambda *_: os.kill(os.getpid(), {int(number)}); main()"
    command = [sys.executable, "-c", code, "run", "incast", "--out", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "P4CC_NATIVE": "0"}, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr.strip()) == (1, "p4cc: error: interrupted")
    assert list(tmp_path.iterdir()) == []
