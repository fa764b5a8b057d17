"""Words that a user meets outside of files: the project's own (`glossary.toml`), and what papers claim."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from harness.plan.scenario import read
from harness.report.claims import claims


@cache
def glossary() -> dict[str, str]:
    """What each word means, in alphabetical order."""
    words: dict[str, str] = read(Path(__file__).with_name("glossary.toml"))
    return dict(sorted(words.items(), key=lambda item: item[0].lower()))


def claimed() -> dict[str, str]:
    """What each claim says, and where."""
    return {name: f"{claim.text} ({claim.source})" for name, claim in claims().items()}
