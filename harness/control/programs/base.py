"""Base of programs' parameters: typed values by name, and the entries that they become on one switch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from typing import ClassVar

from harness.control.programs.entries import Entry
from host_agents import framing
from p4switch.errors import UserError
from p4switch.registry import Registry
from p4switch.tables import Table
from p4switch.traffic.settings import Trimming
from topologies.collectives import CollectiveGroup
from topologies.groups import Group
from topologies.model import Topology
from topologies.routing import Route
from topologies.trees import Tree, tree

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
    """Knowledge of a program about the switch it runs on.

    `port_rates_bps` has every port that is in use. `cell_bytes` is what a unit of queue depth stands for: the traffic
    manager's cell, or on BMv2, which counts packets, the bytes of a full packet. `tick_ns` is the model time of one
    tick of the switch's clock. `frame_overhead_bytes` is what a frame costs on a link beyond its own bytes, or,
    negative, what does not count, and `port_extra_bytes` what the links of some ports charge in addition.
    `base_rtt_ns` is the largest base RTT of the network, `port_base_rtts_ns` that of the hosts that can fill a port's
    link, `packet_bytes` a full data packet as it leaves a host. `seed` is the experiment's: another seed is another
    choice of ECMP paths. `tables` are those of the compiled program, by the names that entries may use. `network` is
    for what has to fit on several switches, like `tree` and the multicast `groups` that are to be forwarded to and
    the `collectives`, groups whose operations switches combine. `departures` are the prefixes of the hosts whose
    packets take a detour from the switch's group of switches, where a topology has those.
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
    tables: frozenset[str] = frozenset()
    network: Topology | None = None
    groups: Sequence[Group] = ()
    collectives: Sequence[CollectiveGroup] = ()
    port_base_rtts_ns: Mapping[int, int] = field(default_factory=dict)
    departures: Sequence[IPv4Network] = ()
    port_extra_bytes: Mapping[int, int] = field(default_factory=dict)

    def bdp_bytes(self, port: int) -> float:
        """Return the rate of a port's link times the base RTT of those who can fill it."""
        return self.port_rates_bps[port] * self.port_base_rtts_ns.get(port, self.base_rtt_ns) / 8e9

    def overhead_bytes(self, port: int) -> int:
        """Return the bytes that a port's link charges beyond a frame's own; may be negative."""
        return self.frame_overhead_bytes + self.port_extra_bytes.get(port, 0)

    def link_bytes(self, frame_bytes: int, port: int) -> int:
        """Return the bytes that a port's link charges for a frame of `frame_bytes`, Ethernet to ICRC."""
        return framing.link_bytes(frame_bytes, self.overhead_bytes(port))

    @property
    def host_ports(self) -> tuple[int, ...]:
        """The ports towards hosts."""
        return self.ports_to_tier(None)

    def ports_to_tier(self, tier: int | None) -> tuple[int, ...]:
        """Return the ports towards switches of a tier, in increasing order; None: towards hosts."""
        return tuple(port for port, there in sorted(self.neighbours.items()) if there.tier == tier)

    def dscp_of(self, key: str, priority: int) -> int:
        """Return the lowest DSCP that means the priority of this key.

        Raises UserError if none does.
        """
        for dscp, told in sorted(self.priority_of_dscp.items()):
            if told == priority:
                return dscp
        raise UserError(f"{key}: no DSCP has priority {priority} in this network; expected one")

    def tree(self, root: str, members: Iterable[str] | None = None, choice: int = 0) -> Tree:
        """Return `topologies.trees.tree`, the same on each switch; `tree.ports(view.name)` are this switch's."""
        if self.network is None:
            raise ValueError("a view without a network has no trees")
        return tree(self.network, root, members, choice)

    def group_ports(self, group: Group) -> tuple[int, ...]:
        """Return the ports to which this switch sends a group's packets; empty if it is not on the tree."""
        if self.network is None:
            raise ValueError("a view without a network has no trees")
        return group.tree(self.network).down.get(self.name, ())


class ProgramParameters(Table, ABC):
    """Parameters of a program; a subclass adds its own, with units in their names, and says what they become."""

    contains: ClassVar[tuple[str, ...]] = ()  # programs whose work this one does, too: it can stand in for them
    agrees: ClassVar[tuple[str, ...]] = ()  # parameters that the protocol must have, with the same values
    telemetry: ClassVar[bool] = False  # it appends records to the INT shim of data packets
    limits_queues: ClassVar[bool] = False  # it drops or trims what finds a port's queue too long, whatever the buffer
    outlast_rto: ClassVar[tuple[str, ...]] = ()  # parameters in ns, 0 for never: at least the retransmission time-out
    # Counters by port: of the ports that the network uses they are read at the end of a run, and saved.
    port_counters: ClassVar[tuple[str, ...]] = ()
    architectures: ClassVar[tuple[str, ...]] = ("v1model",)  # that the program can be compiled for
    zero_when_done: ClassVar[tuple[str, ...]] = ()  # registers: what flows add there, they take away when they end

    def defines(self) -> dict[str, str]:
        """Return the macros that the program is compiled with; the scenario may add others."""
        return {}

    @property
    def common_period_ns(self) -> int:
        """Hosts and switches have to agree on the time modulo this; 0: they need not."""
        return 0

    @property
    def last_hop_dscp(self) -> int:
        """The DSCP of packets that were trimmed on the port to their receiver; -1: they are not told apart."""
        return -1

    @property
    def equal_priorities(self) -> tuple[int, ...]:
        """The priorities that packets of one flow change between, that of data first: lanes. None: they keep theirs.

        They are lossless together, and a port sends of them the packet first that was enqueued first.
        """
        return ()

    @property
    def free_of_circles(self) -> bool:
        """True if the lanes have to keep packets, deflected or not, from waiting for each other in a circle."""
        return False

    def check_link_rate(self, rate_bps: int) -> None:
        """Raise UserError, before a run, for a link rate on which the program cannot work."""
        return

    def trimming_ports(self, switch: SwitchView) -> dict[int, Trimming]:
        """Return what the traffic manager of this switch has to trim, by port."""
        return {}

    @abstractmethod
    def entries(self, switch: SwitchView) -> list[Entry]:
        """Return the entries for this switch.

        Raises UserError for what cannot be expressed.
        """


REGISTRY: Registry[type[ProgramParameters]] = Registry(
    "program", group="p4cc.programs", package="harness.control.programs", base=ProgramParameters
)
register = REGISTRY.register  # with the name of the P4 file, without .p4
names = REGISTRY.names
