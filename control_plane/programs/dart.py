"""Forwarding with RED/ECN marking and Dart's in-order flow deflection: `p4src/dart.p4`.

Source: "Dart: Divide and Specialize for Fast Response to Congestion in RDMA-based Datacenter Networks", sections IV-A,
IV-B and VI-A.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, DefaultAction, Entry, Exact, Lpm, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from control_plane.programs.marking import Probability, marking_entries, red

Priority = Annotated[int, Field(ge=0, le=7)]

MARKING_UNIT_BYTES = 64
NEVER_TICKS = (1 << 48) - 1
ANY_GROUP = 0  # number of the group of candidates if all routes share one


@register("dart")
class DartParameters(ProgramParameters):
    """Deflection of short messages (when, where to, in which lanes), and RED thresholds of all lanes.

    The defaults are the corrected Dart with section VI-A's numbers. The printed version has `match`
    "message" and `entry_timeout_ns` 0.
    """

    contains: ClassVar[tuple[str, ...]] = ("ecn",)
    outlast_rto: ClassVar[tuple[str, ...]] = ("entry_timeout_ns",)
    port_counters: ClassVar[tuple[str, ...]] = (
        "deflected",
        "allocated",
        "freed",
        "expired",
        "table_full",
        "tokens_spent",
        "last_lane",
    )

    kmin_bytes: int = Field(22_500, ge=0)  # queue from which on packets are marked with a probability
    kmax_bytes: int = Field(22_500, ge=0)  # queue from which on all packets are marked
    pmax: Probability = 1.0  # probability of a mark just below Kmax
    threshold_bytes: int = Field(15_000, ge=0, lt=1 << 32)  # queue from which on a short message is deflected
    dft_entries: int = Field(8, ge=1, le=16)  # number of entries for each port in a switch's deflection table
    # Time without a match after which an entry may be replaced: the RTO or more, so that none of
    # its packets is in flight. 0: never.
    entry_timeout_ns: int = Field(16_000_000, ge=0)
    # Fields that identify the packets of an entry: message and tokens, or the message alone.
    match: Literal["exact", "message"] = "exact"
    # Ports that a message may be deflected to: all that lead to a switch, or those of its route.
    candidates: Literal["any", "equal-cost"] = "any"
    # Whether packets to the switch's own hosts are deflected, too; they go to other switches.
    deflect_host_ports: bool = False
    lanes: int = Field(2, ge=2)  # priorities that deflected packets step through
    lane_priorities: tuple[Priority, ...] = Field((3, 4, 5, 2, 1), strict=False)  # the classes of lane 0, lane 1, ...
    # "turn": a packet changes to the next lane where it turns from down to up; "none": it keeps its lane.
    lane_rule: Literal["turn", "none"] = "turn"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kmin_bytes > self.kmax_bytes:
            raise ValueError(f"kmin_bytes should not exceed kmax_bytes ({self.kmax_bytes})")
        if len(set(self.lane_priorities)) < len(self.lane_priorities):
            raise ValueError("lane_priorities should differ from each other")
        if self.lanes > len(self.lane_priorities):
            raise ValueError(
                f"lanes should not exceed the priorities that lane_priorities lists ({len(self.lane_priorities)})"
            )
        if self.deflect_host_ports and self.candidates == "equal-cost":
            raise ValueError('deflect_host_ports goes with candidates "any" only')
        return self

    @property
    def equal_priorities(self) -> tuple[int, ...]:
        return self.lane_priorities[: self.lanes]

    @property
    def cycle_free(self) -> bool:
        return self.lane_rule == "turn"

    def entries(self, switch: SwitchView) -> list[Entry]:
        marking = red(self.kmin_bytes, self.kmax_bytes, self.pmax, MARKING_UNIT_BYTES)
        return [
            *forwarding_entries(switch),
            *marking_entries(switch, dict.fromkeys(switch.port_rates_bps, marking)),
            self._settings(switch),
            *self._lanes(switch),
            *_tiers(switch),
            *self._candidates(switch),
        ]

    def _settings(self, switch: SwitchView) -> Entry:
        timeout_ticks = NEVER_TICKS
        if self.entry_timeout_ns > 0:
            timeout_ticks = min(NEVER_TICKS, max(1, round(self.entry_timeout_ns / switch.tick_ns)))
        settings = {
            "threshold_bytes": self.threshold_bytes,
            "entries": self.dft_entries,
            "entry_timeout_ticks": timeout_ticks,
            "tokens_mask": 7 if self.match == "exact" else 0,
        }
        return DefaultAction("iofd", Action("settings", settings))

    def _lanes(self, switch: SwitchView) -> list[Entry]:
        """Return the entries of the lanes.

        With candidates of equal cost packets of the last lane are deflected as well, because such a
        deflection is no turn.
        """
        priorities = self.equal_priorities
        turns = self.lane_rule == "turn"
        entries: list[Entry] = []
        for number, priority in enumerate(priorities):
            is_last = number + 1 == len(priorities)
            following = priorities[number + 1] if turns and not is_last else priority
            lane = {
                "lanes": sum(1 << each for each in priorities),
                "last": int(turns and is_last and self.candidates == "any"),
                "next_dscp": switch.dscp_of("lane_priorities", following),
                "next_priority": following,
            }
            entries.append(TableEntry("lane", {"priority": Exact(priority)}, Action("in_lane", lane)))
        return entries

    def _candidates(self, switch: SwitchView) -> list[Entry]:
        hosts = frozenset(switch.host_ports)
        if self.candidates == "any":
            members = tuple(port for port in sorted(switch.neighbours) if port not in hosts)
            entries = _group(ANY_GROUP, members)
            if self.deflect_host_ports:
                entries += [_normal(ANY_GROUP, port, Action("outside")) for port in sorted(hosts)]
            return [DefaultAction("candidate_group", _candidates_of(ANY_GROUP, members)), *entries]
        entries = []
        groups: dict[tuple[int, ...], int] = {}
        for route in switch.routes:
            members = tuple(port for port in route.ports if port in switch.neighbours and port not in hosts)
            if members not in groups:
                groups[members] = len(groups)
                entries += _group(groups[members], members)
            prefix = Lpm(int(route.prefix.network_address), route.prefix.prefixlen)
            action = _candidates_of(groups[members], members)
            entries.append(TableEntry("candidate_group", {"dst_addr": prefix}, action))
        return entries


def _tiers(switch: SwitchView) -> list[Entry]:
    above = [port for port, there in sorted(switch.neighbours.items()) if (there.tier or 0) > switch.tier]
    return [
        TableEntry(table, {"port": Exact(port)}, Action("NoAction"))
        for table in ("from_above", "to_above")
        for port in above
    ]


def _candidates_of(group: int, members: tuple[int, ...]) -> Action:
    return Action("candidates", {"group_id": group, "size": len(members)})


def _normal(group: int, port: int, action: Action) -> Entry:
    return TableEntry("normal_port", {"group": Exact(group), "port": Exact(port)}, action)


def _group(group: int, members: tuple[int, ...]) -> list[Entry]:
    """Return the entries of a group.

    Members count from 0, and the normal port and the ingress port have an index.
    """
    entries: list[Entry] = []
    for index, port in enumerate(members):
        here = {"group": Exact(group), "port": Exact(port)}
        candidate = {"group": Exact(group), "index": Exact(index)}
        entries += [
            TableEntry("candidate", candidate, Action("take_candidate", {"candidate_port": port})),
            _normal(group, port, Action("in_group", {"index": index})),
            TableEntry("ingress_member", here, Action("came_by", {"index_of_port": index})),
        ]
    return entries
