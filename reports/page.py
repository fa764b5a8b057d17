"""Page of a report: figures and plots of all runs, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from harness.columns.flows import totals
from harness.measure.provenance import differences
from harness.measure.results import Result, damaged
from harness.measure.summary import left_behind, not_kept_up, unfinished
from p4switch.errors import UserError
from p4switch.output_file import write_files
from reports.agreement import agreement_lines
from reports.claims import Numbers, claims, papers_numbers
from reports.figures import figures
from reports.figures.base import which_seed
from reports.findings import findings
from reports.groups import Comparison, Estimate, Variant, compare, over_seeds
from reports.plots import svg
from reports.quantities import AllDone, At, OfFlows, Quantity, worst_queue
from reports.replay import shell, small_data

_NAMED_QUEUES = 3  # number of queues shown of each variant
_MOST_REPLAYS = 12


@dataclass(frozen=True)
class _Row:
    """Row of the table: its name, the place of its value in a summary, and its format."""

    name: str
    figure: Quantity
    scale: float = 1
    digits: int = 1
    best: Callable[[list[float]], float] | None = None  # selects the variants' figure that is printed in bold
    least: float | None = 0.0  # lower bound of the quantity before scaling; None: unbounded
    most: float | None = None


def _late(who: str) -> Quantity:
    return At(f"fidelity.lag.{who}.p99_of_base_rtt")


def _difference(summary: dict[str, Any]) -> float | None:
    """Return the relative difference of the mean FCT from the virtual world's."""
    agreement = summary.get("agreement")
    return agreement["difference"] if agreement and agreement["quantity"] == "mean FCT" else None


_ROWS = (
    _Row("flows delivered", OfFlows("flows_delivered"), digits=0),
    _Row("all done after (µs)", AllDone("last_delivery_ns"), 1e-3, best=min),
    _Row("job completion (µs)", At("workload.job_completion_ns"), 1e-3, best=min),
    _Row("effective bandwidth", At("workload.effective_bandwidth"), 1, 3, best=max),
    _Row("latency of operations: mean (cycles)", At("workload.latency_cycles.mean"), 1, 0, best=min),
    _Row("latency of operations: mean of hosts' means (cycles)", At("workload.latency_cycles.mean_of_hosts"), 1, 0),
    _Row("latency of operations: median (cycles)", At("workload.latency_cycles.median"), 1, 0, best=min),
    _Row("latency of operations: longest (cycles)", At("workload.latency_cycles.max"), 1, 0, best=min),
    _Row("operations sent again", At("workload.repeats"), digits=0),
    _Row("FCT mean (µs)", At("fct_ns.mean"), 1e-3, best=min),
    _Row("FCT p99 (µs)", At("fct_ns.p99"), 1e-3, best=min),
    _Row("slowdown median", At("slowdown.p50"), 1, 2, best=min),
    _Row("slowdown p99.9", At("slowdown.p99_9"), 1, 2, best=min),
    _Row("Jain index, mean over time", At("jain.mean"), 1, 3, best=max, most=1.0),
    _Row("Jain index first above 0.9 (µs)", At("jain.over_0_9_from_ns"), 1e-3, best=min),
    _Row("queue pairs active at that time", At("jain.over_0_9_qps"), digits=0),
    _Row("attackers' share of the throughput (%)", At("isolation.attackers_share"), 100, most=1.0),
    _Row("attackers' throughput (Gb/s)", At("isolation.attackers.throughput_bps"), 1e-9),
    _Row("victims' throughput (Gb/s)", At("isolation.victims.throughput_bps"), 1e-9, best=max),
    _Row("attackers: mean rate of a flow (Gb/s)", At("isolation.attackers.flow_rate_bps"), 1e-9),
    _Row("victims: mean rate of a flow (Gb/s)", At("isolation.victims.flow_rate_bps"), 1e-9, best=max),
    _Row("attackers: slowdown p99", At("isolation.attackers.slowdown.p99"), 1, 2),
    _Row("victims: slowdown p99", At("isolation.victims.slowdown.p99"), 1, 2, best=min),
    _Row("goodput, payload (Gb/s)", At("goodput_bps"), 1e-9, best=max),
    _Row("busiest link to a host, busy (%)", At("bottleneck.busy"), 100, best=max, most=1.0),
    _Row("congested switch ports", At("queues.congested"), digits=0),
    _Row("most congested port: mean queue (KB)", worst_queue("queue_mean_bytes"), 1e-3, best=min),
    _Row("most congested port: queue p99 (KB)", worst_queue("queue_p99_bytes"), 1e-3, best=min),
    _Row("most congested port: maximum queue (KB)", worst_queue("queue_max_bytes"), 1e-3, best=min),
    *(_Row(total.row.words, OfFlows(total.name), digits=0) for total in totals() if total.row is not None),
    _Row("drops", lambda summary: sum(summary["drops"].values()), digits=0),
    _Row("PFC pauses", At("pfc.pauses_sent"), digits=0),
    _Row("wall-clock time of a unit of model time", At("fidelity.dilation"), digits=0),
    _Row("mean FCT against the virtual world's (%)", _difference, 100, 2, least=None),
    _Row("lateness in a round trip (% of base RTT)", At("fidelity.late_of_base_rtt"), 100, 2),
    _Row("mean FCT, estimated increase (%)", At("fidelity.drift"), 100, 2),
    _Row("1% of frames left hosts late by more than (% of base RTT)", _late("hosts"), 100, 2),
    _Row("1% of frames left switches late by more than (% of base RTT)", _late("switches"), 100, 2),
)


