"""The max-min fair allocation: known cases, and its defining property."""

from __future__ import annotations

import random

import pytest

from papers.max_min import max_min, water_filling


@pytest.mark.parametrize(
    ("capacity", "paths", "rates"),
    [
        ({0: 9}, [[0], [0], [0]], [3, 3, 3]),
        ({0: 10, 1: 10}, [[0, 1], [0], [1]], [5, 5, 5]),
        ({0: 10, 1: 4}, [[0, 1], [0], [1]], [2, 8, 2]),
        # ACCurate's figure 4: f1 shares a link with f4, which shares another with f2 and f3.
        ({"h1": 10, "up": 10}, [["h1"], ["up"], ["up"], ["h1", "up"]], [20 / 3, 10 / 3, 10 / 3, 10 / 3]),
        ({0: 1}, [], []),
    ],
)
def test_known_cases(capacity: dict[object, float], paths: list[list[object]], rates: list[float]) -> None:
    assert max_min(capacity, paths) == pytest.approx(rates)


def test_rates_are_in_proportion_to_weights() -> None:
    """Check that the first link's 12 are divided 1 to 2, and that the other flow of the second link gets the rest."""
    assert max_min({0: 12, 1: 20}, [[0], [0, 1], [1]], [1, 2, 0.5]) == pytest.approx([4, 8, 12])


def test_links_that_no_other_holds_up_decide_in_the_same_iteration() -> None:
    chain = [[0, 1], [1, 2], [2]]
    assert water_filling({0: 1, 1: 10, 2: 100}, chain)[1] == 3  # one after the other
    assert water_filling({0: 1, 1: 2}, [[0], [1]])[1] == 1
    assert water_filling({}, []) == ([], 0)


@pytest.mark.parametrize("seed", range(30))
def test_every_flow_has_a_full_link_on_which_none_is_faster(seed: int) -> None:
    """Check Bertsekas and Gallager's criterion, and that no link is overloaded."""
    rng = random.Random(seed)
    capacity = {link: rng.choice((1.0, 4.0, 10.0)) for link in range(8)}
    paths = [rng.sample(range(8), rng.randint(1, 4)) for _ in range(rng.randint(1, 40))]
    rates = max_min(capacity, paths)
    on = {link: [rates[f] for f, path in enumerate(paths) if link in path] for link in capacity}
    for link, sharing in on.items():
        assert sum(sharing) <= capacity[link] * (1 + 1e-9)
    for rate, path in zip(rates, paths, strict=True):
        assert any(
            sum(on[link]) >= capacity[link] * (1 - 1e-9) and max(on[link]) <= rate * (1 + 1e-9) for link in path
        )
