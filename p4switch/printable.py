"""Foreign text on a terminal: characters that are not printable are shown as Python escapes."""

from __future__ import annotations

import re

import click

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")


def hidden(text: str) -> str | None:
    """Return the first character that should not reach a terminal, or None.

    These are control characters other than tab and line feed, characters that change the direction of a line, and
    surrogates, which stand for bytes that are not UTF-8.
    """
    match = _HIDDEN.search(text)
    return None if match is None else match.group()


def printable(text: str) -> str:
    r"""Return `text` with the characters that `hidden` finds as Python escapes, such as `\\x1b`."""
    return _HIDDEN.sub(lambda found: repr(found.group())[1:-1], text)


def tell(text: str, *, err: bool = False) -> None:
    """Print a line that contains foreign text."""
    click.echo(printable(text).replace("\n", "\\n"), err=err)
