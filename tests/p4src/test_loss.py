"""`switch.loss` in every program: losses of arriving packets, and of each copy that leaves."""

from __future__ import annotations

import pytest

from control_plane.pipelines import LOSS
from control_plane.programs.base import names
from tests.p4src.conftest import MakeRig
from tests.p4src.packets import Flow, psn_of
from tests.p4src.rigs import Sent

FLOW = Flow()


def test_what_is_lost_is_counted_where_it_is_lost(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", **{LOSS: "300000"})
    received = rig.run([Sent(1, FLOW.data(number)) for number in range(400)])
    arrived = [psn_of(frame) for frame in received[2]]
    lost_in, lost_out = rig.counter("lost_in", 0), rig.counter("lost_out", 0)
    assert len(arrived) + lost_in + lost_out == 400
    assert arrived == sorted(set(arrived))
    # The means are 120 and 84, and the standard deviations 9 and 8.
    assert 60 < lost_in < 180
    assert 36 < lost_out < 140


@pytest.mark.parametrize("program", names())
def test_every_program_can_lose_everything(make_rig: MakeRig, program: str) -> None:
    rig = make_rig(program, **{LOSS: "1000000"})
    received = rig.run([Sent(1, FLOW.data(number)) for number in range(3)])
    assert not any(received.values())
    assert (rig.counter("lost_in", 0), rig.counter("lost_out", 0)) == (3, 0)


def test_nothing_is_lost_with_a_loss_of_0(make_rig: MakeRig) -> None:
    rig = make_rig("ecn", **{LOSS: "0"})
    received = rig.run([Sent(1, FLOW.data(number)) for number in range(3)])
    assert [psn_of(frame) for frame in received[2]] == [0, 1, 2]
    assert (rig.counter("lost_in", 0), rig.counter("lost_out", 0)) == (0, 0)
