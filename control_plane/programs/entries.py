"""Entries of the control plane as plain data, without P4Runtime ids and byte strings.

Names are those of the P4 source (`ipv4_lpm`, `forward`), as P4Info's aliases have them; values are plain integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Exact:
    value: int


@dataclass(frozen=True)
class Lpm:
    value: int
    prefix_len: int


@dataclass(frozen=True)
class Ternary:
    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    low: int
    high: int


Match = Exact | Lpm | Ternary | Range


@dataclass(frozen=True)
class Action:
    name: str
    params: Mapping[str, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.params.items())))


@dataclass(frozen=True)
class TableEntry:
    """Table entry.

    If there are several actions, they are the members of a group of the table's action selector,
    each of weight 1.

    `priority` is P4Runtime's: the highest wins, and it is 0 if no match of the table is ternary or
    a range.
    """

    table: str
    match: Mapping[str, Match]
    action: Action | tuple[Action, ...]
    priority: int = 0

    def __hash__(self) -> int:
        return hash((self.table, frozenset(self.match.items()), self.action, self.priority))


@dataclass(frozen=True)
class DefaultAction:
    """The action of a table for packets that match no entry."""

    table: str
    action: Action


@dataclass(frozen=True)
class MulticastGroup:
    """Copies to (egress port, instance), for the packet replication engine. `group_id` is at least 1."""

    group_id: int
    replicas: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class CloneSession:
    """Destinations of the copies of a clone session: (egress port, instance)."""

    session_id: int
    replicas: tuple[tuple[int, int], ...]
    truncate_bytes: int = 0


@dataclass(frozen=True)
class PortGroup:
    """Ports of equal cost, among which the program's load balancer chooses. `group_id` is at least 1.

    It is written into every table of the program that selects ports of a group. Such a table has
    either the match field `group_id` and an action selector, whose members are the ports, or the
    fields `group_id` and `member`, which counts the ports from 0. The action is the one whose
    parameter is `port`.
    """

    group_id: int
    ports: tuple[int, ...]


@dataclass(frozen=True)
class MeterLimit:
    """Rate and burst of a meter's cell, in its bytes or packets; what exceeds them is red, and nothing is yellow."""

    meter: str
    index: int
    rate_per_s: int
    burst: int


@dataclass(frozen=True)
class PathCell:
    """Cell of a state of the packet path, such as `$pktgen`; members that are not given are 0.

    docs/chips.md names the states of TNA and T2NA.
    """

    state: str
    index: int
    members: Mapping[str, int]

    def __hash__(self) -> int:
        return hash((self.state, self.index, frozenset(self.members.items())))


@dataclass(frozen=True)
class EntryFile:
    """Entries in a file (`control_plane.entry_files`)."""

    path: Path


@dataclass(frozen=True)
class BfRuntimeScript:
    """Python program that writes the entries of a switch over BfRuntime.

    The entries are those of pipe number `pipe`, one of the switch's `pipes` that run the program.
    """

    path: Path
    switch: str
    pipe: int = 0
    pipes: tuple[int, ...] = (0,)


Entry = (
    TableEntry
    | DefaultAction
    | PortGroup
    | MulticastGroup
    | CloneSession
    | MeterLimit
    | PathCell
    | EntryFile
    | BfRuntimeScript
)
