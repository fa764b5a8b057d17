"""Arbitrary packets and table entries through pipelines that are built with sanitizers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import fuzz, pipeline_cost
from tools.attack.attack import P4SRC, Attack, Finding

_PACKETS = 20_000  # an attempt
_FRAMES = pipeline_cost.frames(4, None) + pipeline_cost.frames(0xC4, 3) + pipeline_cost.frames(0xC4, 7)


class Pipelines(Attack):
    units = "packets"
    short_turns = 40
    memory_bytes = None

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._programs = [*sorted(P4SRC.glob("*.p4")), *corpus]

    def attempt(self, rng: random.Random) -> int:
        program = rng.choice(self._programs)
        seed = rng.randrange(1 << 30)
        try:
            document = compile_program(program, [program.parent]).json
        except CompileError:
            return 0  # this program of the corpus is not for v1model
        try:
            fuzz.run(document, seed=seed, packets=_PACKETS, frames=_FRAMES)
        except fuzz.FuzzError as finding:
            raise Finding(f"{program}: {finding}") from None
        return _PACKETS
