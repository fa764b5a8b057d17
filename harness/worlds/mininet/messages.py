"""What the run's coordinator and the agents of its hosts tell each other. Times are of the model unless named wall."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.measure.flow_record import Sent
from host_agents.config import NicConfig


class PortChange(NamedTuple):
    """From `time_ns` on the link at a port of a switch or host is up or not, and has this rate. In model units."""

    time_ns: int
    port: int
    up: bool
    rate_bps: int


# To an agent, in this order: Configure, Verify, Start, any number of Connect and Post, Freeze, Report.


@dataclass(frozen=True)
class Configure:
    """Makes the NIC and opens the socket. Answered by Done."""

    nic: NicConfig
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
    capture: bool
    changes: list[PortChange]


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
class Connect:
    """Opens this host's end of a connection at `time_ns`; both ends have the connection's number."""

    number: int
    peer_address: str
    time_ns: int


@dataclass(frozen=True)
class Post:
    """A message on a connection, from `start_ns`, and no longer than until `stop_ns` if that is given."""

    number: int
    flow: int
    size_bytes: int
    start_ns: int
    stop_ns: int | None


@dataclass(frozen=True)
class Freeze:
    """The NIC is done. What it has sent may still arrive."""


@dataclass(frozen=True)
class Report:
    """Asks for a Finished; switches have ended."""


# From an agent.


@dataclass(frozen=True)
class Done:
    """The last request has been carried out."""


@dataclass(frozen=True)
class Verified:
    """`missing`: the addresses of the hosts from which nothing came."""

    missing: list[str]


@dataclass(frozen=True)
class Delivered:
    """The message number `sequence` of a connection is here."""

    number: int
    sequence: int
    time_ns: int
    marked: int  # packets of the connection so far


@dataclass(frozen=True)
class Completed:
    """A flow of this host is done."""

    flow: int
    sent: Sent


class RateSample(NamedTuple):
    """What a connection's reaction point allows; `rtt_ns`: the latest since the sample before, -1: none."""

    time_ns: int
    number: int
    rate_bps: float
    window_bytes: float
    rtt_ns: int


@dataclass
class Finished:
    """All that the agent knows, at the end."""

    unfinished: dict[int, Sent]  # by flow
    marked: dict[int, int]  # by connection that ends here
    delivered_bytes: dict[int, int]  # on the wire, likewise
    rates: list[RateSample]  # of connections on which this host sends
    arrivals: list[tuple[int, int, int]]  # (time, connection, bytes on the wire so far)
    nic: dict[str, int]
    frames_sent: int  # into the link, PFC frames never
    frames_unsent: int  # of those, the ones that have not reached its end
    frames_lost: int  # of those, the ones that the link lost when it was down
    frames_received: int  # PFC frames apart
    pauses_received: int
    send_failed: int
    socket_full: int
    bad_icrc: int
    lag_log2_ns: list[int]
    lag_max_ns: int
    captured: list[tuple[int, bool, bytes]] = field(default_factory=list)
