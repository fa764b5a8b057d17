"""Programs of a run's switches: the scenario's own, and those of its entries of `switches`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from control_plane.load_balancing import LoadBalancer
from control_plane.programs import Program, ProgramParameters
from harness.plan.scenario import Loopback, Scenario, SwitchGroup
from p4switch.errors import UserError
from topologies import Switch, Topology

Place = int | None  # number of an entry of `switches`; None: the scenario's own program
_SETTINGS = ("architecture", "defines", "load_balancing", "loopback")  # of `switch` that entries may set
_TIERS = ("tor", "aggregation", "spine")


@dataclass(frozen=True)
class SwitchProgram:
    """Program of some of a run's switches, with its settings."""

    place: Place
    switches: tuple[str, ...]  # their names
    program: Program
    parameters: ProgramParameters
    load_balancer: LoadBalancer
    architecture: str | None  # that the program is compiled for; None: that of its main
    defines: Mapping[str, int | str]
    loopback: Loopback

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.program.name

    def key_of(self, setting: str) -> str:
        """Return the scenario's key of a setting of these switches."""
        return f"{table_of(self.place)}.{setting}"


def table_of(place: Place) -> str:
    """Return the scenario's table with the settings of an entry's switches."""
    return "switch" if place is None else f"switches.{place}"


def selected(scenario: Scenario, topology: Topology) -> dict[Place, tuple[str, ...]]:
    """Return the names of the switches that each entry of `switches` has, and of those that none has.

    Raises
    ------
    UserError
        For an entry without a switch, and for a program of the scenario that no switch has.
    """
    groups = scenario.switches
    places: dict[Place, list[str]] = {None: [], **{place: [] for place in range(len(groups))}}
    highest = max(switch.tier for switch in topology.switches)
    for switch in topology.switches:
        holding = [place for place, group in enumerate(groups) if _has(group, switch, highest)]
        places[holding[-1] if holding else None].append(switch.name)
    for place, names in places.items():
        if place is not None and not names:
            raise UserError(f"switches.{place}: {_missing(groups, place, topology, highest)}")
    if scenario.program is not None and not places[None]:
        raise UserError("program: entries of switches select all switches; expected no program, or fewer entries")
    return {place: tuple(names) for place, names in places.items() if names}


def _has(group: SwitchGroup, switch: Switch, highest: int) -> bool:
    named = not group.names or any(_is_like(switch.name, pattern) for pattern in group.names)
    return named and group.tier in (None, switch.tier, _tier_name(switch.tier, highest))


def _tier_name(tier: int, highest: int) -> str:
    return _TIERS[0] if tier == 0 else _TIERS[2] if tier == highest else _TIERS[1]


@lru_cache(maxsize=1 << 16)
def _is_like(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern)


def _missing(groups: Sequence[SwitchGroup], place: int, topology: Topology, highest: int) -> str:
    """Return why an entry has no switch."""
    if any(_has(groups[place], switch, highest) for switch in topology.switches):
        return "later entries select all of its switches; expected some that are its own"
    examples: dict[int, str] = {}
    for switch in topology.switches:
        examples.setdefault(switch.tier, switch.name)
    known = ", ".join(
        f"{name!r} in tier {tier} ({_tier_name(tier, highest)!r})" for tier, name in sorted(examples.items())
    )
    return f"topology {topology.name!r} has no such switch; it has, for example, {known}"


def settings_of(scenario: Scenario, place: Place) -> dict[str, Any]:
    """Return the settings of an entry's switches by name, with those of `switch` that it does not set."""
    own, common = scenario.switch if place is None else scenario.switches[place], scenario.switch
    return {name: getattr(common if getattr(own, name) is None else own, name) for name in _SETTINGS}
