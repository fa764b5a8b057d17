"""Connection matrices of htsim (.cm): flows with start times, or started by triggers when others are done.

    Nodes 128
    Connections 2
    Triggers 1
    0->5 id 1 start 0 size 2000000 send_done_trigger 1
    5->7 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

A `oneshot` trigger starts its flows once, `multishot` starts the next of them each time, a `barrier` with `count n`
fires when it has been hit n times. Times are picoseconds in current files and were microseconds in older ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Literal

from harness.workloads.base import Flow, Setting, TimedParameters, Traffic, register
from harness.workloads.files import host, read_lines
from p4switch.errors import UserError

_PER_NS = {"ps": Decimal("0.001"), "ns": Decimal(1), "us": Decimal(1000)}
_CONNECTION_KEYS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "msg")


@register("htsim")
class HtsimMatrix(TimedParameters):
    """`file` is relative to the scenario. Priorities are not used."""

    file: str  # a connection matrix (.cm), relative to the scenario
    time_unit: Literal["ps", "ns", "us"] = "ps"  # of the file's start times

    def generate(self, setting: Setting) -> Traffic:
        return _Reader(self, setting).read()


@dataclass
class _Trigger:
    kind: str = ""
    hits_left: int = 1
    waiting: list[Flow] = field(default_factory=list)

    def hit(self) -> list[Flow]:
        """The flows that start now."""
        self.hits_left -= 1
        if self.kind == "multishot":
            return [self.waiting.pop(0)] if self.waiting else []
        if self.hits_left:
            return []
        flows, self.waiting = self.waiting, []
        return flows


class _Triggered(Traffic):
    def __init__(
        self, flows: list[Flow], triggers: dict[int, _Trigger], sent: dict[int, int], received: dict[int, int]
    ) -> None:
        super().__init__(flows)
        self._triggers = triggers
        self._sent = sent  # flow (by identity) -> trigger
        self._received = received

    @property
    def flow_bytes(self) -> int:
        waiting = [flow for trigger in self._triggers.values() for flow in trigger.waiting]
        return sum(flow.size_bytes for flow in [*self.flows, *waiting])

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        return self._fire(self._sent.get(id(flow)), now_ns)

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        return self._fire(self._received.get(id(flow)), now_ns)

    def _fire(self, trigger: int | None, now_ns: int) -> list[Flow]:
        started = [] if trigger is None else self._triggers[trigger].hit()
        for flow in started:
            flow.start_ns = now_ns
        return started


class _Reader:
    def __init__(self, matrix: HtsimMatrix, setting: Setting) -> None:
        self._path = setting.folder / matrix.file
        self._per_ns = _PER_NS[matrix.time_unit]
        self._setting = setting
        self._all: list[Flow] = []  # keeps them alive: they are known by identity
        self._started: list[Flow] = []
        self._triggers: dict[int, _Trigger] = {}
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}

    def read(self) -> Traffic:
        declared: dict[str, int] = {}
        for number, words in read_lines(self._path):
            where = f"{self._path}:{number}"
            if not words or words[0].startswith("#"):
                continue
            if words[0] in ("Nodes", "Connections", "Triggers", "Failures"):
                declared[words[0]] = self._integer(where, words[1] if len(words) > 1 else "")
            elif "->" in words[0]:
                self._connection(where, words)
            elif words[0] == "trigger":
                self._trigger(where, words[1:])
            else:
                raise UserError(f"{where}: expected a connection or a trigger, got {words[0]!r}")
        if declared.get("Failures"):
            raise UserError(f"{self._path}: link failures are not read from connection matrices")
        if declared.get("Connections", len(self._all)) != len(self._all):
            raise UserError(f"{self._path}: says {declared['Connections']} connections; there are {len(self._all)}")
        for identifier, trigger in self._triggers.items():
            if not trigger.kind:
                raise UserError(f"{self._path}: trigger {identifier} is used and not declared")
        if not self._triggers:
            return Traffic(self._started)
        return _Triggered(self._started, self._triggers, self._sent, self._received)

    def _connection(self, where: str, words: list[str]) -> None:
        source, _, destination = words[0].partition("->")
        values = self._pairs(where, words[1:])
        if "size" not in values or ("start" in values) == ("trigger" in values):
            raise UserError(f"{where}: expected a size, and either a start or a trigger")
        size = self._integer(where, values["size"])
        if size < 1:
            raise UserError(f"{where}: expected a positive size")
        from_host = host(where, self._integer(where, source), self._setting)
        to_host = host(where, self._integer(where, destination), self._setting)
        flow = Flow(from_host, to_host, size, self._time(where, values.get("start", "0")))
        self._all.append(flow)
        if "trigger" in values:
            self._named(where, values["trigger"])[1].waiting.append(flow)
        else:
            self._started.append(flow)
        for key, table in (("send_done_trigger", self._sent), ("recv_done_trigger", self._received)):
            if key in values:
                table[id(flow)] = self._named(where, values[key])[0]

    def _trigger(self, where: str, words: list[str]) -> None:
        kind = next((word for word in words if word in ("oneshot", "multishot", "barrier")), "")
        values = dict(pairwise(words))
        if not kind or "id" not in values:
            raise UserError(f"{where}: expected 'trigger id N' and oneshot, multishot or barrier")
        _, trigger = self._named(where, values["id"])
        trigger.kind = kind
        if kind == "barrier":
            trigger.hits_left = self._integer(where, values.get("count", ""))

    def _named(self, where: str, word: str) -> tuple[int, _Trigger]:
        identifier = self._integer(where, word)
        return identifier, self._triggers.setdefault(identifier, _Trigger())

    @staticmethod
    def _pairs(where: str, words: list[str]) -> dict[str, str]:
        if len(words) % 2 or any(key not in _CONNECTION_KEYS for key in words[::2]):
            raise UserError(f"{where}: expected pairs of a key ({', '.join(_CONNECTION_KEYS)}) and a value")
        return dict(zip(words[::2], words[1::2], strict=True))

    @staticmethod
    def _integer(where: str, word: str) -> int:
        if not word.isascii() or not word.isdigit():
            raise UserError(f"{where}: expected a number, got {word!r}")
        return int(word)

    def _time(self, where: str, word: str) -> int:
        try:
            return int(Decimal(word) * self._per_ns)
        except (InvalidOperation, ValueError, OverflowError):
            raise UserError(f"{where}: expected a time, got {word!r}") from None
