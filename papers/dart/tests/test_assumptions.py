"""Values that the study of assumptions computes from a run's flows."""

from __future__ import annotations

import pandas as pd
import pytest

from papers.dart.studies.assumptions import measured

FLOWS = pd.DataFrame(
    {
        "group": ["short", "short", "short", "long", "long", "short"],
        "size_bytes": [8192, 8192, 2048, 1_000_000, 1_000_000, 8192],
        "start_ns": [0, 100, 100, 100, 100, 100],
        "fct_ns": [9e9, 50_000.0, 10_000.0, 2_000_000.0, 1_000_000.0, None],
        "mean_links": [60.0, 9.0, 6.0, 6.0, 4.0, None],
        "shortest_links": [6.0, 6.0, 6.0, 6.0, 4.0, 6.0],
    }
)


def test_flows_of_the_first_milliseconds_and_those_without_an_end_are_left_out() -> None:
    found = measured(FLOWS, 100)
    assert (found["short"], found["long"], found["unfinished"]) == (2, 2, 1)
    assert found["short_p50_us"] == found["short_p99_us"] == 50
    assert found["long_gbps"] == pytest.approx((4 + 8) / 2)
    assert found["path_added"] == pytest.approx(15 / 12 - 1)
    carried, shortest = 8192 * 9 + 2048 * 6 + 10_000_000, 8192 * 6 + 2048 * 6 + 10_000_000
    assert found["load_added"] == pytest.approx(carried / shortest - 1)
