"""Port numbers of a chip's front panel."""

from __future__ import annotations

from dataclasses import dataclass

from p4switch.errors import UserError

_PIPE_PORTS = 128  # distance between the first ports of two neighbouring pipes


@dataclass(frozen=True)
class FrontPanel:
    """Front panel of a chip: `count` ports of each of its `pipes`, from local number `first` on.

    The first `reserved` ports are not used, because P4Runtime has no port 0.
    """

    pipes: int
    first: int
    count: int
    reserved: int = 0

    def device_port(self, number: int) -> int:
        """Return the program's number of a port, given its position in the front panel, which counts from 1.

        Raises UserError if there is no such port.
        """
        most = self.pipes * self.count - self.reserved
        if number > most:
            raise UserError(f"port {number}: expected at most {most}")
        pipe, local = divmod(number - 1 + self.reserved, self.count)
        return pipe * _PIPE_PORTS + self.first + local
