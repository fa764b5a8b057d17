"""Commands in a working folder of others, none of whose files may be executed or used."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from tools.attack.attack import P4SRC, Attack, Finding
from tools.attack.kinds.results import RUN

_OWN = (
    "control_plane", "harness", "host_agents", "p4cc", "p4src", "p4switch", "reports", "topologies", "wireformats",
    "mininet", "sitecustomize",
)  # fmt: skip
_TIMEOUT_S = 170
_SWEEP = """
scenario = "incast-star"
[set]
cc = "none"
topology.hosts = 3
workload.senders = 2
[axes]
workload.size_bytes = [20000, 30000]
"""
_SETTINGS = {
    "mypy.ini": "[mypy]\nplugins = evil.py\n", ".mypy.ini": "[mypy]\nplugins = evil.py\n",
    "setup.cfg": "[mypy]\nplugins = evil.py\n", "pyproject.toml": '[tool.mypy]\nplugins = ["evil.py"]\n',
    "matplotlibrc": "text.usetex: True\nbackend: module://evil\n", "conftest.py": "import evil\n",
    "dask.yaml": "distributed: {comm: {default-scheme: tcp}}\n",
}  # fmt: skip


class Folders(Attack):
    units = "commands"
    short_turns = 10
    memory_bytes = None

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._marks = folder / "marks"
        program = Path(sys.executable).with_name("p4cc")
        self._program = [str(program)] if program.is_file() else [
            sys.executable, "-I", "-c", "from p4cc.cli import main; main()",
        ]  # fmt: skip
        names = set(sys.stdlib_module_names) | set(metadata.packages_distributions()) | set(_OWN)
        self._names = sorted(name for name in names if name.isidentifier())
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        self._environment["P4CC_NATIVE"] = "0"
        self._good = folder / "good"
        subprocess.run(
            [*self._program, *RUN, "--out", str(self._good)], env=self._environment, check=True, capture_output=True,
            timeout=_TIMEOUT_S,
        )  # fmt: skip
        self._commands = [
            ["list"], ["doctor"], ["compile", str(P4SRC / "ecn.p4"), "-o", "x.json"], ["explain", "flows"],
            ["report", str(self._good), "--out", "x.html"], ["replay", str(self._good), "--out", "x.html"],
            ["report", str(self._good), "--format", "pdf", "--out", "x"], ["diff", str(self._good), str(self._good)],
            [*RUN, "--out", "x"], [*RUN, "--seed", "1", "--seed", "2", "--jobs", "2", "--out", "x"],
            [*RUN, "--workers", "2", "--out", "x"], ["sweep", "own.toml", "--jobs", "2", "--out", "x"],
        ]  # fmt: skip
        if os.geteuid() == 0 and shutil.which("mnexec"):
            self._commands += [[*RUN, "--world", "mininet", "--out", "x"]]

    def attempt(self, rng: random.Random) -> int:
        work = self.folder / "work"
        for made in (work, self._marks):
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
        (work / "own.toml").write_text(_SWEEP)
        names = self._names if rng.random() < 0.5 else [*rng.sample(self._names, 200), *_OWN]
        for name in dict.fromkeys([*names, "evil"]):
            text = f"open({str(self._marks / name)!r}, 'w').close()\nraise ImportError('of others')\n"
            if rng.random() < 0.2:
                (work / name).mkdir()
                (work / name / "__init__.py").write_text(text)
                (work / name / "__main__.py").write_text(text)
            else:
                (work / f"{name}.py").write_text(text)
        for name, text in _SETTINGS.items():
            (work / name).write_text(text)
        command = rng.choice(self._commands)
        done = subprocess.run(
            [*self._program, *command], cwd=work, env=self._environment, capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
        if ran := sorted(path.name for path in self._marks.iterdir()):
            raise Finding(f"{command}: ran {ran[:5]} of the working folder")
        if done.returncode not in (0, 1) or "Traceback" in done.stderr:
            raise Finding(f"{command}: exit status {done.returncode}: {done.stderr[-2000:]}")
        return 1
