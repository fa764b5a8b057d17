"""Rates of ACCurate on random networks, through p4src/accurate.p4 in the virtual world.

`make reproduce` runs a hundred of these scenarios with both rules; papers/accurate/README.md has
the outcome.
"""

from __future__ import annotations

import pytest

from papers.accurate.studies.scenarios import LIMIT_PERIODS, TOLERANCE, measure

SLOWEST = 94  # number of the slowest among the first hundred scenarios
NOT_WITH_THE_PUBLISHED_RULE = 12


@pytest.mark.parametrize("seed", [0, 2, 6, 9, 11, NOT_WITH_THE_PUBLISHED_RULE, SLOWEST])
def test_rates_are_max_min_fair_after_fifteen_periods(seed: int) -> None:
    outcome = measure(seed, "corrected", periods=20)
    assert outcome.bottlenecks > 1
    assert outcome.periods is not None
    assert outcome.periods <= LIMIT_PERIODS
    assert outcome.error <= 0.001  # rates are exact after this time


@pytest.mark.parametrize("seed", [2, 9, NOT_WITH_THE_PUBLISHED_RULE])
def test_so_they_are_with_clocks_that_are_two_microseconds_off(seed: int) -> None:
    outcome = measure(seed, "corrected", periods=20, clock_error_ns=2_000)
    assert outcome.periods is not None
    assert outcome.periods <= LIMIT_PERIODS


def test_with_the_published_rule_they_are_not_always() -> None:
    outcome = measure(NOT_WITH_THE_PUBLISHED_RULE, "published", periods=15)
    assert outcome.error > TOLERANCE
