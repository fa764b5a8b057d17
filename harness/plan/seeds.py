"""Seeds in the notation of users: one, a list, and ranges such as `1-100` or `1-3,7`."""

from __future__ import annotations

import re

LARGEST = 2**32 - 1
MOST = 100_000  # largest range: each of its seeds is a run
_EXAMPLE = "expected a seed, a range as 1-100, or several with commas between"
_PART = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)


def expanded(text: str) -> list[int]:
    """Return the seeds that a text names, in its order.

    Raises ValueError, which names the expected form.
    """
    return [seed for part in text.split(",") for seed in _range(part.strip())]


def _range(text: str) -> range:
    match = _PART.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r}: {_EXAMPLE}")
    first, last = int(match[1]), int(match[2] or match[1])
    if max(first, last) > LARGEST:
        raise ValueError(f"{text!r}: expected seeds of at most {LARGEST}")
    if last < first:
        raise ValueError(f"{text!r}: the range ends before it begins; expected {last}-{first}")
    if last - first >= MOST:
        raise ValueError(f"{text!r}: expected at most {MOST} seeds in a range")
    return range(first, last + 1)


def listed(value: object) -> object:
    """Return a scenario's `seeds` as a list of numbers.

    Raises ValueError if it has no valid form.
    """
    several = value if isinstance(value, list) else [value]
    return [seed for one in several for seed in (expanded(one) if isinstance(one, str) else [one])]
