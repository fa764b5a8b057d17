"""Public interface for figures of reports; see docs/measurements.md."""

import p4cc._hosts  # noqa: F401  # isort: split
from reports.figures.base import Figure, FigurePerVariant, register
from reports.groups import Comparison, Variant
from reports.plots import colour, line, marker, plain, thinned

__all__ = [
    "Comparison",
    "Figure",
    "FigurePerVariant",
    "Variant",
    "colour",
    "line",
    "marker",
    "plain",
    "register",
    "thinned",
]
