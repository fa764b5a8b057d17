"""Set of addresses whose packets a NIC accepts besides its own.

In compiled code, `in` on a Python set creates an object for the number each time. This takes longer
than all other checks of a packet.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

_FEWEST: Final = 8  # number of slots, at least half of which stay empty
_EMPTY: Final = -1
_SPREAD: Final = 0x9E3779B1  # odd, so that consecutive addresses are spread


class AddressSet:
    """Set of IPv4 addresses, as numbers, from which nothing is removed."""

    def __init__(self) -> None:
        self._places = vec[i64]([_EMPTY] * _FEWEST)
        self._count = 0

    def add(self, address: int) -> None:
        if self.has(address):
            return
        self._count += 1
        if 2 * self._count > len(self._places):
            old = self._places
            self._places = vec[i64]([_EMPTY] * (2 * len(old)))
            for place in range(len(old)):
                if old[place] != _EMPTY:
                    self._put(old[place])
        self._put(address)

    def has(self, address: i64) -> bool:
        places = self._places
        place = self._place(address)
        while places[place] != _EMPTY:
            if places[place] == address:
                return True
            place = (place + 1) & (len(places) - 1)
        return False

    def _place(self, address: i64) -> i64:
        """Return the preferred slot of an address."""
        return (address * _SPREAD >> 16) & (len(self._places) - 1)

    def _put(self, address: i64) -> None:
        places = self._places
        place = self._place(address)
        while places[place] != _EMPTY:
            place = (place + 1) & (len(places) - 1)
        places[place] = address
