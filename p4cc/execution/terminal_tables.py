"""Tables on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import click
from rich.console import Console
from rich.table import Table

_WIDE = 240  # width in files and pipes, where lines need no breaks


def show(table: Table) -> None:
    """Print a table at the terminal's width; in a file or pipe lines are not broken."""
    Console(highlight=False, markup=False, width=_width()).print(table)


def show_named(rows: Iterable[tuple[str, str]]) -> None:
    """Print names with descriptions beside them, wrapped like `show`."""
    rows = list(rows)
    column = 4 + max((len(name) for name, _ in rows), default=0)
    room = max(_width() - column, 20)
    for name, said in rows:
        lines = textwrap.wrap(said, room, break_on_hyphens=False)
        click.echo(f"  {name}".ljust(column) + f"\n{' ' * column}".join(lines))


def _width() -> int:
    console = Console()
    return console.width if console.is_terminal else _WIDE
