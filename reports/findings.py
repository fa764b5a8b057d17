"""Findings of a comparison, in sentences made from its numbers, and limits of the conclusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.measure.results import Result
from harness.measure.summary import unfinished
from reports.groups import CONFIDENCE, Comparison, Estimate, Variant, compare, over_seeds
from reports.quantities import At, Quantity, worst_queue

_EQUAL = 0.01  # relative differences below this are not reported
_UNITS_OF_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B"))


@dataclass(frozen=True)
class _Measure:
    """A quantity that sentences compare: the lower, the better."""

    words: str
    value: Quantity
    unit: str
    scale: float = 1.0
    digits: int = 0

    def number(self, value: float) -> str:
        """Return a value in the unit, without the unit's name."""
        return f"{value * self.scale:,.{self.digits}f}"

    def written(self, value: Estimate) -> str:
        """Return a mean with its unit, and its confidence interval where there is one."""
        text = self.number(value.mean) + (f" {self.unit}" if self.unit else "")
        if not value.half_width or self.number(value.half_width) == self.number(0):
            return text
        low, high = max(0.0, value.mean - value.half_width), value.mean + value.half_width
        return f"{text} ({CONFIDENCE:.0%} interval {self.number(low)} to {self.number(high)})"


_COMPLETION = (
    _Measure("job completion time", At("workload.job_completion_ns"), "µs", 1e-3),
    _Measure("mean latency of operations", At("workload.latency_cycles.mean"), "cycles"),
)
_SLOWDOWN = _Measure("99th-percentile slowdown", At("slowdown.p99"), "", 1.0, 2)
_FCT = _Measure("99th-percentile flow completion time", At("fct_ns.p99"), "µs", 1e-3)
_QUEUE = worst_queue("queue_max_bytes")


def findings(comparison: Comparison) -> list[str]:
    """Return the findings of one scenario's runs: completion, queues, losses, and limits."""
    variants = comparison.variants
    sentences = [_completion(comparison), *_groups(comparison), _queues(variants), _losses(variants)]
    return [sentence for sentence in (*sentences, *_limits(comparison)) if sentence is not None]


def findings_of(results: Sequence[Result]) -> list[str]:
    """Return the findings of all scenarios of these results.

    If there are several scenarios, each finding is preceded by its scenario.
    """
    comparisons = compare(results)
    if len(comparisons) == 1:
        return findings(comparisons[0])
    return [f"{each.scenario}: {sentence}" for each in comparisons for sentence in findings(each)]


def _measure(comparison: Comparison) -> _Measure:
    """Return the measure: job completion, else slowdown if sizes differ, else FCT."""
    for measure in _COMPLETION:
        if all(measure.value(result.summary) is not None for result in comparison.results):
            return measure
    return _SLOWDOWN if comparison.flows["size_bytes"].nunique() > 1 else _FCT


def _named(variant: Variant) -> str:
    return f"“{variant.name}”" if "," in variant.name else variant.name


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _more(ratio: float) -> str:
    return f"{ratio - 1:.0%} higher" if ratio < 2 else f"{ratio:.1f} times as high"


def _completion(comparison: Comparison) -> str | None:
    """Return how the variants compare by the scenario's measure, as a sentence; None if no run has a value."""
    measure = _measure(comparison)
    values = [(variant, over_seeds(variant, measure.value)) for variant in comparison.variants]
    known = [(variant, value) for variant, value in values if value is not None and value.partly is None]
    left_out = [_named(variant) for variant, value in values if value is None or value.partly is not None]
    if not known:
        return None
    aside = f" {_listed(left_out)} did not have a value in every run." if left_out else ""
    known.sort(key=lambda each: each[1].mean)
    (best, least), (worst, most) = known[0], known[-1]
    if len(known) == 1:
        whose = "all flows" if _names_of_groups(best) else _named(best)
        return f"The {measure.words} of {whose} is {measure.written(least)}.{aside}"
    ratio = most.mean / least.mean if least.mean else 1.0
    if ratio - 1 < _EQUAL:
        among = _listed([_named(variant) for variant, _ in known])
        return f"The {measure.words} is {measure.written(least)} with {among}, the same within {_EQUAL:.0%}.{aside}"
    if least.half_width is not None and not least.is_apart_from(most):
        among = _listed([f"{measure.written(value)} with {_named(variant)}" for variant, value in known])
        return f"The {measure.words} is {among}; over these seeds the difference may be chance.{aside}"
    if len(known) == 2:
        return (
            f"The {measure.words} is {measure.written(least)} with {_named(best)} and {measure.written(most)} with "
            f"{_named(worst)}, {_more(ratio)}.{aside}"
        )
    close = [_named(variant) for variant, value in known[1:] if least.half_width and not least.is_apart_from(value)]
    apart = f" Over these seeds, {_listed(close)} cannot be told from {_named(best)}." if close else ""
    return (
        f"Of {len(known)} variants, {_named(best)} has the lowest {measure.words}, {measure.written(least)}, and "
        f"{_named(worst)} the highest, {measure.written(most)}, {_more(ratio)}.{apart}{aside}"
    )


