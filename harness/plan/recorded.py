"""Measurements of a run: the probes and columns of the scenario that apply to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.columns.flows import COUNTS_PREFIX, column_of, in_order, is_of_hosts
from harness.plan import probes
from harness.plan.probes import CounterProbe, Probe, ProgramProbe
from harness.plan.probes.reaction_point import expect_number
from harness.plan.run import Run
from p4switch.errors import UserError, suggest


def with_probes(runs: Sequence[Run]) -> list[Run]:
    """Return each run with the probes that it can read.

    Raises UserError for a probe that no run can read.
    """
    missing: dict[str, UserError] = {}
    names: set[str] = set()
    chosen = []
    for run in runs:
        possible = []
        for probe in _wanted(run):
            try:
                probe.check(run)
            except UserError as error:
                missing.setdefault(probe.name, error)
            else:
                names.add(probe.name)
                possible.append(probe)
        chosen.append(replace(run, probes=tuple(possible)))
    for name, mistake in missing.items():
        if name not in names:
            raise UserError(f"record.probes: {name!r}: {mistake}")
    return chosen


def with_columns(runs: Sequence[Run]) -> list[Run]:
    """Return each run with the columns that it can fill.

    Raises UserError for a column that no run can fill.
    """
    chosen = []
    missing: dict[str, UserError] = {}
    names: set[str] = set()
    for run in runs:
        possible: list[str] = []
        taken = dict.fromkeys(in_order(), "")
        for name in dict.fromkeys(run.scenario.record.columns):
            other = taken.setdefault(column_of(name), name)
            if other != name:
                holder = f"what {other!r} is put into" if other else "one that `flows` has anyway"
                raise UserError(f"record.columns: {name!r} would be the column {column_of(name)!r}, {holder}")
            try:
                if name.startswith(COUNTS_PREFIX):
                    _expect_count(name)
                elif is_of_hosts(name):
                    expect_number(run, name)
            except UserError as error:
                missing.setdefault(name, error)
            else:
                names.add(name)
                possible.append(name)
        chosen.append(replace(run, columns=tuple(possible)) if possible else run)
    for name, mistake in missing.items():
        if name not in names:
            raise UserError(f"record.columns: {mistake}")
    return chosen


def _expect_count(column: str) -> None:
    """Raise UserError if queue pairs keep no such count."""
    # Imported here, because the compiled hosts have to be in place before.
    from host_agents.messages import QP_COUNTS

    name = column.removeprefix(COUNTS_PREFIX)
    if name not in QP_COUNTS:
        raise UserError(f"no queue pair counts {name!r}; {suggest(name, QP_COUNTS)}")


def _wanted(run: Run) -> list[Probe]:
    """Return the scenario's probes, and for programs from outside a probe of all state at the end.

    The additional probe is omitted if the scenario has one of its kind.
    """
    wanted = probes.parse(run.scenario.record.probes)
    from_outside = any(each.program.outside for each in run.switch_programs)
    if from_outside and not any(isinstance(probe, ProgramProbe) for probe in wanted):
        wanted.append(ProgramProbe(kind="program"))
    taken = {probe.name for probe in wanted}
    ports: dict[str, set[int]] = {}  # ports at which a counter counts
    for each in run.switch_programs:
        for name in each.parameters.port_counters:
            ports.setdefault(name, set()).update(*(run.topology.ports[switch] for switch in each.switches))
    wanted += [
        CounterProbe(kind="counter", reads=name, name=name, indices=sorted(indices))
        for name, indices in ports.items()
        if name not in taken
    ]
    return wanted
