"""Distribution's Mininet package, which is not on PyPI.

The module makes `import mininet` work in a virtual environment.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from types import ModuleType

from p4switch.errors import UserError

_FOLDER = "/usr/lib/python3/dist-packages"  # folder of packages of Debian and Ubuntu
_TOOLS = {"mnexec": "mininet", "ip": "iproute2", "unshare": "util-linux"}
_PATIENCE_S = 10


class _Finder:
    """Finder of the package `mininet`, and no other, among the distribution's Python packages."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.PathFinder.find_spec(name, [_FOLDER]) if name == "mininet" else None


def missing() -> str | None:
    """Return why the Mininet world cannot be used, and a remedy, in one line; None if it can."""
    if not sys.platform.startswith("linux"):
        return "the Mininet world needs Linux; use --world virtual here"
    if os.geteuid():
        return "the Mininet world needs root: run p4cc with sudo, or use --world virtual"
    absent = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if not _importable():
        absent.append("mininet")
    if absent:
        return f"the Mininet world needs packages that are missing: apt-get install {' '.join(sorted(set(absent)))}"
    refusal = _refusal()
    if refusal:
        return (
            f"the Mininet world needs network namespaces and veth pairs, which are refused here ({refusal}): "
            "in a container, it has to be privileged"
        )
    return None


def _refusal() -> str:
    """Return why a veth pair in a network namespace is refused; empty if it is not."""
    command = ["unshare", "--net", "ip", "link", "add", "name", "veth0", "type", "veth", "peer", "name", "veth1"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if not done.returncode else (done.stderr.strip().splitlines() or ["no reason given"])[-1]


def require() -> None:
    """Enable `import mininet`.

    Raises UserError if the Mininet world cannot be used.
    """
    reason = missing()
    if reason is not None:
        raise UserError(reason)


def _importable() -> bool:
    if not any(isinstance(finder, type) and finder is _Finder for finder in sys.meta_path):
        sys.meta_path.append(_Finder)
    return importlib.util.find_spec("mininet") is not None
