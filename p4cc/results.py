"""Results of runs: tables as pandas DataFrames, figures as matplotlib figures."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, overload

import pandas as pd
from matplotlib.figure import Figure

import p4cc._hosts  # noqa: F401  # isort: split
from harness.columns.flows import totals
from harness.errors import CheckError
from harness.measure import results as stored
from harness.measure.output_folder import copy_content, new_folder
from harness.measure.summary import delivered, unfinished
from p4cc._plots import Plots
from p4switch.errors import UserError, suggest
from reports import damage_named, findings_of, write_report
from reports.figures import figures
from reports.groups import compare

__all__ = ["CheckError", "Result", "Results"]

_ROWS_SHOWN = 10  # rows of a run's flows in a notebook
_FIGURES = ("ended", "end_ns", "flows", "flows_delivered", "last_delivery_ns", "goodput_bps", "packets_sent")


class Result:
    """Result of one run.

    Times are in ns of model time, rates in bit/s; docs/python-api.md describes the tables.
    """

    def __init__(self, kept: stored.Result, values: Mapping[str, Any] | None = None) -> None:
        self._kept = kept
        self.values = dict(values or {})  # values of a sweep's axes, by key
        # Folder with the run's files, removed with the last object that refers to it.
        self._temporary: TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """Folder of the run's files."""
        return self._kept.folder

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self._kept.folder.name

    @property
    def summary(self) -> dict[str, Any]:
        """Contents of summary.json."""
        return self._kept.summary

    @property
    def scenario(self) -> str:
        """Resolved scenario as TOML; running it gives the same tables."""
        return self._kept.scenario_text

    @property
    def cc(self) -> str:
        """Congestion control."""
        return str(self.summary["protocol"])

    @property
    def lb(self) -> str:
        """Load balancer of the hosts."""
        return str(self.summary["load_balancer"])

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.summary["seed"])

    @property
    def flows(self) -> pd.DataFrame:
        """Table with a row for each flow: ends, size, start, delivery, completion time, slowdown, counters."""
        return self._kept.flows

    @property
    def queues(self) -> pd.DataFrame:
        """Depth in bytes of each queue over time."""
        return self._kept.queues

    @property
    def rates(self) -> pd.DataFrame:
        """Throughput of each queue pair over time, and the limits of its reaction point."""
        return self._kept.rates

    @property
    def tables(self) -> frozenset[str]:
        """Names of all tables: these three, and those of the scenario's probes."""
        return self._kept.tables

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the run.

        Parameters
        ----------
        name
            One of `tables`.

        Returns
        -------
        pd.DataFrame
            Table as Parquet has it; times in ns, rates in bit/s, sizes in bytes.

        Raises
        ------
        UserError
            For another name.
        """
        return self._kept.table(name)

    @property
    def failed(self) -> list[str]:
        """Checks that did not hold, one line each."""
        return self._kept.failed_checks

    @property
    def unfinished(self) -> str | None:
        """Description of the flows and collectives that the run left unfinished; None if there are none."""
        return unfinished(self.summary)

    def _repr_html_(self) -> str:
        """Return the run's name and findings, and the first rows of its flows, for a notebook."""
        with damage_named([self._kept]):
            findings = "".join(f"<li>{escape(line)}</li>" for line in findings_of([self._kept]))
        return f"<p>{escape(self.name)}</p><ul>{findings}</ul>{self.flows.to_html(max_rows=_ROWS_SHOWN)}"

    def __repr__(self) -> str:
        return f"<Result {self.name}: {delivered(self.summary)} in {self.summary['end_ns'] / 1e3:,.0f} us>"


