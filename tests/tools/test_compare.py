"""The comparison of compilers and switches runs, and names refused programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3 is not installed")

ROOT = Path(__file__).parents[2]


def test_what_is_compared(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "p4switch" / "testgen" / "program.p4").read_text()
    (tmp_path / "good.p4").write_text(text)
    (tmp_path / "bad.p4").write_text(text.replace("hdr.h.kind = 9;", "hdr.h.kin = 9;"))
    command = [sys.executable, str(ROOT / "tools" / "compare.py"), str(tmp_path), "--tests", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    *lines, summary = done.stdout.splitlines()
    assert summary == f"2 programs, {len(lines)} differences", done.stderr
    assert lines[0].startswith("bad.p4: ")
    assert all(line.startswith("bad.p4: ") for line in lines)
    assert "did you mean 'kind'" in lines[0] or "p4c" in lines[0]
