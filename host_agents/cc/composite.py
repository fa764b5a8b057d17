"""Protocol that consists of others, for example EQDS with SMaRTT's window."""

from __future__ import annotations

from librt.vecs import vec
from mypy_extensions import mypyc_attr

from host_agents.cc.base import MAX_RATE_BPS, UNLIMITED, Feedback, Outlet, Path, ReactionOutlet, ReactionPoint, Trimmed
from host_agents.errors import HostError


@mypyc_attr(allow_interpreted_subclasses=True)
class CompositeReactionPoint(ReactionPoint):
    """Reaction point of several parts; its rate and window are the minimum of theirs and its own.

    A subclass overrides `on_...` methods, and calls those of this class for the parts. To limit
    rate and window itself it sets `own_rate_bps` and `own_window_bytes` and then calls `follow`.
    Raises HostError for a part that uses more than rate and window, because only one reaction point
    can determine the form of data packets.
    """

    def __init__(self, path: Path, parts: list[ReactionPoint]) -> None:
        super().__init__(path)
        self.own_rate_bps = path.line_rate_bps
        self.own_window_bytes = UNLIMITED
        self.parts = vec[ReactionPoint](parts)  # a list would check the type of each item whenever it is read
        # Parts with an `on_sent` of their own. Most parts have none, and data packets are frequent.
        self._sending_parts = vec[ReactionPoint](
            [part for part in parts if type(part).on_sent is not ReactionPoint.on_sent]
        )
        self._trimmed: Trimmed | None = None  # the last trimmed packet, which is passed to the parts
        for part in parts:
            if part.shapes_data:
                raise HostError(
                    f"{type(part).__name__} cannot be a part of another protocol: it has headers of its own on data "
                    "packets, or messages that travel alone; expected a part that sets rate and window only"
                )
            part.whole = self
        self.follow()

    @property
    def at_rest(self) -> bool:
        for part in self.parts:  # noqa: SIM110  # a vec
            if not part.at_rest:
                return False
        return True

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        for part in self.parts:
            part.bind(outlet)

    def close(self) -> None:
        super().close()
        for part in self.parts:
            part.close()

    def may_send(self, inflight_bytes: int) -> bool:
        if not inflight_bytes < self.window_bytes:
            return False
        for part in self.parts:  # noqa: SIM110  # asked for every packet, and a generator costs more
            if not part.may_send(inflight_bytes):
                return False
        return True

    def on_start(self, now_ns: int) -> None:
        for part in self.parts:
            part.on_start(now_ns)
        self.follow()

    def on_incast(self, now_ns: int, outlet: Outlet, sequence: int, number: int, members: tuple[int, ...]) -> None:
        for part in self.parts:
            part.on_incast(now_ns, outlet, sequence, number, members)

    def on_post(self, now_ns: int) -> None:
        for part in self.parts:
            part.on_post(now_ns)
        self.follow()

    def on_idle(self, now_ns: int) -> None:
        for part in self.parts:
            part.on_idle(now_ns)
        self.follow()

    def on_requeued(self, now_ns: int) -> None:
        for part in self.parts:
            part.on_requeued(now_ns)
        self.follow()

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        if len(self._sending_parts) == 0:
            return
        for part in self._sending_parts:
            part.on_sent(now_ns, wire_bytes)
        self.follow()

    def on_ack(self, feedback: Feedback) -> None:
        if len(self.parts) == 0:
            return
        for part in self.parts:
            part.on_ack(feedback)
        self.follow()

    def on_trimmed(self, trimmed: Trimmed) -> None:
        self._trimmed = trimmed
        self.on_nack(trimmed.now_ns, trimmed.wire_bytes, True)
        self._trimmed = None

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        details = self._trimmed
        for part in self.parts:
            if details is None:
                part.on_nack(now_ns, wire_bytes, trimmed)
            else:
                part.on_trimmed(details)
        self.follow()

    def on_expired(self, now_ns: int, wire_bytes: int) -> None:
        for part in self.parts:
            part.on_expired(now_ns, wire_bytes)

    def on_timeout(self, now_ns: int) -> None:
        for part in self.parts:
            part.on_timeout(now_ns)
        self.follow()

    def on_cnp(self, now_ns: int) -> None:
        for part in self.parts:
            part.on_cnp(now_ns)
        self.follow()

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        for part in self.parts:
            part.on_control(now_ns, opcode, frame, offset)
        self.follow()

    def on_part_changed(self) -> None:
        self.follow()
        self.outlet.window_opened()

    def follow(self) -> None:
        """Set rate and window to the minimum of the parts' and its own.

        Raises LimitError if a part has an invalid rate or window.
        """
        rate_bps = self.own_rate_bps
        window_bytes = self.own_window_bytes
        for part in self.parts:
            part_bps = part.rate_bps
            part_bytes = part.window_bytes
            if not (0.0 < part_bps <= MAX_RATE_BPS and part_bytes >= 0.0):  # also true for NaN
                part.expect_limits()
            if part_bps < rate_bps:
                rate_bps = part_bps
            if part_bytes < window_bytes:
                window_bytes = part_bytes
        self.window_bytes = window_bytes
        if rate_bps != self.rate_bps:
            self.set_rate(rate_bps)
