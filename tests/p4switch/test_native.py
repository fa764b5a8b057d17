"""Compilation of C, and its cache."""

import ctypes
import multiprocessing
import os
import shutil
import sys
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from p4switch import cache, native
from p4switch.errors import UserError

ANSWER = "int answer(void) { return %d; }\n"


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("P4CC_CACHE", str(folder))
    native.compiler.cache_clear()
    native.compiler_version.cache_clear()
    return folder


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_build_and_cache(fresh_cache: Path) -> None:
    library = native.build_text("answer", ANSWER % 42)
    assert ctypes.CDLL(str(library)).answer() == 42
    assert library.is_relative_to(fresh_cache)
    before = library.stat().st_mtime_ns
    assert native.build_text("answer", ANSWER % 42) == library
    assert library.stat().st_mtime_ns == before
    assert native.build_text("answer", ANSWER % 43) != library
    assert native.build_text("answer", ANSWER % 42, flags=["-DX"]) != library


def test_a_file_in_the_place_of_a_folder_is_no_hindrance() -> None:
    folder = native.build_text("answer", ANSWER % 42).parent
    shutil.rmtree(folder)
    folder.write_text("as an earlier version had it")
    assert native.build_text("answer", ANSWER % 42).parent == folder


def test_a_header_that_changes_is_another_library(tmp_path: Path) -> None:
    header = tmp_path / "x.h"
    header.write_text("#define X 1\n")
    text = '#include "x.h"\nint answer(void) { return X; }\n'
    first = native.build_text("answer", text, headers=[header])
    header.write_text("#define X 2\n")
    second = native.build_text("answer", text, headers=[header])
    assert (ctypes.CDLL(str(first)).answer(), ctypes.CDLL(str(second)).answer()) == (1, 2)


def test_wrong_source_is_one_line_and_leaves_nothing(fresh_cache: Path) -> None:
    with pytest.raises(native.BuildError, match=r"answer: the C compiler failed: .*error") as caught:
        native.build_text("answer", "int answer(void) { return }\n")
    assert "\n" not in str(caught.value)
    assert [path.suffix for path in files(fresh_cache)] == [".c"]


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="gcc"):
        native.build_text("answer", ANSWER % 1)
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    native.compiler.cache_clear()
    with pytest.raises(UserError, match="no-such-compiler"):
        native.build_text("answer", ANSWER % 1)


_LIMITED = """#!{python}
import os, resource, signal, sys
if "-v" in sys.argv:
    sys.exit(print("limited 1"))
if resource.getrlimit(resource.RLIMIT_CPU)[0] != 300:
    sys.exit("another limit")
{how}
"""


@pytest.mark.parametrize(
    "how",
    [
        "os.kill(os.getpid(), signal.SIGXCPU)",
        "sys.exit('cc: error: CPU time limit exceeded signal terminated program cc1')",
    ],
)
def test_a_compiler_has_a_limit_of_its_cpu_time(
    how: str, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "limited"
    script.write_text(_LIMITED.format(python=sys.executable, how=how))
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    with pytest.raises(UserError, match="answer: the C compiler took over 300 s of CPU time"):
        native.build_text("answer", ANSWER % 44)
    assert [path.suffix for path in files(fresh_cache) if path.suffix == ".so"] == []


def test_no_python_header(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(UserError, match="python3-dev"):
        native.python_include()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="P4CC_CACHE"):
        native.build_text("answer", ANSWER % 1)


def test_cache_that_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="P4CC_CACHE"):
        native.build_text("answer", ANSWER % 1)


def _make(number: int) -> int:
    def produce(path: Path) -> None:
        path.write_bytes(b"x" * 100_000)

    return len(cache.cached("test", f"key{number % 3}", ".bin", produce).read_bytes())


def test_processes_share_the_cache(fresh_cache: Path) -> None:
    # Started anew: a fork of this process may have locks of threads that it does not have.
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        assert set(pool.map(_make, range(200))) == {100_000}
    assert sorted(path.parent.name for path in files(fresh_cache)) == ["key0", "key1", "key2"]
    assert sorted(path.name for path in (fresh_cache / "test").iterdir()) == ["key0", "key1", "key2"]


def _damage(path: Path, damage: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
        (path / "file").touch()
    elif damage == "pipe":
        os.mkfifo(path)
    elif damage == "link":
        path.symlink_to(path.name)
    else:
        changed = {"empty": b"", "cut": content[: len(content) // 2], "a bit": content[:-1] + bytes([content[-1] ^ 1])}
        path.write_bytes(changed[damage])


@pytest.mark.parametrize("damage", ["empty", "cut", "a bit", "folder", "pipe", "link"])
def test_a_damaged_file_is_made_anew_before_it_is_used(damage: str) -> None:
    library = native.build_text("answer", ANSWER % 42)
    (source,) = (path for path in files(cache.root()) if path.suffix == ".c")
    assert cache.damaged() == []
    for path in (library, source):
        _damage(path, damage)
    assert cache.damaged() == sorted([library, source])
    again = native.build_text("answer", ANSWER % 42)
    assert ctypes.CDLL(str(again)).answer() == 42
    assert cache.damaged() == []
    assert len(files(cache.root())) == 2


def test_what_produce_raises_is_passed_on(fresh_cache: Path) -> None:
    def produce(path: Path) -> None:
        path.write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.cached("test", "key", ".bin", produce)
    assert files(fresh_cache) == []


def test_digest_knows_where_parts_end() -> None:
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("ab") == cache.digest(b"ab")
