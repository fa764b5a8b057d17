"""Inputs of tests for which BMv2 has no commands: clock, queue depth and wide registers.

simple_switch reads its own clock and queues, and its interface sets at most 64 bits of a register's
cell. Actions that are added at the start of the program's pipelines therefore set these values for
each packet. The actions read added registers, which the commands of the test write.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from p4switch.architectures.packet_path import PacketPath
from p4switch.stf.runner import BETWEEN_TICKS

CLOCK, DEPTH, PENDING = "p4cc.clock", "p4cc.depth", "p4cc.pending"

Write = tuple[str, int, int]  # register, index, value


def is_wide(bits: int) -> bool:
    """Return whether a register's cell of `bits` bits is wider than the 64 bits that BMv2's interface writes."""
    return bits > 64


def with_inputs(
    document: dict[str, Any], path: PacketPath, timed: bool, deep: bool, writes: Sequence[Write]
) -> dict[str, Any]:
    """Return `document`, a program with this packet path, with the added actions that a test needs.

    If `timed`, a packet arrives at CLOCK[0], and the next packet BETWEEN_TICKS later. If `deep`, the
    depth of the queue is DEPTH[0] cells, both when a packet enters it and when the packet leaves it.
    The first packet after PENDING[n] has become 1 executes write n.
    """
    if not timed and not deep and not writes:
        return document
    editor = _Editor(copy.deepcopy(document), path)
    if deep:
        editor.register(DEPTH, 1, 19)
        depths = [_read(editor.intrinsic(name), DEPTH, 0) for name in ("enq_qdepth", "deq_qdepth")]
        editor.before("egress", [("always", depths)])
    if timed:
        editor.register(CLOCK, 2, 48)  # arrival of the next packet from outside, and of the current one
        now = editor.field("now", 48)
        arrival = [_read(now, CLOCK, 0), _write(CLOCK, 1, _field(now)), _write(CLOCK, 0, _plus(now, BETWEEN_TICKS))]
        arrival.append(_assign(editor.intrinsic("ingress_timestamp"), _field(now)))
        new = {"op": "==", "left": _field(editor.intrinsic("instance_type")), "right": _constant(0)}
        editor.before("ingress", [(new, arrival)])
        left = [_read(editor.intrinsic("egress_timestamp"), CLOCK, 1), _read(now, CLOCK, 1)]
        left.append(_assign(editor.intrinsic("enq_timestamp"), _field(now)))
        left.append(_assign(editor.intrinsic("deq_timedelta"), _constant(0)))
        editor.before("egress", [("always", left)])
    if writes:
        editor.register(PENDING, len(writes), 8)
        pending = editor.field("pending", 8)
        for number, (register, index, value) in enumerate(writes):
            due = {"op": "==", "left": _field(pending), "right": _constant(1)}
            done = [_write(register, index, _constant(value)), _write(PENDING, number, _constant(0))]
            editor.before("ingress", [("always", [_read(pending, PENDING, number)]), (due, done)])
    return editor.document


def _constant(value: int) -> dict[str, Any]:
    return {"type": "hexstr", "value": hex(value)}


def _field(place: list[str]) -> dict[str, Any]:
    return {"type": "field", "value": place}


def _plus(place: list[str], number: int) -> dict[str, Any]:
    inner = {"op": "+", "left": _field(place), "right": _constant(number)}
    return {"type": "expression", "value": {"type": "expression", "value": inner}}


def _assign(place: list[str], value: dict[str, Any]) -> dict[str, Any]:
    return {"op": "assign", "parameters": [_field(place), value]}


def _read(place: list[str], register: str, index: int) -> dict[str, Any]:
    where = {"type": "register_array", "value": register}
    return {"op": "register_read", "parameters": [_field(place), where, _constant(index)]}


def _write(register: str, index: int, value: dict[str, Any]) -> dict[str, Any]:
    where = {"type": "register_array", "value": register}
    return {"op": "register_write", "parameters": [where, _constant(index), value]}


class _Editor:
    """Editor that adds registers, metadata and actions to a program in BMv2 JSON."""

    def __init__(self, document: dict[str, Any], path: PacketPath) -> None:
        self.document = document
        self._path = path
        self._aliases = dict(document["field_aliases"])
        self._fields: list[list[Any]] = []
        self._count = 0

    def register(self, name: str, size: int, width: int) -> None:
        arrays = self.document["register_arrays"]
        arrays.append({"name": name, "id": _next(arrays), "size": size, "bitwidth": width})

    def intrinsic(self, own: str) -> list[str]:
        """Return the place in the JSON of the metadata field that the packet path calls `own`."""
        name = self._path.intrinsic[own].name
        alias: list[str] = self._aliases.get(name) or name.split(".")
        return alias

    def field(self, name: str, width: int) -> list[str]:
        if not self._fields:
            types, headers = self.document["header_types"], self.document["headers"]
            types.append({"name": "p4cc_inputs", "id": _next(types), "fields": self._fields})
            headers.append({"name": "p4cc", "id": _next(headers), "header_type": "p4cc_inputs", "metadata": True})
        self._fields.append([name, width, False])
        return ["p4cc", name]

    def before(self, pipeline: str, steps: Sequence[tuple[Any, list[dict[str, Any]]]]) -> None:
        """Add actions at the start of a pipeline: each step is "always" or a condition, and an action's primitives."""
        chosen = next(p for p in self.document["pipelines"] if p["name"] == pipeline)
        following = chosen["init_table"]
        for condition, primitives in reversed(steps):
            table = self._table(chosen, primitives, following)
            following = table if condition == "always" else self._conditional(chosen, condition, table, following)
        chosen["init_table"] = following

    def _table(self, pipeline: dict[str, Any], primitives: list[dict[str, Any]], following: str | None) -> str:
        self._count += 1
        name, action = f"p4cc_table_{self._count}", f"p4cc_action_{self._count}"
        actions = self.document["actions"]
        ident = _next(actions)
        actions.append({"name": action, "id": ident, "runtime_data": [], "primitives": primitives})
        table = {
            "name": name, "id": _next([t for p in self.document["pipelines"] for t in p["tables"]]),
            "key": [], "match_type": "exact", "type": "simple", "max_size": 1, "with_counters": False,
            "support_timeout": False, "direct_meters": None, "action_ids": [ident], "actions": [action],
            "base_default_next": following, "next_tables": {action: following},
            "default_entry": {
                "action_id": ident, "action_const": True, "action_data": [], "action_entry_const": True,
            },
        }  # fmt: skip
        pipeline["tables"].append(table)
        return name

    def _conditional(self, pipeline: dict[str, Any], condition: Any, then: str, following: str | None) -> str:
        name = f"p4cc_condition_{self._count}"
        ident = _next([c for p in self.document["pipelines"] for c in p["conditionals"]])
        pipeline["conditionals"].append({
            "name": name, "id": ident, "expression": {"type": "expression", "value": condition},
            "true_next": then, "false_next": following,
        })  # fmt: skip
        return name


def _next(objects: Sequence[dict[str, Any]]) -> int:
    return 1 + max((o["id"] for o in objects), default=-1)
