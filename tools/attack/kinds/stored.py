"""Damaged files of the cache and of results: they are rebuilt or reported in one line, and no figure changes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.attack.attack import Attack, Finding

_MAIN = (sys.executable, "-c", "from p4cc.cli import main; main()")
_RUN = (
    "run", "incast-star", "--cc", "dcqcn", "--set", "topology.hosts=3", "--set", "workload.senders=2",
    "--set", "workload.size_bytes=20000",
)  # fmt: skip
_TIMEOUT_S = 300


def _damage(path: Path, rng: random.Random) -> str:
    """Damage a file and return a description."""
    data = path.read_bytes()
    kind = rng.choice(("cut", "flip", "flip", "empty", "noise", "gone", "folder", "pipe", "link"))
    if kind == "cut":
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    elif kind == "flip" and data:
        changed = bytearray(data)
        for _ in range(rng.choice((1, 8, 200))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
    elif kind == "noise":
        path.write_bytes(rng.randbytes(rng.choice((1, 100, len(data)))))
    else:
        path.unlink()
        if kind == "empty":
            path.touch()
        elif kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to(path.name)
    return f"{kind} {path.name}"


class Stored(Attack):
    units = "damaged files"
    short_turns = 8
    memory_bytes = None
    patience_s = 600

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._cache = folder / "cache"
        # The hosts run as Python here, because compiling them again would take all of the time.
        self._environment = os.environ | {"P4CC_CACHE": str(self._cache), "P4CC_NATIVE": "0"}
        self._good = folder / "good"
        done = self._p4cc(*_RUN, "--out", str(self._good))
        assert done.returncode == 0, done.stderr
        (self._results,) = (path.name for path in self._good.iterdir() if (path / "flows.parquet").exists())

    def attempt(self, rng: random.Random) -> int:
        return self._of_the_cache(rng) if rng.random() < 0.4 else self._of_results(rng)

    def _p4cc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_MAIN, *arguments], env=self._environment, cwd=self.folder, capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip

    def _of_the_cache(self, rng: random.Random) -> int:
        files = sorted(path for path in self._cache.rglob("*") if path.is_file() and not path.is_symlink())
        damaged = rng.sample(files, min(len(files), rng.choice((1, 1, 3))))
        done = [_damage(path, rng) for path in damaged]
        out = self.folder / "again"
        shutil.rmtree(out, ignore_errors=True)
        ran = self._p4cc(*_RUN, "--out", str(out))
        if ran.returncode:
            shutil.rmtree(self._cache)
            raise Finding(f"cache: {', '.join(done)}: exit status {ran.returncode}: {ran.stderr[-2000:]}")
        before, after = ((top / self._results / "flows.parquet").read_bytes() for top in (self._good, out))
        if before != after:
            raise Finding(f"cache: {', '.join(done)}: other figures than before")
        return len(damaged)

    def _of_results(self, rng: random.Random) -> int:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._good, copy)
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        damaged = rng.sample(files, rng.choice((1, 1, 2)))
        done = [_damage(path, rng) for path in damaged]
        ran = self._p4cc("report", str(copy), "--out", str(self.folder / "report"))
        shutil.rmtree(self.folder / "report", ignore_errors=True)
        lines = ran.stderr.splitlines()
        if ran.returncode not in (0, 2) or len(lines) > 1 or (ran.returncode == 2) != (len(lines) == 1):
            raise Finding(f"results: {', '.join(done)}: exit status {ran.returncode}: {ran.stderr[-2000:]}")
        return len(damaged)
