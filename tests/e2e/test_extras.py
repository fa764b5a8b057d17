"""A command needs only its own extra: pip install 'p4cc[viz]' is enough for a run and its report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from p4switch import cache

# What the other extras bring is not found.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from p4cc.cli import main
main()
"""
VIZ = ("matplotlib", "mpld3", "scipy")
OTHERS = ("z3", "dask", "distributed", "mpi4py", "thriftpy2", "mininet")
RUN = ("run", "incast", "--cc", "dcqcn", "--set", "workload.size_bytes=2000", "--set", "workload.senders=2")


def called(without: tuple[str, ...], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with a cache without compiled programs, but with the output of the C compiler."""
    native, own = cache.root() / "native", cwd / "cache"
    native.mkdir(parents=True, exist_ok=True)
    own.mkdir(exist_ok=True)
    (own / "native").symlink_to(native)
    environment = {**os.environ, "P4CC_CACHE": str(own), "P4CC_NATIVE": "0"}
    command = [sys.executable, "-c", WITHOUT.format(names=without), *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_run_and_its_report_need_viz_alone(tmp_path: Path) -> None:
    done = called(OTHERS, *RUN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "incast" / "report.html").exists()


@pytest.mark.parametrize("arch", ["v1model", "psa", "tna"])
def test_a_program_is_compiled_without_extras(arch: str, tmp_path: Path) -> None:
    (tmp_path / "x.p4").write_text("parser p() { state start { transition accept; } }")
    done = called((*OTHERS, *VIZ), "compile", "--arch", arch, "x.p4", "-o", "-", cwd=tmp_path)
    assert "no package is instantiated" in done.stderr


def test_generated_tests_name_their_extra(tmp_path: Path) -> None:
    (tmp_path / "x.p4").write_text("")
    done = called(OTHERS, "testgen", "x.p4", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'p4cc[testgen]'" in done.stderr
