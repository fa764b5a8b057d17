"""Figures of a report, one file each.

Another file in this folder, or a class registered elsewhere, adds a figure.
"""

from __future__ import annotations

from reports.figures.base import REGISTRY, Figure, FigurePerVariant, register
from reports.figures.over_time import over_time
from reports.groups import Comparison

__all__ = ["REGISTRY", "Figure", "FigurePerVariant", "figures", "register"]


def figures(comparison: Comparison) -> dict[str, Figure]:
    """Return the figures for which this comparison has data, by name, in the order of the page."""
    drawable: dict[str, Figure] = {}
    kinds = {name: kind() for name, kind in REGISTRY.all().items()}
    for name, figure in sorted(kinds.items(), key=lambda item: item[1].order):
        if all(set(figure.needs) <= result.tables for result in comparison.results) and figure.fits(comparison):
            drawable[name] = figure
    return {**drawable, **dict(over_time(comparison))}
