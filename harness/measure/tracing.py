"""A flow's packets, hop by hop, and what each pipeline did with them: trace.txt and trace.jsonl.

Each line names its packet by an `id`: packets that hosts have sent are numbered in the order in which they were sent.
docs/formats.md says what shares an id.
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

    `id` and `psn` are those of the packet, None where it has none.
    """

    record: TraceRecord
    id: int | None
    psn: int | None
    event: Event | None  # of a pipeline; None: of the fabric, as the record says


_WORDS = {
    "send": "leaves the host",
    "receive": "arrives at port {port}",
    "enqueue": "enqueued at port {port}, priority {priority}, {depth} bytes ahead",
    "transmit": "leaves by port {port}, priority {priority}; {depth} bytes stay behind",
}
# What the fabric's own records tell, and with more.
_OF_THE_FABRIC = (ev.Received, ev.Enqueued, ev.Dequeued, ev.Dropped, ev.Transmitted)
_TELL_EVERY = 1000  # records


def with_progress(records: Sequence[TraceRecord], writing: Writing | None) -> Iterator[TraceRecord]:
    """Yield each record; `writing` is told the share that is done."""
    for number, record in enumerate(records):
        if writing is not None and number % _TELL_EVERY == 0:
            writing(number / len(records))
        yield record


def hops(
    records: Iterable[TraceRecord], decoder: Callable[[], Decoder], most_packets: int | None = None
) -> Iterator[Hop]:
    """Give each record its packet's id, and what a pipeline tells.

    `decoder` makes one for each switch. `most_packets`: those of later packets are left out.
    """
    decoders: dict[int, Decoder] = {}
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
        if node not in decoders:
            decoders[node] = decoder()
        for decoded in decoders[node]([event]):
            if not isinstance(decoded, _OF_THE_FABRIC):
                yield hop._replace(event=decoded)


def explain(found: Iterable[Hop], names: Sequence[str]) -> Iterator[str]:
    """Tell each hop in a line: model time, node, the packet's id, its length, what happened to it."""
    for (time_ns, node, event, port, priority, depth, wire_bytes, *_), number, _, decoded in found:
        which = "" if number is None else f"#{number}"
        if decoded is not None:
            yield f"{time_ns:>12} ns  {names[node]:<12} {which:>6} {plain(decoded)}"
            continue
        kind, _, rest = str(event).partition(":")
        words = f"dropped: {rest}" if kind == "drop" else _WORDS[kind].format(port=port, priority=priority, depth=depth)
        yield f"{time_ns:>12} ns  {names[node]:<12} {which:>6} {wire_bytes:>5} B {words}"


def as_json(found: Iterable[Hop], names: Sequence[str]) -> Iterator[str]:
    """Tell the same as JSON objects: `time_ns`, `node`, `id`, `psn`, and a pipeline's event or the hop's numbers."""
    for (time_ns, node, event, port, priority, depth, wire_bytes, *_), number, psn, decoded in found:
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
    """Raise UserError unless flow number `trace` can be traced, with one worker or `several`.

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
