"""What runs found: tables as pandas DataFrames, figures as matplotlib's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, overload

import pandas as pd
from matplotlib.figure import Figure

from harness.errors import CheckError
from harness.worlds.native_hosts import prefer_native_hosts

prefer_native_hosts()

from harness.measure import results as stored  # noqa: E402
from harness.report import write_report  # noqa: E402
from harness.report.groups import compare  # noqa: E402
from harness.report.plots import figures  # noqa: E402

__all__ = ["CheckError", "Result", "Results"]

_FIGURES = ("ended", "end_ns", "flows", "flows_delivered", "last_delivery_ns", "goodput_bps", "packets_sent")
_COUNTS = ("retransmitted", "timeouts", "cnps", "ecn_marked")


class Result:
    """One run. Times are in ns of model time, rates in bit/s; docs/python-api.md has the tables' columns."""

    def __init__(self, kept: stored.Result, values: Mapping[str, Any] | None = None) -> None:
        self._kept = kept
        self.values = dict(values or {})  # of a sweep's axes, by key

    @property
    def folder(self) -> Path:
        """With the run's files."""
        return self._kept.folder

    @property
    def name(self) -> str:
        return self._kept.folder.name

    @property
    def summary(self) -> dict[str, Any]:
        """What is in summary.json."""
        return self._kept.summary

    @property
    def scenario(self) -> str:
        """The resolved scenario, as TOML: `run` of it gives the same tables."""
        return self._kept.scenario_text

    @property
    def cc(self) -> str:
        return str(self.summary["protocol"])

    @property
    def lb(self) -> str:
        return str(self.summary["load_balancer"])

    @property
    def seed(self) -> int:
        return int(self.summary["seed"])

    @property
    def flows(self) -> pd.DataFrame:
        """One row a flow: ends, size, when it started and was delivered, completion time, slowdown, counts."""
        return self._kept.flows

    @property
    def queues(self) -> pd.DataFrame:
        """Depth in bytes of each queue over time."""
        return self._kept.queues

    @property
    def rates(self) -> pd.DataFrame:
        """Throughput, and the limits of its reaction point, of each queue pair over time."""
        return self._kept.rates

    @property
    def failed(self) -> list[str]:
        """The checks that did not hold, one line each."""
        return [f"{check['name']}: {check['detail']}" for check in self.summary["checks"] if not check["holds"]]

    def __repr__(self) -> str:
        done = f"{self.summary['flows_delivered']}/{self.summary['flows']} flows"
        return f"<Result {self.name}: {done} in {self.summary['end_ns'] / 1e3:,.0f} us>"


class Results(Sequence[Result]):
    """Runs that were made together, in order. They are in `folder`, which is gone with this object unless it was named.

    A notebook shows it as its table.
    """

    def __init__(self, runs: Sequence[Result], folder: Path, temporary: TemporaryDirectory[str] | None = None) -> None:
        self._runs = list(runs)
        self._temporary = temporary  # removed with this object
        self.folder = folder

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._runs)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        return self._runs[index]

    def table(self) -> pd.DataFrame:
        """One row a run: what distinguishes it, and the figures of its summary."""
        return pd.DataFrame([_row(run) for run in self._runs])

    @property
    def flows(self) -> pd.DataFrame:
        """Those of all runs, with the columns scenario, variant, cc, lb and seed (and a sweep's axes) before theirs."""
        return self._together("flows")

    @property
    def queues(self) -> pd.DataFrame:
        """As `flows`."""
        return self._together("queues")

    @property
    def rates(self) -> pd.DataFrame:
        """As `flows`."""
        return self._together("rates")

    @property
    def failed(self) -> list[str]:
        """The checks that did not hold, one line each."""
        return [f"{run.name}: {line}" for run in self._runs for line in run.failed]

    def figures(self) -> dict[str, Figure]:
        """The report's plots by name; before it, where there are several, the scenario's."""
        comparisons = compare([run._kept for run in self._runs])
        several = len(comparisons) > 1
        return {
            f"{comparison.scenario}-{name}" if several else name: figure
            for comparison in comparisons
            for name, (_, figure) in figures(comparison).items()
        }

    def report(self, file: str | PathLike[str]) -> Path:
        """Writes the comparison as one HTML page; returns its path."""
        write_report([run._kept for run in self._runs], Path(file))
        return Path(file)

    def save(self, folder: str | PathLike[str]) -> Path:
        """A copy of all files in a folder that must not exist yet; `load` reads it. Raises FileExistsError."""
        return Path(shutil.copytree(self.folder, folder))

    def _together(self, name: str) -> pd.DataFrame:
        tables = []
        for run in self._runs:
            table: pd.DataFrame = getattr(run, name)
            tables.append(table.assign(**_key(run))[[*_key(run), *(c for c in table.columns if c not in _key(run))]])
        return pd.concat(tables, ignore_index=True)

    def __repr__(self) -> str:
        return f"<Results of {len(self)} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        html: str = self.table().to_html()
        return html


def _key(run: Result) -> dict[str, Any]:
    """What tells a run from others."""
    summary = run.summary
    own = {"scenario": summary["scenario"], "variant": summary["variant"], "cc": run.cc, "lb": run.lb, "seed": run.seed}
    return {**own, **run.values}


def _row(run: Result) -> dict[str, Any]:
    summary = run.summary
    return {
        **_key(run),
        **{name: summary[name] for name in _FIGURES},
        **{f"fct_{name}_ns": value for name, value in summary["fct_ns"].items()},
        **{f"slowdown_{name}": value for name, value in summary["slowdown"].items()},
        "jain_mean": summary["jain"]["mean"],
        **{name: summary[name] for name in _COUNTS},
        "drops": sum(summary["drops"].values()),
        "pfc_pauses": summary["pfc"]["pauses_sent"],
        "failed_checks": len(run.failed),
    }
