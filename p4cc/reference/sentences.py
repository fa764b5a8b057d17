"""Sentences from the meanings of names."""

from __future__ import annotations


def sentence(meaning: str) -> str:
    """Return a meaning with a capital and a full stop; a name of code at its start keeps its spelling."""
    is_name = "_" in meaning.partition(" ")[0]
    return (meaning[:1] if is_name else meaning[:1].upper()) + meaning[1:].removesuffix(".") + "."
