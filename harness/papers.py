"""Folders of the papers that p4cc reproduces, in `papers/`.

A paper's folder has `paper.toml` (title, source, claims), `README.md` (verdicts and figures),
`scenarios/`, `sweeps/`, `studies/` (scripts that no scenario can express), `measured/` (tables of
our numbers), `figures.toml` and its pictures in `figures/`, and `tests/`. A new paper is a new
folder; nothing else names it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HARNESS = Path(__file__).parent
PAPERS = _HARNESS.parent / "papers"

Kind = Literal["scenarios", "sweeps"]


def folders() -> dict[str, Path]:
    """Return the folder of each paper by its name."""
    return {path.parent.name: path.parent for path in sorted(PAPERS.glob("*/paper.toml"))}


def files(kind: Kind) -> dict[str, Path]:
    """Return the TOML files that come with p4cc by name: general ones and those of all papers."""
    parents = [_HARNESS / kind, *(folder / kind for folder in folders().values())]
    return {path.stem: path for path in sorted(path for folder in parents for path in folder.glob("*.toml"))}


def title(name: str) -> str:
    """Return the title of a paper by the name of its folder."""
    return str(tomllib.loads((PAPERS / name / "paper.toml").read_text(encoding="utf-8"))["title"])


def paper_of(path: Path) -> str:
    """Return the paper whose folder has this scenario or sweep; "" for a general one."""
    return path.parents[1].name if path.parents[2] == PAPERS else ""
