"""The user's own files whose figures are added to a report of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from p4switch import extensions
from p4switch.printable import tell

if TYPE_CHECKING:
    from harness.measure.results import Result

extension_option = click.option(
    "--extension",
    "own_files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.py",
    help="Load this file, as the runs did. Without it, those are loaded that you have run yourself.",
)


def load_extensions(own_files: Iterable[Path], results: Iterable[Result]) -> None:
    """Load `own_files`, and each file that the results name if the user has run it before.

    Warns of files that are not loaded. Raises UserError for one of `own_files`.
    """
    for file in own_files:
        extensions.load(file)
    for line in dict.fromkeys(line for result in results for line in result.load_extensions()):
        tell(f"warning: {line}", err=True)
