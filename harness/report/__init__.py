"""Comparison of runs: one self-contained HTML page."""

from harness.measure.results import load_all
from harness.report.page import name_the_damaged, write_report

__all__ = ["load_all", "name_the_damaged", "write_report"]
