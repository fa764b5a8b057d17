"""3CPO's parameters: each is a constant of algorithm 6 or a choice that the chapter leaves open."""

from __future__ import annotations

import dataclasses

from host_agents.cc.three_cpo import ThreeCpoParameters
from p4cc.execution.sweep import load

OF_THE_ALGORITHM = {"wm_min", "wm_max", "wm_ai", "lat_thresh", "max_lat_thresh", "base_md"}


def test_the_sweep_of_choices_varies_every_parameter_that_is_not_of_the_algorithm() -> None:
    varied: set[str] = set()
    for variant in load("3cpo-choices")[0].variants:
        varied |= set(variant.set.get("protocols", {}).get("3cpo", {}))
    assert varied | OF_THE_ALGORITHM == {one.name for one in dataclasses.fields(ThreeCpoParameters)}
