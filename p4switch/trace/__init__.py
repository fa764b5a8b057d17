"""Trace of a packet in a pipeline: its events, and three formats for them.

    traced = build_traced(json)
    switch = load().Switch(str(traced.library))
    switch.set_tracing(True)
    switch.process(port, frame)
    trace = Trace(Decoder(traced)(switch.traced()[0]))
    print(trace.text(), trace.json_lines(), trace.log())

`text` is for people, `json_lines` is for programs, and `log` has the format of BMv2's simple_switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

from p4switch.trace.decode import Decoder, RawEvent, decode_pipes
from p4switch.trace.difference import Layout, differences, layouts
from p4switch.trace.events import Event, hexadecimal
from p4switch.trace.log import log_line, log_lines
from p4switch.trace.text import from_json_line, json_line, plain, styled

_Kind = TypeVar("_Kind", bound=Event)

__all__ = [
    "Decoder", "Event", "Layout", "RawEvent", "Trace", "decode_pipes", "differences", "from_json_line",
    "hexadecimal", "json_line", "layouts", "log_line", "log_lines", "plain", "styled",
]  # fmt: skip


class Trace(Sequence[Event]):
    """Events of one packet, or of several, in the order in which they happened."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = tuple(events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Trace: ...
    def __getitem__(self, index: int | slice) -> Event | Trace:
        return Trace(self._events[index]) if isinstance(index, slice) else self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """Return the events of one kind, a class of `p4switch.trace.events`."""
        return [event for event in self._events if isinstance(event, kind)]

    def text(self) -> str:
        """Return a line for each event, without colours."""
        return "\n".join(map(plain, self._events))

    def json_lines(self) -> str:
        """Return a JSON object for each line."""
        return "\n".join(map(json_line, self._events))

    def log(self) -> str:
        """Return the log of simple_switch with `--log-console -L trace`, but without times."""
        return "\n".join(line for event in self._events for line in log_lines(event))

    def __str__(self) -> str:
        return self.text()
