"""Injection tokens: a bucket that fills at the rate of a watermark (thesis, 6.1.3, figure 6.1)."""

from __future__ import annotations

import math
import random
from collections import deque
from typing import Final

ROUNDING: Final = 1e-9  # largest deficit of a whole token by rounding of sums


class TokenBucket:
    """Tokens of one kind, for request or response flits, with times in cycles of 16 bytes at link rate.

    `share`, from 0 to 1, is watermark / WM_MAX, the number of tokens per cycle. (The thesis draws a
    random number in each cycle, with the same mean: `DrawnTokens`.) A cost beyond the available
    tokens leaves a debt. At most `depth` tokens accumulate during idle time.
    """

    def __init__(self, share: float, depth: float = 1.0) -> None:
        self.share = share
        self.depth = depth
        self._tokens = 1.0
        self._at = 0.0  # time at which `_tokens` was computed

    def tokens(self, now: float) -> float:
        """Return the tokens at `now`, which is never before the time of an earlier call."""
        if now > self._at:
            self._tokens = min(self._tokens + (now - self._at) * self.share, max(self._tokens, self.depth))
            self._at = now
        return self._tokens

    def take(self, now: float, tokens: float) -> None:
        self._tokens = self.tokens(now) - tokens

    def set_share(self, now: float, share: float) -> None:
        """Set the watermark from now on."""
        self.tokens(now)
        self.share = share

    def ready_at(self) -> float:
        """Return the time of the next whole token if none is spent before.

        A past time means that there is one.
        """
        missing = 1.0 - ROUNDING - self._tokens
        return self._at + missing / self.share if missing > 0 else self._at


class DrawnTokens(TokenBucket):
    """Tokens by random numbers, as in the thesis: a cycle adds one if the number is below `share`.

    Cycles are drawn in advance, so that the time of the next whole token is known. Draws are
    independent. So draws for another share or for a full bucket are discarded.
    """

    def __init__(self, share: float, depth: float, chance: random.Random) -> None:
        super().__init__(share, depth)
        self._chance = chance
        self._drawn = 0.0  # last cycle that was drawn
        self._coming: deque[float] = deque()  # cycles that add a token

    def tokens(self, now: float) -> float:
        while self._tokens < self.depth:
            if not self._coming:
                self._draw()
            if self._coming[0] > now:
                self._at = now
                return self._tokens
            self._coming.popleft()
            self._tokens = min(self._tokens + 1.0, self.depth)
        self._forget(now)
        return self._tokens

    def set_share(self, now: float, share: float) -> None:
        self.tokens(now)
        self.share = share
        self._forget(now)

    def ready_at(self) -> float:
        missing = math.ceil(1.0 - ROUNDING - self._tokens)
        if missing <= 0:
            return self._at
        while len(self._coming) < missing:
            self._draw()
        return self._coming[missing - 1]

    def _draw(self) -> None:
        self._drawn += 1.0
        while self._chance.random() >= self.share:
            self._drawn += 1.0
        self._coming.append(self._drawn)

    def _forget(self, now: float) -> None:
        self._at = now
        self._drawn = float(math.floor(now))
        self._coming.clear()
