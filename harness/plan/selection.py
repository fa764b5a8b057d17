"""Selection of runs by the names and texts of a command line, not yet read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ScenarioSelection:
    """Every combination of the protocols, load balancers and seeds of scenarios.

    Parameters
    ----------
    scenarios
        Their names, or .toml files.
    settings
        KEY=VALUE, for keys of all of them.
    several
        By key of a scenario, `cc`, `lb` or `seeds`: the values that stand instead of its own, if there are any.
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
        Its name, or a .toml file.
    settings
        KEY=VALUE, for keys of its scenario.
    """

    file: str
    settings: Sequence[str] = ()
