"""Attacks on performance isolation: flows are broken up to evade congestion control.

A user who may open queue pairs at will can have one message sent by several of them (thesis, chapter 3):

parallel    all pieces start with the flow: per-QP fairness counts each of them (3.5.1)
staggered   a piece starts every `gap_ns`: each is sent at line rate before any feedback on congestion (3.5.2)

An attack rewrites any workload's flows. The world only has pieces; a flow ends when its last piece ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness.workloads.base import MAX_FLOWS, Flow, Traffic
from p4switch.errors import UserError

if TYPE_CHECKING:
    from harness.workloads.collective_record import CollectiveReport


@dataclass(frozen=True)
class Attack:
    """Attack that breaks each flow of at least `over_bytes` from one of `hosts` (indices) into pieces.

    Either each piece has `piece_bytes`, or a flow has `pieces` of them. With kind `none` flows stay
    whole, but are attributed to attackers and victims.
    """

    kind: Literal["none", "parallel", "staggered"]
    hosts: frozenset[int]
    over_bytes: int
    piece_bytes: int | None
    pieces: int | None
    gap_ns: int

    def resolved(self) -> dict[str, Any]:
        """Return the attack with values for keys that a scenario may omit."""
        return {"over_bytes": self.over_bytes, "piece_bytes": self.piece_bytes, "gap_ns": self.gap_ns}

    def aims_at(self, flow: Flow) -> bool:
        return flow.source in self.hosts and flow.size_bytes >= self.over_bytes

    def _cut(self, flow: Flow) -> tuple[int, int, int]:
        """Return the number of pieces, their size, and the time between their starts."""
        size_bytes = -(-flow.size_bytes // self.pieces) if self.pieces else self.piece_bytes
        assert size_bytes is not None
        gap_ns = self.gap_ns if self.kind == "staggered" else 0
        count = -(-flow.size_bytes // size_bytes)
        if flow.stop_ns is not None and gap_ns:
            count = min(count, -(-(flow.stop_ns - flow.start_ns) // gap_ns))
        return count, size_bytes, gap_ns

    def pieces_of(self, flow: Flow) -> int:
        """Return the number of pieces of a flow.

        Raises UserError if there are too many.
        """
        count, _, _ = self._cut(flow)
        if count > MAX_FLOWS:
            raise UserError(f"attack.piece_bytes: makes {count:.2g} pieces of a flow; expected at most {MAX_FLOWS}")
        return count

    def broken_up(self, flow: Flow) -> Iterator[Flow]:
        """Yield the pieces of a flow, each on a queue pair of its own.

        If a flow stops at a given time, no piece starts later. In a staggered attack on such a flow
        each piece stops when the next one starts, so there is always one queue pair that sends.
        """
        count, size_bytes, gap_ns = self._cut(flow)
        for i in range(count):
            own_bytes = min(size_bytes, flow.size_bytes - i * size_bytes)
            start_ns = flow.start_ns + i * gap_ns
            stop_ns = flow.stop_ns
            if stop_ns is not None and gap_ns:
                stop_ns = min(stop_ns, start_ns + gap_ns)
            incast = flow.incast if i == 0 else None  # only one message of the flow announces the incast
            piece = copy(flow)
            piece.size_bytes, piece.start_ns, piece.stop_ns = own_bytes, start_ns, stop_ns
            piece.qp, piece.incast = None, incast
            yield piece


def attacked(traffic: Traffic, attack: Attack) -> Traffic:
    """Return the traffic under an attack.

    Raises UserError if there are too many pieces.
    """
    broken = _Attacked(traffic, attack)
    # A fixed list of flows remains one, so that worlds know that deliveries have no consequences.
    attacked_traffic = Traffic(broken.flows, traffic.assignments) if type(traffic) is Traffic else broken
    attacked_traffic.failed_links = traffic.failed_links
    return attacked_traffic


class _Attacked(Traffic):
    """Traffic under an attack, which reports a flow to its workload when the last piece ends."""

    def __init__(self, traffic: Traffic, attack: Attack) -> None:
        self._traffic = traffic
        self._attack = attack
        self._known = 0  # number of flows so far
        # Number of pieces that have not ended, by the flow's identity. Pieces refer to their flow,
        # so the identity stays unique.
        self._undelivered: dict[int, int] = {}
        self._uncompleted: dict[int, int] = {}
        self._sent_bytes: dict[int, int] = {}  # bytes of the pieces that have ended, by the flow's identity
        super().__init__(self._pieces_of(traffic.flows), traffic.assignments)

    @property
    def follows_deliveries(self) -> bool:
        return self._traffic.follows_deliveries

    @property
    def follows_completions(self) -> bool:
        return self._traffic.follows_completions

    @property
    def local(self) -> bool:
        return self._traffic.local

    @property
    def flow_bytes(self) -> int | None:
        return self._traffic.flow_bytes

    def _pieces_of(self, flows: Iterable[Flow]) -> list[Flow]:
        pieces_so_far: list[Flow] = []
        for flow in flows:
            flow.index = self._known
            self._known += 1
            attacks = self._attack.aims_at(flow)
            breaks = attacks and self._attack.kind != "none"
            flow.role = "attacker" if attacks else "victim"
            flow.pieces = self._attack.pieces_of(flow) if breaks else 1
            if len(pieces_so_far) + flow.pieces > MAX_FLOWS:
                raise UserError(f"attack: makes over {MAX_FLOWS} pieces of the workload's flows; expected fewer")
            pieces = list(self._attack.broken_up(flow)) if breaks else [copy(flow)]
            for piece in pieces:
                piece.whole = flow
            pieces_so_far += pieces
        return pieces_so_far

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        whole = _whole(flow)
        if _more(self._undelivered, whole):
            return ()
        return self._pieces_of(self._traffic.on_delivered(whole, now_ns))

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        whole = _whole(flow)
        self._sent_bytes[id(whole)] = self._sent_bytes.get(id(whole), 0) + flow.size_bytes
        if _more(self._uncompleted, whole):
            return ()
        whole.size_bytes = self._sent_bytes.pop(id(whole))  # less than the requested size if it was stopped
        return self._pieces_of(self._traffic.on_completed(whole, now_ns))

    def on_end(self, reports: Mapping[int, CollectiveReport]) -> None:
        self._traffic.on_end(reports)

    def part(self, owns: Callable[[int], bool]) -> object:
        return self._traffic.part(owns)

    def join(self, part: Any) -> None:
        self._traffic.join(part)

    def summary(self) -> dict[str, Any]:
        return self._traffic.summary()


def _more(left: dict[int, int], whole: Flow) -> bool:
    """Count one ended piece of a flow, and return whether pieces are left."""
    left[id(whole)] = left.get(id(whole), whole.pieces) - 1
    if left[id(whole)]:
        return True
    del left[id(whole)]
    return False


def _whole(piece: Flow) -> Flow:
    assert piece.whole is not None
    return piece.whole
