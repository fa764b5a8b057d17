"""A BMv2 JSON that has been read: its structure as `schema` has it, its code as nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4switch import ir
from p4switch.architectures.packet_path import PacketPath, packet_path
from p4switch.bmv2 import schema
from p4switch.bmv2.expressions import Expressions, lookahead
from p4switch.bmv2.operations import Calculations, Operations
from p4switch.bmv2.places import Place
from p4switch.bmv2.schema import Json, JsonError
from p4switch.bmv2.symbols import Symbols
from p4switch.bmv2.values import hex_value
from p4switch.compiler import types

_MAX_CONSTANT_BITS = 4096


@dataclass(frozen=True)
class State:
    """A state of a parser: what it does, the fields of its key, and where it goes on."""

    json: schema.ParseState
    ops: list[ir.Operation]
    keys: list[ir.Expr]


@dataclass(frozen=True)
class Checksum:
    """A field that is verified or updated; `condition` None: always."""

    json: schema.Checksum
    target: ir.FieldRef
    condition: ir.Expr | None


class Document:
    """Everything that is made of a program is made of this. Raises JsonError for what is not as the format says."""

    def __init__(self, json: schema.Program) -> None:
        self.json = json
        blocks = [block.name for kind in (json.parsers, json.pipelines, json.deparsers) for block in kind]
        self.path: PacketPath = packet_path(json.meta.package, blocks)
        self.symbols = Symbols(json)
        self._places: list[Place] = []
        self._x = Expressions(self.symbols)
        self.calculations: Calculations = {c.name: self._calculation(c.name, c.algo, c.input)
                                           for c in json.calculations}
        self.selectors = {
            profile.name: self._calculation(profile.name, profile.selector.algo, profile.selector.input)
            for pipeline in json.pipelines for profile in pipeline.action_profiles if profile.selector is not None
        }
        self._operations = self._code(self._x)
        self.actions = [self._action(action) for action in json.actions]
        self.states = {parser.name: [self._state(s) for s in parser.parse_states] for parser in json.parsers}
        self.deparsers = {d.name: self._operations.body(d.primitives) for d in json.deparsers}
        self.conditions = {
            (pipeline.name, condition.name): self._x.condition(condition.expression)
            for pipeline in json.pipelines for condition in pipeline.conditionals
        }
        self.checksums = [self._checksum(checksum) for checksum in json.checksums]
        self.field_lists = {each.id: self._copied(each.elements) for each in json.field_lists}
        self.learn_lists = {
            each.id: ir.FieldList(each.name, [self._x.place(e) for e in each.elements]) for each in json.learn_lists
        }
        self.lengths = {
            item.name: Expressions(self.symbols, [f.type for f in self.symbols.types[item.name].fields])
            .number(item.length_exp)
            for item in json.header_types if item.length_exp is not None
        }

    @staticmethod
    def attributes(instance: schema.ExternInstance) -> dict[str, int]:
        """Return the numeric arguments of an extern object's constructor."""
        return {each.name: hex_value(each.value) for each in instance.attribute_values if each.type == "hexstr"}

    def place(self, span: int | None) -> Place | None:
        """Return the place of a node in the source, by its span."""
        return None if span is None else self._places[span]

    def field(self, ref: schema.FieldRef | str) -> ir.FieldRef | ir.Valid:
        """Return the field or the validity of a pair of names."""
        return self._x.field(ref)

    def span(self, place: Place | None) -> int | None:
        """Return the span of a place, for nodes."""
        if place is None:
            return None
        self._places.append(place)
        return len(self._places) - 1

    def _code(self, x: Expressions) -> Operations:
        return Operations(x, self.path.operations, self.calculations, self.span)

    def _action(self, action: schema.Action) -> ir.Action:
        params: list[tuple[str, types.Type]] = [(p.name, ir.Bits(p.bitwidth)) for p in action.runtime_data]
        code = self._code(Expressions(self.symbols, [t for _, t in params]))
        return ir.Action(action.name, params, code.body(action.primitives), self.span(action.place))

    def _state(self, state: schema.ParseState) -> State:
        ops = [op for each in state.parser_ops for op in self._operations.parser_operation(each)]
        keys: list[ir.Expr] = [
            lookahead(item.get("value")) if item.get("type") == "lookahead" else self._x.place(item)
            for item in state.transition_key
        ]
        return State(state, ops, keys)

    def _checksum(self, checksum: schema.Checksum) -> Checksum:
        if checksum.calculation not in self.calculations:
            raise JsonError(f"BMv2 JSON: checksum {checksum.name}: there is no calculation {checksum.calculation}")
        target = self._x.field(list(checksum.target))
        if isinstance(target, ir.Valid):
            raise JsonError(f"BMv2 JSON: checksum {checksum.name} goes to a validity; expected a field")
        condition = self._x.condition(checksum.if_cond) if checksum.if_cond is not None else None
        return Checksum(checksum, target, condition)

    def _copied(self, elements: Sequence[Mapping[str, Json]]) -> list[ir.FieldRef]:
        """Return the fields of a field list."""
        found: list[ir.FieldRef] = []
        for element in elements:
            if element.get("type") == "field":
                field = self._x.field(element.get("value"))
                if isinstance(field, ir.Valid):
                    raise JsonError(f"BMv2 JSON: expected a field in a field list, got {element.get('value')}")
                found.append(field)
        return found

    def _calculation(self, name: str, algorithm: str, inputs: Sequence[Mapping[str, Json]]) -> ir.Calculation:
        made = ir.Calculation(name, algorithm, [])
        for item in inputs:
            kind, value = item.get("type"), item.get("value")
            if kind == "field":
                field = self._x.field(value)
                if isinstance(field, ir.Valid):
                    raise JsonError(f"BMv2 JSON: expected a field, got {value}")
                made.inputs.append(field)
            elif kind == "hexstr":
                width = item.get("bitwidth")
                if not isinstance(width, int) or not 0 < width <= _MAX_CONSTANT_BITS:
                    raise JsonError("BMv2 JSON: a constant in a calculation needs a bitwidth")
                made.inputs.append(ir.Const(hex_value(value) & (1 << width) - 1, ir.Bits(width)))
            elif kind == "header":
                made.inputs.append(self.symbols.header(str(value)))
            elif kind == "payload":
                made.with_payload = True
            else:
                raise JsonError(f"BMv2 JSON: a calculation cannot have {kind} as input")
        return made


def read(document: Mapping[str, Json]) -> Document:
    """Return a BMv2 JSON as nodes. Raises JsonError, which names the first thing that is not as the format says."""
    return Document(schema.validate(document))
