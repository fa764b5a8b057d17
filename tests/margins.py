"""Margins of tests that compare a run with a figure, each from a stated model.

- A count of the whole packets of a steady flow in an interval differs from its rate by less than
  one packet.
- A share of independent draws, and a mean of independent values, lie in an interval around the
  expected value with the probability `LEVEL`.
- A limit that a protocol states is one of few values.
- A further run with another seed lies in the prediction interval of those that were made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.999
QUOTIENT = 2.0**-19  # relative error of the P4 programs' division to 20 significant binary digits, rounded down
TWO_DIGITS = 0.1  # more than rounding up to two digits adds, as that of dilations
_DEVIATIONS = float(stats.norm.ppf((1 + LEVEL) / 2))  # half width of the interval of a normal distribution


def packet_gbps(duration_ns: float, packet_bytes: int = 1058) -> float:
    """Return the rate of one packet in an interval."""
    return packet_bytes * 8 / duration_ns


def slope_gbps(duration_ns: float, samples: int) -> float:
    """Return half the width of the interval in which the slope of counts of whole packets lies.

    A count is late by up to a packet, uniformly, so the variance of a line's slope through `samples` of them
    is the square of a packet's rate divided by their number.
    """
    return _DEVIATIONS * packet_gbps(duration_ns) / float(np.sqrt(samples))


def share(probability: float, draws: int) -> float:
    """Return half the width of the interval in which the share of draws with this probability lies."""
    return _DEVIATIONS * float(np.sqrt(probability * (1 - probability) / draws))


def mean(values: Sequence[float]) -> float:
    """Return half the width of the interval in which the mean of this number of values with the same spread lies."""
    return _DEVIATIONS * float(np.std(values)) / float(np.sqrt(len(values)))


def prediction(values: Sequence[float], resolution: float = 0.0) -> tuple[float, float]:
    """Return the prediction interval of one more value of a normal distribution, widened by the resolution."""
    count = len(values)
    half = stats.t.ppf((1 + LEVEL) / 2, count - 1) * np.std(values, ddof=1) * np.sqrt(1 + 1 / count)
    return float(np.mean(values) - half - resolution), float(np.mean(values) + half + resolution)


def are_dart_limits(limits_gbps: pd.Series[float], line_rate_gbps: float, senders: int) -> bool:
    """Return whether these are rate limits of one of so many Dart senders to one receiver.

    A limit is the sender's share of the line rate, or 5% less (`drain_share`) while the receiver is
    congested, in whole b/s.
    """
    share = line_rate_gbps / senders
    off_gbps = np.minimum(abs(limits_gbps - share), abs(limits_gbps - 0.95 * share))
    return bool((off_gbps < 1e-9).all())
