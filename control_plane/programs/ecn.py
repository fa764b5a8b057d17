"""Forwarding with ECMP, RED/ECN marking at dequeue: `p4src/ecn.p4`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Entry
from control_plane.programs.forwarding import forwarding_entries
from control_plane.programs.marking import Probability, marking_entries, red
from p4switch.numbers import integral
from p4switch.tables import Table


class RateThresholds(Table):
    """Thresholds for ports of one rate, as vendors list them; they replace scaled defaults."""

    rate_bps: Annotated[int, BeforeValidator(integral), Field(gt=0)]  # rate of the ports
    # Queue from which on packets are marked with a probability.
    kmin_bytes: Annotated[int, BeforeValidator(integral), Field(ge=0)]
    kmax_bytes: Annotated[int, BeforeValidator(integral), Field(ge=0)]  # queue from which on all packets are marked
    pmax: Probability = 0.2  # probability of a mark just below Kmax

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.kmin_bytes > self.kmax_bytes:
            raise ValueError(f"kmin_bytes should not exceed kmax_bytes ({self.kmax_bytes})")
        return self


# Thresholds by the name of their publisher; docs/networks.md has the sources.
NAMED: dict[str, dict[str, float | None]] = {
    "hpcc": {"kmin_bytes": 400_000, "kmax_bytes": 1_600_000, "pmax": 0.2, "reference_rate_bps": 100_000_000_000},
    "dcqcn-paper": {"kmin_bytes": 5_000, "kmax_bytes": 200_000, "pmax": 0.01, "reference_rate_bps": 40_000_000_000},
    "sonic": {"kmin_bytes": 1_048_576, "kmax_bytes": 2_097_152, "pmax": 0.05, "reference_rate_bps": None},
    "cumulus": {"kmin_bytes": 150_000, "kmax_bytes": 1_500_000, "pmax": 1.0, "reference_rate_bps": None},
}


@register("ecn")
class EcnParameters(ProgramParameters):
    """Thresholds of the queue length at dequeue, and the probability of a mark at Kmax.

    The defaults are the HPCC simulator's for DCQCN: 400 and 1600 KB at 100 Gb/s (100 and 400 KB for each 25 Gb/s).
    """

    architectures: ClassVar[tuple[str, ...]] = ("v1model", "tna", "t2na")

    # Named thresholds that apply where the keys below are not set; none: those of the HPCC
    # simulator, `hpcc`.
    settings: Literal["hpcc", "dcqcn-paper", "sonic", "cumulus"] | None = None
    kmin_bytes: int = Field(400_000, ge=0)  # queue from which on packets are marked with a probability
    kmax_bytes: int = Field(1_600_000, ge=0)  # queue from which on all packets are marked
    pmax: Probability = 0.2  # probability of a mark just below Kmax
    # Rate of a port for which the thresholds are given; they scale with a port's rate. None: they
    # are the same for all ports.
    reference_rate_bps: int | None = Field(100_000_000_000, gt=0)
    rates: list[RateThresholds] = []  # thresholds of ports of some rates, each with its own

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, values: Any) -> Any:
        """Return the named thresholds, replaced by the values that are written.

        An unknown name is reported later.
        """
        if not isinstance(values, Mapping) or not isinstance(named := values.get("settings"), str):
            return values
        return {**NAMED.get(named, {}), **values}

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.kmin_bytes > self.kmax_bytes:
            raise ValueError(f"kmin_bytes should not exceed kmax_bytes ({self.kmax_bytes})")
        return self

    @model_validator(mode="after")
    def _distinct_rates(self) -> Self:
        if len({each.rate_bps for each in self.rates}) < len(self.rates):
            raise ValueError("rates should have each rate_bps once")
        return self

    def entries(self, switch: SwitchView) -> list[Entry]:
        actions = {}
        own = {each.rate_bps: each for each in self.rates}
        for port, rate_bps in switch.port_rates_bps.items():
            if (listed := own.get(rate_bps)) is not None:
                actions[port] = red(listed.kmin_bytes, listed.kmax_bytes, listed.pmax, switch.cell_bytes)
                continue
            scale = rate_bps / self.reference_rate_bps if self.reference_rate_bps else 1.0
            actions[port] = red(self.kmin_bytes * scale, self.kmax_bytes * scale, self.pmax, switch.cell_bytes)
        return [*forwarding_entries(switch), *marking_entries(switch, actions)]
