"""Text form of events for people, with or without colours, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from rich.text import Text

from p4switch.ir.places import Place
from p4switch.trace import events as ev
from p4switch.trace.events import hexadecimal

_WIDTH = 28  # width of the column with the places
_Part = str | tuple[str, str]


def _values(values: Iterable[ev.Value]) -> str:
    return ", ".join(map(str, values))


def _short(values: Iterable[ev.Value], header: str) -> str:
    return " ".join(str(v._replace(name=v.name.removeprefix(header + "."))) for v in values)


def _changed(change: ev.Change) -> list[_Part]:
    if change.name.endswith(".isValid()"):
        return [change.name.removesuffix(".isValid()"), " ", ("valid" if change.now else "not valid", "yellow")]
    before, now = ("?" if v is None else hexadecimal(v, change.width) for v in (change.before, change.now))
    return [f"{change.name} {before} -> ", (now, "yellow")]


def _table(e: ev.TableApplied) -> list[_Part]:
    parts: list[_Part] = ["  table ", (e.table, "bold cyan")]
    for k in e.key:
        parts.append(f"  {k.name}={hexadecimal(k.value, k.width)}")
    if not e.key:
        return parts
    if e.entry is None:
        return [*parts, ("  miss", "magenta")]
    priority = f", priority {e.priority}" if e.priority is not None else ""
    wanted = ", ".join(k.match for k in e.key)
    return [*parts, ("  hit", "green"), f" entry {e.entry} ({wanted}{priority})"]


def _action(e: ev.ActionRun) -> list[_Part]:
    member = f" of member {e.member}" if e.member is not None else ""
    return [f"  action{member} ", (e.action, "cyan"), f"({_values(e.arguments)})"]


def _statement(text: str, changes: Sequence[ev.Change]) -> list[_Part]:
    parts: list[_Part] = ["    ", (text, "dim" if not changes else "")]
    for i, change in enumerate(changes):
        parts += ["   " if not i else ", ", *_changed(change)]
    return parts


def _register(e: ev.RegisterAccessed) -> list[_Part]:
    did = "written" if e.written else "read"
    return [f"    register {e.register}[{e.index}] {did}: ", (hexadecimal(e.value, e.width), "yellow")]


_LINES: dict[type[ev.Event], Callable[[Any], list[_Part]]] = {
    ev.Received: lambda e: [(f"arrives at port {e.port}", "bold"), f", {e.length} bytes"],
    ev.StateEntered: lambda e: ["  state ", (e.state, "bold cyan")],
    ev.Extracted: lambda e: ["    extract ", (e.header, "cyan"), f"  {_short(e.fields, e.header)}"],
    ev.Transition: lambda e: [
        "    ", *([f"select {', '.join(map(hex, e.key))} "] if e.key else []), "-> ", (e.to, "cyan"),
    ],
    ev.ParserFailed: lambda e: [("  parser error ", "red"), (e.error, "bold red")],
    ev.ChecksumVerified: lambda e: [
        f"  checksum {e.field} ", ("is right", "green") if e.right else ("is wrong", "bold red"),
    ],
    ev.ChecksumUpdated: lambda e: _statement(e.text or f"update of {e.field}", e.changes),
    ev.PipelineEntered: lambda e: [(f" {e.pipeline}", "bold")],
    ev.PipelineLeft: lambda e: [(f" end of {e.pipeline}", "dim")],
    ev.TableApplied: _table,
    ev.ActionRun: _action,
    ev.StatementRun: lambda e: _statement(e.text or e.operation, e.changes),
    ev.ConditionTested: lambda e: [
        f"  if {e.text}: ", ("true", "green") if e.outcome else ("false", "magenta"),
    ],
    ev.RegisterAccessed: _register,
    ev.Counted: lambda e: [f"    counter {e.counter}[{e.index}]: {e.packets} packets, {e.bytes} bytes"],
    ev.Metered: lambda e: [f"    meter {e.meter}[{e.index}]: ", (e.color, e.color)],
    ev.ExternTold: lambda e: [f"    {e.extern}[{e.index}]: ", (e.text, "yellow")],
    ev.Logged: lambda e: [("  assertion failed: " if e.failed else "  log ", "bold red" if e.failed else ""), e.text],
    ev.DigestSent: lambda e: [f"  digest {e.digest}({_values(e.fields)})"],
    ev.Enqueued: lambda e: [f"  enqueued at port {e.port}, {e.length} bytes"],
    ev.Dequeued: lambda e: [f"  dequeued at port {e.port}"],
    ev.Cloned: lambda e: [f"  cloned to session {e.session}, as copy {e.made}"],
    ev.Multicast: lambda e: [f"  multicast to group {e.group}"],
    ev.Resubmitted: lambda e: ["  resubmitted"],
    ev.Recirculated: lambda e: ["  recirculated"],
    ev.Generated: lambda e: [f"  application {e.application} generates a packet, as copy {e.made}"],
    ev.QueueStopped: lambda e: [f"  queue {e.queue} of port {e.port} {'stops' if e.stopped else 'goes on'}"],
    ev.Dropped: lambda e: [("  dropped", "bold red"), f": {e.reason}"],
    ev.Emitted: lambda e: ["    emit ", (e.header, "cyan")],
    ev.Transmitted: lambda e: [("leaves by port ", "bold"), (str(e.port), "bold green"), f", {e.length} bytes"],
}


def _where(place: Place | None) -> str:
    """Return FILE:LINE, truncated at the left if it is long."""
    where = str(place) if place is not None else ""
    return where if len(where) <= _WIDTH else f"…{where[1 - _WIDTH :]}"


def styled(event: ev.Event) -> Text:
    """Return a line with the packet, the place in the source, and the description of the event."""
    number = f"{event.packet}.{event.copy}" if event.copy else str(event.packet)
    line = Text.assemble((f"{number:>5} ", "dim"), (f"{_where(event.place):<{_WIDTH}} ", "dim blue"))
    for part in _LINES[type(event)](event):
        line.append(part) if isinstance(part, str) else line.append(*part)
    return line


def plain(event: ev.Event) -> str:
    return styled(event).plain


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Place):
        return {"file": value.file, "line": value.line, "column": value.column}
    if isinstance(value, ev.Value):
        return {"name": value.name, "value": hexadecimal(value.value, value.width), "width": value.width}
    if isinstance(value, ev.Change):
        before, now = (None if v is None else hexadecimal(v, value.width) for v in (value.before, value.now))
        return {"name": value.name, "before": before, "now": now, "width": value.width}
    if isinstance(value, ev.KeyValue):
        number = hexadecimal(value.value, value.width)
        kind = {"kind": value.kind, "match": value.match or None}
        return {"name": value.name, "value": number, "width": value.width, **kind}
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value


def json_line(event: ev.Event) -> str:
    """Return a JSON object with `event` (the class) and its fields. Numbers of P4 are hexadecimal strings."""
    members = {f.name: _json(getattr(event, f.name)) for f in fields(event)}
    return json.dumps({"event": type(event).__name__, **members})


def from_json_line(line: str) -> ev.Event:
    """Return the event that `json_line` wrote. Its place has no text."""
    members = json.loads(line)
    kind = getattr(ev, members.pop("event"))
    hints = get_type_hints(kind)
    return kind(**{name: _from_json(hints[name], value) for name, value in members.items()})  # type: ignore[no-any-return]


def _from_json(hint: Any, value: Any) -> Any:
    if hint is bytes:
        return bytes.fromhex(value)
    if hint == Place | None:
        return None if value is None else Place(value["file"], value["line"], value["column"], "")
    if isinstance(value, list):
        return tuple(_from_json(get_args(hint)[0], item) for item in value)
    if hint is ev.Value:
        return ev.Value(value["name"], int(value["value"], 0), value["width"])
    if hint is ev.Change:
        before, now = (None if value[key] is None else int(value[key], 0) for key in ("before", "now"))
        return ev.Change(value["name"], before, now, value["width"])
    if hint is ev.KeyValue:
        match = value["match"] or ""
        return ev.KeyValue(value["name"], int(value["value"], 0), value["width"], value["kind"], match)
    return value
