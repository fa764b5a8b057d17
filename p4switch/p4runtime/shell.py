"""p4runtime-shell, an independent P4Runtime client.

It runs in a separate virtual environment, because the package versions that it requires conflict with p4cc's.
"""
from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from p4switch import cache
from p4switch.errors import UserError

REQUIREMENTS = ("p4runtime-shell==0.0.6", "setuptools<81")
_TIMEOUT_S = 600


def environment() -> Path:
    """Return the Python of the environment. The first call creates the environment in the cache folder.

    Raises UserError if it cannot be created because there is no network or no venv module.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache.root() / "shell" / cache.digest(version, *REQUIREMENTS)
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if ready.exists():
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            try:
                _make(folder, python)
            except (OSError, subprocess.SubprocessError) as error:
                shutil.rmtree(folder, ignore_errors=True)
                raise UserError(f"p4runtime-shell could not be installed: {_reason(error)}") from error
            ready.touch()
    return python


def _make(folder: Path, python: Path) -> None:
    venv.create(folder, with_pip=True, clear=True)
    subprocess.run([str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS],
                   check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)


def _reason(error: Exception) -> str:
    output = getattr(error, "stderr", None) or getattr(error, "output", None)
    text = output.decode() if isinstance(output, bytes) else output
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return lines[-1] if lines else str(error)


def run(address: str, device_id: int, election_id: int = 1) -> int:
    """Run the interactive shell for a P4Runtime server and return its exit status.

    Raises UserError like `environment`.
    """
    command = [str(environment()), "-I", "-m", "p4runtime_sh", "--grpc-addr", address, "--device-id", str(device_id),
               "--election-id", f"{election_id >> 64},{election_id & (1 << 64) - 1}"]
    return subprocess.run(command, check=False).returncode
