"""s-PERC at a NIC's own link: `p4src/sperc.p4` in Python, with the same results bit for bit.

Source: Jose et al., SIGMETRICS 2019, in the form of algorithm 3 (section 5.1.1) of the thesis with
1RC. The header of the program explains its differences. Rates are in kb/s for each unit of weight;
NO_LIMIT is no limit.
"""

from __future__ import annotations

from typing import Final

from host_agents.cc.base import Counting

NEW_FLOW: Final = 0  # state of a flow at a link that has not counted it yet
E: Final = 1  # state of a flow whose bottleneck is elsewhere
B: Final = 2  # state of a flow whose bottleneck is this link

NO_LIMIT: Final = 0xFFFF_FFFF
MAX_WEIGHT: Final = 1023
UNIT: Final = 20  # NumB is in units of 2^-20
_MAX_32: Final = 0xFFFF_FFFF
_MAX_48: Final = 0xFFFF_FFFF_FFFF
DIGITS: Final = 20  # significant binary digits of b


def quotient(dividend: int, divisor: int, digits: int) -> int:
    """Return the quotient rounded down to `digits` significant binary digits, like `include/quotient.p4`."""
    exact = dividend // divisor
    extra = max(0, exact.bit_length() - digits)
    return exact >> extra << extra


class Record:
    """State of one link in a control packet."""

    def __init__(self, b: int = 0, x: int = 0, state: int = NEW_FLOW, ignore: int = 1) -> None:
        self.b = b  # the link's bottleneck rate
        self.x = x  # the flow's allocation there
        self.state = state
        self.ignore = ignore  # 1: b is not valid


class Link(Counting):
    """State that a link keeps for all its flows together.

    Times are in the unit of the caller's clock.

    NumB has no limit here. If the program's 32 bits are insufficient, an assertion fails there.
    """

    def __init__(
        self, capacity_kbps: int, tolerance_kbps: int, round_ticks: int, control_ns: int, digits: int = DIGITS
    ) -> None:
        self.capacity_kbps = capacity_kbps
        self.tolerance_kbps = tolerance_kbps
        self.round_ticks = round_ticks
        self.control_ns = control_ns
        self.digits = digits
        self.sum_e = 0
        self.num_b = 0  # NumB in units of 2^-20
        self.max_e = 0
        self.max_e_next = 0  # MaxE' of this round
        self.round_end = 0
        self.interval_ns = 0  # interval between control packets of a flow

    def left(self) -> dict[str, int]:
        return {"sum_e": self.sum_e, "num_b": self.num_b, "interval": self.interval_ns}

    def process(
        self, records: list[Record], own: int, old_weight: int, new_weight: int, leaving: bool, now: int
    ) -> None:
        """Process a control packet before it is sent on the link.

        `own` is the link's index among the records.
        """
        record = records[own]
        old_part = (1 << UNIT) // old_weight
        new_part = (1 << UNIT) // new_weight
        if now >= self.round_end:
            self.max_e = self.max_e_next if now - self.round_end < self.round_ticks else 0
            self.max_e_next = 0
            self.round_end = now + self.round_ticks

        if record.state == B:
            self.num_b = max(0, self.num_b - old_part) + new_part
        else:
            if record.state == E:
                self.sum_e = max(0, self.sum_e - (record.x * old_part >> UNIT))
            else:
                self.interval_ns = min(self.interval_ns + self.control_ns, _MAX_32)
            self.num_b += new_part

        record.b = min(quotient(max(0, self.capacity_kbps - self.sum_e) << UNIT, self.num_b, self.digits), NO_LIMIT)
        others_least = NO_LIMIT
        for place, other in enumerate(records):
            if place != own and not other.ignore and other.b < others_least:
                others_least = other.b
        record.x = min(record.b, others_least)
        most = max(0, self.capacity_kbps + self.tolerance_kbps - self.sum_e) << UNIT
        record.ignore = 1 if self.max_e * self.num_b > most else 0

        least = max(0, self.capacity_kbps - self.tolerance_kbps - self.sum_e) << UNIT
        record.state = B
        if leaving:
            self.num_b -= new_part
            self.interval_ns = max(0, self.interval_ns - self.control_ns)
        elif others_least != NO_LIMIT and others_least * self.num_b < least:
            record.state = E
            self.sum_e = min(self.sum_e + (record.x * new_part >> UNIT), _MAX_48)
            self.num_b -= new_part
            self.max_e = max(self.max_e, record.x)
            self.max_e_next = max(self.max_e_next, record.x)
