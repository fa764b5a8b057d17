"""NICs declare which arriving frames may cause a report, and report nothing earlier."""

from __future__ import annotations

from typing import Any

import pytest

from host_agents.timers import NEVER
from p4cc._link import Trouble, Wire, connect, pair


class Foreseeing(Wire):
    """Looks ahead over all frames on the link, as a fabric does at the beginning of a window."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.flying: list[list[tuple[int, bytes]]] = [[], []]  # by receiver: arrival and frame
        self.known_ns = [0, 0]  # no report before, by receiver
        self.reports = 0
        self.early: list[tuple[int, int, int]] = []  # reports that were not foreseen: receiver, when, known until
        self.asked = self.said_no = 0
        for side, nic in enumerate(self.nics):
            nic.on_delivered = nic.on_complete = lambda _, side=side: self._report(side)

    def _carry(self, side: int, arrival_ns: int, frame: bytes) -> None:
        trouble, chance = self.trouble, self._random
        for _ in range(2 if chance.random() < trouble.duplicate else 1):
            if chance.random() < trouble.loss:
                continue
            time_ns = arrival_ns + (chance.randrange(trouble.reorder_ns) if chance.random() < trouble.reorder else 0)
            self.flying[1 - side].append((time_ns, frame))
            self.known_ns[1 - side] = min(self.known_ns[1 - side], time_ns)  # it was not on the link then
            self._at(time_ns, lambda now: self._arrive(1 - side, now, frame))

    def _arrive(self, side: int, now_ns: int, frame: bytes) -> None:
        if now_ns > self.known_ns[side]:
            self.known_ns[side] = self._look(side, now_ns)
        self.flying[side].remove((now_ns, frame))
        super()._arrive(side, now_ns, frame)

    def _look(self, side: int, now_ns: int) -> int:
        for time_ns, frame in sorted(self.flying[side]):
            self.asked += 1
            if self.nics[side].may_report(frame):
                return time_ns
            self.said_no += 1
        return NEVER

    def _report(self, side: int) -> None:
        self.reports += 1
        if self.now_ns < self.known_ns[side]:
            self.early.append((side, self.now_ns, self.known_ns[side]))


@pytest.mark.parametrize("trouble", [Trouble(), Trouble(loss=0.01, reorder=0.05, duplicate=0.01)], ids=["fair", "bad"])
@pytest.mark.parametrize(
    ("protocol", "reliability"),
    [
        *((protocol, "go-back-n") for protocol in ("none", "hpcc", "dcqcn", "swift", "bbr")),
        *((protocol, "selective-repeat") for protocol in ("none", "hpcc", "dcqcn", "eqds", "nscc")),
    ],
)
def test_no_report_comes_before_a_frame_that_may_make_it(protocol: str, reliability: str, trouble: Trouble) -> None:
    nics = pair(protocol, reliability=reliability, rto_ns=200_000)
    wire = Foreseeing(*nics, delay_ns=3_000, trouble=trouble)
    for qpn in (1, 2, 3):
        queue_pairs = connect(*nics, qpn)
        for count, size_bytes in enumerate((1_000, 60_000, 3_000, 20_000, 1, 40_000)):
            queue_pairs[count % 2].post(size_bytes, start_ns=7_000 * count)
    wire.run(3_000_000)
    assert wire.early == []
    assert wire.reports == 3 * 6 * 2
    if protocol != "eqds":  # most frames are its pulls, of which this is not known
        assert wire.said_no > wire.asked / 3
