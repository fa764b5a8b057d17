"""Doubts about input that is valid but probably a mistake."""

from __future__ import annotations

import click

from harness.plan.how import Tracing
from harness.worlds.expected import trace_bytes
from p4cc.execution.batch import Batch
from p4switch.quantities import doubts

_LARGE_TRACES = 100_000_000  # bytes


def tell_doubts(batch: Batch, trace: Tracing | None) -> None:
    """Warn, once each, of probable mistakes in the runs' topologies, and of large traces."""
    tables = (run.portable.tables["topology"] for run in batch.runs)
    for line in dict.fromkeys(line for table in tables for line in doubts({"topology": table})):
        click.echo(f"warning: {line}", err=True)
    if trace is None or trace.until_ns is not None:
        return
    count = sum(trace_bytes(run.run(), trace) for run in batch.runs)
    if count > _LARGE_TRACES:
        less = "--trace-packets, --trace-until or --trace-hops"
        click.echo(f"warning: --trace {trace.flow} writes some {count / 1e6:,.0f} MB; {less} writes less", err=True)
