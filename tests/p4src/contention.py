"""Reference of accurate.p4, by the rules in the paper and in the program's header."""

from __future__ import annotations

from dataclasses import dataclass, field

PERIODIC, INIT, STOP = range(3)

SATURATED = (1 << 32) - 1


def quotient(dividend: int, divisor: int) -> int:
    """Return the quotient to twenty significant binary digits, as in the program."""
    exact = dividend // max(1, divisor)
    extra = max(0, exact.bit_length() - 20)
    return exact >> extra << extra


@dataclass
class Count:
    """State of a contention point in a period."""

    local: int = 0  # M
    elsewhere: int = 0  # B
    fastest: int = 0  # b_max
    flows: int = 0

    def add(self, rate: int, local: bool) -> None:
        self.flows += 1
        if local:
            self.local += 1
        else:
            self.elsewhere = min(self.elsewhere + rate, SATURATED)
            self.fastest = max(self.fastest, rate)

    def remove(self, rate: int, local: bool) -> None:
        self.flows = max(0, self.flows - 1)
        if local:
            self.local = max(0, self.local - 1)
        else:
            self.elsewhere = max(0, self.elsewhere - rate)
            if self.fastest == rate:
                self.fastest = 0

    def share(self, capacity: int) -> int:
        """Return the share by equation 1 and section IV-A."""
        if not self.local and not self.elsewhere:
            return capacity
        local, elsewhere = self.local, self.elsewhere
        if not local:
            local, elsewhere = 1, max(0, elsewhere - self.fastest)
        if elsewhere >= capacity:
            return quotient(capacity, self.flows)
        return quotient(capacity - elsewhere, local)


@dataclass
class ContentionPoint:
    """Contention point. Rates are in kb/s and times in ticks. `frp` processes a flow rate packet."""

    capacity: int
    period: int
    corrected: bool = True
    period_end: int = 0
    fsr: int = 0
    fsr_start: int = 0
    fsr_before: int = 0
    now: Count = field(default_factory=Count)
    old: Count = field(default_factory=Count)

    def frp(self, now: int, rate: int, desired: int, kind: int = PERIODIC, counted: bool = False) -> tuple[int, int]:
        """Process a flow rate packet, and return the CR and DR with which it leaves."""
        stops_local = (min(self.fsr, self.fsr_start, self.fsr_before) if self.corrected else self.fsr_start) <= rate
        new_period = now >= self.period_end
        if new_period:
            if now - self.period_end < self.period and self.fsr:
                self.old = self.now
                self.fsr_before = min(self.fsr, self.fsr_start) if self.corrected else self.fsr
            else:
                self.old, self.fsr_before = Count(), self.capacity
                stops_local = self.capacity <= rate
            self.now = Count()
            self.period_end = (now // self.period + 1) * self.period
        local = False
        if kind == INIT:
            known = self.fsr_before if new_period else min(self.fsr, self.fsr_before)
            local = (known if self.corrected else self.fsr_before) <= rate
            self.old.add(rate, local)
        elif kind == STOP:
            self.old.remove(rate, stops_local)
            if counted:
                self.now.remove(rate, stops_local)
        if new_period or kind != PERIODIC:
            self.fsr = self.old.share(self.capacity)
        if new_period:
            self.fsr_start = self.fsr
        if kind == STOP:
            return rate, desired
        if kind == PERIODIC:
            local = (min(self.fsr, self.fsr_before) if self.corrected else self.fsr) <= rate
        self.now.add(rate, local)
        return min(rate, self.fsr), min(desired, self.fsr)
