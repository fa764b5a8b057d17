"""Programs from a skeleton, in which lines of capital letters are replaced by the code of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def filled(folder: Path, skeleton: str, defaults: Mapping[str, str], blocks: Mapping[str, str]) -> Path:
    """Return the file of a program with the given blocks, and the defaults in place of the others."""
    text = skeleton
    for name, default in sorted(defaults.items(), key=lambda item: -len(item[0])):
        text = text.replace(f"    {name}\n", f"    {blocks.get(name, default)}\n")
    path = folder / "program.p4"
    path.write_text(text)
    return path
