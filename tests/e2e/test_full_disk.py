"""A cache on a full disk, at each place where it is written: one line names it, and no file is left half written.

The disk is a tmpfs of a few pages in a mount namespace of its own, which takes root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from p4switch.sources import SOURCE_DIRECTORY
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
    """Run `command` with a cache in `folder`, where another file leaves room for this number of pages."""
    cache = folder / "cache"
    cache.mkdir()
    size = (pages + 1) * PAGE_BYTES
    mounted = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(size), str(cache), str(PAGE_BYTES)]
    environment = {**os.environ, "P4CC_CACHE": str(cache), "P4CC_NATIVE": "0"}
    return subprocess.run(
        [*mounted, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


LIBRARY = "from p4switch import native; native.build_text('answer', 'int answer(void) { return 42; }')"
FOLDER = """
from pathlib import Path
from harness.measure.output_folder import new_folder
with new_folder(Path("out")):
    pass
"""
INCLUDES = """
import dataclasses
import wireformats
from host_agents import registry
from host_agents.packets import TO_REACTION_POINT, Field, Header, Packet
from wireformats import p4
probe = Packet("Probe", 0xE8, (Header("probe", (Field("kind", 8),)),), to=TO_REACTION_POINT)
registry._protocols = {"mine": dataclasses.replace(registry.protocols()["dctcp"], name="mine", packets=(probe,))}
p4.include_path(wireformats.opcodes(["mine"]))
"""


def test_what_is_compiled_from_p4(tmp_path: Path) -> None:
    done = with_room(tmp_path, 0, *MAIN, "compile", str(SOURCE_DIRECTORY / "ecn.p4"), "-o", "out.json")
    assert done.returncode == 2
    assert done.stderr == f"p4cc: error: cache folder {tmp_path}/cache/p4: {ADVICE}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize(
    ("pages", "code", "folder"),
    [
        pytest.param(0, LIBRARY, "cache folder {}/c", id="source of a library"),
        pytest.param(1, LIBRARY, "cache folder {}/native", id="a library"),
        pytest.param(0, FOLDER, "folder {}/unfinished", id="the note of an output folder"),
        pytest.param(0, INCLUDES, "cache folder {}/includes/", id="packets of a protocol from elsewhere"),
    ],
)
def test_what_else_is_written(tmp_path: Path, pages: int, code: str, folder: str) -> None:
    done = with_room(tmp_path, pages, sys.executable, "-c", code)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"p4switch.errors.UserError: {folder.format(tmp_path / 'cache')}"), done.stderr
    assert last.endswith(ADVICE)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
