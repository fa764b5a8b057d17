"""`p4cc explain`: what a key, a column, a figure, a variable or a word means."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from p4cc.reference.sentences import sentence
from p4switch.errors import UserError, nearest

if TYPE_CHECKING:
    from p4cc.reference.entries import Entry

_ALIKE = 0.75  # "link_rte" is close enough to "link_rate", "nonsense" is not close enough to "done_ns"


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str, as_json: bool) -> None:
    """Show the meaning of NAME.

    NAME is a key of scenarios or sweeps (topology.link_rate_bps), a column of a table
    (flows.fct_ns), a key of a run's files (summary.jain.mean), an environment variable, a term of
    the documentation (BDP) or of a report (slowdown), or a paper's claim (C1). Case and British or
    American spelling do not matter.

    The name of a table (switch.pfc) shows everything in it, a last part (eta) shows every key that
    ends in it, and a word (Jain) shows every name that contains it.
    """
    from p4cc.reference import spelling
    from p4cc.reference.entries import entries, words

    known, wanted = entries(), spelling.normal(name)
    said = [one for one in words() if spelling.words(one.name) == spelling.words(name)]
    exact = said + [one for one in known if one.is_named(name)]
    below = [one for one in known if spelling.normal(one.name).startswith(f"{wanted}.")]
    ending: list[Entry] = []
    if not below and exact == said:
        ending = [one for one in known if spelling.normal(one.name).endswith(f".{wanted}")]
    if not (exact or below or ending):
        ending = [one for one in words() if spelling.is_within(spelling.words(name), spelling.words(one.name))]
    matching = exact + below + ending
    if not matching:
        raise UserError(_not_found(name, known))
    if as_json:
        click.echo(json.dumps([one.record() for one in matching], indent=2))
        return
    for number, one in enumerate(exact + ending):
        click.echo("\n" * (number > 0) + "\n".join(_lines(one)))
    _list(below)


def _not_found(name: str, known: Iterable[Entry]) -> str:
    """Return the message for an unknown name, with a suggestion."""
    from p4cc.commands.list import KINDS
    from p4cc.reference.entries import words

    for kind, listed in KINDS.items():
        if any(one["name"] == name for one in listed()):
            return f"{name!r} is neither a key nor a column; `p4cc list {kind} {name}` describes it"
    names = {part for one in (*known, *words()) for part in (one.plain, one.plain.rpartition(".")[2])}
    near = nearest(_plain(name), names, _ALIKE)
    expected = "expected a key, a column, a variable or a word: see `p4cc explain switch` or `flows`, and `p4cc list`"
    return f"nothing is called {name!r}; {f'did you mean {near!r}?' if near is not None else expected}"


def _plain(name: str) -> str:
    return name.replace("[]", "")


def _lines(one: Entry) -> Iterable[str]:
    yield one.name + (f"  ({', '.join(one.of)})" if one.of else "")
    yield f"  {sentence(one.meaning)}"
    if one.key is not None:
        key = one.key
        yield f"  {key.type}{f' in {key.unit}' * bool(key.unit)}{f', {key.range}' * bool(key.range)}"
        yield f"  default: {key.default_text}" if not key.required else "  must be given"
        yield f"  source: {key.source}"


def _list(below: list[Entry]) -> None:
    """Print a line for each key of a table."""
    if not below:
        return
    from rich.table import Table

    from p4cc.execution.terminal_tables import show

    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for one in below:
        of = f" ({', '.join(one.of)})" if 0 < len(one.of) < 3 else ""
        table.add_row(one.name, one.key.default_text if one.key is not None else "", one.meaning + of)
    show(table)