def _groups(comparison: Comparison) -> list[str]:
    """Return a sentence for each variant with groups of traffic: the completion times of their flows."""
    sentences = []
    for variant in comparison.variants:
        names = _names_of_groups(variant)
        means = {name: over_seeds(variant, At(f"groups.{name}.fct_ns.mean")) for name in names}
        means_by_name = [f"{_FCT.written(mean)} in {name}" for name, mean in means.items() if mean is not None]
        if len(means_by_name) > 1:
            whose = f" with {_named(variant)}" if len(comparison.variants) > 1 else ""
            sentences.append(f"The mean flow completion time{whose} is {_listed(means_by_name)}.")
    return sentences


def _names_of_groups(variant: Variant) -> list[str]:
    return list(dict.fromkeys(name for result in variant.results for name in result.summary.get("groups", ())))


def _bytes(value: float) -> str:
    scale, unit = next((scale, unit) for scale, unit in _UNITS_OF_BYTES if value >= scale or scale == 1)
    return f"{value / scale:,.{1 if value / scale < 10 and scale > 1 else 0}f} {unit}"


def _queues(variants: Sequence[Variant]) -> str | None:
    """Return the largest queue of each variant over all seeds, or the range for many variants."""
    largest = {}
    for variant in variants:
        depths = [depth for result in variant.results if (depth := _QUEUE(result.summary)) is not None]
        if depths:
            largest[_named(variant)] = max(depths)
    if not largest:
        return None
    ordered = sorted(largest.items(), key=lambda each: each[1])
    if len(ordered) == 1:
        return f"The largest queue held {_bytes(ordered[0][1])}."
    (least, low), (most, high) = ordered[0], ordered[-1]
    if len(ordered) == 2:
        return f"The largest queue held {_bytes(low)} with {least} and {_bytes(high)} with {most}."
    return f"The largest queue held between {_bytes(low)} ({least}) and {_bytes(high)} ({most})."


def _losses(variants: Sequence[Variant]) -> str:
    """Return which variants dropped packets or paused links, with counts over all seeds."""
    counts = []
    all_drops = 0
    for variant in variants:
        drops = sum(sum(result.summary["drops"].values()) for result in variant.results)
        pauses = sum(result.summary["pfc"]["pauses_sent"] for result in variant.results)
        all_drops += drops
        events = [f"{drops:,} packets dropped"] * (drops > 0) + [f"{pauses:,} PFC pauses"] * (pauses > 0)
        if events:
            runs = f" in {len(variant.results)} runs" if len(variant.results) > 1 else ""
            counts.append(f"{_named(variant)}: {', '.join(events)}{runs}")
    if not counts:
        return "No packet was dropped, and no link was paused."
    return f"{'; '.join(counts)}.{'' if all_drops else ' No packet was dropped.'}"


def _limits(comparison: Comparison) -> list[str]:
    """Return the limits: runs that are incomplete or failed a check, and a single seed."""
    lines = []
    runs = len(comparison.results)
    incomplete = sum(unfinished(result.summary) is not None for result in comparison.results)
    if incomplete:
        lines.append(f"In {incomplete} of {runs} runs some flows did not finish; completion times are of the others.")
    failed = sum(any(not check["holds"] for check in result.summary["checks"]) for result in comparison.results)
    if failed:
        lines.append(f"A check failed in {failed} of {runs} runs; do not rely on their numbers.")
    if len(comparison.variants) > 1 and min(len(variant.results) for variant in comparison.variants) < 2:
        lines.append("Each variant ran with one seed, so differences may be chance; give several with --seed.")
    return lines
