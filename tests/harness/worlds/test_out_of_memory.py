"""A process that runs out of memory ends with one line and status 2, and leaves no files or processes."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.message import EncodeError

from harness import errors
from harness.measure.output_folder import new_folder
from harness.worlds.mininet import state
from p4cc.cli import cli, main
from p4switch import memory
from p4switch.errors import UserError

LIMITED = """
import resource, sys
import psutil
from p4cc.cli import main
from p4cc.commands import run
from harness.worlds import virtual
import p4cc.execution.execute
more_bytes = int(sys.argv.pop(1))
mapped_bytes = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (mapped_bytes + more_bytes, resource.RLIM_INFINITY))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
main(sys.argv[1:])
"""

# No memory is left, but the error is another one.
FULL = """
import ctypes, errno, gc, os, resource, sys
from pathlib import Path
from harness.measure.output_folder import new_folder
from p4switch.memory import keep_reserve

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
mapped_bytes = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped_bytes + 64_000_000, resource.RLIM_INFINITY))
keep_reserve()
gc.disable()
try:
    with new_folder(Path(sys.argv[1])) as folder:
        for number in range(100):
            (folder / str(number)).mkdir()
        for size in (1 << 20, 1 << 16, 1 << 12, 1 << 8, 16):
            while libc.malloc(size):
                pass
        raise OSError(errno.ENOMEM, "Cannot allocate memory")
except OSError as error:
    print(os.strerror(error.errno))
"""


@pytest.mark.parametrize("more_bytes", [14_000_000, 30_000_000, 39_000_000, 60_000_000, 120_000_000])
def test_a_process_that_gets_no_memory_ends_with_one_line(tmp_path: Path, more_bytes: int) -> None:
    """A large `memory_bytes` keeps p4cc from refusing the run before it starts."""
    memory.library()  # The compiler needs more memory than the process gets.
    arguments = ["run", "permutation", "--cc", "none", "--workers", "1", "--no-report", "--out", str(tmp_path / "out")]
    settings = ["--set", "topology.k=16", "--set", "memory_bytes=90e9", "--set", "limit_ns=2000"]
    command = [sys.executable, "-c", LIMITED, str(more_bytes), *arguments, *settings]
    environment = {**os.environ, "P4CC_NATIVE": "0", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 2, done.stderr[-2000:]
    assert "p4cc: error: " in done.stderr.splitlines()[-1]
    assert "out of memory within ulimit -v " in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_removed_without_memory(tmp_path: Path) -> None:
    """The clean-up gets the reserve although it did not start with a MemoryError."""
    memory.library()
    command = [sys.executable, "-c", FULL, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Cannot allocate memory\n", "")
    assert list(tmp_path.iterdir()) == []


def test_only_a_failed_mininet_run_takes_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a successful one, the next run of the same process still needs it."""
    taken: list[bool] = []
    monkeypatch.setenv("P4CC_RUN", str(tmp_path))
    monkeypatch.setattr(state, "free_reserve", lambda: taken.append(True))
    with state.RunFolder("good"):
        pass
    assert not taken
    with pytest.raises(OSError, match="full"), state.RunFolder("bad"):
        raise OSError("full")
    assert taken == [True]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        EncodeError("Failed to serialize proto"),
        ImportError("libarrow.so: failed to map segment from shared object"),
        OSError("reserve.so: failed to map segment from shared object"),
    ],
)
def test_every_way_of_having_none_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> None:
        with new_folder(tmp_path / "out"):
            raise error

    monkeypatch.setattr(cli, "main", fails)
    with pytest.raises(SystemExit) as ended:
        main(["run"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("p4cc: error: out of memory on this machine; expected ")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    passed_on = pickle.loads(pickle.dumps(errors.passed_on(error)))
    assert isinstance(passed_on, UserError)
    assert "out of memory" in str(passed_on)


def test_other_errors_are_no_lack_of_memory() -> None:
    assert errors.out_of_memory(OSError(errno.ENOENT, "No such file")) is None
    assert errors.out_of_memory(RuntimeError("else")) is None
