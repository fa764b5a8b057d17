"""Base of programs' parameters: typed values by name, and the table entries for one switch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from typing import ClassVar

from control_plane.programs.entries import Entry
from host_agents import framing
from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.front_panel import FrontPanel
from p4switch.errors import UserError
from p4switch.registry import Registry
from p4switch.tables import Table
from p4switch.traffic.settings import Trimming
from topologies.collectives import CollectiveGroup
from topologies.groups import Group
from topologies.model import Topology
from topologies.routing import Route
from topologies.trees import Tree, tree

NO_DSCP = -1  # stands for no DSCP
DSCP_OF_PRIORITY = 8  # DSCP = 8 x priority, unless a scenario says otherwise


@dataclass(frozen=True)
class PortView:
    """Far end of a port: a host, with its address, or a switch, with its tier (0 next to the hosts)."""

    node: str
    rate_bps: int
    delay_ns: int
    tier: int | None = None
    address: IPv4Address | None = None


@dataclass(frozen=True)
class SwitchView:
    """Properties of a switch and its network, for the program that runs on it.

    `port_rates_bps` has every port that is in use. `cell_bytes` is the size of a unit of queue
    depth: the traffic manager's cell, or on BMv2, which counts packets, the bytes of a full packet.
    `tick_ns` is the model time of one tick of the switch's clock. `frame_overhead_bytes` is the
    number of bytes that a link charges for a frame beyond its own; it is negative if some bytes are
    not charged. `port_extra_bytes` has additional bytes of the links of some ports. `base_rtt_ns`
    is the largest base RTT of the network, and `port_base_rtts_ns` that of the hosts that can fill
    a port's link. `packet_bytes` is the length of a full data packet as it leaves a host. `seed` is
    the experiment's; it determines the ECMP paths.

    `architecture` is that of the compiled program, and `tables` are its tables, by the names that
    entries may use. `network` serves entries that have to agree among switches, such as those of
    `tree`. `groups` are the multicast groups, and `collectives` are the groups whose operations
    switches combine. `loopback_ports` lead back to the switch and are none of the other ports. If
    the switch is a chip with several pipes, the entries are those of pipe number `pipe`, and
    `program_pipes` run the same program.

    Two values are for topologies with groups of switches. The keys of `departures` are prefixes of
    hosts whose packets may start a detour in the switch's group; the value tells whether these
    packets enter the network at this switch. `exits` are the ports to other groups.
    """

    device_id: int
    port_rates_bps: Mapping[int, int]
    routes: Sequence[Route]
    cell_bytes: int = 80
    tick_ns: Fraction = Fraction(1)
    frame_overhead_bytes: int = 0
    seed: int = 1
    base_rtt_ns: int = 12_000
    packet_bytes: int = 1_058
    priority_of_dscp: Mapping[int, int] = field(
        default_factory=lambda: {DSCP_OF_PRIORITY * priority: priority for priority in range(8)}
    )
    name: str = ""
    tier: int = 0
    neighbours: Mapping[int, PortView] = field(default_factory=dict)  # by port
    architecture: str = "v1model"
    tables: frozenset[str] = frozenset()
    network: Topology | None = None
    groups: Sequence[Group] = ()
    collectives: Sequence[CollectiveGroup] = ()
    port_base_rtts_ns: Mapping[int, int] = field(default_factory=dict)
    departures: Mapping[IPv4Network, bool] = field(default_factory=dict)
    exits: frozenset[int] = frozenset()
    port_extra_bytes: Mapping[int, int] = field(default_factory=dict)
    loopback_ports: Sequence[int] = ()
    pipe: int = 0
    program_pipes: Sequence[int] = (0,)

    def bdp_bytes(self, port: int) -> float:
        """Return the rate of a port's link times the base RTT of the hosts that can fill it."""
        return self.port_rates_bps[port] * self.port_base_rtts_ns.get(port, self.base_rtt_ns) / 8e9

    def overhead_bytes(self, port: int) -> int:
        """Return the bytes that a port's link charges beyond a frame's own; may be negative."""
        return self.frame_overhead_bytes + self.port_extra_bytes.get(port, 0)

    def overhead_word(self, port: int) -> int:
        """Return `overhead_bytes` as a parameter of 32 bits, in two's complement."""
        return self.overhead_bytes(port) & 0xFFFF_FFFF

    def link_bytes(self, frame_bytes: int, port: int) -> int:
        """Return the bytes that a port's link charges for a frame of `frame_bytes`, Ethernet to ICRC."""
        return framing.link_bytes(frame_bytes, self.overhead_bytes(port))

    @property
    def front_panel(self) -> FrontPanel | None:
        """Front panel of the chip that the program is for, or None for an architecture without one."""
        return ARCHITECTURES.find(self.architecture).front_panel

    @property
    def host_ports(self) -> tuple[int, ...]:
        """The ports towards hosts."""
        return self.ports_to_tier(None)

    def ports_to_tier(self, tier: int | None) -> tuple[int, ...]:
        """Return the ports towards switches of a tier, in increasing order; None selects hosts."""
        return tuple(port for port, there in sorted(self.neighbours.items()) if there.tier == tier)

    def dscp_of(self, key: str, priority: int) -> int:
        """Return the lowest DSCP that means the priority of this key.

        Raises UserError if none does.
        """
        for dscp, meant in sorted(self.priority_of_dscp.items()):
            if meant == priority:
                return dscp
        raise UserError(f"{key}: no DSCP has priority {priority} in this network; expected one")

    def tree(self, root: str, members: Iterable[str] | None = None, choice: int = 0) -> Tree:
        """Return `topologies.trees.tree`, which is the same on each switch.

        `tree.ports(view.name)` are the ports of this switch.
        """
        if self.network is None:
            raise ValueError("a view without a network has no trees")
        return tree(self.network, root, members, choice)

    def group_ports(self, group: Group) -> tuple[int, ...]:
        """Return the ports to which this switch sends a group's packets; empty if it is not on the tree."""
        if self.network is None:
            raise ValueError("a view without a network has no trees")
        return group.tree(self.network).down.get(self.name, ())


