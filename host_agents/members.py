"""Acknowledgements of a multicast group: a packet is acknowledged when every member has it in order."""

from __future__ import annotations

from collections.abc import Sequence

from host_agents import wire


class Members:
    """Progress of each member by address: it has every packet before a number.

    Raises ValueError for duplicates.
    """

    def __init__(self, addresses: Sequence[int]) -> None:
        self._expected = dict.fromkeys(addresses, 0)
        self._places = {address: place for place, address in enumerate(addresses)}
        if len(self._expected) < len(addresses):
            raise ValueError("a member of the group is given twice")

    def has(self, address: int) -> bool:
        return address in self._expected

    def place(self, frame: bytes) -> int:
        """Return the index of the member that sent `frame`; 0 for other hosts."""
        return self._places.get(int.from_bytes(frame[wire.SOURCE : wire.SOURCE + 4], "big"), 0)

    def least_after(self, number: int, frame: bytes, unacked: int, fresh: int) -> int:
        """Return the number before which all members have every packet.

        The sender of `frame` has reached `number`. `unacked` is the previous result, and `fresh` is
        the first packet never sent, which no member can have.
        """
        member = int.from_bytes(frame[wire.SOURCE : wire.SOURCE + 4], "big")
        before = self._expected.get(member, number)
        if not before < number <= fresh:
            return unacked
        self._expected[member] = number
        return min(self._expected.values()) if before == unacked else unacked
