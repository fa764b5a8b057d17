"""Packets of a traced flow, each with its hops.

`trace.jsonl` has the events at each node, in order of time.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from p4switch.errors import UserError
from p4switch.regular_file import open_regular
from reports.replay.network import Network
from reports.replay.pack import Array

MOST_EVENTS = 400_000  # later packets are left out if there are more events
HOPS = ("send", "receive", "enqueue", "transmit", "drop")
PIPELINE = len(HOPS)  # kind of events of a pipeline
_NO_NUMBER = -1


@dataclass
class Packet:
    """Packet with its `events`: (time_ns, node, kind, port, depth_bytes, text), by time."""

    number: int
    wire_bytes: int
    psn: int = _NO_NUMBER
    events: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Trace:
    """Trace of a flow; texts are stored once and referenced by number."""

    packets: list[Packet]
    texts: list[str]
    left_out: int

    def cut(self, count: int) -> Trace:
        """Return the trace without packets from number `count` on, and without their texts."""
        packets = self.packets[:count]
        used = {text for packet in packets for *_, text in packet.events}
        texts = [text if i in used else "" for i, text in enumerate(self.texts)]
        return replace(self, packets=packets, texts=texts, left_out=self.left_out + len(self.packets) - len(packets))

    @property
    def arrays(self) -> dict[str, Array]:
        events = [event for packet in self.packets for event in packet.events]
        columns = np.array(events, np.int64).reshape(-1, 6)
        names = ("time", "node", "kind", "port", "depth", "text")
        first = np.cumsum([0, *(len(packet.events) for packet in self.packets)])
        return {
            **{f"event_{name}": columns[:, i] for i, name in enumerate(names)},
            "packet_first": first,
            "packet_psn": np.array([packet.psn for packet in self.packets], np.int64),
            "packet_bytes": np.array([packet.wire_bytes for packet in self.packets], np.int64),
        }


def packets(path: Path, network: Network) -> Trace | None:
    """Return the traced packets; None if nothing was traced.

    Raises UserError for a damaged file.
    """
    if not os.path.lexists(path):
        return None
    follower = _Follower(network)
    with io.TextIOWrapper(open_regular(path), encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            try:
                follower.note(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                reason = f"line {number}: {type(error).__name__}: {error}"
                raise UserError(f"{path}: damaged: {reason}; expected what p4cc run --trace writes") from None
    return follower.trace()


class _Follower:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._packets: dict[int, Packet] = {}  # by id
        self._texts: dict[str, int] = {"": 0}
        self._tables: dict[int, dict[str, Any]] = {}  # table lookup whose action comes next, by node

    def note(self, event: Mapping[str, Any]) -> None:
        """Add one line of the trace."""
        node = self._network.index[event["node"]]
        kind, number = event["event"], int(event["id"])
        if number not in self._packets:
            psn = _NO_NUMBER if event["psn"] is None else int(event["psn"])
            self._packets[number] = Packet(len(self._packets), event["bytes"], psn)
        packet = self._packets[number]
        if kind in HOPS:
            text = event.get("reason", "")
            self._add(packet, event, node, HOPS.index(kind), event["port"], event["depth_bytes"], text)
            return
        for text in self._details(node, kind, event):
            self._add(packet, event, node, PIPELINE, -1, -1, text)

    def trace(self) -> Trace:
        kept, total = 0, 0
        for packet in self._packets.values():
            total += len(packet.events)
            if total > MOST_EVENTS:
                break
            kept += 1
        return Trace(list(self._packets.values()), list(self._texts), 0).cut(kept)

    def _add(
        self, packet: Packet, event: Mapping[str, Any], node: int, kind: int, port: int, depth: int, text: str
    ) -> None:
        number = self._texts.setdefault(text, len(self._texts))
        packet.events.append((int(event["time_ns"]), node, kind, port, depth, number))

    def _details(self, node: int, kind: str, event: Mapping[str, Any]) -> Iterator[str]:
        """Yield the actions of tables, changes of fields, and the fate of the packet."""
        if kind == "PipelineEntered":
            yield event["pipeline"]
        elif kind == "TableApplied":
            self._tables[node] = dict(event)
        elif kind == "ActionRun":
            table = self._tables.pop(node, {"table": event["table"], "key": [], "entry": None})
            yield f"{_short(table['table'])}: {_lookup(table)}{_action(event)}"
        elif kind in ("StatementRun", "ChecksumUpdated") and event["changes"]:
            yield "  " + ", ".join(map(_change, event["changes"]))
        elif kind == "ChecksumVerified" and not event["right"]:
            yield f"checksum {_short(event['field'])} is wrong"
        elif kind in ("Cloned", "Multicast", "Resubmitted", "Recirculated", "ParserFailed"):
            yield kind.lower() + "".join(f" {event[key]}" for key in ("session", "group", "error") if key in event)
        elif kind == "Generated":
            yield f"application {event['application']} generates a packet"
        elif kind == "QueueStopped":
            yield f"queue {event['queue']} of port {event['port']} {'stops' if event['stopped'] else 'goes on'}"
        elif kind == "Logged":
            yield f"log: {event['text']}"


def _short(name: str) -> str:
    """Return a name without the names of enclosing blocks."""
    return ".".join(name.split(".")[-2:])


def _change(change: Mapping[str, Any]) -> str:
    return f"{_short(change['name'])} {change['before'] or '?'} → {change['now'] or '?'}"


def _lookup(table: Mapping[str, Any]) -> str:
    if not table["key"]:
        return ""
    key = ", ".join(f"{_short(k['name'])}={k['value']}" for k in table["key"])
    if table["entry"] is None:
        return f"{key} misses, "
    return f"{key} hits {', '.join(str(k['match']) for k in table['key'])}, "


def _action(event: Mapping[str, Any]) -> str:
    arguments = ", ".join(f"{argument['name']}={argument['value']}" for argument in event["arguments"])
    return f"{_short(event['action'])}({arguments})"
