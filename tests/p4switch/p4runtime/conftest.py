"""A device that runs everything.p4 on a fake switch, and a controller for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from p4switch import ir
from p4switch.p4runtime import Device
from tests.p4switch.p4runtime import everything
from tests.p4switch.p4runtime.controller import Controller, config_request
from tests.p4switch.p4runtime.fake import FakeSwitch, as_switch

if TYPE_CHECKING:
    from p4switch.engine import Switch


@dataclass
class Bench:
    """A device under test. `switch` is the switch that packets pass."""

    device: Device
    controller: Controller
    built: list[FakeSwitch] = field(default_factory=list)
    installed: list[FakeSwitch] = field(default_factory=list)
    now_ns: int = 0

    @property
    def switch(self) -> FakeSwitch:
        return self.installed[-1]


@pytest.fixture
def blank() -> Bench:
    """Return a bench whose device has no pipeline."""
    bench: Bench

    def build(program: ir.Program) -> Switch:
        bench.built.append(FakeSwitch(program))
        return as_switch(bench.built[-1])

    def install(switch: object) -> None:
        assert isinstance(switch, FakeSwitch)
        bench.installed.append(switch)

    device = Device(build, install=install, clock_ns=lambda: bench.now_ns)
    bench = Bench(device, Controller(device, everything.p4info()))
    return bench


@pytest.fixture
def bench(blank: Bench) -> Bench:
    blank.device.set_forwarding_pipeline_config(config_request(everything.p4info(), everything.device_config()))
    return blank


@pytest.fixture
def controller(bench: Bench) -> Controller:
    return bench.controller


@pytest.fixture
def switch(bench: Bench) -> FakeSwitch:
    return bench.switch
