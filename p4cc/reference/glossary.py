"""Terms that a user meets outside of files: those of the project and of reports, and the papers' claims.

They are in `glossary.toml` and `reports.toml` beside this file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from harness.columns.flows import totals
from harness.plan.scenario import read
from p4cc.reference.recorded import TOTALS, with_declared
from reports.claims import claims


@cache
def glossary() -> dict[str, str]:
    """Return the meaning of each term, in alphabetical order."""
    words: dict[str, str] = read(Path(__file__).with_name("glossary.toml"))
    return dict(sorted(words.items(), key=lambda item: item[0].lower()))


@cache
def of_reports() -> dict[str, str]:
    """Return the meanings of rows, columns, headings and axes of reports, by name without unit."""
    sections: dict[str, dict[str, str]] = read(Path(__file__).with_name("reports.toml"))
    rows = {total.row.words: total.row.meaning for total in totals() if total.row is not None}
    return {name: said for words in sections.values() for name, said in with_declared(words, {TOTALS: rows}).items()}


def claimed() -> dict[str, str]:
    """Return the text of each claim, and its source."""
    return {name: f"{claim.text} ({claim.source})" for name, claim in claims().items()}
