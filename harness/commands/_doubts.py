"""What is possible, but hardly meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from harness.measure.tracing import Tracing
from harness.plan.run import Run
from harness.worlds.expected import trace_bytes
from p4switch.quantities import doubts

_LARGE_TRACES = 100_000_000  # bytes


def tell_large_traces(runs: Sequence[Run], trace: Tracing | None) -> None:
    """Warns of what `--trace` will write, where that is much."""
    count = 0 if trace is None or trace.until_ns is not None else sum(trace_bytes(run, trace) for run in runs)
    if trace is not None and count > _LARGE_TRACES:
        less = "--trace-packets, --trace-until or --trace-hops"
        click.echo(f"warning: --trace {trace.flow} writes some {count / 1e6:,.0f} MB; {less} writes less", err=True)


def tell_doubts(topologies: Iterable[Mapping[str, Any]]) -> None:
    """Warns of each once, in scenarios with these tables `topology`."""
    for line in dict.fromkeys(line for table in topologies for line in doubts({"topology": table})):
        click.echo(f"warning: {line}", err=True)
