"""Numbers drawn together equal those that Python draws one by one."""

import random

from host_agents.draws import Draws


def test_they_are_those_of_random() -> None:
    for seed in (0, 1, 2**40 + 7):
        draws, one_by_one = Draws(seed), random.Random(seed)
        assert [draws.random() for _ in range(1000)] == [one_by_one.random() for _ in range(1000)]
