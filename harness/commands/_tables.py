"""Tables on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

_WIDE = 240  # of files and pipes, where lines need not be broken


def show(table: Table) -> None:
    """To a terminal as wide as it is; to a file or pipe without breaking lines."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_WIDE)
    console.print(table)
