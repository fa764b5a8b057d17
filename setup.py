"""Build hook: with P4CC_COMPILE_HOSTS=1 a wheel has the hosts compiled, for one Python and machine.

    P4CC_COMPILE_HOSTS=1 python -m build --wheel

Without it the wheel is for every machine, and the hosts are compiled when they are first used.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
COMPILED = os.environ.get("P4CC_COMPILE_HOSTS") == "1"
NEEDED = ("mypy==", "librt==", "pydantic>=")  # requirements of p4cc that compile the hosts


class BuildWithHosts(build_py):
    def run(self) -> None:
        super().run()
        if COMPILED and not self.editable_mode:
            sys.path.insert(0, str(HERE))
            from host_agents import native

            native.ship(Path(self.build_lib) / "host_agents")


class MaybeBinary(Distribution):
    def has_ext_modules(self) -> bool:
        return COMPILED


requirements = re.findall(r'^    "([^"]+)",$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
setup(
    cmdclass={"build_py": BuildWithHosts},
    distclass=MaybeBinary,
    setup_requires=[one for one in requirements if one.startswith(NEEDED)] if COMPILED else [],
)
