"""Flows that an attack divides: the flows that the world gets, and the reports to the workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.workloads import Flow, Traffic
from harness.workloads.attack import Attack, attacked
from p4switch.errors import UserError


def attack(kind: Any = "parallel", over: int = 100, piece: int | None = 40, **more: Any) -> Attack:
    values = {"hosts": frozenset({0}), "pieces": None, "gap_ns": 7, **more}
    return Attack(kind, over_bytes=over, piece_bytes=piece, **values)


def test_flows_of_attackers_from_over_bytes_on_are_broken_up() -> None:
    flows = [Flow(0, 1, 100, 5, qp="shared"), Flow(0, 1, 99, 5, qp="shared"), Flow(1, 0, 100, 5)]
    pieces = attacked(Traffic(flows), attack()).flows
    assert [(p.number, p.size_bytes, p.start_ns, p.qp, p.role) for p in pieces] == [
        *((0, size, 5, None, "attacker") for size in (40, 40, 20)),
        (1, 99, 5, "shared", "victim"),
        (2, 100, 5, None, "victim"),
    ]
    assert [flow.pieces for flow in flows] == [3, 1, 1]


def test_pieces_of_a_staggered_attack_start_a_gap_apart() -> None:
    (flow,) = flows = [Flow(0, 1, 100, 5)]
    assert [p.start_ns for p in attacked(Traffic(flows), attack("staggered")).flows] == [5, 12, 19]
    assert flow.start_ns == 5


def test_without_an_attack_flows_are_called_what_they_would_be() -> None:
    pieces = attacked(Traffic([Flow(0, 1, 100, 0), Flow(1, 2, 100, 0)]), attack("none")).flows
    assert [(p.size_bytes, p.role) for p in pieces] == [(100, "attacker"), (100, "victim")]


def test_pieces_of_a_flow_that_stops_take_turns_until_then() -> None:
    endless = Flow(0, 1, 2**39, 10, stop_ns=25)
    pieces = attacked(Traffic([endless]), attack("staggered")).flows
    assert [(p.start_ns, p.stop_ns) for p in pieces] == [(10, 17), (17, 24), (24, 25)]
    assert len(attacked(Traffic([endless]), attack(piece=None, pieces=16)).flows) == 16


@given(st.integers(100, 10_000), st.integers(1, 99), st.integers(2, 50), st.sampled_from(["parallel", "staggered"]))
def test_pieces_are_the_flow(size: int, piece: int, pieces: int, kind: str) -> None:
    by_size = attacked(Traffic([Flow(0, 1, size, 0)]), attack(kind, piece=piece)).flows
    assert sum(p.size_bytes for p in by_size) == size
    assert all(p.size_bytes == piece for p in by_size[:-1])
    by_number = attacked(Traffic([Flow(0, 1, size, 0)]), attack(kind, piece=None, pieces=pieces)).flows
    assert sum(p.size_bytes for p in by_number) == size
    assert len(by_number) <= pieces
    assert max(p.size_bytes for p in by_number) == -(-size // pieces)


def test_a_workload_is_told_of_flows_when_all_their_pieces_are_there() -> None:
    class Chain(Traffic):
        completed: list[tuple[int, int, int]]

        def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
            return [Flow(0, 2, 100, now_ns)] if flow.index == 0 else []

        def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
            self.completed.append((flow.index, flow.size_bytes, now_ns))
            return []

    chain = Chain([Flow(0, 1, 100, 0), Flow(1, 2, 5, 0)])
    chain.completed = []
    traffic = attacked(chain, attack())
    first, second, third, other = traffic.flows
    assert [*traffic.on_delivered(other, 3), *traffic.on_delivered(third, 4), *traffic.on_delivered(first, 5)] == []
    new = list(traffic.on_delivered(second, 9))
    assert [(p.number, p.size_bytes, p.start_ns) for p in new] == [(2, 40, 9), (2, 40, 9), (2, 20, 9)]
    second.size_bytes = 30  # it was stopped
    for piece, time_ns in ((first, 11), (second, 12), (third, 13)):
        assert chain.completed == []
        traffic.on_completed(piece, time_ns)
    assert chain.completed == [(0, 90, 13)]


def test_a_fixed_list_of_flows_stays_one() -> None:
    assert type(attacked(Traffic([Flow(0, 1, 100, 0)]), attack())) is Traffic


def test_one_piece_announces_the_incast() -> None:
    pieces = attacked(Traffic([Flow(0, 1, 100, 0, incast=(7, (0, 2)))]), attack()).flows
    assert [p.incast for p in pieces] == [(7, (0, 2)), None, None]


class Reported(Traffic):
    """Workload that remembers the reports that it gets at the end."""

    reports: Any = None

    def on_end(self, reports: Mapping[int, Any]) -> None:
        self.reports = reports


def test_what_hosts_do_beyond_flows_stays_as_it_is() -> None:
    work: Any = {3: "an assignment"}
    fixed = attacked(Traffic([Flow(0, 1, 100, 0)], work), attack())
    assert (fixed.assignments, fixed.independent) == (work, True)
    own = Reported([], work)
    traffic = attacked(own, attack())
    assert (traffic.assignments, traffic.independent) == (work, True)
    reports: Any = {3: "a report"}
    traffic.on_end(reports)
    assert own.reports == reports


def test_nothing_is_kept_of_flows_that_are_over() -> None:
    class Loop(Traffic):
        def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
            return [Flow(0, 1, 100, now_ns)]

    traffic = attacked(Loop([Flow(0, 1, 100, 0)]), attack())
    assert not traffic.independent
    running = list(traffic.flows)
    sizes = []
    for now_ns in range(5):
        after: list[Flow] = []
        for piece in running:
            traffic.on_delivered(piece, now_ns)
            after += traffic.on_completed(piece, now_ns)
        running = after
        sizes.append(sum(len(kept) for kept in vars(traffic).values() if isinstance(kept, dict)))
    assert len(running) == 3
    assert len(set(sizes)) == 1


def test_more_pieces_than_can_be_held_are_refused() -> None:
    with pytest.raises(UserError, match=r"attack\.piece_bytes: makes .* pieces"):
        attacked(Traffic([Flow(0, 1, 2**39, 0)]), attack(piece=1))
    with pytest.raises(UserError, match="attack: makes over"):
        attacked(Traffic([Flow(0, 1, size_bytes, i) for i, size_bytes in enumerate((3, 2_000_000))]), attack(piece=1))
