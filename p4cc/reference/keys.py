"""Every key of scenarios and sweeps: meaning, type, unit, default, range, source.

Types, defaults and ranges are those of the pydantic models that check the files, taken from JSON
Schema. The meanings are the comments at the declarations.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

import topologies
from control_plane import programs
from harness import workloads
from harness.plan.probes import REGISTRY as PROBES
from harness.plan.scenario import Scenario
from host_agents import registry
from host_agents.registry import LoadBalancerInfo, ProtocolInfo
from p4cc.execution.sweep import Sweep
from p4cc.reference.comments import comments

UNITS = {
    "bps": "bit/s",
    "ns": "ns",
    "bytes": "bytes",
    "packets": "packets",
    "credits": "credits",
    "cycles": "cycles",
    "cells": "cells",
    "bdp": "BDP",
    "rtts": "base RTTs",
    "fraction": "share",
    "share": "share",
}
_LIMITS = {"exclusiveMinimum": ">", "gt": ">", "minimum": ">=", "ge": ">=", "exclusiveMaximum": "<", "lt": "<"}
_LIMITS |= {"maximum": "<=", "le": "<="}
_STRICT = {"minimum": "exclusiveMinimum", "ge": "gt", "maximum": "exclusiveMaximum", "le": "lt"}
_TYPES = {"integer": "integer", "number": "number", "string": "text", "boolean": "true or false", "object": "table"}


@dataclass(frozen=True)
class Key:
    """Key of a file."""

    name: str  # dotted, as in the file; a list of tables is followed by `[]`
    of: str  # the topology, workload or probe that has it; "" if it is always there
    meaning: str  # "" if it has no comment
    type: str
    unit: str  # "" for a number without a unit, and for other types
    required: bool
    default: Any  # default in the form of JSON; None also stands for no default
    range: str
    source: str  # module and class

    @property
    def default_text(self) -> str:
        """Default as TOML has it; `none` for a key that is left out."""
        if self.required:
            return "must be given"
        return "none" if self.default is None else json.dumps(self.default)

    def record(self) -> dict[str, Any]:
        """Return the key as data for programs."""
        return {**dataclasses.asdict(self), "default_text": self.default_text}


def keys(model: type[Any], prefix: str, of: str = "") -> Iterator[Key]:
    """Yield the keys of a pydantic model or a checked dataclass, with those of the tables in it."""
    hints = typing.get_type_hints(model, include_extras=True)
    checked = model if issubclass(model, BaseModel) else registry.model(model)
    schema = checked.model_json_schema()
    for name, field in checked.model_fields.items():
        dotted = f"{prefix}.{name}" if prefix else name
        below, several = _tables_in(hints[name])
        default = None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
        if below is None or several or default is None:  # a table that always exists is not an entry of its own
            owner, meaning = _declaration(model, name)
            declared = schema["properties"][name]
            yield Key(
                name=dotted,
                of=of,
                meaning=meaning,
                type=_type(declared, schema),
                unit=UNITS.get(name.rpartition("_")[2], ""),
                required=field.is_required(),
                default=to_jsonable_python(default),
                range=", ".join(dict.fromkeys(_limits(declared))),
                source=f"{owner.__module__}.{owner.__qualname__}",
            )
        if below is not None:
            yield from keys(below, dotted + "[]" * several, of)


def _declaration(model: type[Any], name: str) -> tuple[type[Any], str]:
    """Return the class that declares a field, and its comment there or in a base class."""
    owners = [cls for cls in model.__mro__ if name in inspect.get_annotations(cls)]
    return owners[0], next((said for cls in owners if (said := comments(cls).get(name))), "")


def _tables_in(hint: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model that a key's value is, or may be, and whether it is a list of them."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint, False
    several = typing.get_origin(hint) in (list, tuple)
    for part in typing.get_args(hint):
        model, below = _tables_in(part)
        if model is not None:
            return model, several or below
    return None, False


def _type(described: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return a type in words: `integer`, `one of "fifo", "random"`, `list of text` ..."""
    if "$ref" in described:
        return "table"
    if "enum" in described or "const" in described:
        return "one of " + ", ".join(json.dumps(value) for value in described.get("enum", [described.get("const")]))
    if "anyOf" in described:
        kinds = [_type(one, schema) for one in described["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds + ["none"] * (len(kinds) < len(described["anyOf"]))))
    if described.get("type") == "array":
        items: Mapping[str, Any] = described.get("items") or next(iter(described.get("prefixItems", [])), {})
        return f"list of {_type(items, schema)}"
    return _TYPES.get(described.get("type", ""), "any value")


def _limits(described: Mapping[str, Any]) -> Iterator[str]:
    """Yield limits such as `> 0` and `<= 10`, including those of list items."""
    for name, sign in _LIMITS.items():
        if name in described and described.get(_STRICT.get(name, "")) != described[name]:  # `> 0` implies `>= 0`
            limit = described[name]
            power = limit.bit_length() - 1 if isinstance(limit, int) else 0
            yield f"{sign} " + (f"2^{power}" if power >= 16 and limit == 1 << power else f"{limit:,}".replace(",", "_"))
    for below in (*described.get("anyOf", ()), *filter(None, [described.get("items")])):
        if isinstance(below, Mapping):
            yield from _limits(below)


def _name(table: str, known: list[str]) -> Key:
    """Return the key that names the topology or workload."""
    meaning = f"which one: {', '.join(known)}; or a Python file of one's own"
    return Key(f"{table}.name", "", meaning, "text", "", True, None, "", f"{Scenario.__module__}.Scenario")


def topology_keys(name: str) -> list[Key]:
    return list(keys(topologies.parameters(name), "topology", name))


def workload_keys(name: str) -> list[Key]:
    return list(keys(workloads.parameters(name), "workload", name))


def program_keys(name: str) -> list[Key]:
    return list(keys(programs.program(name).parameters, f"programs.{name}"))


def probe_keys(name: str) -> list[Key]:
    return list(keys(PROBES.find(name), "record.probes[]", name))


def protocol_keys(info: ProtocolInfo) -> list[Key]:
    """Return the keys of a protocol and of the mechanisms and protocols that it can be combined with."""
    every = list(keys(info.parameters, f"protocols.{info.name}"))
    for name in info.mechanisms:
        part = registry.mechanism(name) or registry.protocols()[name]
        every += keys(part.parameters, f'protocols."{info.name}+{name}".{name}')
    return every


def load_balancer_keys(info: LoadBalancerInfo) -> list[Key]:
    return list(keys(info.parameters, f"load_balancers.{info.name}"))


def scenario_keys() -> list[Key]:
    """Return the keys that every scenario has, independent of the names in it."""
    every = list(keys(Scenario, ""))
    names = {"topology": topologies.names(), "workload": workloads.names()}
    return [one for key in every for one in (key, *((_name(key.name, names[key.name]),) if key.name in names else ()))]


def sweep_keys() -> list[Key]:
    return list(keys(Sweep, "sweep"))


@cache
def all_keys() -> tuple[Key, ...]:
    """Return the keys of scenarios and sweeps, with everything that comes with p4cc."""
    every = scenario_keys()
    for of_named, names in (
        (topology_keys, topologies.names()),
        (workload_keys, workloads.names()),
        (program_keys, programs.names()),
        (probe_keys, list(PROBES.all())),
    ):
        every += [key for name in names for key in of_named(name)]
    every += [key for info in registry.protocols().values() for key in protocol_keys(info)]
    every += [key for info in registry.load_balancers().values() for key in load_balancer_keys(info)]
    return (*every, *sweep_keys())
