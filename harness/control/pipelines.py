"""P4 programs made ready to run: compiled, as native code, and as the controller needs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.control import controller, programs
from p4switch.errors import UserError

if TYPE_CHECKING:
    from p4switch.engine import Switch
    from p4switch.p4runtime.messages import Message

COMPILERS = ("builtin", "p4c")
P4C = "p4c-bm2-ss"
_P4C_TIMEOUT_S = 120


@dataclass(frozen=True)
class Pipeline:
    """A program of `p4src/`; any number of switches may run it."""

    program: controller.Program
    library: Path

    def switch(self, device_id: int, seed: int) -> Switch:
        """A fresh instance whose clock ticks in nanoseconds."""
        from p4switch.engine import load

        switch: Switch = load().Switch(str(self.library), device_id=device_id, seed=seed, tick_ns=1)
        return switch


@lru_cache(maxsize=8)
def pipeline(program: programs.Program, trace: bool = False, compiler: str = "builtin") -> Pipeline:
    """Compiles a program, or takes it from the cache. Raises UserError (a CompileError for errors in the program).

    With `trace` it tells what it does with each packet, which costs time.
    """
    from p4switch.engine import build

    config, p4info = compiled(program.source, compiler)
    return Pipeline(controller.Program(p4info, json.dumps(config).encode()), build(config, trace=trace))


@lru_cache(maxsize=32)
def compiled(source: Path, compiler: str = "builtin") -> tuple[dict[str, Any], Message]:
    """BMv2 JSON and P4Info, from the built-in compiler or p4c. Raises UserError."""
    if compiler == "p4c":
        return _p4c(source)
    from p4switch.compiler import compile_program

    own = compile_program(source)
    return own.json, own.p4info


def _p4c(source: Path) -> tuple[dict[str, Any], Message]:
    from p4switch.p4runtime.messages import parse_p4info

    if shutil.which(P4C) is None:
        raise UserError(f"{P4C} is not in PATH: install p4c (package p4lang-p4c), or use the built-in compiler")
    with tempfile.TemporaryDirectory(prefix="p4cc-p4c-") as directory:
        config, p4info = Path(directory, "program.json"), Path(directory, "p4info.txtpb")
        command = [P4C, str(source), "-o", str(config), "--p4runtime-files", str(p4info)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_P4C_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{P4C}: {error}") from None
        if done.returncode:
            told = [line for line in done.stderr.splitlines() if "error" in line] or [f"exit status {done.returncode}"]
            raise UserError(f"{P4C}: {told[0]}")
        document: dict[str, Any] = json.loads(config.read_text())
        return document, parse_p4info(p4info.read_text())
