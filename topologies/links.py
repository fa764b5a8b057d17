"""Links with a rate, delay or loss of their own, in any topology.

A rule selects links by their tiers, by patterns of the names at their ends, or individually, and
has values that replace those of the topology.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from p4switch.errors import UserError
from p4switch.numbers import integral
from p4switch.tables import Table
from topologies.model import Link, Topology

Rate = Annotated[int, BeforeValidator(integral), Field(gt=0, le=10**14)]
Delay = Annotated[int, BeforeValidator(integral), Field(ge=0, le=10**10)]
Loss = Annotated[float, Field(ge=0, lt=1)]
Pattern = Annotated[str, Field(min_length=1, max_length=200)]
Tier = Literal["hosts"] | Annotated[int, Field(ge=0)]

Framing = Annotated[int, BeforeValidator(integral), Field(ge=0, le=1000)]

_ATTRIBUTES = ("rate_bps", "delay_ns", "loss", "framing_bytes")


class LinkRule(Table):
    """Properties of some links; if several rules apply to a link, the last one counts.

    Without `between`, `nodes` and `tiers` a rule applies to all links.
    """

    # Patterns (`*`, `?`, `[...]`) of the names at the two ends, in any order.
    between: tuple[Pattern, Pattern] | None = Field(default=None, strict=False)
    # Patterns of names; at least one of them has to match at least one end.
    nodes: tuple[Pattern, ...] | None = Field(default=None, strict=False, min_length=1)
    # The tiers of the two ends: `"hosts"`, or a tier of switches, from 0 next to the hosts.
    tiers: tuple[Tier, Tier] | None = Field(default=None, strict=False)
    parallel: Annotated[int, Field(ge=0)] | None = None  # number among several links between two nodes
    rate_bps: Rate | None = None  # rate of each direction
    delay_ns: Delay | None = None  # propagation, one way
    loss: Loss | None = None  # share of the frames of each direction that are lost at random
    # Charged for a frame beyond its own bytes, instead of the value of `framing`.
    framing_bytes: Framing | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if all(getattr(self, name) is None for name in _ATTRIBUTES):
            raise ValueError(f"should have {', '.join(_ATTRIBUTES[:-1])} or {_ATTRIBUTES[-1]}")
        return self

    def is_for(self, link: Link, tiers: tuple[str | int, str | int], place: int) -> bool:
        """Return whether the rule applies to a link.

        Parameters
        ----------
        link
            Link.
        tiers
            Tiers of its ends; "hosts" for a host.
        place
            Its number among the links between its two nodes, from 0.

        Returns
        -------
        bool
            Whether the rule is for it.
        """
        return (
            (self.parallel is None or self.parallel == place)
            and (self.nodes is None or any(_is_like(n, p) for n in (link.a, link.b) for p in self.nodes))
            and (self.between is None or _are_like((link.a, link.b), self.between))
            and (self.tiers is None or tiers in (self.tiers, self.tiers[::-1]))
        )

    def changed(self, link: Link) -> Link:
        """Return a link with this rule's properties."""
        said = {name: getattr(self, name) for name in _ATTRIBUTES}
        return replace(link, **{name: value for name, value in said.items() if value is not None})


def with_rules(topology: Topology, rules: Sequence[LinkRule]) -> Topology:
    """Return the network with the attributes that rules give its links.

    Parameters
    ----------
    topology
        Network.
    rules
        Rules, of which later ones win.

    Returns
    -------
    Topology
        The changed network.

    Raises
    ------
    UserError
        For a rule that applies to no link.
    """
    if not rules:
        return topology
    tier_of: dict[str, str | int] = {switch.name: switch.tier for switch in topology.switches}
    places: dict[frozenset[str], int] = {}
    unused = set(range(len(rules)))
    links = []
    for link in topology.links:
        ends = frozenset((link.a, link.b))
        place = places[ends] = places.get(ends, -1) + 1
        tiers = tier_of.get(link.a, "hosts"), tier_of.get(link.b, "hosts")
        changed = link
        for number, rule in enumerate(rules):
            if rule.is_for(link, tiers, place):
                unused.discard(number)
                changed = rule.changed(changed)
        links.append(changed)
    if unused:
        first = min(unused)
        raise UserError(
            f"topology.links.{first}: topology {topology.name!r} has no such link; expected tiers, or patterns of the "
            f"names at its ends, as in {_example(topology)}"
        )
    return replace(topology, links=tuple(links))


def _are_like(ends: tuple[str, str], patterns: tuple[str, str]) -> bool:
    (a, b), (one, other) = ends, patterns
    return (_is_like(a, one) and _is_like(b, other)) or (_is_like(a, other) and _is_like(b, one))


@lru_cache(maxsize=1 << 16)
def _is_like(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern)


def _example(topology: Topology) -> str:
    link = topology.links[0] if topology.links else None
    return "a network with links" if link is None else f'between = ["{link.a}", "{link.b}"]'
