"""P4 programs made ready to run: compiled, as native code, and as the controller needs them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness import controller, programs

if TYPE_CHECKING:
    from p4switch.engine import Switch


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
def pipeline(program: programs.Program, trace: bool = False) -> Pipeline:
    """Compiles a program, or takes it from the cache. Raises UserError (a CompileError for errors in the program).

    With `trace` it tells what it does with each packet, which costs time.
    """
    from p4switch.compiler import compile_program
    from p4switch.engine import build

    compiled = compile_program(program.source)
    return Pipeline(
        controller.Program(compiled.p4info, json.dumps(compiled.json).encode()), build(compiled.json, trace=trace)
    )
