"""Values that the study of pieces computes."""

from __future__ import annotations

import pandas as pd
import pytest

from papers.sperc.studies.pieces import measured


def test_quantiles_are_of_what_is_delivered_and_of_the_figures_sizes() -> None:
    table = pd.DataFrame(
        {
            "size_bytes": [9_999, 10_000, 1_000_000, 1_000_001, 50_000],
            "slowdown": [1.0, 12.0, 6.0, 90.0, None],
            "mean_weight": [1.0, 0.25, 1.0, 1.0, 1.0],
            "max_latency_ns": [1_000, 2_000, 3_000, 4_000, 5_000],
        }
    )
    found = measured(table)
    assert (found["counted"], found["unfinished"], found["middle"]) == (5, 1, 2)
    # Quantiles are interpolated: the latency between 3 and 4 us, the others between the two flows
    # of the figure's sizes.
    assert found["latency_p999_us"] == pytest.approx(3.997)
    assert found["slowdown_p999"] == pytest.approx(6.0 + 0.999 * 6.0)
    assert found["weighted_p999"] == pytest.approx(3.0 + 0.999 * 3.0)
    assert found["weighted_over_4"] == 1