class Results(Sequence[Result]):
    """Runs that were made together, in the order of the scenario: by protocol, load balancer and seed.

    Their files are in `folder`. Unless the user named it, it is removed when these results and all
    selections and runs of them are no longer in use. `results[0]` is a run. `results[:2]` and
    `results["hpcc"]`, the runs of a protocol, are Results. A notebook shows them as a table.
    """

    def __init__(self, runs: Sequence[Result], folder: Path, temporary: TemporaryDirectory[str] | None = None) -> None:
        self._runs = list(runs)
        self._temporary = temporary  # removed with the last object that refers to it
        for run in self._runs:
            run._temporary = temporary
        self._selected = False  # True if these are a selection of other results
        self.folder = folder

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._runs)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice | str) -> Results: ...
    def __getitem__(self, index: int | slice | str) -> Result | Results:
        if isinstance(index, str):
            return self.select(cc=index)
        return self._selection(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def select(self, **wanted: Any) -> Results:
        """Return the runs that have these values.

        Parameters
        ----------
        **wanted
            `scenario`, `variant`, `cc`, `lb`, `seed`, `name` (of the run's folder), or an axis of a sweep:
            `select(**{"workload.size_bytes": 10_000})`.

        Raises
        ------
        UserError
            For a name that runs do not have, and if no run has these values.
        """
        known = list(dict.fromkeys(name for run in self._runs for name in _selectors(run)))
        for name in wanted:
            if name not in known:
                raise UserError(f"results: runs have no {name!r}; {suggest(name, known)}")
        runs = [run for run in self._runs if {**_selectors(run), **wanted} == _selectors(run)]
        if not runs:
            raise UserError(f"results: no run has {_words(wanted)}; expected one of {self._names()}")
        return self._selection(runs)

    def one(self, **wanted: Any) -> Result:
        """Return the only run that has these values.

        Parameters
        ----------
        **wanted
            Values, as for `select`.

        Returns
        -------
        Result
            The run.

        Raises
        ------
        UserError
            If there are none or several.
        """
        runs = self.select(**wanted)
        if len(runs) > 1:
            what = f"have {_words(wanted)}" if wanted else "are there"
            raise UserError(f"results: {len(runs)} runs {what}; expected values that one of {runs._names()} has")
        return runs[0]

    def _selection(self, runs: Sequence[Result]) -> Results:
        selection = Results(runs, self.folder, self._temporary)
        selection._selected = True
        return selection

    def _names(self) -> str:
        return ", ".join(run.name for run in self._runs)

    def table(self, name: str | None = None) -> pd.DataFrame:
        """Return a table of all runs.

        Parameters
        ----------
        name
            Name of a table, whose rows of all runs are concatenated behind the runs' keys. None: a row for
            each run with its key and the figures of its summary.

        Returns
        -------
        pd.DataFrame
            Table in the order of the runs.

        Raises
        ------
        UserError
            For a table that a run does not have.
        """
        return pd.DataFrame([_row(run) for run in self._runs]) if name is None else self._together(name)

    @property
    def flows(self) -> pd.DataFrame:
        """Table `flows` of all runs, like `table("flows")`."""
        return self._together("flows")

    @property
    def queues(self) -> pd.DataFrame:
        """Table `queues` of all runs, like `table("queues")`."""
        return self._together("queues")

    @property
    def rates(self) -> pd.DataFrame:
        """Table `rates` of all runs, like `table("rates")`."""
        return self._together("rates")

    @property
    def failed(self) -> list[str]:
        """Checks that did not hold, one line each."""
        return [f"{run.name}: {line}" for run in self._runs for line in run.failed]

    def findings(self) -> list[str]:
        """Return the findings of the runs as sentences: completion, queues, losses, and what cannot be concluded.

        Returns
        -------
        list[str]
            Sentences in the order of the report.

        Raises
        ------
        UserError
            For results with damaged files.
        """
        kept = [run._kept for run in self._runs]
        with damage_named(kept):
            return findings_of(kept)

    @property
    def plot(self) -> Plots:
        """Plots of all runs in matplotlib's axes: `results.plot.fct()`."""
        return Plots(self)

    def figures(self) -> dict[str, Figure]:
        """Return the report's plots by name, prefixed by the scenario if there are several."""
        comparisons = compare([run._kept for run in self._runs])
        several = len(comparisons) > 1
        return {
            f"{comparison.scenario}-{name}" if several else name: figure.plot(comparison)
            for comparison in comparisons
            for name, figure in figures(comparison).items()
        }

    def report(self, file: str | PathLike[str]) -> Path:
        """Write the comparison as one HTML page.

        Parameters
        ----------
        file
            Page to write.

        Returns
        -------
        Path
            Path of the page.

        Raises
        ------
        UserError
            For results with damaged files, and a file that cannot be written.
        """
        write_report([run._kept for run in self._runs], Path(file))
        return Path(file)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Copy all files, or those of a selection's runs, to a new folder, which is not created if copying fails.

        Parameters
        ----------
        folder
            Folder that must not exist yet; `load` reads it.

        Raises
        ------
        FileExistsError
            If the folder exists.
        UserError
            If one of the files is not a regular file.
        """
        target = Path(folder)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        with new_folder(target) as scratch:
            if self._selected:
                for run in self._runs:
                    (scratch / run.name).mkdir()
                    copy_content(run.folder, scratch / run.name)
                stored.note_order(scratch, [run.name for run in self._runs])
            else:
                copy_content(self.folder, scratch)
        return target

    def _together(self, name: str) -> pd.DataFrame:
        tables = []
        for run in self._runs:
            table = run.table(name)
            tables.append(table.assign(**_key(run))[[*_key(run), *(c for c in table.columns if c not in _key(run))]])
        return pd.concat(tables, ignore_index=True)

    def __repr__(self) -> str:
        return f"<Results of {len(self)} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        """Return the findings of the runs and their table, for a notebook."""
        html: str = self.table().to_html()
        return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in self.findings())}</ul>{html}"


def _key(run: Result) -> dict[str, Any]:
    """Return the values that distinguish a run from others."""
    summary = run.summary
    own = {"scenario": summary["scenario"], "variant": summary["variant"], "cc": run.cc, "lb": run.lb, "seed": run.seed}
    return {**own, **run.values}


def _selectors(run: Result) -> dict[str, Any]:
    """Return the values by which a run is selected."""
    return {**_key(run), "name": run.name}


def _words(wanted: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in wanted.items())


def _row(run: Result) -> dict[str, Any]:
    summary = run.summary
    return {
        **_key(run),
        **{name: summary[name] for name in _FIGURES},
        **{f"fct_{name}_ns": value for name, value in summary["fct_ns"].items()},
        **{f"slowdown_{name}": value for name, value in summary["slowdown"].items()},
        "jain_mean": summary["jain"]["mean"],
        **{total.name: summary.get(total.name) for total in totals()},
        "drops": sum(summary["drops"].values()),
        "pfc_pauses": summary["pfc"]["pauses_sent"],
        "failed_checks": len(run.failed),
    }
