"""A flow's packets, hop by hop, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

TraceRecord = tuple[int, int, str, int, int, int, int, int]  # see Fabric.trace_records

_WORDS = {
    "send": "leaves the host",
    "receive": "arrives at port {port}",
    "enqueue": "enqueued at port {port}, priority {priority}, behind {depth} bytes",
    "transmit": "leaves by port {port}, priority {priority}; {depth} bytes stay behind",
}


def explain(records: Iterable[TraceRecord], names: Sequence[str]) -> Iterator[str]:
    """One line an event: model time in ns, node, packet length, what happened. Data and ACKs of the flow alike."""
    for time_ns, node, event, port, priority, depth, wire_bytes, _ in records:
        kind, _, rest = event.partition(":")
        if kind == "pipeline":
            # A condition is quoted from the source, up to the end of its line.
            yield f"{time_ns:>12} ns  {names[node]:<12}         {rest.replace(') {:', ':')}"
            continue
        words = f"dropped: {rest}" if kind == "drop" else _WORDS[kind].format(port=port, priority=priority, depth=depth)
        yield f"{time_ns:>12} ns  {names[node]:<12} {wire_bytes:>5} B {words}"
