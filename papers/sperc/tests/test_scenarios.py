"""s-PERC on random networks: a small sample of the runs of `make reproduce-sperc`."""

from __future__ import annotations

import pytest

from papers.sperc.studies.scenarios import NETWORKS, drawn, measure, summary


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("most_weight", [1, 20])
def test_rates_are_max_min_inside_6n_rounds_for_good(kind: str, most_weight: int) -> None:
    outcome = measure(kind, most_weight, 1)
    assert outcome.in_time, outcome
    assert outcome.error < 0.01
    assert summary([outcome]).startswith("1 of 1 within 1% inside 6N rounds")


def test_a_network_is_its_seeds() -> None:
    assert drawn("fat-tree", 20, 7) == drawn("fat-tree", 20, 7) != drawn("fat-tree", 20, 8)
    net = drawn("fat-tree", 20, 7)
    assert max(map(len, net.paths)) == 6
    assert set(net.weights) <= set(range(1, 21))
