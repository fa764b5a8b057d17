"""Programs of a run's switches: the scenario's own, and those of its entries of `switches`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from control_plane.load_balancing import LoadBalancer
from control_plane.programs import Program, ProgramParameters
from harness.plan.scenario import Loopback, Scenario, SwitchGroup
from p4switch.architectures.front_panel import PIPE_PORT_BITS
from p4switch.errors import UserError
from topologies import Switch, Topology

Place = int | None  # number of an entry of `switches`; None: the scenario's own program
_SETTINGS = ("architecture", "defines", "load_balancing", "loopback")  # keys of `switch` that entries may set
_TIERS = ("tor", "aggregation", "spine")


@dataclass(frozen=True)
class SwitchProgram:
    """Program of a group of a run's switches, with its settings."""

    place: Place
    pipes: Mapping[str, tuple[int, ...]]  # numbers of the pipes that run it, by the switch's name
    program: Program
    parameters: ProgramParameters
    load_balancer: LoadBalancer
    architecture: str | None  # architecture that the program is compiled for; None: that of its main
    defines: Mapping[str, int | str]
    loopback: Loopback

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.program.name

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of the switches."""
        return tuple(self.pipes)

    def key_of(self, setting: str) -> str:
        """Return the scenario's key that has a setting of these switches."""
        return f"{table_of(self.place)}.{setting}"


@dataclass(frozen=True)
class Pipe:
    """Pipe of a switch. A switch that is not a chip has one."""

    name: str  # name of the pipe; that of the switch if this is its only pipe
    switch: str
    number: int
    program: SwitchProgram

    @property
    def is_only(self) -> bool:
        """True if the switch has no other pipe."""
        return self.name == self.switch

    def has(self, port: int) -> bool:
        """Return whether a port of the switch belongs to the pipe."""
        return self.is_only or port >> PIPE_PORT_BITS == self.number


def pipes_of(switches: Iterable[str], programs: Sequence[SwitchProgram]) -> dict[str, Pipe]:
    """Return the pipes of switches by their names, in the order of the switches and of their numbers."""
    places: dict[str, dict[int, SwitchProgram]] = {name: {} for name in switches}
    for each in programs:
        for switch, numbers in each.pipes.items():
            places[switch] |= dict.fromkeys(numbers, each)
    pipes = [
        Pipe(switch if len(numbers) == 1 else f"{switch}.pipe{number}", switch, number, numbers[number])
        for switch, numbers in places.items()
        for number in sorted(numbers)
    ]
    return {pipe.name: pipe for pipe in pipes}


def table_of(place: Place) -> str:
    """Return the name of the scenario's table with the settings of an entry's switches."""
    return "switch" if place is None else f"switches.{place}"


def selected(scenario: Scenario, topology: Topology) -> dict[Place, dict[str, tuple[int, ...]]]:
    """Return the pipes that each entry of `switches` selects, and the remaining ones, by their switches.

    Raises ------ UserError For an entry without a switch, for a pipe that a switch does not have,
    and for a program of the scenario that no switch has.
    """
    groups = scenario.switches
    places: dict[Place, dict[str, tuple[int, ...]]] = {None: {}, **{place: {} for place in range(len(groups))}}
    highest = max(switch.tier for switch in topology.switches)
    for switch in topology.switches:
        selecting = [place for place, group in enumerate(groups) if _has(group, switch, highest)]
        count = scenario.switch.pipes
        for number in selecting:
            count = groups[number].pipes or count
        for number in selecting:
            if absent := [pipe for pipe in groups[number].in_pipes if pipe >= count]:
                has = "1 pipe" if count == 1 else f"{count} pipes"
                raise UserError(
                    f"switches.{number}.in_pipes: pipe {absent[0]} of {switch.name!r}, which has {has}; expected "
                    "smaller numbers, or more pipes"
                )
        for pipe in range(count):
            holding = [place for place in selecting if not groups[place].in_pipes or pipe in groups[place].in_pipes]
            held = places[holding[-1] if holding else None]
            held[switch.name] = (*held.get(switch.name, ()), pipe)
    for place, pipes in places.items():
        if place is not None and not pipes:
            raise UserError(f"switches.{place}: {_missing(groups, place, topology, highest)}")
    if scenario.program is not None and not places[None]:
        raise UserError("program: entries of switches select all switches; expected no program, or fewer entries")
    return {place: pipes for place, pipes in places.items() if pipes}


def _has(group: SwitchGroup, switch: Switch, highest: int) -> bool:
    named = not group.names or any(_is_like(switch.name, pattern) for pattern in group.names)
    return named and group.tier in (None, switch.tier, _tier_name(switch.tier, highest))


def _tier_name(tier: int, highest: int) -> str:
    return _TIERS[0] if tier == 0 else _TIERS[2] if tier == highest else _TIERS[1]


@lru_cache(maxsize=1 << 16)
def _is_like(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern)


def _missing(groups: Sequence[SwitchGroup], place: int, topology: Topology, highest: int) -> str:
    """Return the reason why an entry selects no switch."""
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
    """Return the settings of an entry's switches, by name; the table `switch` has the others' values."""
    own, common = scenario.switch if place is None else scenario.switches[place], scenario.switch
    return {name: getattr(common if getattr(own, name) is None else own, name) for name in _SETTINGS}
