"""Doubts about input that is valid but probably a mistake."""

from __future__ import annotations

from collections.abc import Iterator

import click

from harness.plan.how import Tracing
from harness.plan.portable import PortableRun
from harness.worlds.expected import trace_bytes
from p4cc.execution.batch import Batch
from p4switch.quantities import doubts

_LARGE_TRACES = 100_000_000  # bytes


def tell_doubts(batch: Batch, trace: Tracing | None) -> None:
    """Warn, once each, of probable mistakes in the runs' topologies and protocols, and of large traces."""
    tables = (run.portable.tables["topology"] for run in batch.runs)
    lines = [line for table in tables for line in doubts({"topology": table})]
    for line in dict.fromkeys([*lines, *_parameters_without_effect(batch)]):
        click.echo(f"warning: {line}", err=True)
    if trace is None or trace.until_ns is not None:
        return
    count = sum(trace_bytes(run.run(), trace) for run in batch.runs)
    if count > _LARGE_TRACES:
        less = "--trace-packets, --trace-until or --trace-hops"
        click.echo(f"warning: --trace {trace.flow} writes some {count / 1e6:,.0f} MB; {less} writes less", err=True)


def _parameters_without_effect(batch: Batch) -> Iterator[str]:
    """Yield a line for each table of parameters without effect, because its protocol only runs as a part of another."""
    running = [_protocols(run.portable) for run in batch.runs]
    alone = {name for names in running for name in names}
    for run, names in zip(batch.runs, running, strict=True):
        given = run.portable.tables.get("protocols", {})
        for name in names:
            base, *added = name.split("+")
            for part in (base, *added) if added else ():
                if part in given and part not in alone:
                    own = f'protocols."{name}"' + f".{part}" * (part in added)
                    yield f"protocols.{part} has no effect on {name}, whose parameters of {part} are in {own}"


def _protocols(run: PortableRun) -> list[str]:
    """Return the names of the protocols of a run and of its groups."""
    groups = (group.get("cc") for group in run.tables.get("groups", ()))
    return [run.names[0], *(name for name in groups if name is not None)]
