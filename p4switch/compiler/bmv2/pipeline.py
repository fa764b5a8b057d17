"""Ingress and egress in BMv2 JSON: tables, conditionals, and hidden tables for statements outside of actions."""

from __future__ import annotations

from typing import Any

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.bmv2.code import action_primitives
from p4switch.compiler.bmv2.expressions import Json, argument, condition, hexstr, place
from p4switch.compiler.bmv2.source import Source
from p4switch.ir.graph import reverse_postorder


class Actions:
    """All actions of the program, numbered in the order of their first use."""

    def __init__(self, source: Source) -> None:
        self.json: list[Json] = []
        self._ids: dict[ir.Action, int] = {}
        self._source = source

    def id(self, action: ir.Action) -> int:
        if action not in self._ids:
            self._ids[action] = len(self.json)
            runtime_data = [{"name": n, "bitwidth": types.width_of(t)} for n, t in action.params]
            self.json.append(
                {
                    "name": action.name,
                    "id": len(self.json),
                    "runtime_data": runtime_data,
                    "primitives": action_primitives(action.body, self._source),
                    **self._source(action.span),
                }
            )
        return self._ids[action]


class Ids:
    """Numbers that are unique across both pipelines."""

    def __init__(self) -> None:
        self.tables = 0
        self.conditionals = 0
        self.profiles = 0
        self.hidden = 0


class PipelineWriter:
    def __init__(self, pipeline: ir.Pipeline, program: ir.Program, actions: Actions, ids: Ids, source: Source) -> None:
        self.pipeline = pipeline
        self.program = program
        self.actions = actions
        self.ids = ids
        self.source = source
        self.tables: list[Json] = []
        self.conditionals: list[Json] = []
        self.profiles: dict[ir.Profile, Json] = {}
        self._names: dict[ir.Block, str | None] = {}
        self._tails: dict[ir.Block, str] = {}

    def json(self, number: int) -> Json:
        start = self.pipeline.start
        order = reverse_postorder(start)
        for block in order:
            self._name(block)
        done: set[ir.Table] = set()
        for block in order:
            if block.ops:
                self._hidden_table(block)
            end = block.end
            if isinstance(end, ir.Branch):
                self._conditional(block, end)
            elif isinstance(end, ir.Apply) and end.table not in done:
                done.add(end.table)
                with self.source.at(end.table.span):
                    self.tables.append(self._table(end))
        return {
            "name": self.pipeline.name,
            "id": number,
            "init_table": self._names[start],
            "tables": self.tables,
            "action_profiles": list(self.profiles.values()),
            "conditionals": self.conditionals,
            **self.source(self.pipeline.span),
        }

    # Names of nodes

    def _name(self, block: ir.Block) -> str | None:
        """Return the name of the first node of `block`; None at the end of the pipeline."""
        if block not in self._names:
            tail: str | None = None
            if isinstance(block.end, ir.Branch):
                self.ids.hidden += 1
                tail = self._tails[block] = f"node_{self.ids.hidden}"
            elif isinstance(block.end, ir.Apply):
                tail = self._tails[block] = block.end.table.name
            if block.ops:
                self.ids.hidden += 1
                self._names[block] = f"tbl_{self.pipeline.name}_{self.ids.hidden}"
            elif isinstance(block.end, ir.Goto):
                self._names[block] = self._name(block.end.target)
            else:
                self._names[block] = tail
        return self._names[block]

    # Nodes

    def _hidden_table(self, block: ir.Block) -> None:
        name = self._names[block]
        assert name is not None
        following = self._tails.get(block)
        if isinstance(block.end, ir.Goto):
            following = self._name(block.end.target)
        span = next((op.span for op in block.ops if op.span is not None), None)
        action = ir.Action(name.removeprefix("tbl_"), [], ir.Block(block.ops), span)
        action_id = self.actions.id(action)
        self.tables.append(
            {
                "name": name,
                "id": self._next_table(),
                **self.source(span),
                "key": [],
                "match_type": "exact",
                "type": "simple",
                "max_size": ir.DEFAULT_TABLE_SIZE,
                "with_counters": False,
                "support_timeout": False,
                "direct_meters": None,
                "action_ids": [action_id],
                "actions": [action.name],
                "base_default_next": following,
                "next_tables": {action.name: following},
                "default_entry": {
                    "action_id": action_id,
                    "action_const": True,
                    "action_data": [],
                    "action_entry_const": True,
                },
            }
        )

    def _next_table(self) -> int:
        self.ids.tables += 1
        return self.ids.tables - 1

    def _conditional(self, block: ir.Block, end: ir.Branch) -> None:
        with self.source.at(end.span):
            expression = condition(end.condition)
        self.conditionals.append(
            {
                "name": self._tails[block],
                "id": self.ids.conditionals,
                **self.source(end.span),
                "expression": expression,
                "true_next": self._name(end.if_true),
                "false_next": self._name(end.if_false),
            }
        )
        self.ids.conditionals += 1

    def _table(self, apply: ir.Apply) -> Json:
        table = apply.table
        result: Json = {
            "name": table.name,
            "id": self._next_table(),
            **self.source(table.span),
            "key": [self._key(k) for k in table.keys],
            "match_type": _match_type(table),
        }
        if table.profile is None:
            result["type"] = "simple"
        else:
            result["type"] = "indirect_ws" if table.profile.algorithm else "indirect"
            result["action_profile"] = table.profile.name
            self._profile(table.profile)
        action_ids = [self.actions.id(a) for a in table.actions]
        names = [a.name for a in table.actions]
        result |= {
            "max_size": max(table.size, len(table.entries or ())),
            "with_counters": bool(table.counter),
            "support_timeout": table.support_timeout,
            "direct_meters": table.meter or None,
            "action_ids": action_ids,
            "actions": names,
        }
        # Keys are bools after `hit`, indices of actions after `action_run`; 1 == True would take one for the other.
        if any(isinstance(key, bool) for key in apply.on):
            hit, miss = apply.on.get(True, apply.default), apply.on.get(False, apply.default)
            result["base_default_next"] = None
            result["next_tables"] = {"__HIT__": self._name(hit), "__MISS__": self._name(miss)}
        else:
            result["base_default_next"] = self._name(apply.default)
            result["next_tables"] = {n: self._name(apply.on.get(i, apply.default)) for i, n in enumerate(names)}
        if table.profile is None and table.default is not None:
            result["default_entry"] = {
                "action_id": self.actions.id(table.default.action),
                "action_const": table.default_const,
                "action_data": _action_data(table.default),
                "action_entry_const": table.default_const,
            }
        if table.entries is not None:
            result["entries"] = [self._entry(table, e) for e in table.entries]
        return result

    def _key(self, key: ir.Key) -> Json:
        width = types.width_of(key.target.type) or 1
        return {
            "match_type": "ternary" if key.match_kind == "optional" else key.match_kind,
            "name": key.name,
            "target": place(key.target)["value"],
            "mask": None if key.mask is None else hexstr(key.mask, width),
        }

    def _profile(self, profile: ir.Profile) -> None:
        if profile in self.profiles:
            return
        json: Json = {
            "name": profile.name,
            "id": self.ids.profiles,
            "max_size": profile.size,
            **self.source(profile.span),
        }
        if profile.algorithm:
            json["selector"] = {"algo": profile.algorithm, "input": [argument(e) for e in profile.inputs]}
        self.profiles[profile] = json
        self.ids.profiles += 1

    def _entry(self, table: ir.Table, entry: ir.Entry) -> Json:
        keys = [_match(key, keyset) for key, keyset in zip(table.keys, entry.keys, strict=True)]
        return {
            **self.source(entry.span),
            "match_key": keys,
            "action_entry": {"action_id": self.actions.id(entry.call.action), "action_data": _action_data(entry.call)},
            "priority": entry.priority,
            "is_const": entry.const,
        }


