"""Comparison of runs: one self-contained HTML page."""

from harness.measure.results import load_all
from harness.report.agreement import agreement_lines
from harness.report.findings import findings_of
from harness.report.page import damage_named, write_report

__all__ = ["agreement_lines", "damage_named", "findings_of", "load_all", "write_report"]
