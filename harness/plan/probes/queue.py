"""Probe of the traffic manager: queue depths and packet counts at ports of switches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from harness.columns.traffic_manager import PORT, PRIORITY
from harness.plan.probes.base import Index, Probe, register
from p4switch.errors import UserError, suggest

if TYPE_CHECKING:
    from harness.plan.run import Run


@register("queue")
class QueueProbe(Probe):
    """Probe of ports.

    It reads the ports with number `port` of switches that match the pattern `switches`, if they
    lead to nodes that match the pattern `leads_to`. With a `priority` it reads only that queue.
    """

    reads: str = "depth_bytes"  # name of a count or a depth; counts and `max_` are since the start
    switches: str = "*"  # a pattern of names
    port: Index | None = None  # number of a port; none: all ports
    leads_to: str = "*"  # a pattern of the names of the nodes at the links' other ends
    priority: Annotated[int, Field(ge=0, le=7)] | None = None  # this class only; none: the whole port

    @property
    def places(self) -> tuple[str, ...]:
        return ("switch", "port", "leads_to")

    def values(self, run: Run) -> tuple[str, ...]:
        return (self.reads,)

    def covers(self, switch: str, port: int, leads_to: str) -> bool:
        return fnmatchcase(switch, self.switches) and self.port in (None, port) and fnmatchcase(leads_to, self.leads_to)

    def ports(self, run: Run) -> list[tuple[str, int, str]]:
        """Return (switch, port, node at the other end) of all selected ports."""
        topology = run.topology
        return [
            (switch.name, port, there.node)
            for switch in topology.switches
            for port, there in topology.ports[switch.name].items()
            if self.covers(switch.name, port, there.node)
        ]

    def check(self, run: Run) -> None:
        known = (PORT if self.priority is None else PRIORITY).names
        if self.reads not in known:
            whose = "a port" if self.priority is None else "a queue"
            raise UserError(f"reads: {whose} has no {self.reads!r}; {suggest(self.reads, known)}")
        if not self.ports(run):
            raise UserError(f"topology {run.topology.name!r} has no such port")
