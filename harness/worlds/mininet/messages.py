"""Messages between the run's coordinator and the agents of its hosts, beside those of the session.

Times are of the model unless named wall.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.columns.column import Column
from harness.plan.probes.base import HostProbe, Values
from harness.worlds.host_session import HostReport, RateSample
from host_agents.config import NicConfig


class PortChange(NamedTuple):
    """Change of the link at a port of a switch or host from `time_ns` on, in model units.

    `delay_ns` has the latency of the switch at the other end. What is lost at random follows from `seed`.
    """

    time_ns: int
    port: int
    up: bool
    rate_bps: int
    delay_ns: int
    loss: float
    seed: int


# To an agent, in this order: Configure, Verify, Start, any number of the session's Connect and Post, Freeze, Report.


@dataclass(frozen=True)
class Configure:
    """Makes the NIC and opens the socket. Answered by Done."""

    nic: NicConfig
    extensions: list[str]  # Python files to load first
    cc: str
    cc_parameters: dict[str, Any]
    lb: str
    lb_parameters: dict[str, Any]
    interface: str
    rate_bps: int  # of the host's link, as are the next two
    delay_ns: int
    framing_bytes: int
    dilation: int
    rate_interval_ns: int
    probes: list[HostProbe]
    columns: tuple[Column, ...]  # of flows
    capture: bool
    changes: list[PortChange]
    # What the scenario's groups send with: name, protocol, its parameters, load balancer, its parameters.
    senders: list[tuple[str, str, dict[str, Any], str, dict[str, Any]]] = field(default_factory=list)


@dataclass(frozen=True)
class Verify:
    """A frame to each of these hosts, and one from each. Answered by Verified."""

    addresses: list[str]
    timeout_s: float


@dataclass(frozen=True)
class Start:
    """Model time 0 is `epoch_wall_ns` of CLOCK_MONOTONIC."""

    epoch_wall_ns: int


@dataclass(frozen=True)
class Freeze:
    """The NIC is done. What it has sent may still arrive."""


@dataclass(frozen=True)
class Report:
    """Request for a Finished; switches have ended."""


# From an agent, beside the session's Events.


@dataclass(frozen=True)
class Done:
    """The last request has been carried out."""


@dataclass(frozen=True)
class Advanced:
    """Progress of a host, once a second; see `HostSession.advanced_bytes`."""

    bytes: int


@dataclass(frozen=True)
class Verified:
    """`missing`: the addresses of the hosts from which nothing came."""

    missing: list[str]


@dataclass
class Finished:
    """Final report of an agent."""

    session: HostReport
    rates: list[RateSample]  # of connections on which this host sends
    arrivals: list[tuple[int, int, int]]  # (time, connection, bytes on the wire so far)
    readings: dict[str, list[tuple[int, Values]]]  # (time, row) by probe
    nic: dict[str, int]
    frames_sent: int  # into the link, PFC frames never
    frames_unsent: int  # of those, the ones that have not reached its end
    frames_lost: int  # of those, the ones that the link lost when it was down
    frames_lost_at_random: int  # of those, the ones that the link lost while it was up
    frames_received: int  # PFC frames apart
    pauses_received: int
    send_failed: int
    socket_full: int
    bad_icrc: int
    lag_log2_ns: list[int]
    lag_sum_ns: int
    captured: list[tuple[int, bool, bytes]] = field(default_factory=list)
