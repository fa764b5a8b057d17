"""The figures of a report, one file each; another file here, or a class registered elsewhere, is another figure."""

from __future__ import annotations

import importlib
import pkgutil

from harness.report.figures.base import Figure, FigurePerVariant, find, names, register
from harness.report.figures.over_time import over_time
from harness.report.groups import Comparison

__all__ = ["Figure", "FigurePerVariant", "figures", "register"]

for _found in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_found.name)


def figures(comparison: Comparison) -> dict[str, Figure]:
    """By name, in order of the page: those for which this comparison has data."""
    found: dict[str, Figure] = {}
    for name, figure in sorted(((name, find(name)()) for name in names()), key=lambda item: (item[1].order, item[0])):
        if all(set(figure.needs) <= result.tables for result in comparison.results) and figure.fits(comparison):
            found[name] = figure
    return {**found, **dict(over_time(comparison))}
