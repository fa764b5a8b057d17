"""A flow's packets, hop by hop, and what each pipeline did with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.measure.recording import Writing
from harness.workloads import Traffic
from p4switch.errors import UserError
from p4switch.trace import Decoder, Event, RawEvent, json_line, plain
from p4switch.trace import events as ev

TraceRecord = tuple[int, int, str | RawEvent, int, int, int, int, int]  # see Fabric.trace_records

_WORDS = {
    "send": "leaves the host",
    "receive": "arrives at port {port}",
    "enqueue": "enqueued at port {port}, priority {priority}, behind {depth} bytes",
    "transmit": "leaves by port {port}, priority {priority}; {depth} bytes stay behind",
}
# What the fabric's own records tell, and with more.
_OF_THE_FABRIC = (ev.Received, ev.Enqueued, ev.Dequeued, ev.Dropped, ev.Transmitted)
_TELL_EVERY = 1000  # records


def told(records: Sequence[TraceRecord], writing: Writing | None) -> Iterator[TraceRecord]:
    """Each of them; `writing` is told what share of them is over."""
    for number, record in enumerate(records):
        if writing is not None and number % _TELL_EVERY == 0:
            writing(number / len(records))
        yield record


def hops(records: Iterable[TraceRecord], decoder: Callable[[], Decoder]) -> Iterator[tuple[TraceRecord, Event | None]]:
    """Each record, with the event where it is of a pipeline; `decoder` makes one for each switch."""
    decoders: dict[int, Decoder] = {}
    for record in records:
        node, event = record[1], record[2]
        if isinstance(event, str):
            yield record, None
            continue
        if node not in decoders:
            decoders[node] = decoder()
        for decoded in decoders[node]([event]):
            if not isinstance(decoded, _OF_THE_FABRIC):
                yield record, decoded


def explain(found: Iterable[tuple[TraceRecord, Event | None]], names: Sequence[str]) -> Iterator[str]:
    """One line an event: model time in ns, node, packet length, what happened to the flow's data."""
    for (time_ns, node, event, port, priority, depth, wire_bytes, _), decoded in found:
        if decoded is not None:
            yield f"{time_ns:>12} ns  {names[node]:<12} {plain(decoded)}"
            continue
        kind, _, rest = str(event).partition(":")
        words = f"dropped: {rest}" if kind == "drop" else _WORDS[kind].format(port=port, priority=priority, depth=depth)
        yield f"{time_ns:>12} ns  {names[node]:<12} {wire_bytes:>5} B {words}"


def as_json(found: Iterable[tuple[TraceRecord, Event | None]], names: Sequence[str]) -> Iterator[str]:
    """The same as JSON objects: `time_ns` and `node` before what a pipeline's event has, or the hop's numbers."""
    for (time_ns, node, event, port, priority, depth, wire_bytes, _), decoded in found:
        members: dict[str, object] = {"time_ns": time_ns, "node": names[node]}
        if decoded is not None:
            members |= json.loads(json_line(decoded))
        else:
            kind, _, reason = str(event).partition(":")
            members |= {"event": kind, "port": port, "priority": priority, "depth_bytes": depth, "bytes": wire_bytes}
            if reason:
                members["reason"] = reason
        yield json.dumps(members)


def check_trace(traffic: Traffic, trace: int, several: bool) -> None:
    """Whether flow number `trace` can be traced, where `several` workers share the run or one has it all.

    Raises UserError.
    """
    if not traffic.independent:
        if several:
            raise UserError("--trace: flows start when others are done; expected --workers 1 with it")
        return
    known = len({id(flow.whole or flow) for flow in traffic.flows})
    if trace >= known:
        numbers = f"a number from 0 to {known - 1}" if known else "no --trace with it"
        raise UserError(f"--trace {trace}: the run has {known} flows; expected {numbers}")
