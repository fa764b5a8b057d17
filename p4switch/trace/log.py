"""Events in the format of simple_switch's log with `--log-console -L trace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4switch.trace import events as ev

_MATCH_KINDS = {"exact": "EXACT", "lpm": "LPM", "ternary": "TERNARY", "range": "RANGE", "optional": "TERNARY"}


def _digits(value: int, width: int) -> str:
    return f"{value:0{(width + 7) // 8 * 2}x}"


def _bare(match: str) -> str:
    """Return a text with hexadecimal numbers without 0x, as simple_switch writes them."""
    return match.replace("0x", "")


def _table(e: ev.TableApplied) -> list[str]:
    lines = [f"Applying table '{e.table}'"]
    if e.key:
        lines += ["Looking up key:", *(f"* {k.name:<20}: {_digits(k.value, k.width)}" for k in e.key)]
    if e.entry is None:
        return [*lines, f"Table '{e.table}': miss"]
    lines += [f"Table '{e.table}': hit with handle {e.entry}", f"Dumping entry {e.entry}", "Match key:"]
    lines += [f"* {k.name:<20}: {_MATCH_KINDS[k.kind]:<9} {_bare(k.match)}" for k in e.key]
    return [*lines, *([f"Priority: {e.priority}"] if e.priority is not None else [])]


def _action(e: ev.ActionRun) -> list[str]:
    values = "".join(f"{v.value:x}," for v in e.arguments)
    return [f"Action entry is {e.action} - {values}", f"Action {e.action}"]


def _transition(e: ev.Transition) -> list[str]:
    if not e.key:
        return [f"Parser state '{e.state}' has no switch, going to default next state"]
    return [f"Parser state '{e.state}': key is {' '.join(f'{word:x}' for word in e.key)}"]


def _statement(e: ev.StatementRun) -> list[str]:
    wrote = [f"  {c.name}: {_value(c.before, c.width)} -> {_value(c.now, c.width)}" for c in e.changes]
    return [_at(e) + f"Primitive {e.text or e.operation}", *wrote]


def _value(value: int | None, width: int) -> str:
    return "not valid" if value is None else ev.hexadecimal(value, width)


def _at(e: ev.Event) -> str:
    return f"{e.place.file}({e.place.line}) " if e.place is not None else ""


def _register(e: ev.RegisterAccessed) -> list[str]:
    if e.written:
        return [f"Wrote register '{e.register}' at index {e.index} with value {e.value}"]
    return [f"Read register '{e.register}' at index {e.index} read value {e.value}"]


_LINES: dict[type[ev.Event], Callable[[Any], list[str]]] = {
    ev.Received: lambda e: [f"Processing packet received on port {e.port}"],
    ev.StateEntered: lambda e: [f"Parser '{e.parser}' entering state '{e.state}'"],
    ev.Extracted: lambda e: [f"Extracting header '{e.header.partition('.')[2] or e.header}'"],
    ev.Transition: _transition,
    ev.ParserFailed: lambda e: [f"Parser '{e.parser}': error {e.error}"],
    ev.ChecksumVerified: lambda e: [f"Verifying checksum '{e.field}': {str(e.right).lower()}"],
    ev.ChecksumUpdated: lambda e: [f"Updating checksum: {c.name} = {_digits(c.now or 0, c.width)}" for c in e.changes],
    ev.PipelineEntered: lambda e: [f"Pipeline '{e.pipeline}': start"],
    ev.PipelineLeft: lambda e: [f"Pipeline '{e.pipeline}': end"],
    ev.TableApplied: _table,
    ev.ActionRun: _action,
    ev.StatementRun: _statement,
    ev.ConditionTested: lambda e: [_at(e) + f'Condition "{e.text}" is {str(e.outcome).lower()}'],
    ev.RegisterAccessed: _register,
    ev.Counted: lambda e: [f"Updated counter '{e.counter}' at index {e.index}: {e.packets} packets, {e.bytes} bytes"],
    ev.Metered: lambda e: [f"Executed meter '{e.meter}' at index {e.index}: {e.color}"],
    ev.ExternTold: lambda e: [f"Extern '{e.extern}' at index {e.index}: {e.text}"],
    ev.Logged: lambda e: [f"Assert error, {e.text}" if e.failed else e.text],
    ev.DigestSent: lambda e: [_at(e) + f"Generating digest '{e.digest}'"],
    ev.Enqueued: lambda e: [_at(e) + f"Egress port is {e.port}"],
    ev.Dequeued: lambda e: [],
    ev.Cloned: lambda e: [_at(e) + f"Cloning packet to session {e.session}"],
    ev.Multicast: lambda e: [_at(e) + f"Multicast requested for packet with multicast group {e.group}"],
    ev.Resubmitted: lambda e: [_at(e) + "Resubmitting packet"],
    ev.Recirculated: lambda e: [_at(e) + "Recirculating packet"],
    ev.Generated: lambda e: [f"Application {e.application} generates a packet"],
    ev.QueueStopped: lambda e: [f"{'Stopping' if e.stopped else 'Releasing'} queue {e.queue} of port {e.port}"],
    ev.Dropped: lambda e: [_at(e) + f"Dropping packet: {e.reason}"],
    ev.Emitted: lambda e: [f"Deparsing header '{e.header.partition('.')[2] or e.header}'"],
    ev.Transmitted: lambda e: [f"Transmitting packet of size {e.length} out of port {e.port}"],
}


def log_line(event: ev.Event, text: str) -> str:
    """Return a line of simple_switch's log without time and level: the numbers of packet and copy, and `text`."""
    return f"[{event.packet}.{event.copy}] [cxt 0] {text}"


def log_lines(event: ev.Event) -> list[str]:
    return [log_line(event, text) for text in _LINES[type(event)](event)]
