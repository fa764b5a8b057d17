"""Receiving and sending under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from p4switch import native
from tests.p4switch.daemon.conftest import Namespace
from tests.p4switch.fabric.test_sanitized import OPTIONS, runtime

HERE = Path(__file__).parent
# Built before the sanitizer is at work, or the compiler would inherit it. The module does not load then.
BUILD = """
from pathlib import Path
from p4switch import daemon, engine
from p4switch.compiler import compile_program
from tests.p4switch.daemon.test_process import PROGRAM
engine.build(compile_program(PROGRAM).program)
try:
    daemon.load()
except ImportError:
    pass
"""


def test_sanitized(namespace: Namespace) -> None:
    """The fixture `namespace` skips this test where the tests inside would be skipped."""
    env = os.environ | {"CC": " ".join((*native.compiler(), *native.SANITIZE))}
    subprocess.run([sys.executable, "-c", BUILD], env=env, capture_output=True, timeout=550, check=False)
    env |= {"LD_PRELOAD": runtime("libasan.so"), "ASAN_OPTIONS": OPTIONS, "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-m", "pytest", "-n0", "-x", "-p", "no:cacheprovider", str(HERE / "test_io.py")]
    chosen = ["-k", "(all_sizes or comes_back) and xdp"]
    done = subprocess.run([*command, *chosen], env=env, capture_output=True, text=True, timeout=550, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "runtime error" not in done.stdout + done.stderr, done.stdout[-3000:] + done.stderr[-3000:]
