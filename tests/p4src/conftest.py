"""Fixtures: one rig of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any, TypeVar

import pytest

from control_plane import load_balancing, programs
from control_plane.programs import SwitchView
from control_plane.programs.entries import Action, DefaultAction, Entry, TableEntry
from tests.p4src.rigs import RIGS, STEPWISE, BuiltinRig, ReplayedRig, Rig, missing, tables_of
from topologies import Route

MakeRig = Callable[..., Rig]
MakeStepwiseRig = Callable[..., BuiltinRig]

VIEW = SwitchView(
    device_id=5,
    port_rates_bps=dict.fromkeys(range(1, 9), 100_000_000_000),
    routes=[
        Route(IPv4Network("10.0.0.2/32"), (1,)),
        Route(IPv4Network("10.0.0.3/32"), (2,)),
        Route(IPv4Network("10.0.1.0/24"), (3, 4)),
        Route(IPv4Network("10.0.0.0/16"), (3,)),
        Route(IPv4Network("10.1.0.0/16"), (5, 6, 7, 8)),
    ],
    cell_bytes=80,
)
"""Switch with hosts on ports 1 and 2, two ports up to another rack and four to another pod."""


def params_of(entry: TableEntry | DefaultAction) -> Mapping[str, int]:
    """Return the parameters of the only action of an entry."""
    assert isinstance(entry.action, Action)
    return entry.action.params


@pytest.fixture(params=list(RIGS))
def make_rig(request: pytest.FixtureRequest) -> Iterator[MakeRig]:
    """Yield a maker of rigs: `make_rig("ecn", {"pmax": 0.5})` is a switch with ecn.p4.

    It also takes entries and macros.
    """
    yield from _made(request.param, RIGS[request.param])


@pytest.fixture(params=list(STEPWISE))
def make_stepwise_rig(request: pytest.FixtureRequest) -> Iterator[MakeStepwiseRig]:
    """Yield a maker of rigs that answer each packet at once, and compare the answers with BMv2's."""
    yield from _made(request.param, STEPWISE[request.param])


_R = TypeVar("_R", bound=Rig)


def _made(name: str, kind: type[_R]) -> Iterator[Callable[..., _R]]:
    reason = missing(name)
    if reason:
        pytest.skip(reason)
    made: list[_R] = []

    def make(
        program: str,
        parameters: Mapping[str, Any] | None = None,
        view: SwitchView = VIEW,
        more: list[Entry] | None = None,
        load_balancer: str = "ecmp",
        **defines: str,
    ) -> _R:
        balancer = load_balancing.find(load_balancer, load_balancing.DIRECTORY)
        for part, known in (
            (program, programs.program(program).parameters.architectures),
            (load_balancer, balancer.architectures),
        ):
            if kind.architecture is not None and known is not None and kind.architecture not in known:
                pytest.skip(f"{part} is not written for {kind.architecture}")
        view = replace(kind.device_view(view), tables=tables_of(kind, program, load_balancer, **defines))
        entries = [*programs.parameters(program, parameters or {}).entries(view), *(more or [])]
        made.append(kind(program, entries, load_balancer, **defines))
        return made[-1]

    try:
        yield make
        for rig in made:
            if isinstance(rig, ReplayedRig):
                rig.replay()
    finally:
        for rig in made:
            rig.close()
