"""The page on all runs of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from harness.measure.results import Result
from p4cc.execution.batch import Batch
from reports import agreement_lines, findings_of, write_report
from reports.sweep_page import Entry, write_sweep


def page_of(batch: Batch) -> str:
    """Return the name of the page on all runs."""
    return "report.html" if batch.sweep is None else "sweep.html"


def write_page(batch: Batch, kept: Mapping[int, Result], folder: Path) -> None:
    """Write the page on the runs in `kept`, whose keys are the runs' numbers, and its accompanying files."""
    if batch.sweep is None:
        write_report(list(kept.values()), folder / page_of(batch), folder / "plots")
        return
    entries = [Entry(batch.runs[i].values, batch.runs[i].variant, result) for i, result in kept.items()]
    title = batch.sweep.title or batch.sweep.scenario
    write_sweep(folder, title, list(batch.runs[0].values), entries, batch.sweep.claims)


def tell_findings(kept: Mapping[int, Result]) -> None:
    """Print the findings on scenarios' runs, and how far runs in real time are from the virtual world."""
    results = list(kept.values())
    for line in agreement_lines(results):
        click.echo(line, err=True)
    for line in findings_of(results):
        click.echo(line)
