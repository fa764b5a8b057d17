"""RED/ECN marking: thresholds, probability, and the packets that may be marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from control_plane import programs
from control_plane.programs.entries import DefaultAction, Exact, TableEntry
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig, params_of
from tests.p4src.packets import CE, ECT0, ECT1, NOT_ECT, Flow, ecn_of, ip_checksum_ok, numbered, psn_of
from tests.p4src.queues import OUT, QueueRig
from tests.p4src.rigs import Sent

FLOW = Flow()
PACKET_BYTES = 800  # size of ten cells


def marked(frames: Sequence[tuple[int, bytes]]) -> list[int]:
    return [psn_of(frame) for _, frame in frames if ecn_of(frame) == CE]


def burst(count: int, ecn: int = ECT0) -> list[tuple[int, bytes]]:
    """Return `count` packets that arrive at once.

    Packet 0 leaves immediately. When packet i > 0 leaves, count - 1 - i packets remain in the queue.
    """
    frame = FLOW.data(wire_bytes=PACKET_BYTES, ecn=ecn)
    return [(0, numbered(frame, i)) for i in range(count)]


def step(packets: int) -> dict[str, object]:
    """Return parameters by which a packet is marked if more than `packets` packets remain in the queue."""
    size = packets * PACKET_BYTES
    return {"kmin_bytes": size, "kmax_bytes": size, "reference_rate_bps": None}


@pytest.mark.parametrize(
    ("program", "threshold"), [("ecn", 0), ("ecn", 1), ("ecn", 10), ("ecn", 18), ("collective", 10)]
)
def test_packets_that_leave_more_than_kmax_behind_are_marked(program: str, threshold: int) -> None:
    rig = QueueRig(program, step(threshold))
    rig.inject(burst(20))
    arrived = rig.run()
    assert len(arrived) == 20
    assert marked(arrived) == [i for i in range(1, 20) if 19 - i > threshold]
    assert rig.counter("ecn_marked") == len(marked(arrived))
    assert all(ip_checksum_ok(frame) for _, frame in arrived)


@pytest.mark.parametrize("ecn", [ECT0, ECT1])
def test_both_ect_code_points_are_marked(ecn: int) -> None:
    rig = QueueRig("ecn", step(0))
    rig.inject(burst(3, ecn=ecn))
    assert marked(rig.run()) == [1]


def test_packets_that_are_not_ecn_capable_are_left_alone() -> None:
    rig = QueueRig("ecn", step(0))
    rig.inject(burst(10, ecn=NOT_ECT))
    assert [ecn_of(frame) for _, frame in rig.run()] == [NOT_ECT] * 10
    assert rig.counter("ecn_marked") == 0


def test_a_mark_made_before_is_not_counted_again() -> None:
    rig = QueueRig("ecn", step(0))
    rig.inject(burst(10, ecn=CE))
    assert len(marked(rig.run())) == 10
    assert rig.counter("ecn_marked") == 0


@pytest.mark.parametrize("architecture", [None, "tna"])
@pytest.mark.parametrize(("depth", "expected"), [(40, 0.0), (50, 0.0), (75, 0.1), (100, 0.2), (149, 0.396), (152, 1.0)])
def test_probability_grows_from_nothing_at_kmin_to_pmax_at_kmax(
    depth: int, expected: float, architecture: str | None
) -> None:
    """With a standing queue, `depth` packets remain after each packet. Kmin is 50 packets, Kmax 150, and Pmax 0.4.

    On TNA the probability grows in 32 steps. Each step has the probability of its middle.
    """
    samples = 3000
    size = PACKET_BYTES
    wanted = {"kmin_bytes": 50 * size, "kmax_bytes": 150 * size, "pmax": 0.4, "reference_rate_bps": None}
    rig = QueueRig("ecn", wanted, architecture=architecture)
    if architecture is not None and expected not in (0.0, 1.0):
        expected = ((depth - 50) * 32 // 100 - (1 if (depth - 50) * 32 % 100 == 0 else 0) + 0.5) / 32 * 0.4
    # A burst of depth + 2 packets, the first of which leaves at once. Then a packet arrives just before each
    # departure.
    rig.inject(burst(depth + 1))
    frame = FLOW.data(wire_bytes=size)
    rig.inject((size * (i + 1) - 1, numbered(frame, depth + 1 + i)) for i in range(samples))
    arrived = rig.run()
    steady = [frame for frame in arrived if 0 < psn_of(frame[1]) <= samples]
    assert len(steady) == samples
    share = len(marked(steady)) / samples
    if expected in (0.0, 1.0):
        assert share == expected
    else:
        deviation = (expected * (1 - expected) / samples) ** 0.5
        assert abs(share - expected) < 4 * deviation


def test_a_depth_without_a_probability_is_not_marked() -> None:
    """Check TNA's default entries, which have no depth between the thresholds."""
    rig = QueueRig("ecn", step(0), architecture="tna")
    red = [n.to_bytes(size, "big") for n, size in ((0, 4), (0x7FFFF, 4), (1, 4))]
    rig.switch.table_set_default("Egress.stages.stage.ecn_threshold", ("action", "Egress.stages.stage.red", red))
    rig.inject(burst(50))
    assert marked(rig.run()) == []


def test_without_thresholds_nothing_is_marked() -> None:
    """Check the program as compiled: the table is empty and its default action has no effect."""
    rig = QueueRig("ecn", step(0))
    rig.switch.table_set_default("SwitchEgress.stage.ecn_threshold", None)
    rig.inject(burst(50))
    assert marked(rig.run()) == []


def test_an_empty_queue_marks_nothing(make_rig: MakeRig) -> None:
    received = make_rig("ecn", step(0)).run([Sent(1, FLOW.data())])[OUT]
    assert [ecn_of(frame) for frame in received] == [ECT0]


def test_thresholds_grow_with_the_rate_and_what_ports_share_is_the_default() -> None:
    view = replace(VIEW, port_rates_bps={1: 100_000_000_000, 2: 100_000_000_000, 3: 400_000_000_000})
    entries = programs.parameters("ecn", {}).entries(view)
    defaults = [entry for entry in entries if isinstance(entry, DefaultAction)]
    own = [entry for entry in entries if isinstance(entry, TableEntry) and entry.table == "ecn_threshold"]
    assert [entry.action.params for entry in defaults] == [{"kmin_cells": 5000, "kmax_cells": 20000, "span": 75000}]
    assert {entry.match["port"] for entry in own} == {Exact(3)}
    assert len(own) == 8
    assert all(params_of(entry)["kmin_cells"] == 20000 for entry in own)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"kmin_byte": 3}, "program.kmin_byte: no such key; did you mean 'kmin_bytes'?"),
        ({"pmax": 0.0}, "program.pmax:"),
        ({"kmin_bytes": 10, "kmax_bytes": 5}, "kmin_bytes should not exceed kmax_bytes (5)"),
        ({"kmin_bytes": "much"}, "program.kmin_bytes:"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, object], text: str) -> None:
    with pytest.raises(UserError) as raised:
        programs.parameters("ecn", parameters)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)
