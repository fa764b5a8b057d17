"""Agreement of runs in real time with the virtual world, over seeds."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure.results import Result
from reports.groups import CONFIDENCE, Variant, compare, over_seeds


def agreement_lines(results: Sequence[Result]) -> list[str]:
    """Return a line for each variant that was compared with the virtual world."""
    variants = [variant for comparison in compare(results) for variant in comparison.variants]
    return [line for variant in variants if (line := agreement_line(variant)) is not None]


def agreement_line(variant: Variant) -> str | None:
    """Return the difference of a variant from virtual runs of the same seeds; None if none was compared."""
    compared = [result.summary["agreement"] for result in variant.results if result.summary.get("agreement")]
    mean = over_seeds(variant, lambda summary: (summary.get("agreement") or {}).get("difference"))
    if mean is None:
        return None
    text = f"{variant.name}: {compared[0]['quantity']} {mean.mean:+.1%} against the virtual world's"
    if mean.half_width is None:
        text += " (one seed, so no interval)"
    else:
        low, high = mean.mean - mean.half_width, mean.mean + mean.half_width
        text += f" ({CONFIDENCE:.0%} interval {low:+.1%} to {high:+.1%}, {len(compared)} seeds)"
    if any(each["draws"] for each in compared):
        text += "; its switches may mark or drop by lot, so that a single seed can differ by chance"
    return text
