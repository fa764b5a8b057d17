"""Messages between the run's coordinator and its agents, besides those of the session.

Times are of the model unless their name has `wall`.
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

    `delay_ns` includes the latency of the switch at the other end. Random losses follow from
    `seed`.
    """

    time_ns: int
    port: int
    up: bool
    rate_bps: int
    delay_ns: int
    loss: float
    seed: int


# Messages to an agent, in this order: Configure, Verify, Start, any number of the session's Connect
# and Post, Freeze, Report.


@dataclass(frozen=True)
class Configure:
    """Request to make the NIC and open the socket; the answer is Done."""

    nic: NicConfig
    extensions: list[str]  # Python files to load first
    cc: str
    cc_parameters: dict[str, Any]
    lb: str
    lb_parameters: dict[str, Any]
    interface: str
    rate_bps: int  # rate of the host's link; the next two are properties of it, too
    delay_ns: int
    framing_bytes: int
    dilation: int
    rate_interval_ns: int
    probes: list[HostProbe]
    columns: tuple[Column, ...]  # columns of flows
    capture: bool
    changes: list[PortChange]
    # Protocols of the scenario's groups: name, protocol, its parameters, load balancer, its
    # parameters.
    senders: list[tuple[str, str, dict[str, Any], str, dict[str, Any]]] = field(default_factory=list)


@dataclass(frozen=True)
class Verify:
    """Request to send a frame to each of these hosts and to expect one from each; answered by Verified."""

    addresses: list[str]
    timeout_s: float


@dataclass(frozen=True)
class Start:
    """Request to start: model time 0 is `epoch_wall_ns` of CLOCK_MONOTONIC."""

    epoch_wall_ns: int


@dataclass(frozen=True)
class Freeze:
    """Request to silence the NIC; frames that it has sent may still arrive."""


@dataclass(frozen=True)
class Report:
    """Request for a Finished, after the switches have ended."""


# Messages from an agent, besides the session's events.


@dataclass(frozen=True)
class Done:
    """Answer that the last request has been carried out."""


@dataclass(frozen=True)
class Advanced:
    """Progress of a host, once a second; see `HostSession.advanced_bytes`."""

    bytes: int


@dataclass(frozen=True)
class Verified:
    """Answer with the addresses of `missing` hosts, from which no frame arrived."""

    missing: list[str]


@dataclass
class Finished:
    """Final report of an agent."""

    session: HostReport
    rates: list[RateSample]  # samples of connections on which this host sends
    arrivals: list[tuple[int, int, int]]  # (time, connection, bytes on the wire so far)
    readings: dict[str, list[tuple[int, Values]]]  # (time, row) by probe
    nic: dict[str, int]
    frames_sent: int  # frames put on the link, without PFC frames
    frames_unsent: int  # frames that have not reached the link's end
    frames_lost: int  # frames that the link lost while it was down
    frames_lost_at_random: int  # frames that the link lost at random while it was up
    frames_received: int  # without PFC frames
    pauses_received: int
    send_failed: int
    socket_full: int
    bad_icrc: int
    lag_log2_ns: list[int]
    lag_sum_ns: int
    captured: list[tuple[int, bool, bytes]] = field(default_factory=list)
