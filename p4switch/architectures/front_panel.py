"""Port numbers of a chip's front panel."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice, zip_longest

MAX_PIPES = 4
"""Number of pipes of the largest chips."""
PIPE_PORT_BITS = 7
"""Number of low bits of a port number; the bits above them are the number of the pipe."""
_PIPE_PORTS = 1 << PIPE_PORT_BITS


@dataclass(frozen=True)
class PortGroups:
    """Groups of a pipe's ports in the traffic manager: `count` groups of `ports` ports with `queues` queues each."""

    count: int
    ports: int
    queues: int

    @property
    def group_queues(self) -> int:
        """Number of queues of a group. They are numbered port by port."""
        return self.ports * self.queues


@dataclass(frozen=True)
class FrontPanel:
    """Front panel of a chip: `count` ports of each of its `pipes`, from local number `first` on.

    The first `reserved` ports are not used, because P4Runtime has no port 0. Packets sent to the
    local ports in `recirculation` return to their pipe.
    """

    pipes: int
    first: int
    count: int
    reserved: int = 0
    recirculation: range = range(0)

    def device_ports(self, without: Collection[int] = ()) -> list[int]:
        """Return the ports' numbers in programs, in the order of the front panel, except `without`."""
        places = (divmod(place, self.count) for place in range(self.reserved, self.pipes * self.count))
        ports = (pipe * _PIPE_PORTS + self.first + local for pipe, local in places)
        return [port for port in ports if port not in without]

    def divided_ports(self, count: int, pipes: int, without: Collection[int] = ()) -> list[int]:
        """Return the numbers in programs of `count` ports, divided evenly among the first `pipes` pipes.

        The result is sorted. Two pipes differ by at most one port, unless one of them has too few ports
        outside of `without`. The result has fewer than `count` ports if all pipes together have too
        few.
        """
        ports = self.device_ports(without)
        of_pipes = ([port for port in ports if port >> PIPE_PORT_BITS == pipe] for pipe in range(pipes))
        in_turn = (port for row in zip_longest(*of_pipes) for port in row if port is not None)
        return sorted(islice(in_turn, count))
