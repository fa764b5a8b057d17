"""Programs with side effects wherever P4 fixes an order: their compilation compared with the specification's order."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4switch import processes
from p4switch.bmv2 import read
from p4switch.compiler import compile_program
from p4switch.engine import build, load
from tests.p4switch.compiler.evaluation import Maker, Program, program_text, run

P4C = "p4c-bm2-ss"
PROGRAMS, PACKETS = 40, 5


def check(program: Program, document: Any, rng: random.Random) -> None:
    built = str(build(read(document)))
    for _ in range(PACKETS):
        frame = bytes(rng.choice([0, 1, 2, 3, rng.randrange(256)]) for _ in range(8))
        [(_, out)] = load().Switch(built).process(0, frame)
        assert out.hex(" ", 1) == run(program, frame).hex(" ", 1), frame.hex()


@settings(max_examples=PROGRAMS, deadline=None)
@given(st.randoms(use_true_random=False))
def test_generated_programs(rng: random.Random) -> None:
    program = Maker(rng).program()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.p4"
        path.write_text(program_text(program))
        check(program, compile_program(path).json, rng)


@pytest.mark.skipif(shutil.which(P4C) is None, reason=f"{P4C} is not installed")
@pytest.mark.parametrize("seed", range(20))
def test_p4c_means_the_same(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    program = Maker(rng, plain=True).program()
    path = tmp_path / "program.p4"
    path.write_text(program_text(program, cells=False))
    check(program, compile_program(path).json, rng)
    done = processes.run([P4C, str(path), "-o", str(tmp_path / "program.json")], timeout_s=60)
    if done.returncode:
        pytest.skip("p4c's back end for BMv2 refuses it")
    check(program, json.loads((tmp_path / "program.json").read_text()), rng)
