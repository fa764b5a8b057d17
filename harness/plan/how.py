"""Options of a run's execution, which are not part of its scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from p4switch.errors import UserError

TRACE_TEXT = "trace.txt"
TRACE_LINES = "trace.jsonl"
_LAST_NS = (1 << 63) - 1


@dataclass(frozen=True)
class Tracing:
    """Selection of packets to trace: all or some of one flow, each from its start to its end.

    Parameters
    ----------
    flow
        Its number, from 0.
    packets
        Largest number of packets; the first ones are taken. None: all.
    from_ns, until_ns
        The range of model time in which the host sends the packets; the end is exclusive. None: to
        the end of the run.
    pipelines
        Whether the trace includes the actions of the switches' pipelines, which are most of it.
    """

    flow: int
    packets: int | None = None
    from_ns: int = 0
    until_ns: int | None = None
    pipelines: bool = True

    def __post_init__(self) -> None:
        if self.packets is not None and self.packets < 1:
            raise UserError(f"trace: {self.packets} packets; expected 1 or more")
        if not 0 <= self.from_ns < self.last_ns <= _LAST_NS:
            raise UserError(f"trace: from {self.from_ns} ns until {self.until_ns} ns; expected a span of time")

    @property
    def last_ns(self) -> int:
        """`until_ns`, or a time that no run reaches."""
        return _LAST_NS if self.until_ns is None else self.until_ns


@dataclass(frozen=True)
class How:
    """Options of a run's execution, which are not part of its scenario."""

    world: str = "virtual"
    compiler: str = "builtin"
    switch: str | None = None  # kind of switch in Mininet
    dilation: int | None = None  # None: a dilation that suits the machine
    pcap: bool = False
    trace: Tracing | None = None
    coverage: bool = False

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> How:
        """Return the options from a dict that `asdict` made of them."""
        trace = fields.get("trace")
        return cls(**{**fields, "trace": None if trace is None else Tracing(**trace)})

    def is_served_by(self, recorded: object, folder: Path) -> bool:
        """Return whether the folder of a run with this provenance has everything that these options ask for."""
        if not isinstance(recorded, Mapping):
            return False
        files = {"pcap": ["hosts.pcapng"], "trace": [TRACE_TEXT, TRACE_LINES], "coverage": ["coverage.json"]}
        for key, wanted in asdict(self).items():
            if key in files and (wanted is None or wanted is False):
                continue  # additional contents do no harm
            if recorded.get(key) != wanted or not all((folder / name).is_file() for name in files.get(key, ())):
                return False
        return True
