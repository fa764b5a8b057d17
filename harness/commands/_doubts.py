"""What is possible, but hardly meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from p4switch.quantities import doubts


def tell_doubts(topologies: Iterable[Mapping[str, Any]]) -> None:
    """Warns of each once, in scenarios with these tables `topology`."""
    for line in dict.fromkeys(line for table in topologies for line in doubts({"topology": table})):
        click.echo(f"warning: {line}", err=True)