_PARTS = ("groups", "sizes")  # keys of summaries with figures of parts of the flows, by name
# Rows of each group of flows and each class by size; each name begins with that of the group or
# class. A row has name, key in the part, and so on.
_ROWS_OF_PARTS = (
    ("flows delivered", "flows_delivered", 1, 0, None),
    ("FCT p99 (µs)", "fct_ns.p99", 1e-3, 1, min),
    ("retransmitted", "retransmitted", 1, 0, min),
    ("slowdown median", "slowdown.p50", 1, 2, min),
    ("slowdown p99", "slowdown.p99", 1, 2, min),
    ("slowdown p99.9", "slowdown.p99_9", 1, 2, min),
    ("slowdown times weight, p99.9", "weighted_slowdown.p99_9", 1, 2, min),
    ("mean rate of a flow (Gb/s)", "flow_rate_bps.mean", 1e-9, 1, max),
    ("median rate of a flow (Gb/s)", "flow_rate_bps.p50", 1e-9, 1, max),
    ("largest packet latency, p99.9 (µs)", "max_latency_ns.p99_9", 1e-3, 1, min),
)

_MOST_DIGITS = 4


def _rows(variants: Sequence[Variant]) -> list[_Row]:
    """Return the rows of every run, followed by those of groups and classes that any run has."""
    summaries = [result.summary for variant in variants for result in variant.results]
    parts = dict.fromkeys((kind, name) for kind in _PARTS for summary in summaries for name in summary.get(kind, {}))
    return [*_ROWS, *(row for kind, name in parts for row in _rows_of_part(kind, name))]


def _rows_of_part(kind: str, name: str) -> list[_Row]:
    """Return the rows of the group or class of this name."""
    return [_Row(f"{name}: {words}", At(f"{kind}.{name}.{key}"), *how) for words, key, *how in _ROWS_OF_PARTS]


def _written(row: _Row, value: Estimate | None) -> str:
    """Return mean and half width with the same number of decimal places.

    There are more places if the half width would be rounded to 0, and a half width of 0 is left out.
    If the interval exceeds the quantity's range, its ends within the range are written. If the mean
    is over some of the seeds only, their number is added.
    """
    if value is None:
        return "–"
    mean, half = value.mean * row.scale, (value.half_width or 0.0) * row.scale
    digits = row.digits
    while half and digits < _MOST_DIGITS and half < 10.0**-digits:
        digits += 1
    text = f"{mean:,.{digits}f}"
    spread = f"{half:,.{digits}f}"
    low, high = value.mean - (value.half_width or 0.0), value.mean + (value.half_width or 0.0)
    if float(spread.replace(",", "")) == 0:
        shown = text
    elif (row.least is not None and low < row.least) or (row.most is not None and high > row.most):
        low, high = max(low, row.least if row.least is not None else low), min(high, row.most or high)
        shown = f"{text} ({low * row.scale:,.{digits}f} to {high * row.scale:,.{digits}f})"
    else:
        shown = f"{text} ± {spread}"
    return shown if value.partly is None else f"{shown} ({value.partly[0]} of {value.partly[1]} seeds)"


def _leads(row: _Row, values: Sequence[Estimate | None]) -> Estimate | None:
    """Return the best value if its confidence interval overlaps no other and all are means over all seeds."""
    known = [value for value in values if value is not None and value.half_width is not None]
    if any(value.partly for value in known):
        return None
    if row.best is None or len(known) < 2 or len(known) < len([value for value in values if value is not None]):
        return None
    best = next(value for value in known if value.mean == row.best([each.mean for each in known]))
    return best if all(best.is_apart_from(other) for other in known if other is not best) else None


@dataclass(frozen=True)
class Cell:
    """Cell of the table: the measurement, whether it is the best, and the paper's number, if any."""

    text: str
    leads: bool
    paper: str | None


