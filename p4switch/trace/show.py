"""Output of traces to a terminal or a file, in the requested format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rich.console import Console

from p4switch.trace.events import Event
from p4switch.trace.log import log_lines
from p4switch.trace.text import json_line, styled

Form = Literal["text", "json", "log"]


def show(events: Iterable[Event], form: Form = "text", console: Console | None = None) -> None:
    """Print events: as text (coloured if the console has colours), as JSON objects, or as simple_switch's log."""
    console = console or Console(soft_wrap=True, highlight=False)
    for event in events:
        if form == "text":
            console.print(styled(event), soft_wrap=True)
            continue
        for line in [json_line(event)] if form == "json" else log_lines(event):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