class ProgramParameters(Table, ABC):
    """Parameters of a program.

    A subclass adds its own parameters, with units in their names, and their table entries.
    """

    contains: ClassVar[tuple[str, ...]] = ()  # programs that this one can replace, because it does their work, too
    agrees: ClassVar[tuple[str, ...]] = ()  # parameters that the protocol must have, with the same values
    telemetry: ClassVar[bool] = False  # the program appends records to the INT shim of data packets
    # The program drops or trims packets when a port's queue is too long, regardless of the shared buffer.
    limits_queues: ClassVar[bool] = False
    # Parameters in ns that must be at least the retransmission time-out, or 0 for never.
    outlast_rto: ClassVar[tuple[str, ...]] = ()
    # Counters by port. Their cells for ports in use are read at the end of a run and saved.
    port_counters: ClassVar[tuple[str, ...]] = ()
    architectures: ClassVar[tuple[str, ...]] = ("v1model",)  # architectures that the program can be compiled for
    # Registers to which flows add when they start, and from which they subtract when they end.
    zero_when_done: ClassVar[tuple[str, ...]] = ()

    def defines(self) -> dict[str, str]:
        """Return the macros that the program is compiled with; the scenario may add others."""
        return {}

    @property
    def common_period_ns(self) -> int:
        """Period to which the clocks of hosts and switches have to agree; 0: they need not agree."""
        return 0

    @property
    def last_hop_dscp(self) -> int:
        """DSCP of packets that were trimmed on the port to their receiver; -1: no DSCP of their own."""
        return NO_DSCP

    @property
    def equal_priorities(self) -> tuple[int, ...]:
        """Priorities (lanes) between which packets of a flow change, starting with that of data.

        It is empty if packets keep their priority. Either all of these priorities are lossless or
        none, and a port sends their packets in the order of enqueueing.
        """
        return ()

    @property
    def cycle_free(self) -> bool:
        """True if the lanes have to prevent packets, deflected or not, from waiting for each other in a cycle."""
        return False

    def check_link_rate(self, rate_bps: int) -> None:
        """Raise UserError, before a run, for a link rate on which the program cannot work."""
        return

    def trimming_ports(self, switch: SwitchView) -> dict[int, Trimming]:
        """Return the packets that the traffic manager of this switch has to trim, by port."""
        return {}

    @abstractmethod
    def entries(self, switch: SwitchView) -> Iterable[Entry]:
        """Return the entries for this switch, or yield them one by one.

        Raises UserError for what cannot be expressed.
        """


REGISTRY: Registry[type[ProgramParameters]] = Registry(
    "program", group="p4cc.programs", package="control_plane.programs", base=ProgramParameters
)
register = REGISTRY.register  # by the name of the P4 file without .p4
names = REGISTRY.names
