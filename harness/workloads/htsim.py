"""Connection matrices of htsim (.cm): flows with start times, and flows that triggers start.

    Nodes 128
    Connections 2
    Triggers 1
    0->5 id 1 start 0 size 2000000 send_done_trigger 1
    5->7 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

A flow of size 0 sends as long as the run lasts. A `oneshot` trigger starts its flows once,
`multishot` starts the next of them each time, a `barrier` with `count n` fires when it has been hit
n times. Times are picoseconds in current files and were microseconds in older ones.

`failure switch_type AGG switch_id N link_id M` takes a link down from the beginning: the M-th
uplink of the N-th switch of the second tier, both from 0. As in htsim no route uses it, unless the
scenario sets another `reroute_after_ns`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from harness.workloads.base import ENDLESS_BYTES, Flow, Setting, TimedParameters, Traffic, expect_flows, register
from harness.workloads.files import Classes, ends, read_lines, time_ns, whole
from p4switch.errors import UserError

_PER_NS = {"ps": Decimal("0.001"), "ns": Decimal(1), "us": Decimal(1000)}
_CONNECTION_KEYS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "msg")
_ALONE = "msg"  # the key that may have no value
_HEADER = ("Nodes", "Connections", "Triggers", "Failures")
_KINDS = ("oneshot", "multishot", "barrier")
_FAILURE_KEYS = ("switch_type", "switch_id", "link_id")
_AGG_TIER = 1
_MOST_NUMBER = 1 << 32  # htsim's limit for hosts, flows and triggers


@register("htsim")
class HtsimMatrix(TimedParameters):
    """Flows of a `file`, which is relative to the scenario.

    Priorities become classes according to `classes`; without it they are ignored.
    """

    file: str  # a connection matrix (.cm), relative to the scenario
    time_unit: Literal["ps", "ns", "us"] = "ps"  # unit of the file's start times
    size_bytes: Annotated[int, Field(gt=0)] | None = None  # size of every flow; None: the sizes of the file
    classes: Classes = {}  # class of data by the file's `prio`, as "3"; others: the NIC's class

    def generate(self, setting: Setting) -> Traffic:
        return _Reader(self, setting).read()


@dataclass
class _Trigger:
    kind: str = ""
    hits_left: int = 1
    waiting: deque[Flow] = field(default_factory=deque)

    def hit(self) -> list[Flow]:
        """Return the flows that the trigger starts now."""
        self.hits_left -= 1
        if self.kind == "multishot":
            return [self.waiting.popleft()] if self.waiting else []
        if self.hits_left:
            return []
        flows = list(self.waiting)
        self.waiting.clear()
        return flows


class _Triggered(Traffic):
    def __init__(
        self, flows: list[Flow], triggers: dict[int, _Trigger], sent: dict[int, int], received: dict[int, int]
    ) -> None:
        super().__init__(flows)
        self._triggers = triggers
        self._sent = sent  # triggers by flow (by identity)
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
        self._size_bytes = matrix.size_bytes
        self._setting = setting
        self._classes = matrix.classes
        self._all: list[Flow] = []  # keeps flows alive, because their identity is used as key
        self._started: list[Flow] = []
        self._triggers: dict[int, _Trigger] = {}
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}
        self._failed: list[tuple[str, str]] = []

    def read(self) -> Traffic:
        declared: dict[str, int] = {}
        for number, words in read_lines(self._path):
            where = f"{self._path}:{number}"
            if not words or words[0].startswith("#"):
                continue
            if words[0] in _HEADER:
                declared[words[0]] = self._integer(where, words[1] if len(words) > 1 else "")
                expect_flows("file", declared.get("Connections", 0))
            elif "->" in words[0]:
                self._connection(where, words)
            elif words[0] == "trigger":
                self._trigger(where, words[1:])
            elif words[0] == "failure":
                self._failed.append(self._failure(where, words[1:]))
            else:
                raise UserError(f"{where}: expected a connection, a trigger or a failure, got {words[0]!r:.80}")
        kinds = sum(bool(trigger.kind) for trigger in self._triggers.values())
        for what, counted in (("Connections", len(self._all)), ("Triggers", kinds), ("Failures", len(self._failed))):
            if declared.get(what, counted) != counted:
                raise UserError(f"{self._path}: says {declared[what]} {what.lower()}; there are {counted}")
        for identifier, trigger in self._triggers.items():
            if not trigger.kind:
                raise UserError(f"{self._path}: trigger {identifier} is used and not declared")
        traffic = Traffic(self._started)
        if self._triggers:
            traffic = _Triggered(self._started, self._triggers, self._sent, self._received)
        traffic.failed_links = tuple(self._failed)
        return traffic

    def _connection(self, where: str, words: list[str]) -> None:
        source, _, destination = words[0].partition("->")
        values = self._pairs(where, words[1:])
        if "size" not in values or ("start" in values) == ("trigger" in values):
            raise UserError(f"{where}: expected a size, and either a start or a trigger")
        size_bytes = whole(where, values["size"], "a size in bytes") or ENDLESS_BYTES
        if self._size_bytes is not None:
            size_bytes = self._size_bytes
        hosts = ends(where, self._integer(where, source), self._integer(where, destination), self._setting)
        flow = Flow(*hosts, size_bytes, time_ns(where, values.get("start", "0"), self._per_ns))
        self._integer(where, values.get("id", "0"))
        flow.priority = self._classes.get(str(self._integer(where, values.get("prio", "0"))))
        expect_flows("file", len(self._all) + 1)
        self._all.append(flow)
        if "trigger" in values:
            self._named(where, values["trigger"])[1].waiting.append(flow)
        else:
            self._started.append(flow)
        for key, table in (("send_done_trigger", self._sent), ("recv_done_trigger", self._received)):
            if key in values:
                table[id(flow)] = self._named(where, values[key])[0]

    def _trigger(self, where: str, words: list[str]) -> None:
        kinds = [word for word in words if word in _KINDS]
        rest = [word for word in words if word not in _KINDS]
        values = dict(zip(rest[::2], rest[1::2], strict=False))
        if len(kinds) != 1 or len(rest) % 2 or "id" not in values or not set(values) <= {"id", "count"}:
            raise UserError(f"{where}: expected 'trigger id N' and oneshot, multishot, or barrier with 'count N'")
        identifier, trigger = self._named(where, values["id"])
        if trigger.kind:
            raise UserError(f"{where}: trigger {identifier} is declared twice")
        (trigger.kind,) = kinds
        if trigger.kind == "barrier":
            trigger.hits_left = whole(where, values.get("count", ""), "a count", _MOST_NUMBER, least=1)

    def _failure(self, where: str, words: list[str]) -> tuple[str, str]:
        """Return the ends of the link that a line takes down."""
        values = dict(zip(words[::2], words[1::2], strict=False))
        if len(words) != 2 * len(_FAILURE_KEYS) or set(values) != set(_FAILURE_KEYS):
            raise UserError(f"{where}: expected 'failure switch_type AGG switch_id N link_id N'")
        if values["switch_type"] != "AGG":
            raise UserError(f"{where}: switch_type {values['switch_type']!r:.80}; expected AGG, as htsim does")
        topology = self._setting.topology
        tiers = {switch.name: switch.tier for switch in topology.switches}
        switches = [name for name, tier in tiers.items() if tier == _AGG_TIER]
        name = self._one_of(where, "switch_id", values, switches)
        up = [there.node for _, there in sorted(topology.ports[name].items()) if tiers.get(there.node, 0) > _AGG_TIER]
        return name, self._one_of(where, "link_id", values, up)

    def _one_of(self, where: str, key: str, values: dict[str, str], there: list[str]) -> str:
        number = self._integer(where, values[key])
        if number >= len(there):
            name = self._setting.topology.name
            raise UserError(f"{where}: {key} {number}; topology {name!r} has {len(there)} of them, from 0")
        return there[number]

    def _named(self, where: str, word: str) -> tuple[int, _Trigger]:
        identifier = self._integer(where, word)
        return identifier, self._triggers.setdefault(identifier, _Trigger())

    @staticmethod
    def _pairs(where: str, words: list[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        left = deque(words)
        while left:
            key = left.popleft()
            alone = key == _ALONE and (not left or left[0] in _CONNECTION_KEYS)
            if key not in _CONNECTION_KEYS or key in values or not (alone or left):
                raise UserError(f"{where}: expected pairs of a key ({', '.join(_CONNECTION_KEYS)}) and a value")
            values[key] = "" if alone else left.popleft()
        return values

    @staticmethod
    def _integer(where: str, word: str) -> int:
        return whole(where, word, most=_MOST_NUMBER)
