"""A process with limited address space has memory for its end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import out_of_memory
from p4switch import engine, memory
from p4switch.compiler import compile_program

# Blocks around a function that fills the memory with small objects.
NESTED = """
import gc, resource, sys
from p4switch.memory import keep_reserve

class Block:
    begun = ended = 0

    def __enter__(self):
        Block.begun += 1

    def __exit__(self, *error):
        Block.ended += 1

def fill(depth):
    with Block():
        if depth:
            fill(depth - 1)
        kept = None
        while True:
            kept = (kept,)

gc.disable()
mapped_bytes = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped_bytes + 40_000_000, resource.RLIM_INFINITY))
keep_reserve()
try:
    fill(int(sys.argv[1]))
except MemoryError:
    print(Block.begun, Block.ended)
"""

KEEP = """
import resource, sys
from p4switch.memory import keep_reserve
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
keep_reserve()
print("goes on")
"""

PIPELINE = """
import resource, sys
from p4switch.engine import load
switch_of = load().Switch
mapped_bytes = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped_bytes, resource.RLIM_INFINITY))
try:
    switch_of(sys.argv[1])
except OSError as error:
    print(error)
"""


def output(program: str, argument: str, environment: Mapping[str, str] | None = None) -> str:
    command = [sys.executable, "-c", program, argument]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("depth", [10, 100, 900])
def test_every_block_ends_and_the_error_arrives(depth: int) -> None:
    """Without the reserve, Python 3.11 and 3.12 raise SystemError for lack of a frame, and 3.13 crashes."""
    memory.library()
    assert output(NESTED, str(depth)) == f"{depth + 1} {depth + 1}"


def test_a_process_without_compiler_has_no_reserve(tmp_path: Path) -> None:
    environment = {**os.environ, "CC": "no-compiler", "P4CC_CACHE": str(tmp_path)}
    assert output(KEEP, "1000000000", environment) == "goes on"


def test_a_pipeline_that_cannot_be_mapped_is_a_lack_of_memory() -> None:
    library = engine.build(compile_program("p4src/accurate.p4").program)
    assert "out of memory" in str(out_of_memory(OSError(output(PIPELINE, str(library)))))
