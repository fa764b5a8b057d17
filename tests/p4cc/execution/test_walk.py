"""Walk of a scenario through the layers: plan, worlds, measure, reports, without a way back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import groupby
from types import CodeType, FrameType
from typing import Any

import pytest

from harness.measure.recording import Recording
from harness.measure.results import Result
from harness.plan.how import How, Tracing
from harness.plan.portable import PortableRun
from harness.plan.run import Run
from harness.plan.scenario import Scenario
from harness.worlds.virtual import VirtualWorld
from p4cc.execution.execute import execute
from p4cc.execution.planned_run import PlannedRun
from p4cc.execution.request import RunRequest
from p4cc.execution.selection import ScenarioSelection
from tests.test_imports import LAYERS, layer_of

STAGES = ("harness.plan", "harness.worlds", "harness.measure", "reports")
FORMS = (Scenario, PortableRun, PlannedRun, Run, VirtualWorld, Recording, Result)
"""Forms that a scenario takes on its way."""
SCENARIO = """
title = "two to one"
cc = "dctcp"
topology = { name = "single-switch", hosts = 3 }
workload = { name = "incast", size_bytes = 20000 }
"""


def is_given_the_scenario(frame: FrameType) -> bool:
    """Return whether an argument of a call is a form of the scenario, or a collection that has one."""
    code = frame.f_code
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        value = frame.f_locals.get(name)
        several = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        if any(isinstance(each, FORMS) for each in (value, *several)):
            return True
    return False


class Calls:
    """Calls between layers during a block: (layer of the caller, layer of the callee, its name)."""

    def __init__(self) -> None:
        self.between: list[tuple[str, str, str]] = []
        self._layers: dict[CodeType, str | None] = {}

    def _layer(self, frame: FrameType) -> str | None:
        code = frame.f_code
        if code not in self._layers:
            self._layers[code] = layer_of(frame.f_globals.get("__name__", ""))
        return self._layers[code]

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        layer = self._layer(frame)
        if event != "call" or layer is None:
            return
        caller, from_layer = frame.f_back, None
        while caller is not None and (from_layer := self._layer(caller)) is None:
            caller = caller.f_back
        if from_layer not in (None, layer) and is_given_the_scenario(frame):
            assert from_layer is not None
            self.between.append((from_layer, layer, f"{frame.f_globals['__name__']}.{frame.f_code.co_name}"))


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """Return the calls between layers that carry out a request for a small scenario."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "two.toml").write_text(SCENARIO)
    seen = Calls()
    sys.setprofile(seen)
    try:
        # The worlds forecast the size of a trace without an end before anything starts.
        how = How(trace=Tracing(flow=0, until_ns=1_000_000), coverage=True)
        execute(RunRequest(ScenarioSelection([str(folder / "two.toml")]), how=how, out=folder / "out"))
    finally:
        sys.setprofile(None)
    return seen.between


def test_a_scenario_goes_through_the_layers_in_order(calls: list[tuple[str, str, str]]) -> None:
    on_top = [callee for caller, callee, _ in calls if caller.startswith("p4cc.") and callee in STAGES]
    assert tuple(layer for layer, _ in groupby(on_top)) == STAGES


def test_no_room_hands_the_scenario_to_a_later_one(calls: list[tuple[str, str, str]]) -> None:
    back = [call for call in calls if LAYERS.index(call[0]) < LAYERS.index(call[1])]
    assert back == []
