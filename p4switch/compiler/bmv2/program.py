"""The whole BMv2 JSON."""

from __future__ import annotations

from typing import Any

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.bmv2.code import action_primitives, parser
from p4switch.compiler.bmv2.expressions import Json, argument, condition, place
from p4switch.compiler.bmv2.pipeline import Actions, Ids, PipelineWriter
from p4switch.compiler.bmv2.source import Source
from p4switch.compiler.midend.storage import flat_fields
from p4switch.compiler.midend.whole import Lowered
from p4switch.compiler.passes import BMV2, run

VERSION = [2, 23]  # of the JSON format


def _field(name: str, t: types.Type) -> list[Any]:
    if isinstance(t, types.Varbit):
        return [name, "*"]
    return [name, types.width_of(t), isinstance(t, types.Bits) and t.signed]


def _padded(fields: list[list[Any]]) -> list[list[Any]]:
    """Return `fields` with one more that fills the last byte, as metadata and headers need."""
    rest = -sum(f[1] for f in fields) % 8
    return [*fields, ["_padding", rest, False]] if rest else fields


class _Headers:
    """Header types, instances, stacks and unions."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.types: list[Json] = []
        self.headers: list[Json] = []
        self._type_names: dict[types.Type, str] = {}
        self._taken: set[str] = {"scalars", *(m.name for m in program.metadata)}
        self.union_types: list[Json] = []
        self.stacks: list[Json] = []
        self.unions: list[Json] = []
        self.union_stacks: list[Json] = []

    def write(self) -> None:
        program = self.program
        self._add_type("scalars", _padded([_field(n, t) for n, t in program.scalars.items()]), None)
        for metadata in program.metadata:
            self._add_type(metadata.name, _padded([_field(n, t) for n, t in metadata.fields]), None)
        self._add_header("scalars", "scalars", metadata=True)
        for metadata in program.metadata:
            self._add_header(metadata.name, metadata.name, metadata=True)
        for name, width in program.varbits.items():
            type_name = f"varbit{width}"
            if type_name not in self._taken:
                self._taken.add(type_name)
                self._add_type(type_name, [["field", "*"]], -(-width // 8))
            self._add_header(name, type_name, metadata=True)
        for instance in program.headers:
            self._add_header(instance.name, self._type(instance.type), metadata=False)
        ids = {h["name"]: h["id"] for h in self.headers}
        union_ids: dict[str, int] = {}
        for union, members in program.unions:
            union_ids[union.name] = len(self.unions)
            self.unions.append(
                {
                    "name": union.name,
                    "id": len(self.unions),
                    "union_type": self._union_type(union.type),
                    "header_ids": [ids[m] for m in members],
                    "pi_omit": True,
                }
            )
        for stack, elements in program.stacks:
            if isinstance(stack.element, types.Header):
                self.stacks.append(
                    {
                        "name": stack.name,
                        "id": len(self.stacks),
                        "header_type": self._type(stack.element),
                        "size": stack.size,
                        "header_ids": [ids[e] for e in elements],
                    }
                )
            else:
                self.union_stacks.append(
                    {
                        "name": stack.name,
                        "id": len(self.union_stacks),
                        "union_type": self._union_type(stack.element),
                        "size": stack.size,
                        "header_union_ids": [union_ids[e] for e in elements],
                    }
                )

    def _unique(self, t: types.Record) -> str:
        name = next((a.string for a in t.decl.annotations if a.name == "name" and a.string), str(t)).lstrip(".")
        candidate, n = name, 0
        while candidate in self._taken:
            n += 1
            candidate = f"{name}_{n}"
        self._taken.add(candidate)
        self._type_names[t] = candidate
        return candidate

    def _type(self, t: types.Header) -> str:
        name = self._type_names.get(t)
        if name is None:
            name = self._unique(t)
            fields = flat_fields(t)
            variable = any(isinstance(ft, types.Varbit) for _, ft in fields)
            longest = sum(types.width_of(ft) or 0 for _, ft in fields) // 8 if variable else None
            written = [_field(n, ft) for n, ft in fields]
            self._add_type(name, written if variable else _padded(written), longest)
        return name

    def _union_type(self, t: types.Union) -> str:
        name = self._type_names.get(t)
        if name is None:
            name = self._unique(t)
            members = [[f.name, self._type(f.type)] for f in t.fields if isinstance(f.type, types.Header)]
            self.union_types.append({"name": name, "id": len(self.union_types), "headers": members})
        return name

    def _add_type(self, name: str, fields: list[list[Any]], longest: int | None) -> None:
        json: Json = {"name": name, "id": len(self.types), "fields": fields}
        if longest is not None:
            json["max_length"] = longest
        self.types.append(json)

    def _add_header(self, name: str, type_name: str, metadata: bool) -> None:
        self.headers.append(
            {
                "name": name,
                "id": len(self.headers),
                "header_type": type_name,
                "metadata": metadata,
                "pi_omit": True,
            }
        )


def _numbered(items: list[Json]) -> list[Json]:
    return [{"name": item.pop("name"), "id": i, **item} for i, item in enumerate(items)]


def _field_lists(lists: list[ir.FieldList]) -> list[Json]:
    # Number 0 means "not called" to simple_switch.
    return [
        {"id": i, "name": fl.name, "elements": [place(e) for e in fl.elements]} for i, fl in enumerate(lists, start=1)
    ]


def _calculation(name: str, algorithm: str, inputs: list[Any], with_payload: bool, info: Json) -> Json:
    elements: list[Json] = []
    for element in inputs:
        json = argument(element)
        if isinstance(element, ir.Const):
            json["bitwidth"] = types.width_of(element.type)
        elements.append(json)
    if with_payload:
        elements.append({"type": "payload", "value": None})
    return {"name": name, "algo": algorithm, "input": elements, **info}


def _counter(counter: ir.Counter, info: Json) -> Json:
    if counter.table:
        return {"name": counter.name, "is_direct": True, "binding": counter.table, **info}
    return {"name": counter.name, "size": counter.size, "is_direct": False, **info}


def _meter(meter: ir.Meter, info: Json) -> Json:
    json: Json = {"name": meter.name, "is_direct": bool(meter.table), "size": meter.size, "rate_count": 2}
    json["type"] = meter.unit
    if meter.table:
        assert meter.result is not None
        json |= {"binding": meter.table, "result_target": place(meter.result)["value"]}
    return {**json, **info}


def _instance(extern: ir.ExternInstance, number: int, info: Json) -> Json:
    attributes: list[Json] = []
    for name, value in extern.attributes.items():
        if isinstance(value, str):
            attributes.append({"name": name, "type": "string", "value": value})
        else:
            attributes.append({"name": name, **argument(value)})
    return {"name": extern.name, "id": number, "type": extern.type, "attribute_values": attributes, **info}


def to_json(lowered: Lowered) -> Json:
    """Return the JSON of `lowered`, as BMv2 and the built-in engine read it."""
    run(BMV2, lowered)
    info = Source(lowered.source)
    with info.at(lowered.source.main.pos if lowered.source.main is not None else 0):
        return _write(lowered, lowered.program, info)


def _write(lowered: Lowered, program: ir.Program, info: Source) -> Json:
    actions, ids = Actions(info), Ids()
    parsers = [parser(each, i, info) for i, each in enumerate(program.parsers)]
    pipelines = [PipelineWriter(p, program, actions, ids, info).json(i) for i, p in enumerate(program.pipelines)]
    headers = _Headers(program)
    headers.write()
    calculations = [
        _calculation(c.name, c.algorithm, c.inputs, c.with_payload, info(c.span)) for c in program.calculations
    ]
    checksums: list[Json] = []
    for i, checksum in enumerate(program.checksums):
        name, made = f"calc_{len(calculations)}", checksum.calculation
        with info.at(checksum.span):
            calculations.append(
                _calculation(name, made.algorithm, made.inputs, made.with_payload, info(made.span))
            )
            checksums.append(
                {
                    "name": f"cksum_{i}",
                    "id": i,
                    **info(checksum.span),
                    "target": place(checksum.target)["value"],
                    "type": "generic",
                    "calculation": name,
                    "verify": checksum.verify,
                    "update": not checksum.verify,
                    "if_cond": condition(checksum.condition),
                }
            )
    return {
        "program": lowered.source.path,
        "__meta__": {
            "version": VERSION,
            "compiler": "p4cc",
            **({"package": lowered.package.path} if lowered.package.path else {}),
            "source_names": lowered.parameters,
        },
        "header_types": headers.types,
        "headers": headers.headers,
        "header_stacks": headers.stacks,
        "header_union_types": headers.union_types,
        "header_unions": headers.unions,
        "header_union_stacks": headers.union_stacks,
        "field_lists": _field_lists(program.field_lists),
        "errors": [[name, i] for name, i in program.errors.items()],
        "enums": [{"name": n, "entries": [[m, i] for i, m in enumerate(members)]} for n, members in program.enums],
        "parsers": parsers,
        "parse_vsets": [
            {"name": v.name, "id": i, "compressed_bitwidth": v.width, "max_size": v.size}
            for i, v in enumerate(program.value_sets)
        ],
        "deparsers": [
            {
                "name": each.name,
                "id": i,
                "order": [h.name for h in each.order],
                "primitives": action_primitives(each.body, info),
            }
            for i, each in enumerate(program.deparsers)
        ],
        "meter_arrays": _numbered([_meter(m, info(m.span)) for m in program.meters]),
        "counter_arrays": _numbered([_counter(c, info(c.span)) for c in program.counters]),
        "register_arrays": _numbered(
            [
                {
                    "name": r.name,
                    "size": r.size,
                    "bitwidth": r.width,
                    **({"initial_value": hex(r.initial)} if r.initial else {}),
                    **info(r.span),
                }
                for r in program.registers
            ]
        ),
        "calculations": _numbered(calculations),
        "learn_lists": _field_lists(program.learn_lists),
        "actions": actions.json,
        "pipelines": pipelines,
        "checksums": checksums,
        "force_arith": [],
        "extern_instances": [_instance(e, i, info(e.span)) for i, e in enumerate(program.externs)],
        "field_aliases": [
            [alias, [metadata.name, name]] for metadata in program.metadata for alias, name in metadata.aliases.items()
        ],
    }
