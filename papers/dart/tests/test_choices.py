"""Dart's parameters: the paper leaves each of them open, and the sweep of choices varies it."""

from __future__ import annotations

import dataclasses

from host_agents.cc.dart import DartParameters
from p4cc.execution.sweep import load


def test_the_sweep_of_choices_varies_every_parameter() -> None:
    varied: set[str] = set()
    for variant in load("dart-choices")[0].variants:
        varied |= set(variant.set.get("protocols", {}).get("dart", {}))
    assert varied == {one.name for one in dataclasses.fields(DartParameters)}
