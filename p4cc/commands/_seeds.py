"""The option that names seeds."""

from __future__ import annotations

from collections.abc import Sequence

import click

from harness.plan.seeds import expanded


def seeds(_: click.Context, __: click.Parameter, given: Sequence[str]) -> list[int]:
    """Return the seeds of an option that may be given several times. Raises click.BadParameter."""
    try:
        return [seed for text in given for seed in expanded(text)]
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