def _action_data(call: ir.ActionCall) -> list[str]:
    data: list[str] = []
    for value, (_, t) in zip(call.args, call.action.params, strict=True):
        width = types.width_of(t) or 1
        data.append(hexstr(value & ((1 << width) - 1)))
    return data


def _match_type(table: ir.Table) -> str:
    kinds = {k.match_kind for k in table.keys}
    for kind, result in (("range", "range"), ("ternary", "ternary"), ("optional", "ternary"), ("lpm", "lpm")):
        if kind in kinds:
            return result
    return "exact"


def _match(key: ir.Key, keyset: Any) -> Json:
    """Return one key of an entry; `keyset` as in `ir.Entry`."""
    width = types.width_of(key.target.type) or 1
    full = (1 << width) - 1
    kind = key.match_kind
    low, high = keyset if isinstance(keyset, tuple) else (keyset or 0, full)
    low, high = low & full, high & full
    if kind == "exact":
        return {"match_type": "exact", "key": hexstr(low, width)}
    if kind == "range":
        if keyset is None:
            low, high = 0, full
        elif not isinstance(keyset, tuple):
            high = low
        return {"match_type": "range", "start": hexstr(low, width), "end": hexstr(high, width)}
    mask = 0 if keyset is None else high
    if kind == "lpm":
        return {"match_type": "lpm", "key": hexstr(low & mask, width), "prefix_length": mask.bit_count()}
    return {"match_type": "ternary", "key": hexstr(low & mask, width), "mask": hexstr(mask, width)}