def table(variants: Sequence[Variant], paper: Numbers) -> list[tuple[str, list[Cell]]]:
    """Return a row for each figure that any variant has, with a cell for each variant."""
    rows = []
    for row in _rows(variants):
        values = [over_seeds(variant, row.figure) for variant in variants]
        if all(value is None for value in values):
            continue
        leader = _leads(row, values)
        cells = []
        for variant, value in zip(variants, values, strict=True):
            number = paper.get(variant.name, {}).get(row.figure.key) if isinstance(row.figure, At) else None
            difference = None if number is None or value is None else number.written(row.scale)
            cells.append(Cell(_written(row, value), value is not None and value is leader, difference))
        rows.append((row.name, cells))
    return rows


def _queues(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the longest queues of each variant in its first seed, without empty ones."""
    rows = []
    for variant in comparison.variants:
        result = variant.results[0]
        marked = _marks(result)
        for place in result.summary.get("queues", {}).get("worst", [])[:_NAMED_QUEUES]:
            if place["queue_max_bytes"] > 0:
                marks = marked.get((place["switch"], place["port"]))
                rows.append({"variant": variant.name, **place, "marked": marks})
    return rows


def _marks(result: Result) -> dict[tuple[str, int], int]:
    """Return the number of marks by switch and port, if links were recorded."""
    if "links" not in result.tables:
        return {}
    total = result.table("links").groupby(["node", "port"], observed=True)["marked"].sum()
    return {(str(place[0]), int(place[1])): int(value) for place, value in zip(total.index, total, strict=True)}


def _replays(comparison: Comparison) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (name, data in base64) of small runs, and (name, reason) of runs that are not shown.

    They are the first seed of each variant.
    """
    replays, left_out = [], []
    for variant in comparison.variants[:_MOST_REPLAYS]:
        result = variant.results[0]
        name = f"{variant.name}, seed {result.summary['seed']}"
        try:
            small = small_data(result)
        except UserError as error:  # the user's own topology may be missing; the rest of the report is still valid
            left_out.append((name, str(error)))
            continue
        if small is not None:
            caption = f"{name} ({small.remark})" if small.remark else name
            replays.append((caption, base64.b64encode(small.data).decode()))
    return replays, left_out


def _section(comparison: Comparison, plots: Path | None) -> dict[str, Any]:
    drawn = []
    rows = table(comparison.variants, papers_numbers(comparison.claims))
    replays, not_replayed = _replays(comparison)
    for name, figure in figures(comparison).items():
        plot = figure.plot(comparison)
        file = None if plots is None else plots / f"{comparison.scenario}-{name}.svg"
        drawn.append((figure.caption(comparison), svg(plot, file), figure.wide(comparison)))
    return {
        "comparison": comparison,
        "findings": findings(comparison),
        "table": rows,
        "papers": any(cell.paper for _, cells in rows for cell in cells),
        "queues": _queues(comparison),
        "queues_seed": which_seed(comparison),
        "seeds": max(len(variant.results) for variant in comparison.variants),
        "claims": [(name, claim) for name, claim in claims().items() if name in comparison.claims],
        "plots": drawn,
        "replays": replays,
        "not_replayed": not_replayed,
        "failed": [(r, check) for r in comparison.results for check in r.summary["checks"] if not check["holds"]],
        "too_slow": [(r, doubt) for r in comparison.results if (doubt := not_kept_up(r.summary))],
        "caveats": [
            (r, caveat) for r in comparison.results for caveat in r.summary.get("fidelity", {}).get("caveats", [])
        ],
        "agreement": agreement_lines(comparison.results),
        "left_behind": [(r, doubt) for r in comparison.results if (doubt := left_behind(r.summary))],
        "unfinished": [(r, doubt) for r in comparison.results if (doubt := unfinished(r.summary))],
    }


def write_report(results: Sequence[Result], target: Path, plots: Path | None = None) -> None:
    """Write the page to `target`, and each plot as a file into the folder `plots`.

    Raises UserError if a file cannot be written.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    if plots is not None:
        plots.mkdir()
    comparisons = compare(results)
    sections = [_section(comparison, plots) for comparison in comparisons]
    watched = any(section["replays"] for section in sections)
    page = environment.get_template("report.html.j2").render(
        sections=sections,
        replay=base64.b64encode(gzip.compress(shell(b"", "a run"), mtime=0)).decode() if watched else "",
        worlds=sorted({result.summary["world"] for result in results}),
        framing=sorted({result.summary["framing_bytes"] for result in results}),
        mixed=differences(result.provenance for result in results),
    )
    write_files({target: page.encode()})


@contextmanager
def damage_named(results: Sequence[Result]) -> Iterator[None]:
    """Raise UserError for the first result with damaged files if the block fails."""
    try:
        yield
    except UserError:
        raise
    except Exception:
        _name_the_damaged(results)
        raise


def _name_the_damaged(results: Sequence[Result]) -> None:
    """Raise UserError for the first result that cannot be reported even alone."""
    for result in results:
        try:
            write_report([result], Path(os.devnull))
        except Exception as error:
            raise damaged(result, error) from None
