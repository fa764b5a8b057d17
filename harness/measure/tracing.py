"""A flow's packets, hop by hop, and the actions of each pipeline on them: trace.txt and trace.jsonl.

Each line identifies its packet by an `id`, which numbers the packets in the order in which hosts
sent them. docs/formats.md explains which packets share an id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.measure.recording import Writing
from harness.workloads import Traffic
from p4switch.errors import UserError
from p4switch.trace import Decoder, Event, RawEvent, json_line, plain
from p4switch.trace import events as ev

TraceRecord = tuple[int, int, str | RawEvent, int, int, int, int, int, int]  # see Fabric.trace_records


class Hop(NamedTuple):
    """Line of a trace.

    `id` and `psn` are those of the packet, or None if it has none.
    """

    record: TraceRecord
    id: int | None
    psn: int | None
    event: Event | None  # event of a pipeline; None: event of the fabric, as in the record


_WORDS = {
    "send": "leaves the host",
    "receive": "arrives at port {port}",
    "enqueue": "enqueued at port {port}, priority {priority}, {depth} bytes ahead",
    "transmit": "leaves by port {port}, priority {priority}; {depth} bytes stay behind",
}
# Events that the fabric's own records have in more detail.
_OF_THE_FABRIC = (ev.Received, ev.Enqueued, ev.Dequeued, ev.Dropped, ev.Transmitted)
_TELL_EVERY = 1000  # records between two reports of progress


def with_progress(records: Sequence[TraceRecord], writing: Writing | None) -> Iterator[TraceRecord]:
    """Yield each record; `writing` receives the completed share."""
    for number, record in enumerate(records):
        if writing is not None and number % _TELL_EVERY == 0:
            writing(number / len(records))
        yield record


def hops(
    records: Iterable[TraceRecord], decoder: Callable[[int, int], Decoder], most_packets: int | None = None
) -> Iterator[Hop]:
    """Add the packet's id and the pipeline's events to each record.

    `decoder` returns the decoder for a pipe, given the numbers of its switch and of the pipe.
    Packets after the first `most_packets` are left out.
    """
    decoders: dict[tuple[int, int], Decoder] = {}
    ids: dict[int, int] = {}
    for record in records:
        node, event, packet, psn = record[1], record[2], record[7], record[8]
        number = ids.setdefault(packet, len(ids)) if packet else None
        if number is not None and most_packets is not None and number >= most_packets:
            continue
        hop = Hop(record, number, psn if psn >= 0 else None, None)
        if isinstance(event, str):
            yield hop
            continue
        place = node, event[-1]
        if place not in decoders:
            decoders[place] = decoder(*place)
        for decoded in decoders[place]([event]):
            if not isinstance(decoded, _OF_THE_FABRIC):
                yield hop._replace(event=decoded)


def explain(hops: Iterable[Hop], names: Sequence[str]) -> Iterator[str]:
    """Yield a line for each hop: model time, node, the packet's id, its length and the event."""
    for (time_ns, node, event, port, priority, depth, wire_bytes, *_), number, _, decoded in hops:
        which = "" if number is None else f"#{number}"
        if decoded is not None:
            yield f"{time_ns:>12} ns  {names[node]:<12} {which:>6} {plain(decoded)}"
            continue
        kind, _, rest = str(event).partition(":")
        words = f"dropped: {rest}" if kind == "drop" else _WORDS[kind].format(port=port, priority=priority, depth=depth)
        yield f"{time_ns:>12} ns  {names[node]:<12} {which:>6} {wire_bytes:>5} B {words}"


def as_json(hops: Iterable[Hop], names: Sequence[str]) -> Iterator[str]:
    """Yield the hops as JSON objects: `time_ns`, `node`, `id`, `psn`, and the event or the hop's numbers."""
    for (time_ns, node, event, port, priority, depth, wire_bytes, *_), number, psn, decoded in hops:
        members: dict[str, object] = {"time_ns": time_ns, "node": names[node], "id": number, "psn": psn}
        if decoded is not None:
            members |= json.loads(json_line(decoded))
        else:
            kind, _, reason = str(event).partition(":")
            members |= {"event": kind, "port": port, "priority": priority, "depth_bytes": depth, "bytes": wire_bytes}
            if reason:
                members["reason"] = reason
        yield json.dumps(members)


def check_trace(traffic: Traffic, trace: int, several: bool) -> None:
    """Raise UserError unless flow number `trace` can be traced.

    `several` means that several workers share the run.
    """
    if not traffic.independent:
        if several:
            raise UserError("--trace: flows start when others are done; expected --workers 1 with it")
        return
    known = len({id(flow.whole or flow) for flow in traffic.flows})
    if trace >= known:
        numbers = f"a number from 0 to {known - 1}" if known else "no --trace with it"
        raise UserError(f"--trace {trace}: the run has {known} flows; expected {numbers}")
