"""Search paths of P4 source and its includes, for commands with `-I` and `-D` and for runs."""

from __future__ import annotations

from pathlib import Path

import click

import p4src

SOURCE_DIRECTORY = Path(next(iter(p4src.__path__)))
"""Folder of p4cc's own programs. Every program may include files from it (`include/prelude.p4`, ...)."""


def definition(text: str) -> tuple[str, str]:
    """Return the name and the text of a macro.

    Raises click.BadParameter.
    """
    name, _, value = text.partition("=")
    if not name.isidentifier():
        raise click.BadParameter(f"{text!r}: expected NAME or NAME=VALUE")
    return name, value or "1"


include_option = click.option(
    "-I",
    "include",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    callback=lambda context, parameter, given: (*given, SOURCE_DIRECTORY),
    help="Include path; behind it are p4cc's own programs (include/prelude.p4 ...).",
)
arch_option = click.option(
    "--arch", metavar="NAME", help="Architecture, such as psa; without it, that of the program's package."
)
pipeline_option = click.option(
    "--pipeline", type=click.IntRange(0), metavar="N", help="Pipeline N of a TNA or T2NA program that has several."
)
define_option = click.option(
    "-D",
    "define",
    multiple=True,
    metavar="NAME[=VALUE]",
    callback=lambda context, parameter, given: dict(map(definition, given)),
    help="Preprocessor macro.",
)
