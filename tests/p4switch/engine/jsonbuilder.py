"""Small hand-made BMv2 JSONs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from p4switch.bmv2 import read
from p4switch.engine import build, load

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

Json = Any

STANDARD_METADATA = [
    ("ingress_port", 9), ("egress_spec", 9), ("egress_port", 9), ("instance_type", 32), ("packet_length", 32),
    ("enq_timestamp", 32), ("enq_qdepth", 19), ("deq_timedelta", 32), ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48), ("egress_global_timestamp", 48), ("mcast_grp", 16), ("egress_rid", 16),
    ("checksum_error", 1), ("parser_error", 32), ("priority", 3),
]
ERRORS = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
          "ParserInvalidArgument", "Own"]


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def sm(name: str) -> Json:
    return field("standard_metadata", name)


def const(value: int) -> Json:
    return {"type": "hexstr", "value": f"{'-' if value < 0 else ''}0x{abs(value):x}"}


def op(name: str, left: Json, right: Json, cond: Json = None) -> Json:
    value = {"op": name, "left": left, "right": right}
    if cond is not None:
        value["cond"] = cond
    return {"type": "expression", "value": value}


def param(index: int) -> Json:
    return {"type": "runtime_data", "value": index}


def named(kind: str, name: str) -> Json:
    return {"type": kind, "value": name}


def call(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def assign(target: Json, source: Json) -> Json:
    return call("assign", target, source)


class ProgramBuilder:
    """A program with standard metadata only: packets leave unchanged by port 0."""

    def __init__(self) -> None:
        self.types: list[Json] = [{"name": "standard_metadata_t", "id": 0,
                                   "fields": [[n, w, False] for n, w in STANDARD_METADATA]}]
        self.headers: list[Json] = [{"name": "standard_metadata", "id": 0, "header_type": "standard_metadata_t",
                                     "metadata": True}]
        self.stacks: list[Json] = []
        self.states: list[Json] = []
        self.order: list[str] = []
        self.actions: list[Json] = []
        self.pipelines: dict[str, list[Json]] = {"ingress": [], "egress": []}
        self.conditionals: dict[str, list[Json]] = {"ingress": [], "egress": []}
        self.profiles: list[Json] = []
        self.rest: dict[str, list[Json]] = {
            key: [] for key in ("field_lists", "learn_lists", "parse_vsets", "meter_arrays", "counter_arrays",
                                "register_arrays", "calculations", "checksums")
        }

    def header_type(self, name: str, *fields: tuple[str, int | str] | tuple[str, int | str, bool],
                    max_length: int | None = None) -> str:
        item = {"name": name, "id": len(self.types), "fields": [list(f) for f in fields]}
        if max_length is not None:
            item["max_length"] = max_length
        self.types.append(item)
        return name

    def header(self, name: str, type_name: str, *, metadata: bool = False, emit: bool = True) -> str:
        self.headers.append({"name": name, "id": len(self.headers), "header_type": type_name, "metadata": metadata})
        if not metadata and emit:
            self.order.append(name)
        return name

    def stack(self, name: str, type_name: str, size: int) -> list[str]:
        names = [self.header(f"{name}[{i}]", type_name) for i in range(size)]
        ids = [h["id"] for h in self.headers if h["name"] in names]
        self.stacks.append({"name": name, "id": len(self.stacks), "header_type": type_name, "header_ids": ids})
        return names

    def state(self, name: str, ops: list[Json], key: list[Json] | None = None,
              transitions: list[tuple[str | None, str | None, str | None]] | None = None) -> None:
        """Add a state. Transitions are (value, mask, next); a value of None is the default."""
        self.states.append({
            "name": name, "id": len(self.states), "parser_ops": ops, "transition_key": key or [],
            "transitions": [
                {"type": "default" if v is None else "hexstr", "value": v, "mask": m, "next_state": n}
                for v, m, n in transitions or [(None, None, None)]
            ],
        })

    def extract(self, *names: str) -> list[Json]:
        return [{"op": "extract", "parameters": [{"type": "regular", "value": n}]} for n in names]

    def action(self, name: str, primitives: list[Json], **params: int) -> int:
        self.actions.append({
            "name": name, "id": len(self.actions), "primitives": primitives,
            "runtime_data": [{"name": n, "bitwidth": w} for n, w in params.items()],
        })
        return len(self.actions) - 1

    def table(self, name: str, keys: list[tuple[str, Json]], actions: list[int], *, pipeline: str = "ingress",
              default: int | None = None, data: list[str] | None = None, **more: Json) -> None:
        """Add a table. The tables of a pipeline run one after the other."""
        kinds = [kind for kind, _ in keys]
        match_type = next((k for k in ("range", "ternary", "lpm") if k in kinds), "exact")
        item = {
            "name": name, "id": sum(map(len, self.pipelines.values())), "match_type": match_type, "type": "simple",
            "max_size": 1024, "with_counters": False, "support_timeout": False, "direct_meters": None,
            "key": [{"match_type": kind, "target": target["value"], "mask": None} for kind, target in keys],
            "action_ids": actions, "actions": [self.actions[a]["name"] for a in actions],
            "base_default_next": None, "next_tables": {},
        }
        if default is not None:
            item["default_entry"] = {"action_id": default, "action_const": False, "action_data": data or [],
                                     "action_entry_const": False}
        item.update(more)
        self.pipelines[pipeline].append(item)

    def run(self, primitives: list[Json], pipeline: str = "ingress") -> None:
        """Add statements to a pipeline as a compiler does: as a table without a key."""
        name = f"statements_{len(self.actions)}"
        action = self.action(name, primitives)
        self.table(f"tbl_{name}", [], [action], pipeline=pipeline,
                   default_entry={"action_id": action, "action_const": True, "action_data": [],
                                  "action_entry_const": True})

    def forward(self, port: int) -> None:
        self.run([assign(sm("egress_spec"), const(port))])

    def json(self) -> Json:
        pipelines: list[Json] = []
        for name, tables in self.pipelines.items():
            for table, following in zip(tables, [*tables[1:], None], strict=False):
                if not table["next_tables"]:
                    after = following["name"] if following else None
                    table["next_tables"] = dict.fromkeys(table["actions"], after)
                    table["base_default_next"] = after
            pipelines.append({
                "name": name, "id": len(pipelines), "init_table": tables[0]["name"] if tables else None,
                "tables": tables, "action_profiles": self.profiles if name == "ingress" else [],
                "conditionals": self.conditionals[name],
            })
        aliases = [(f"{h}_metadata.{f}", ("standard_metadata", f)) for h, f in (
            ("queueing", "enq_timestamp"), ("queueing", "enq_qdepth"), ("queueing", "deq_timedelta"),
            ("queueing", "deq_qdepth"), ("intrinsic", "ingress_global_timestamp"),
            ("intrinsic", "egress_global_timestamp"), ("intrinsic", "mcast_grp"), ("intrinsic", "egress_rid"),
            ("intrinsic", "priority"),
        )]
        return json.loads(json.dumps({
            "program": "test", "header_types": self.types, "headers": self.headers, "header_stacks": self.stacks,
            "errors": [[name, i] for i, name in enumerate(ERRORS)],
            "parsers": [{"name": "parser", "id": 0, "init_state": self.states[0]["name"] if self.states else None,
                         "parse_states": self.states}],
            "deparsers": [{"name": "deparser", "id": 0, "order": self.order}],
            "actions": self.actions, "pipelines": pipelines, "field_aliases": aliases, **self.rest,
        }))

    def switch(self, **options: int) -> Switch:
        switch: Switch = load().Switch(str(build(read(self.json()))), **options)
        return switch
