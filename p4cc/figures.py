"""Public interface for figures of reports; see docs/measurements.md."""

import p4cc._hosts  # noqa: F401  # isort: split
from harness.report.figures.base import Figure, FigurePerVariant, register
from harness.report.groups import Comparison, Variant
from harness.report.plots import colour, line, marker, plain, thinned

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
