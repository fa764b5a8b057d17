"""The distribution's Mininet package, which is not on PyPI: makes `import mininet` work in a virtual environment."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from types import ModuleType

from p4switch.errors import UserError

_FOLDER = "/usr/lib/python3/dist-packages"  # Debian's and Ubuntu's packages are there
_TOOLS = {"mnexec": "mininet", "ip": "iproute2", "ifconfig": "net-tools"}


class _Finder:
    """Finds the package `mininet`, and nothing else, among the distribution's Python packages."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.PathFinder.find_spec(name, [_FOLDER]) if name == "mininet" else None


def missing() -> str | None:
    """Why the Mininet world cannot be used here, with what to do about it, in one line; None: it can."""
    if not sys.platform.startswith("linux"):
        return "the Mininet world needs Linux; use --world virtual here"
    if os.geteuid():
        return "the Mininet world needs root: run p4cc with sudo, or use --world virtual"
    absent = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if not _importable():
        absent.append("mininet")
    if absent:
        return f"the Mininet world needs packages that are missing: apt-get install {' '.join(sorted(set(absent)))}"
    return None


def require() -> None:
    """Makes `import mininet` work. Raises UserError where the Mininet world cannot be used."""
    reason = missing()
    if reason is not None:
        raise UserError(reason)


def _importable() -> bool:
    if not any(isinstance(finder, type) and finder is _Finder for finder in sys.meta_path):
        sys.meta_path.append(_Finder)
    return importlib.util.find_spec("mininet") is not None
