"""Run in another process.

Functions of this module are unpickled there before anything of the hosts is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.plan.how import How
from harness.plan.portable import PortableRun
from harness.worlds.native_hosts import use_native_hosts
from p4switch.memory import keep_reserve


def write(wanted: tuple[PortableRun, Path], how: Mapping[str, Any]) -> None:
    """Make a run and write it to a new folder.

    `how` has the fields of `harness.plan.how.How`.
    """
    keep_reserve()
    use_native_hosts()

    from p4cc.execution.make_world import maker
    from p4cc.execution.runners import one_by_one

    portable, folder = wanted
    options = How.of(how)
    for _ in one_by_one([(portable.run(), folder, lambda: None)], maker(options), options):
        pass


def files(portable: PortableRun, how: Mapping[str, Any]) -> dict[str, bytes]:
    """Make a run and return the files of its folder, for transfer to another machine."""
    with TemporaryDirectory(prefix="p4cc-") as scratch:
        folder = Path(scratch) / "run"
        write((portable, folder), how)
        return {file.name: file.read_bytes() for file in folder.iterdir()}
