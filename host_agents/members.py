"""What the members of a multicast group have acknowledged: a packet is when every one of them has it in order."""

from __future__ import annotations

from collections.abc import Sequence

from host_agents import wire


class Members:
    """By address: each has every packet before a number, counted from 0. Raises ValueError for one given twice."""

    def __init__(self, addresses: Sequence[int]) -> None:
        self._expected = dict.fromkeys(addresses, 0)
        self._places = {address: place for place, address in enumerate(addresses)}
        if len(self._expected) < len(addresses):
            raise ValueError("a member of the group is given twice")

    def has(self, address: int) -> bool:
        return address in self._expected

    def place(self, frame: bytes) -> int:
        """Which of the members has sent `frame`, from 0; 0 for one that is none."""
        return self._places.get(int.from_bytes(frame[wire.SOURCE : wire.SOURCE + 4], "big"), 0)

    def least_after(self, number: int, frame: bytes, unacked: int, fresh: int) -> int:
        """Which packet all have everything before, now that the sender of `frame` has everything before `number`.

        `unacked` is the answer so far, and `fresh` the first packet never sent, which nobody can have.
        """
        member = int.from_bytes(frame[wire.SOURCE : wire.SOURCE + 4], "big")
        before = self._expected.get(member, number)
        if not before < number <= fresh:
            return unacked
        self._expected[member] = number
        return min(self._expected.values()) if before == unacked else unacked
