"""Options of a run's execution, beside its scenario."""

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
    """Selection of what is traced: the packets of one flow, all of them or some, each from its start to its end.

    Parameters
    ----------
    flow
        Its number, from 0.
    packets
        At most so many: the first. None: all.
    from_ns, until_ns
        Those that the host sends at these times of the model, the last one excluded. None: to the end.
    pipelines
        Also what the switches' pipelines do with them, which is most of a trace.
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
        """`until_ns`, or what no run reaches."""
        return _LAST_NS if self.until_ns is None else self.until_ns

    def empty(self, folder: Path, end_ns: int) -> str | None:
        """Return a note on a run's empty trace, which ended at `end_ns`; None: it has packets."""
        if (folder / TRACE_LINES).stat().st_size:
            return None
        span = ""
        if self.from_ns or self.until_ns is not None:
            until = "the end" if self.until_ns is None else f"{self.until_ns:,} ns"
            span = f" from {self.from_ns:,} ns until {until}"
        sent = f"no packet of flow {self.flow} was sent{span}; the run ended at {end_ns:,} ns"
        return f"{TRACE_TEXT} and {TRACE_LINES} are empty: {sent}"


@dataclass(frozen=True)
class How:
    """Options of a run's execution, beside its scenario."""

    world: str = "virtual"
    compiler: str = "builtin"
    switch: str | None = None  # Mininet's
    dilation: int | None = None  # None: what suits the machine
    pcap: bool = False
    trace: Tracing | None = None
    coverage: bool = False

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> How:
        """Return the options that `asdict` has written."""
        trace = fields.get("trace")
        return cls(**{**fields, "trace": None if trace is None else Tracing(**trace)})

    def is_served_by(self, recorded: object, folder: Path) -> bool:
        """Return whether a run made as its provenance says has all that is wanted here in its folder."""
        if not isinstance(recorded, Mapping):
            return False
        files = {"pcap": ["hosts.pcapng"], "trace": [TRACE_TEXT, TRACE_LINES], "coverage": ["coverage.json"]}
        for key, wanted in asdict(self).items():
            if key in files and (wanted is None or wanted is False):
                continue  # what it has besides does no harm
            if recorded.get(key) != wanted or not all((folder / name).is_file() for name in files.get(key, ())):
                return False
        return True
