"""Comparison of runs: one self-contained HTML page."""

from harness.report.page import write_report

__all__ = ["write_report"]
