"""A cache on a disk that is full, at each place where it is written to: one line that names it, and nothing half made.

The disk is a tmpfs of a few pages in a mount namespace of its own, which takes root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.runs import MAIN

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ADVICE = "No space left on device; P4CC_CACHE names a folder that can be written to"
# In a folder that is made the root of a file system with room for so many bytes.
MOUNTED = 'mount -t tmpfs -o size="$1" none "$2" && head -c "$3" /dev/zero > "$2/other" && shift 3 && exec "$@"'

def can_mount() -> bool:
    if os.geteuid() or shutil.which("unshare") is None:
        return False
    return not subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode


pytestmark = pytest.mark.skipif(not can_mount(), reason="file systems are mounted by root")


def with_room(folder: Path, pages: int, *command: str) -> subprocess.CompletedProcess[str]:
    """`command` with its cache in `folder`, where another file leaves room for so many pages."""
    cache = folder / "cache"
    cache.mkdir()
    size = (pages + 1) * PAGE_BYTES
    mounted = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(size), str(cache), str(PAGE_BYTES)]
    environment = {**os.environ, "P4CC_CACHE": str(cache), "P4CC_NATIVE": "0"}
    return subprocess.run(
        [*mounted, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize(
    ("pages", "place"),
    [
        pytest.param(0, "folder {}/unfinished", id="the note of the output folder"),
        pytest.param(1, "cache folder {}/p4", id="what the P4 compiler makes"),
        pytest.param(60, "cache folder {}/c", id="C source"),
        pytest.param(100, "cache folder {}/native", id="what the C compiler makes"),
    ],
)
def test_a_run_says_so_in_one_line(tmp_path: Path, pages: int, place: str) -> None:
    done = with_room(tmp_path, pages, *MAIN, "run", "incast-star", "--cc", "dcqcn", "--no-report", "--out", "out")
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line == f"p4cc: error: {place.format(tmp_path / 'cache')}: {ADVICE}"
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
