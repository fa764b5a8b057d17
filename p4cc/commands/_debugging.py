"""Flag of `--debug`: whether the user asked for the whole traceback of an error."""

from __future__ import annotations

import click

_wanted = False


def wanted() -> bool:
    return _wanted


def _want(_: click.Context, __: click.Parameter, given: bool) -> None:
    global _wanted
    _wanted = given


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_want,
    help="Show the whole traceback of the error that ends the command.",
)
