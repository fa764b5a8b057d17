"""Files of a run's folder: written, and read back for reports.

scenario.toml      the resolved scenario: running it gives the same tables
flows.parquet      a row for each flow
pieces.parquet     a row for each piece of a flow, under an attack
queues.parquet     queue depths over time
rates.parquet      throughput and limits of queue pairs over time
*.parquet          readings of the scenario's probe with this name
links.parquet      counters of each direction of each link over time; harness/measure/links.py
summary.json       figures and checks; performance.json: the run's cost on this machine
provenance.json    version, inputs, machine and time of the run; harness/measure/provenance.py
network.toml       the network, if the scenario reads it from a file: links in the form of topology "edges"

A folder of several runs has a folder for each run, and runs.json with these folders' names in the order in which the
runs were planned.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import topologies
from harness.columns.tables import EVERYWHERE, TABLES
from harness.measure import folder_values, provenance
from harness.measure.folder_values import TABLE
from harness.measure.metrics import flows_table, jain_table, messages_table
from harness.measure.recording import Recording
from harness.measure.summary import left_behind, not_kept_up, summarize, unfinished
from harness.measure.summary import performance as performance_of
from harness.plan import scenario
from harness.plan.how import TRACE_LINES, TRACE_TEXT, How, Tracing
from harness.plan.inputs import inputs, resolved_text
from harness.plan.probes import Probe, parse
from harness.plan.run import LinkChange, Run, link_changes, named
from p4switch import extensions
from p4switch.errors import UserError, suggest
from p4switch.printable import printable
from topologies import Topology, edges
from topologies.from_files import FileTopology

_PROVENANCE = "provenance.json"
_NETWORK = "network.toml"
_ORDER = "runs.json"
# Columns that are read as categories.
_NAMES = list(dict.fromkeys(column.name for table in TABLES for column in table.places if column.type is None))
_ROWS = 1 << 20  # rows of a row group


def files(
    run: Run, recording: Recording, how: How | None = None, made_of: Mapping[str, Any] | None = None
) -> dict[str, bytes]:
    """Return all files of a run by name.

    `made_of` has the run's inputs at its start; None: the current ones.
    """
    messages = messages_table(run, recording)
    flows = flows_table(run, recording, messages)
    pieces = {} if run.attack is None else {"pieces": messages}
    over_time = {name: series.table() for name, series in recording.series.items()}
    tables = {"flows": flows, **pieces, **over_time, **recording.tables}
    origin = provenance.of_run(made_of or inputs(run), asdict(how or How()), run.seed)
    name, _ = named("topology", run.scenario.topology)
    return {
        **{f"{name}{TABLE}": _parquet(table) for name, table in tables.items()},
        **({_NETWORK: edges.written(run.topology).encode()} if _is_from_file(name) else {}),
        "scenario.toml": resolved_text(run),
        _PROVENANCE: _json(origin),
        "summary.json": _json(summarize(run, recording, flows, messages)),
        "performance.json": _json(performance_of(recording)),
    }


def _is_from_file(topology: str) -> bool:
    """Return whether a topology, by name, is read from a file."""
    return issubclass(topologies.parameters(topology), FileTopology)


def _parquet(table: pd.DataFrame) -> bytes:
    """Return a table as Parquet, converted a number of rows at a time; categories are written as their values."""
    buffer = io.BytesIO()
    parts = (table.iloc[start : start + _ROWS] for start in range(0, max(len(table), 1), _ROWS))
    spelt_out = dict.fromkeys(table.select_dtypes("category").columns, str)
    # pandas' metadata is left out, because it names versions
    arrows = (
        pa.Table.from_pandas(part.astype(spelt_out), preserve_index=False).replace_schema_metadata(None)
        for part in parts
    )
    first = next(arrows)
    with pq.ParquetWriter(buffer, first.schema, compression="zstd") as writer:
        for arrow in chain((first,), arrows):
            writer.write_table(arrow)
    return buffer.getvalue()


def _json(value: object) -> bytes:
    return (json.dumps(_shown(value), indent=2) + "\n").encode()


def _shown(value: object) -> object:
    """Return `value` without hidden characters.

    Titles and commands may contain them, but folders with them are refused.
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(below) for key, below in value.items()}
    return [_shown(below) for below in value] if isinstance(value, list | tuple) else value


