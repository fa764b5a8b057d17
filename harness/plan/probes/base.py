"""Base of probes: measurements at points in time, each of which adds rows to a table.

A kind of probe is a file in this package. Its class declares the keys of its table in a scenario
and the columns of its result, and reads one node: a switch through P4Runtime (`SwitchProbe`), or a
host through its NIC (`HostProbe`). The world decides when and where it reads. Queues belong to the
world, which reads the values of a `PortProbe` itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import pandas as pd
from pydantic import BeforeValidator, Field

from harness.columns import tables
from harness.plan.probe_settings import ProbeSettings
from p4switch.errors import UserError, validate
from p4switch.numbers import integral
from p4switch.registry import Registry

if TYPE_CHECKING:
    from harness.plan.run import Run
    from harness.plan.switch_programs import Pipe
    from host_agents.cc.base import ReactionPoint
    from p4switch.p4runtime.client import Client

Index = Annotated[int, BeforeValidator(integral), Field(ge=0)]
_UNITS = {"ns": "ns", "bps": "bit/s", "bytes": "bytes", "packets": "packets", "cells": "cells", "ticks": "ticks"}
Values = tuple[int | float | str, ...]


class Probe(ProbeSettings):
    """Additional table of a run, and the way to read its values."""

    keeps_zeros: ClassVar[bool] = False  # False: rows of a place whose values were always 0 are left out

    @abstractmethod
    def check(self, run: Run) -> None:
        """Raise UserError if the run has nothing of this kind to read."""

    @property
    @abstractmethod
    def places(self) -> tuple[str, ...]:
        """Columns that name the place of a value, after `time_ns`."""

    @abstractmethod
    def values(self, run: Run) -> tuple[str, ...]:
        """Return the columns of the values."""

    def unit_of(self, column: str) -> str | None:
        """Return the unit of a column of values; None if it is unknown."""
        return self.unit or _UNITS.get(column.rpartition("_")[2])

    def table(self, run: Run, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
        """Return the table of the readings: (time_ns, place..., value...)."""
        values = list(self.values(run))
        table = pd.DataFrame(rows, columns=["time_ns", *self.places, *values])
        if self.keeps_zeros or table.empty:
            return table
        used = table[values].ne(0).any(axis=1).groupby([table[place] for place in self.places]).transform("any")
        return table[used].reset_index(drop=True)


class SwitchProbe(Probe):
    """Probe that reads a switch through P4Runtime.

    `switches` is a pattern of switches' names in the form of file patterns.
    """

    switches: str = "*"  # a pattern of names

    def covers(self, switch: str) -> bool:
        return fnmatchcase(switch, self.switches)

    @abstractmethod
    def read(self, run: Run, pipe: Pipe, client: Client) -> Iterator[Values]:
        """Yield the rows of one pipe of a switch, without the columns for time and switch.

        Raises UserError if the switch refuses.
        """


class ProbedHost(Protocol):
    """Interface of a host for its probes."""

    def reaction_points(self) -> Iterator[tuple[int, ReactionPoint]]:
        """Yield the reaction points of the connections on which the host is sending, by number."""


class HostProbe(Probe):
    """Probe that reads a host through its NIC.

    `hosts` is a pattern of hosts' names in the form of file patterns. The probe is sent to the
    process of the host.
    """

    hosts: str = "*"  # a pattern of names

    def covers(self, host: str) -> bool:
        return fnmatchcase(host, self.hosts)

    @abstractmethod
    def read(self, host: ProbedHost) -> Iterator[Values]:
        """Yield the rows of one host, without the columns for time and host."""


REGISTRY: Registry[type[Probe]] = Registry(
    "probe kind", group="p4cc.probes", package="harness.plan.probes", base=Probe
)
register = REGISTRY.register


def parse(settings: Sequence[Mapping[str, Any]]) -> list[Probe]:
    """Return the probes of a scenario before any check against a run.

    Raises UserError for an unknown kind, an invalid value or a name that is taken.
    """
    probes: dict[str, Probe] = {}
    for i, values in enumerate(settings):
        where = f"record.probes.{i}"
        if not isinstance(kind := values.get("kind"), str):
            raise UserError(f"{where}.kind: missing; expected one of {', '.join(REGISTRY.names())}")
        probe = validate(REGISTRY.find(kind), values, where)
        if probe.name in tables.NAMES or probe.name in probes:
            raise UserError(f"{where}.name: there is a table {probe.name!r} already; expected another name")
        probes[probe.name] = probe
    return list(probes.values())


def probes_of(run: Run) -> tuple[Probe, ...]:
    """Return the probes of a run, as instances of their kinds."""
    return tuple(probe for probe in run.probes if isinstance(probe, Probe))
