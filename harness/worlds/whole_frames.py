"""Frames with payload and ICRC in the virtual world, whose links otherwise carry headers only."""

from __future__ import annotations

from host_agents import wire
from host_agents.nic import Nic


class WholeFrames:
    """NIC for the fabric that sends complete frames, for peers that check the ICRC (`nic.check_icrc`)."""

    def __init__(self, nic: Nic) -> None:
        self.receive = nic.receive
        self.next_wakeup_ns = nic.next_wakeup_ns
        self.may_report = nic.may_report
        self._next_frame = nic.next_frame

    def next_frame(self, now_ns: int) -> bytes | None:
        frame = self._next_frame(now_ns)
        return None if frame is None else wire.materialize(frame)
