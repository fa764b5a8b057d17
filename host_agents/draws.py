"""Random numbers for the hot paths: those of `random.Random`, drawn many at a time."""

from __future__ import annotations

import random
from typing import Final

from librt.strings import read_i64_le
from librt.vecs import vec
from mypy_extensions import i64

_TOGETHER: Final = 32  # numbers


class Draws:
    """Numbers of `random.Random(seed).random()`, in the same order.

    Numbers are drawn many at a time, because a call of `random.Random` from compiled code takes
    longer than all the rest of choosing a path.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._drawn = vec[float]()
        self._next = 0

    def random(self) -> float:
        """Return a random number from 0 to 1, exclusive."""
        if self._next == len(self._drawn):
            self._draw()
        value = self._drawn[self._next]
        self._next += 1
        return value

    def _draw(self) -> None:
        if len(self._drawn) == 0:
            self._drawn = vec[float]([0.0] * _TOGETHER)
        self._next = 0
        # A number consists of two words; the first one has the lower bits here.
        words = self._random.getrandbits(64 * _TOGETHER).to_bytes(8 * _TOGETHER, "little")
        for place in range(_TOGETHER):
            pair: i64 = read_i64_le(words, 8 * place)
            high: int = pair >> 5 & 0x7FFFFFF
            low: int = pair >> 38 & 0x3FFFFFF
            self._drawn[place] = (float(high) * 67108864.0 + float(low)) * (1.0 / 9007199254740992.0)
