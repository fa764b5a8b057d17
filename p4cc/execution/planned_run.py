"""One of several runs that are planned together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.plan.portable import PortableRun

if TYPE_CHECKING:
    from harness.plan.run import Run


@dataclass(frozen=True)
class PlannedRun:
    """One of several runs that are planned together.

    Parameters
    ----------
    folder_name
        Name of the folder of its results.
    title
        Title that distinguishes it from the other runs.
    portable
        The run in the form that other processes get.
    values
        Values of a sweep's axes, by dotted key.
    variant
        Name of a sweep's variant.
    resolved
        The run. None: it is planned again at each access, because all runs of a sweep would need
        much memory.
    """

    folder_name: str
    title: str
    portable: PortableRun
    values: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    resolved: Run | None = None

    def run(self) -> Run:
        """Return the run. Raises UserError where it could not be run here."""
        return self.resolved or self.portable.run()
