"""Injection tokens: a bucket that fills with time, as fast as a watermark says (thesis, 6.1.3, figure 6.1)."""

from __future__ import annotations

import math
import random
from collections import deque
from typing import Final

ROUNDING: Final = 1e-9  # tokens that sums of fractions may be short of a whole one


class TokenBucket:
    """Tokens of one kind, for request flits or for response flits. Times are in cycles of 16 bytes at link rate.

    `share`, from 0 to 1, is watermark / WM_MAX: the tokens of a cycle. (The thesis draws a random number in each cycle,
    with the same mean: `DrawnTokens`.) What costs more than there is leaves a debt. Idle time earns `depth` tokens at
    most.
    """

    def __init__(self, share: float, depth: float = 1.0) -> None:
        self.share = share
        self.depth = depth
        self._tokens = 1.0
        self._at = 0.0  # the time of `_tokens`

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
        """Return the time of the next whole token if none is taken before; a past time: there is one."""
        missing = 1.0 - ROUNDING - self._tokens
        return self._at + missing / self.share if missing > 0 else self._at


class DrawnTokens(TokenBucket):
    """Tokens as the thesis draws them: a cycle brings one if a random number is below `share`.

    Cycles are drawn before their time, so that it is known when there will be a whole token. A draw says nothing of the
    next one: what was drawn for another share, or for a full bucket, is forgotten.
    """

    def __init__(self, share: float, depth: float, chance: random.Random) -> None:
        super().__init__(share, depth)
        self._chance = chance
        self._drawn = 0.0  # the last cycle that was drawn
        self._coming: deque[float] = deque()  # cycles that bring a token

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
