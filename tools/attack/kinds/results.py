"""Result folders of others: they are refused in one line or accepted.

Nothing in them is executed, and nothing is written elsewhere or disclosed.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import p4cc
from p4switch.errors import UserError
from tools.attack import hostile
from tools.attack.attack import Attack, Finding
from tools.attack.calling import call

RUN = (
    "run", "incast-star", "--cc", "dcqcn", "--set", "topology.hosts=3", "--set", "workload.senders=2", "--set",
    "workload.size_bytes=20000",
)  # fmt: skip
_EVIL = "from pathlib import Path\nPath({marker!r}).touch()\n"
_SECRET = b"what-nobody-else-may-read"


class Results(Attack):
    units = "result folders"
    short_turns = 180
    memory_bytes = 6 << 30  # address space, of which libraries reserve some

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        os.environ["P4CC_NATIVE"] = "0"  # nothing runs long enough here to need compiled hosts
        self._good = folder / "good"
        run = call([*RUN, "--trace", "0", "--coverage", "--out", str(self._good)])
        if run.status != 0:
            raise Finding(f"{run.command}: {run.err}")
        (folder / "secrets").mkdir()
        self._secret = folder / "secrets" / "secret"
        self._secret.write_bytes(_SECRET)
        self._work = folder / "work"

    def attempt(self, rng: random.Random) -> int:
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        os.chdir(self._work)
        shutil.copytree(self._good, "runs")
        (run,) = (path.parent for path in Path("runs").glob("*/summary.json"))
        done = [self._change(run, rng) for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.3:  # this is the last change, because nothing reads a pipe
            done.append(hostile.change_file(run, rng, self._secret))
        if rng.random() < 0.03:
            run.rename("elsewhere")
            run.symlink_to(Path("elsewhere").absolute())
            done.append("link to a run")
        try:
            rng.choice((self._report, self._report, self._take, self._save))(rng)
            self._expect_nothing_else()
        except Finding as finding:
            raise Finding(f"{'; '.join(done)}: {finding}") from None
        return 1

    def _report(self, rng: random.Random) -> None:
        command = rng.choice(
            (
                ["report", "runs", "--out", "out.html"],
                ["report", "runs", "--format", rng.choice(("svg", "png")), "--out", "out"],
                ["replay", "runs", "--out", "out.html"],
                ["diff", str(self._good), "runs", "--all"],
                ["diff", "runs", str(self._good)],
            )
        )
        call(command).expect_one_line((0, 1, 2) if command[0] == "diff" else (0, 2))

    def _take(self, rng: random.Random) -> None:
        """Reuse a run, which is made again if the folder does not match its inputs.

        Returns 1 if its report or a check failed.
        """
        how = rng.choice(([], ["--coverage"], ["--trace", "0"], ["--no-report"]))
        where = ["--resume", "runs"] if rng.random() < 0.3 else ["--reuse", "runs", "--out", "out"]
        call([*RUN, *how, *where]).expect_one_line((0, 1, 2))

    def _save(self, rng: random.Random) -> None:
        def all_of_it(results: p4cc.Results) -> p4cc.Results:
            return results

        select: Callable[[p4cc.Results], p4cc.Results] = rng.choice((all_of_it, lambda results: results.select(seed=1)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                select(p4cc.load("runs")).save("out")
            except UserError as error:
                if not str(error).isprintable():
                    raise Finding(f"save: not one line: {str(error)!r:.300}") from None

    def _change(self, run: Path, rng: random.Random) -> str:
        what = rng.random()
        files = {name: run / f"{name}.json" for name in ("summary", "provenance", "performance")}
        try:
            if what < 0.35:
                return hostile.change_json(files[rng.choice(("summary", "summary", "provenance", "performance"))], rng)
            if what < 0.5:
                return hostile.change_toml(run / "scenario.toml", rng)
            if what < 0.8:
                return hostile.change_table(rng.choice(sorted(run.glob("*.parquet"))), rng)
            if what < 0.88:
                return self._trace(run / "trace.jsonl", rng)
            if what < 0.95:
                return hostile.change_coverage(run / "coverage.json", rng, self._secret)
            return self._extension(run)
        # An earlier change has left nothing to change.
        except (OSError, ValueError, IndexError, UnicodeError) as error:
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
        left = {path.name for path in self._work.iterdir()} - {"runs", "out", "out.html", "evil.py", "elsewhere"}
        if left:
            raise Finding(f"left {sorted(left)}")
        if {*os.listdir(self.folder), *os.listdir(self._secret.parent)} - {"good", "work", "secrets", "secret"}:
            raise Finding(f"left {os.listdir(self.folder)}")
        for path in (Path("out.html"), Path("out"), *Path("out").rglob("*")):
            if not os.path.lexists(path) or stat.S_ISDIR(path.lstat().st_mode):
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                raise Finding(f"{path} is no regular file")
            if path.stat().st_mode & 0o7022:
                raise Finding(f"{path} has the mode {path.stat().st_mode:o}")
            if _SECRET in path.read_bytes():
                raise Finding(f"{path} has what only this user may read", {path.name: path.read_bytes()})
