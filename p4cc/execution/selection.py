"""Selection of runs by the arguments of a command line, before any file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ScenarioSelection:
    """Every combination of the protocols, load balancers and seeds of scenarios.

    Parameters
    ----------
    scenarios
        Names of scenarios, or .toml files.
    settings
        KEY=VALUE for keys of all scenarios.
    several
        Values by key, `cc`, `lb` or `seeds`, which replace the scenario's values unless they are
        empty.
    """

    scenarios: Sequence[str]
    settings: Sequence[str] = ()
    several: Mapping[str, Sequence[str | int]] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepSelection:
    """Every run of a sweep.

    Parameters
    ----------
    file
        Name of the sweep, or a .toml file.
    settings
        KEY=VALUE for keys of its scenario.
    """

    file: str
    settings: Sequence[str] = ()
