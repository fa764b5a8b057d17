"""Removal of leftovers without free file descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.measure.output_folder import new_folder
from harness.worlds.mininet.state import RunFolder


@pytest.fixture
def few() -> Iterator[None]:
    """Limit this process to a hundred more descriptors than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def use_up(stack: ExitStack, folder: Path) -> None:
    """Open files in a folder up to the limit; raises OSError."""
    (folder / "run").mkdir()
    while True:
        stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))


def test_of_a_mininet_run(few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_RUN", str(tmp_path / "run"))
    with ExitStack() as stack:
        with pytest.raises(OSError, match="Too many open files"), RunFolder("small") as folder:
            use_up(stack, folder.path)
        assert not folder.path.exists()
    assert not list((tmp_path / "run").iterdir())


def test_of_an_output_folder(few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    with ExitStack() as stack, pytest.raises(OSError, match="Too many open files"), new_folder(out) as folder:
        use_up(stack, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    assert not list((tmp_path / "cache" / "unfinished").iterdir())