def write(folder: Path, contents: Mapping[str, bytes]) -> Result:
    """Write the files of a run into its folder, which may already have files of its world.

    The run may have been made on another machine; the command is that of this process.
    """
    folder.mkdir(exist_ok=True)
    origin = {"command": "", **json.loads(contents[_PROVENANCE])}
    origin["command"] = provenance.command_line()
    for name, content in {**contents, _PROVENANCE: _json(origin)}.items():
        (folder / name).write_bytes(content)
    return load(folder)


@dataclass(frozen=True)
class Result:
    """Folder of a run, whose files are read on demand."""

    folder: Path
    summary: dict[str, Any]
    _read: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    performance: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def serves(self, made_of: Mapping[str, Any], how: How) -> bool:
        """Return whether a run with these inputs and options would give the folder's contents."""
        origin = self.provenance
        same = all(origin.get(key) == value for key, value in made_of.items())
        return same and how.is_served_by(origin.get("how"), self.folder)

    @cached_property
    def tables(self) -> frozenset[str]:
        """The names of the run's tables."""
        return folder_values.table_names(self.folder)

    def table(self, name: str) -> pd.DataFrame:
        """Return a table.

        Raises UserError for one that the run does not have.
        """
        if name not in self._read:
            if name not in self.tables:
                raise UserError(f"{str(self.folder)!r} has no table {name!r}; {suggest(name, self.tables)}")
            path = self.folder / f"{name}{TABLE}"
            rows = int(self.summary["flows"]) if name == "flows" else None
            self._read[name] = folder_values.read_table(path, _NAMES, rows)
        return self._read[name]

    @property
    def flows(self) -> pd.DataFrame:
        return self.table("flows")

    @property
    def messages(self) -> pd.DataFrame:
        """Table with a row for each part of a flow that one queue pair carried.

        Flows in pieces have a row for each piece.
        """
        return self.table("pieces") if "pieces" in self.tables else self.flows

    @property
    def queues(self) -> pd.DataFrame:
        return self.table("queues")

    @property
    def rates(self) -> pd.DataFrame:
        return self.table("rates")

    @cached_property
    def jain(self) -> pd.DataFrame:
        return jain_table(self.messages, self.rates, self.rate_interval_ns)

    @property
    def scenario_text(self) -> str:
        return self._scenario[0]

    @cached_property
    def _scenario(self) -> tuple[str, folder_values.Scenario, dict[str, Any]]:
        return folder_values.read_scenario(self.folder / "scenario.toml")

    @cached_property
    def topology(self) -> Topology:
        """The network.

        If its Python file is the user's own, it has to be loaded before. Raises UserError if the
        network cannot be built. A network from a file of the user is stored in the folder, and no
        other file that the folder names is read.
        """
        name, values = named("topology", self._scenario[1].topology)
        if not _is_from_file(name):
            return topologies.build(name, values)
        return replace(topologies.build("edges", {"file": str(self.folder / _NETWORK)}), name=name)

    @cached_property
    def link_changes(self) -> list[LinkChange]:
        """Changes of the topology's links by the scenario's events.

        Raises UserError if an event names a link that does not exist.
        """
        return link_changes(self.topology, scenario.check(self._scenario[2]).events)

    @cached_property
    def claims(self) -> list[str]:
        """Claims of papers that the scenario belongs to."""
        return self._scenario[1].claims

    @property
    def failed_checks(self) -> list[str]:
        """Checks that did not hold, one line each."""
        return [f"{check['name']}: {check['detail']}" for check in self.summary["checks"] if not check["holds"]]

    @property
    def doubts(self) -> list[str]:
        """Reasons to doubt the figures of a run whose checks hold, one line each."""
        found = unfinished(self.summary), left_behind(self.summary), not_kept_up(self.summary)
        return [*filter(None, found), *self.summary.get("fidelity", {}).get("caveats", [])]

    def note_on_empty_trace(self, tracing: Tracing | None) -> str | None:
        """Return a note that the requested trace is empty; None if it has packets, or if there is none."""
        if tracing is None or (self.folder / TRACE_LINES).stat().st_size:
            return None
        span = ""
        if tracing.from_ns or tracing.until_ns is not None:
            until = "the end" if tracing.until_ns is None else f"{tracing.until_ns:,} ns"
            span = f" from {tracing.from_ns:,} ns until {until}"
        sent = f"no packet of flow {tracing.flow} was sent{span}; the run ended at {self.summary['end_ns']:,} ns"
        return f"{TRACE_TEXT} and {TRACE_LINES} are empty: {sent}"

    @property
    def cc_scope(self) -> str:
        """Scope of a reaction point: the queue pairs that share it."""
        return self._scenario[1].nic.cc_scope

    def load_extensions(self) -> list[str]:
        """Load the user's own files of the run, which register figures; return a line for each one left out.

        The folder names them and may be somebody else's: see `extensions.load_known`.
        """
        warnings = []
        for file in self._scenario[1].extensions:
            try:
                extensions.load_known(Path(file))
            except UserError as error:
                warnings.append(f"figures left out: {error}")
        return warnings

    @property
    def rate_interval_ns(self) -> int:
        return self._scenario[1].record.rate_interval_ns

    @cached_property
    def probes(self) -> list[Probe]:
        """Probes of the scenario whose tables are in the folder."""
        return [probe for probe in parse(self._scenario[1].record.probes) if probe.name in self.tables]

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Provenance; empty for a folder of a version without it. Raises UserError for a damaged one."""
        path = self.folder / _PROVENANCE
        return folder_values.read_provenance(path) if os.path.lexists(path) else {}


def load(folder: Path) -> Result:
    """Return the results in a run's folder.

    Raises UserError if `folder` is not the folder of a run.
    """
    if not str(folder).isprintable():  # pages and tables show it
        raise UserError(f"{str(folder)!r}: expected a name that can be printed")
    for name in ("summary.json", "scenario.toml", "performance.json", *(f"{name}{TABLE}" for name in EVERYWHERE)):
        if not os.path.lexists(folder / name):
            raise UserError(f"{str(folder)!r} is not a run's folder: it has no {name}")
        folder_values.expect_regular(folder / name)
    summary = folder_values.read_summary(folder / "summary.json")
    performance = folder_values.read_performance(folder / "performance.json")
    return Result(folder, summary, performance=performance)


def damaged(result: Result, error: Exception) -> UserError:
    """Return the user error for a damaged folder, in which `error` was raised."""
    reason = next(iter(str(error).splitlines()), "")
    what = f"damaged results: {type(error).__name__}: {reason}"
    return UserError(f"{str(result.folder)!r}: {what}; expected a folder as p4cc writes it")


def one_that_serves(kept: Sequence[Result], made_of: Mapping[str, Any], how: How) -> Result | None:
    """Return the first result that can replace a run with these inputs and options."""
    return next((result for result in kept if result.serves(made_of, how)), None)


def _name_and_seed(folder: Path) -> tuple[str, int]:
    name, _, seed = folder.name.rpartition("-seed")
    return (name, int(seed)) if seed.isdecimal() else (folder.name, 0)


def note_order(folder: Path, names: Sequence[str]) -> None:
    """Write the order in which `load_all` returns the runs in these folders."""
    (folder / _ORDER).write_bytes(_json(list(names)))


def load_all(folder: Path) -> list[Result]:
    """Load a run's folder, or all runs directly inside `folder`.

    The runs are in the order that `note_order` has written. Runs that it does not name follow, by
    name and seed. Raises UserError if there is no run, and for a link to a run's folder.
    """
    if os.path.lexists(folder / "summary.json"):
        return [load(folder)]
    order = folder_values.read_names(folder / _ORDER) if os.path.lexists(folder / _ORDER) else []
    place = {name: number for number, name in enumerate(order)}
    inside = [path.parent for path in folder.glob("*/summary.json")]
    for link in filter(Path.is_symlink, inside):
        raise UserError(f"{str(link)!r} is a link; expected a folder; name the one that it leads to")
    inside.sort(key=lambda path: (place.get(path.name, len(place)), *_name_and_seed(path)))
    if not inside:
        raise UserError(f"{str(folder)!r} has no results: expected a run's folder, or one with runs in it")
    return [load(path) for path in inside]
