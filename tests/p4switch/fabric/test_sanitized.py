"""The same tests under AddressSanitizer and UndefinedBehaviorSanitizer, and the fat-tree in C, with leak checks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from p4switch import native
from p4switch.fabric import memory_latency

HERE = Path(__file__).parent
OPTIONS = "detect_leaks=0:abort_on_error=0:exitcode=99"


def runtime(name: str) -> str:
    """Return the sanitizer's library, to be loaded before Python."""
    found = subprocess.run([*native.compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = found.stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f"the C compiler has no {name}")
    return path


def test_sanitized() -> None:
    env = os.environ | {
        "LD_PRELOAD": runtime("libasan.so"), "ASAN_OPTIONS": OPTIONS, "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc", "P4CC_FABRIC_FLAGS": " ".join(native.SANITIZE),
    }
    names = ("conservation", "links", "order", "pfc", "queues", "records", "run", "workers")
    modules = [str(HERE / f"test_{name}.py") for name in names]
    command = [sys.executable, "-m", "pytest", "-n0", "-x", "-p", "no:cacheprovider", *modules]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=550, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "runtime error" not in done.stderr, done.stderr


def test_a_fat_tree_leaves_no_leak() -> None:
    program = memory_latency.build(*native.SANITIZE)
    done = subprocess.run([program, "4", "20", "30", "0"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["lost"] == 0
