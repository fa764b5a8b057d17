"""Means over seeds, and flows by size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from harness.measure.results import Result
from reports.groups import Estimate, Variant, by_size, estimate, over_seeds
from reports.quantities import AllDone


def test_an_interval_is_students() -> None:
    """Check 1, 2 and 3: t's tabulated 97.5% quantile for two degrees of freedom, over sqrt(3)."""
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


def test_one_seed_has_none() -> None:
    assert estimate([7.0]) == Estimate(7.0, None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 3.0], (2.0, None)),
        ([1.0, None, None], (1.0, (1, 3))),
        ([None, 1.0, 3.0], (2.0, (2, 3))),
    ],
)
def test_a_mean_over_some_of_the_seeds_says_so(
    values: list[float | None], expected: tuple[float, tuple[int, int] | None]
) -> None:
    runs = [SimpleNamespace(summary={"figure": value}) for value in values]
    found = over_seeds(Variant("v", cast("tuple[Result, ...]", tuple(runs))), lambda summary: summary["figure"])
    assert found is not None
    assert (found.mean, found.partly) == expected
    nothing = Variant("v", cast("tuple[Result, ...]", tuple(runs[:0])))
    assert over_seeds(nothing, lambda summary: None) is None


def test_the_time_by_which_all_was_done_is_of_runs_in_which_all_was() -> None:
    done = {"flows": 3, "flows_delivered": 3, "last_delivery_ns": 1000}
    some = {**done, "flows_delivered": 2, "last_delivery_ns": 10}
    runs = [SimpleNamespace(summary=summary) for summary in (done, some, some)]
    found = over_seeds(Variant("v", cast("tuple[Result, ...]", tuple(runs))), AllDone("last_delivery_ns"))
    assert found is not None
    assert (found.mean, found.partly) == (1000.0, (1, 3))


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([7, 7, 7], [3]),  # the only one that was delivered
        ([1, 1, 1, 9, 5, 5], [3, 2, 1]),
        ([*range(12), 4, 4], [4, 3, 3, 4]),
        ([*[4] * 20, 1, 2, 3, 5], [23, 1]),  # nearly all alike
    ],
)
def test_flows_by_size(sizes: list[int], counts: list[int]) -> None:
    found = by_size(pd.DataFrame({"size_bytes": sizes}), 4)
    assert list(found.size()) == counts
