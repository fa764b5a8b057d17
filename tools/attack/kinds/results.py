"""Result folders of others: refused in one line, or reported; nothing of them is run, nothing written elsewhere."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from tools.attack import hostile
from tools.attack.attack import Attack, Finding
from tools.attack.calling import call

RUN = (
    "run", "incast-star", "--cc", "dcqcn", "--set", "topology.hosts=3", "--set", "workload.senders=2", "--set",
    "workload.size_bytes=20000",
)  # fmt: skip
_EVIL = "from pathlib import Path\nPath({marker!r}).touch()\n"


class Results(Attack):
    units = "result folders"
    memory_bytes = 6 << 30  # of address space, of which libraries reserve some

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        os.environ["P4CC_NATIVE"] = "0"  # nothing runs for long here
        self._good = folder / "good"
        made = call([*RUN, "--trace", "0", "--out", str(self._good)])
        if made.status != 0:
            raise Finding(f"{made.command}: {made.err}")
        self._work = folder / "work"

    def attempt(self, rng: random.Random) -> int:
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        os.chdir(self._work)
        shutil.copytree(self._good, "runs")
        (run,) = (path.parent for path in Path("runs").glob("*/summary.json"))
        done = [self._change(run, rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.15:  # last: nobody reads a pipe
            done.append(hostile.change_file(run, rng))
        command = rng.choice(
            (
                ["report", "runs", "--out", "out.html"],
                ["report", "runs", "--format", rng.choice(("svg", "png")), "--out", "out"],
                ["replay", "runs", "--out", "out.html"],
                ["diff", str(self._good), "runs", "--all"],
                ["diff", "runs", str(self._good)],
            )
        )
        try:
            call(command).expect_one_line((0, 1, 2) if command[0] == "diff" else (0, 2))
            self._expect_nothing_else()
        except Finding as finding:
            raise Finding(f"{'; '.join(done)}: {finding}") from None
        return 1

    def _change(self, run: Path, rng: random.Random) -> str:
        what = rng.random()
        files = {name: run / f"{name}.json" for name in ("summary", "provenance", "performance")}
        try:
            if what < 0.4:
                return hostile.change_json(files[rng.choice(("summary", "summary", "provenance", "performance"))], rng)
            if what < 0.6:
                return hostile.change_toml(run / "scenario.toml", rng)
            if what < 0.9:
                return hostile.change_table(rng.choice(sorted(run.glob("*.parquet"))), rng)
            if what < 0.95:
                return self._trace(run / "trace.jsonl", rng)
            return self._extension(run)
        except (OSError, ValueError, IndexError, UnicodeError) as error:  # a change before has left nothing to change
            return type(error).__name__

    def _trace(self, file: Path, rng: random.Random) -> str:
        lines = file.read_bytes().splitlines()
        i = rng.randrange(len(lines))
        line = bytearray(lines[i])
        for _ in range(rng.choice((1, 3, 20))):
            line[rng.randrange(len(line))] = rng.choice(b'0123456789"{}[]:,-e\x00\x1bz')
        lines[i : i + 1] = rng.choice(([bytes(line)], [], [lines[i]] * 3, [b"{}"], [b"9" * 5000]))
        file.write_bytes(b"\n".join(lines))
        return f"trace.jsonl: line {i}"

    def _extension(self, run: Path) -> str:
        Path("evil.py").write_text(_EVIL.format(marker=str(self._work / "marker")))
        file = run / "scenario.toml"
        file.write_text(file.read_text().replace("extensions = []", 'extensions = ["evil.py"]'))
        return "extensions"

    def _expect_nothing_else(self) -> None:
        left = {path.name for path in self._work.iterdir()} - {"runs", "out", "out.html", "evil.py"}
        if left:
            raise Finding(f"left {sorted(left)}")
        if set(os.listdir(self.folder)) - {"good", "work"}:
            raise Finding(f"left {os.listdir(self.folder)}")
        if Path("out").is_dir() and any(not path.is_file() or path.is_symlink() for path in Path("out").rglob("*")):
            raise Finding("out has other things than files")
