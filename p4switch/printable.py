"""Text of others on a terminal: what is no printable character is shown as Python writes it."""

from __future__ import annotations

import re

import click

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")


def hidden(text: str) -> str | None:
    """Return the first character that would not show as itself, or would change how others show; None: there is none.

    Those are control characters other than tab and line feed, those that change the direction of a line, and
    surrogates, which stand for what is not UTF-8.
    """
    found = _HIDDEN.search(text)
    return None if found is None else found.group()


def printable(text: str) -> str:
    r"""Return `text` with such characters spelt out: `\\x1b` for an escape."""
    return _HIDDEN.sub(lambda found: repr(found.group())[1:-1], text)


def tell(text: str, *, err: bool = False) -> None:
    """Print a line that has text of others in it."""
    click.echo(printable(text).replace("\n", "\\n"), err=err)
