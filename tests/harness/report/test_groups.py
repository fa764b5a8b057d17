"""Means over seeds."""

from __future__ import annotations

import pytest

from harness.report.groups import Estimate, estimate


def test_an_interval_is_students() -> None:
    """Of 1, 2 and 3: the 97.5% quantile of t with two degrees of freedom, of tables, times 1 / sqrt(3)."""
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


def test_one_seed_has_none() -> None:
    assert estimate([7.0]) == Estimate(7.0, None)
