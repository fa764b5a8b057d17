"""Fit of a P4 program on a chip: a model of match-action pipelines, from published numbers.

program = measure("my.p4")
fit = program.fit(load("stages12"))
fit.fits, fit.placement.stages, fit.findings
"""

from p4switch.fit.findings import Access, Finding, Fit, Program, measure
from p4switch.fit.target import Target, built_in, load

__all__ = ["Access", "Finding", "Fit", "Program", "Target", "built_in", "load", "measure"]
