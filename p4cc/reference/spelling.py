"""Comparison of names regardless of case, British or American spelling, and separators."""

from __future__ import annotations

import re

_END = "(?![a-z])"
# Two spellings, and the common form. Both sides of a comparison are converted, so changes to words
# with one spelling only ("noise") do no harm.
_SPELLINGS = tuple(
    (re.compile(pattern), one)
    for pattern, one in (
        (r"is(?=(?:e|ed|es|er|ing|ation|ations)" + _END + ")", "iz"),
        (r"ys(?=(?:e|ed|es|er|ing)" + _END + ")", "yz"),
        (r"our", "or"),
        (r"re" + _END, "er"),
        (r"ll(?=(?:ed|er|ing)" + _END + ")", "l"),
        (r"eueing" + _END, "euing"),
        (r"ogue" + _END, "og"),
        (r"nce" + _END, "nse"),
        (r"grey", "gray"),
    )
)
_UNIT = re.compile(r"\s*\([^()]*\)\s*$")


def normal(name: str) -> str:
    """Return the common form of names such as `topology.Colour[]` and `topology.color`, without quotes."""
    text = name.replace("[]", "").replace('"', "").casefold()
    for pattern, one in _SPELLINGS:
        text = pattern.sub(one, text)
    return text


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name in their normal form, without a unit in parentheses at its end."""
    return tuple(re.findall(r"[^\W_]+(?:[.'][^\W_]+)*%?", normal(_UNIT.sub("", name))))


def is_within(few: tuple[str, ...], many: tuple[str, ...]) -> bool:
    """Return whether these words occur consecutively among the others."""
    return bool(few) and any(many[i : i + len(few)] == few for i in range(len(many) - len(few) + 1))
