"""Comparison of runs: one self-contained HTML page."""

from harness.measure.results import load_all
from reports.agreement import agreement_lines
from reports.findings import findings_of
from reports.page import damage_named, write_report

__all__ = ["agreement_lines", "damage_named", "findings_of", "load_all", "write_report"]
