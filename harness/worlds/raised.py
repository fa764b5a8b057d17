"""Description of an exception of a protocol or load balancer during a run: object, place, time and reason.

It costs nothing during a run, because the objects are found in the frames of the traceback.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import PurePath
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from harness.errors import CheckError, CodeError
from host_agents import registry
from host_agents.cc.base import Point
from host_agents.errors import LimitError
from host_agents.lb.base import LoadBalancer
from p4switch.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.worlds.host_session import HostSession


class NamedErrors(AbstractContextManager[None]):
    """Context that turns exceptions of a protocol or load balancer into a CodeError with place and time."""

    def __init__(
        self,
        cc: str,
        lb: str,
        hosts: Callable[[], Iterable[tuple[str, HostSession]]],
        now_ns: Callable[[], int],
    ) -> None:
        """Prepare the context.

        `cc` and `lb` are the names of protocol and load balancer. `hosts` and `now_ns` are called
        only after an exception.
        """
        self._cc = cc
        self._lb = lb
        self._hosts = hosts
        self._now_ns = now_ns

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # SystemExit of a protocol would end the command without a message.
        if not isinstance(error, Exception | SystemExit) or isinstance(error, UserError | CheckError | MemoryError):
            return
        frames = list(traceback.walk_tb(trace))
        asked = error.point if isinstance(error, LimitError) else None  # the point whose limit was exceeded
        parts = [part for frame, _ in reversed(frames) if (part := _part_of(frame)) is not None]
        part = asked if isinstance(asked, Point) else next(iter(parts), None)
        if part is not None:
            title = f"{self._who(part)} raised{self._where(part)} after {self._now_ns() / 1e3:,.3f} us of model time:"
            place = [] if part is asked else _last_place(frames)
            lines = "\n".join([title, *place, traceback.format_exception_only(error)[-1].rstrip()])
            raise CodeError(lines, "".join(traceback.format_exception(error))) from error

    def _who(self, part: Point | LoadBalancer) -> str:
        key, name = ("lb", self._lb) if isinstance(part, LoadBalancer) else ("cc", self._cc.partition("+")[0])
        return registry.KINDS[key].described(name)

    def _where(self, part: Point | LoadBalancer) -> str:
        """Return the host and the flow if they are known."""
        for name, session in self._hosts():
            number = session.connection_of(part)
            if number is not None:
                flow = session.flow_on(number)
                return f" at host {name}, {f'queue pair {number}' if flow is None else f'flow {flow}'},"
        return ""


def _part_of(frame: FrameType) -> Point | LoadBalancer | None:
    """Return the protocol or load balancer object of a method's frame; compiled code has no such frames."""
    owner = frame.f_locals.get("self")
    return owner if isinstance(owner, Point | LoadBalancer) else None


def _is_of_hosts(frame: FrameType) -> bool:
    """Return whether a frame belongs to the hosts' own code, compiled (with relative file names) or not."""
    return any(part == "host_agents" for part in PurePath(frame.f_code.co_filename).parts)


def _last_place(frames: list[tuple[FrameType, int]]) -> list[str]:
    """Return the last place in code that is not the hosts' own, and its line."""
    outside = [(frame, line) for frame, line in frames if not _is_of_hosts(frame)]
    frame, line = (outside or frames)[-1]
    summary = traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_name)
    return [text.rstrip() for text in traceback.format_list([summary])[0].splitlines()]
