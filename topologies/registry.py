"""Topologies by name, and the parameters that all of them share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from p4switch.errors import validate
from p4switch.registry import Registry
from p4switch.tables import Table
from topologies.checks import check
from topologies.links import Delay, LinkRule, Rate, with_rules
from topologies.model import Topology
from topologies.nic_switches import with_nic_switches


class TopologyParameters(Table):
    """Parameters of a topology, to which a subclass adds its own."""

    # Rate of each link, or of the hosts' links if others have a rate of their own.
    link_rate_bps: Rate = 100_000_000_000
    link_delay_ns: Delay = 1000  # propagation delay of each link, one way
    # Add a P4 switch to each NIC, for functions that are also needed in front of the hosts' links
    # (topologies/nic_switches.py).
    nic_switches: bool = False
    # Properties of some links that replace those of the topology (topologies/links.py).
    links: list[LinkRule] = []

    @abstractmethod
    def build(self) -> Topology:
        """Return the network of these parameters."""

    def files(self) -> tuple[Path, ...]:
        """Return the files that the network is read from."""
        return ()


__all__ = ["REGISTRY", "Delay", "Rate", "TopologyParameters", "build", "names", "parameters", "register"]

REGISTRY: Registry[type[TopologyParameters]] = Registry(
    "topology", group="p4cc.topologies", package="topologies", base=TopologyParameters
)
register = REGISTRY.register
names = REGISTRY.names
parameters = REGISTRY.find


def build(name: str, values: Mapping[str, Any], where: str = "topology") -> Topology:
    """Return a topology by name and parameters.

    Parameters
    ----------
    name
        Registered name.
    values
        Parameters; rates in bit/s, delays in ns.
    where
        Key of the parameters, for errors.

    Returns
    -------
    Topology
        Network; equal parameters share one object.

    Raises
    ------
    UserError
        For a wrong name or parameter, named as `where.key`.
    """
    checked = validate(parameters(name), values, where)
    if REGISTRY.origin(name):
        return _built(checked)
    return _kept(type(checked), checked.model_dump_json(), tuple(map(_stamp, checked.files())))


def _built(checked: TopologyParameters) -> Topology:
    topology = with_rules(check(checked.build()), checked.links)
    return check(with_nic_switches(topology)) if checked.nic_switches else topology


def _stamp(file: Path) -> tuple[int, int, int]:
    """Return a value that changes when a file changes."""
    try:
        now = file.stat()
    except (OSError, ValueError):
        return 0, 0, 0
    return now.st_ino, now.st_size, now.st_mtime_ns


@lru_cache(maxsize=8)
def _kept(model: type[TopologyParameters], values: str, stamps: tuple[tuple[int, int, int], ...]) -> Topology:
    """Return the topology of parameters given as JSON.

    Parameters and the files that they name determine built-in topologies, so equal ones share an object and
    its routes.
    """
    return _built(model.model_validate_json(values))
