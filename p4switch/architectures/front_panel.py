"""Port numbers of a chip's front panel."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil

MAX_PIPES = 4
"""Pipes of the largest chips."""
PIPE_PORT_BITS = 7
"""Bits of a port's number below that of its pipe."""
_PIPE_PORTS = 1 << PIPE_PORT_BITS


@dataclass(frozen=True)
class FrontPanel:
    """Front panel of a chip: `count` ports of each of its `pipes`, from local number `first` on.

    The first `reserved` ports are not used, because P4Runtime has no port 0. Local ports in `recirculation` lead back
    to their pipe.
    """

    pipes: int
    first: int
    count: int
    reserved: int = 0
    recirculation: range = range(0)

    def device_ports(self, without: Collection[int] = ()) -> list[int]:
        """Return the program's numbers of the ports, in the order of the front panel, but for those in `without`."""
        places = (divmod(place, self.count) for place in range(self.reserved, self.pipes * self.count))
        ports = (pipe * _PIPE_PORTS + self.first + local for pipe, local in places)
        return [port for port in ports if port not in without]

    def divided_ports(self, count: int, pipes: int, without: Collection[int] = ()) -> list[int]:
        """Return the program's numbers of `count` ports that are divided among the first `pipes` pipes.

        The first ports are in pipe 0, and each pipe has the same number of them, but for the last. Pipes all of whose
        ports are in `without` have none. There are fewer numbers if the pipes have fewer ports.
        """
        free = [port for port in self.device_ports(without) if port >> PIPE_PORT_BITS < pipes]
        places = dict.fromkeys(port >> PIPE_PORT_BITS for port in free)
        share = ceil(count / max(1, len(places)))
        taken = [[port for port in free if port >> PIPE_PORT_BITS == pipe][:share] for pipe in places]
        return [port for ports in taken for port in ports][:count]
