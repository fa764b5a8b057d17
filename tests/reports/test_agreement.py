"""Agreement of runs on real frames with the virtual world, over seeds and with an interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.measure.results import Result
from reports.agreement import agreement_lines


def of(seed: int, difference: float | None, draws: bool = False) -> Result:
    told: dict[str, Any] = {"scenario": "x", "variant": "dcqcn, mininet", "title": "", "seed": seed}
    if difference is not None:
        told["agreement"] = {"quantity": "mean FCT", "difference": difference, "draws": draws}
    return Result(Path(f"x-seed{seed}"), told)


def test_several_seeds_have_an_interval() -> None:
    # Mean 2%, standard deviation 1%, Student's t of two degrees of freedom 4.303: 2% +- 2.48%.
    (line,) = agreement_lines([of(1, 0.01), of(2, 0.02), of(3, 0.03)])
    assert line == (
        "dcqcn, mininet: mean FCT +2.0% against the virtual world's (95% interval -0.5% to +4.5%, 3 seeds)"
    )


def test_one_seed_has_none_and_what_marks_by_lot_says_so() -> None:
    (line,) = agreement_lines([of(1, -0.32, draws=True)])
    assert line == (
        "dcqcn, mininet: mean FCT -32.0% against the virtual world's (one seed, so no interval); its switches may mark "
        "or drop by lot, so that a single seed can differ by chance"
    )


def test_the_virtual_world_is_not_compared_with_itself() -> None:
    assert agreement_lines([of(1, None), of(2, None)]) == []
