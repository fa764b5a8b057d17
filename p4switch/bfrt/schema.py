"""`bf-rt.json` of a program: its tables, with keys, actions and data, as a BfRuntime client sees them.

Content that is also in the P4Info is taken from there. Externs (`ExternType.publish`, `ExternType.extend`) and the
package add the rest. Names of objects begin with the name of the pipeline, but names of actions do not. As in P4Info,
an id consists of a byte for the kind of the object and 24 bits of a hash of the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from p4switch.architectures.extern import ExternType
from p4switch.bfrt.fields import (
    Id,
    Json,
    Table,
    annotation,
    data_field,
    in_bytes,
    numbers,
    parameter,
    scalar,
    value_type,
)
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.midend.elaborate import ExternObject, control_name, local_name
from p4switch.compiler.midend.tables import TableObject
from p4switch.compiler.midend.whole import Lowered
from p4switch.compiler.p4info.annotations import text
from p4switch.compiler.p4info.symbols import Symbols
from p4switch.compiler.walk import walk
from p4switch.p4runtime.messages import p4info_pb2

VERSION = "1.0.0"
_TABLE, _ACTION = 2, 1
_VALUE_SET = 0xFE
_KINDS = {"exact": "Exact", "lpm": "LPM", "ternary": "Ternary", "range": "Range", "optional": "Optional"}
_OWN_KINDS = {"atcam_partition_index": "ATCAM", "dleft_hash": "DLEFT_HASH"}
_ORDERED = {"Ternary", "Range", "Optional"}
_SCOPES = {"TABLE_AND_DEFAULT": "TableAndDefault", "TABLE_ONLY": "TableOnly", "DEFAULT_ONLY": "DefaultOnly"}
_DEFAULT_SIZE = 512  # size of a table that declares none


class Schema:
    """Builder of `bf-rt.json`, to which extern types and the package add their parts."""

    def __init__(self, lowered: Lowered, p4info: Any) -> None:
        self.lowered = lowered
        self.facts = lowered.source.facts
        self.pipe = _pipe(lowered)
        self._without_pipe = {
            extern.path
            for extern, kind in self._objects()
            if kind.bfrt_of_blocks and extern.node in lowered.source.declarations
        }
        self.tables: list[Table] = []
        self.learn_filters: list[Json] = []
        self._symbols = Symbols()
        self._infos = {t.preamble.name: t for t in p4info.tables}
        self._actions = {a.preamble.id: a for a in p4info.actions}

    def build(self) -> Json:
        """Return the content of `bf-rt.json`."""
        add = self._symbols.add
        shown = [t for t in self.lowered.tables if t.ir.name in self._infos]
        for table in shown:
            add(_TABLE, self.name(table.ir.name), table.decl.annotations)
        for action in self._actions.values():
            add(_ACTION, action.preamble.name, [])
        for extern, kind in self._objects():
            for byte, name in kind.bfrt_names(extern):
                add(byte, self.name(name), [])
        for _, decl, value_set in self.lowered.value_sets:
            add(_VALUE_SET, self.name(value_set.name), decl.annotations)
        for byte, name in self.lowered.package.bfrt_names(self.lowered.blocks):
            add(byte, self.name(name), [])
        self._symbols.number()
        for table in shown:
            self.tables.append(self._match_table(table))
        for extern, kind in self._objects():
            kind.publish(extern, self)
        for _, decl, value_set in self.lowered.value_sets:
            self._value_set(decl, value_set.name, value_set.size)
        self.lowered.package.publish(self.lowered.blocks, self)
        return {
            "schema_version": VERSION,
            "tables": [table.as_json() for table in self.tables],
            "learn_filters": self.learn_filters,
        }

    # Names and ids

    def name(self, own: str) -> str:
        """Return the name of the object `own`; the pipeline's name precedes it unless its type is `bfrt_of_blocks`."""
        return own if own in self._without_pipe else f"{self.pipe}.{own}"

    def id(self, byte: int, own: str) -> int:
        """Return the id of the object `own` of kind `byte`."""
        return self._symbols.id(byte, self.name(own))

    def table_id(self, table: TableObject) -> int:
        return self.id(_TABLE, table.ir.name)

    # Externs

    def _objects(self) -> Iterator[tuple[ExternObject, ExternType]]:
        for extern in self.lowered.externs:
            kind = self.lowered.architecture.extern_type(extern.decl.name)
            if kind is not None and extern.path:
                yield extern, kind

    def table(
        self,
        byte: int,
        extern: ExternObject,
        kind: str,
        size: int,
        *,
        name: str | None = None,
        like: int | None = None,
        annotated: bool = True,
    ) -> Table:
        """Add a table of an object, and return it.

        The table's name is `name`, by default the name of the object. The highest byte of its id is
        `byte`. The other bytes are those of the id `like`, by default a hash of the name.
        """
        own = extern.path if name is None else name
        number = self.id(byte, own) if like is None else byte << 24 | like & 0xFFFFFF
        annotations = self.annotations(extern.annotations) if annotated else None
        made = Table(self.name(own), number, kind, size, annotations)
        self.tables.append(made)
        return made

    @staticmethod
    def annotations(given: list[ast.Annotation]) -> list[Json]:
        known = ("name", "id", "brief", "description")
        return [annotation(text(a)) for a in given if not a.structured and a.name not in known]

    def fields(self, t: types.Type, prefix: str = "", first: int = 1, **more: Any) -> list[Json]:
        """Return the numbers in a value of type `t` as data fields, with ids from `first` on."""
        return [
            data_field(number, name, scalar(field), **more)
            for number, (name, field) in enumerate(numbers(t, prefix), first)
        ]

    def users(self, profile: ExternObject) -> list[TableObject]:
        """Return the tables that use an action profile or selector, directly or through a selector."""
        kinds = {
            t: self.lowered.architecture.extern_type(t.profile.decl.name) for t in self.lowered.tables if t.profile
        }
        return [
            t for t, kind in kinds.items() if t.profile and kind and profile in (t.profile, kind.profile(t.profile))
        ]

    def action_specs(self, table: TableObject) -> list[Json]:
        """Return the actions of a table."""
        specs = []
        for ref in self._infos[table.ir.name].action_refs:
            action = self._actions[ref.id]
            scope = p4info_pb2.ActionRef.Scope.Name(ref.scope)
            given = {local_name(p): p for p in self._declared(table, action.preamble.name).params}
            specs.append(
                {
                    "id": action.preamble.id,
                    "name": action.preamble.name,
                    "action_scope": _SCOPES[scope],
                    "annotations": [annotation(each) for each in ref.annotations],
                    "data": [
                        parameter(
                            p.id,
                            p.name,
                            in_bytes(types.width_of(types.strip_newtype(self.facts.types[given[p.name]])) or 0),
                            annotations=[annotation(each) for each in p.annotations],
                        )
                        for p in action.params
                    ],
                }
            )
        return specs

    def _declared(self, table: TableObject, name: str) -> ast.ActionDecl:
        at = next(i for i, action in enumerate(table.ir.actions) if action.name == name)
        return self.facts.actions[table.refs[at]]

    @cached_property
    def _calls(self) -> dict[ast.Node, list[ast.Call]]:
        calls: dict[ast.Node, list[ast.Call]] = {}
        for decl in self.lowered.source.declarations:
            for node in walk(decl, self.facts):
                if isinstance(node, ast.Call):
                    binding = self.facts.bindings[node]
                    if binding.kind is CallKind.EXTERN_METHOD and isinstance(binding.receiver, ast.Name):
                        calls.setdefault(self.facts.decls[binding.receiver], []).append(node)
        return calls

    def calls(self, extern: ExternObject) -> list[ast.Call]:
        """Return the calls of an object's methods, each as often as it occurs after inlining all blocks."""
        return self._calls.get(extern.node, []) * (1 if extern.block is None else extern.block.applied)

    # Tables of the program

    def _match_table(self, table: TableObject) -> Table:
        info = self._infos[table.ir.name]
        size = table.ir.size if "size" in table.decl.properties else _DEFAULT_SIZE
        annotations = [annotation(each) for each in info.preamble.annotations]
        described = Table(self.name(table.ir.name), self.table_id(table), "MatchAction_Direct", size, annotations)
        described.const_default = info.const_default_action_id != 0
        self._keys(described, table, info)
        if table.profile is None:
            described.actions = self.action_specs(table)
        for extern in (table.profile, table.counter, table.meter, *table.direct):
            kind = None if extern is None else self.lowered.architecture.extern_type(extern.decl.name)
            if extern is not None and kind is not None:
                kind.extend(extern, described, self)
        described.attributes.append("EntryScope")
        masks = "@dynamic_table_key_masks(1)"
        if masks in info.preamble.annotations:
            described.attributes.append("DynamicKeyMask")
        if info.is_const_table:
            described.attributes.append("ConstTable")
        if info.idle_timeout_behavior == p4info_pb2.Table.NOTIFY_CONTROL:
            described.operations.append("UpdateHitState")
            described.attributes.append("IdleTimeout")
            states = value_type("string", choices=["ENTRY_IDLE", "ENTRY_ACTIVE"])
            described.singleton(data_field(Id.ENTRY_HIT_STATE, "$ENTRY_HIT_STATE", states))
            if "@idletime_precision(1)" not in info.preamble.annotations:
                described.singleton(data_field(Id.ENTRY_TTL, "$ENTRY_TTL", value_type("uint32", 0)))
        return described

    def _keys(self, described: Table, table: TableObject, info: Any) -> None:
        declared = [key for key in table.decl.keys if key.match_kind != "selector"]
        for key, field, t in zip(declared, info.match_fields, table.key_types, strict=True):
            match = _OWN_KINDS.get(key.match_kind) or _KINDS[key.match_kind]
            annotations = [annotation(each) for each in field.annotations]
            if re.search(r"\[\d+:\d+\]", field.name):
                annotations.append(annotation("isFieldSlice", value="true"))
            name = field.name[:-1] if ".$valid" in field.name else field.name
            name = re.sub(r"\[(\d+)\]", r"$\1", name)
            mask = re.search(r"\s*&\s*(0x[0-9a-fA-F]+)", name) if match == "Exact" and name == field.name else None
            width = in_bytes(types.width_of(types.strip_newtype(t)) or 0)
            width |= {"mask": mask[1]} if mask else {}
            described.key(field.id, name, width, mandatory=False, match=match, annotations=annotations)
        if any(key["match_type"] in _ORDERED for key in described.keys):
            described.key(Id.MATCH_PRIORITY, "$MATCH_PRIORITY", value_type("uint32"), mandatory=False)

    def _value_set(self, decl: ast.ValueSetDecl, own: str, size: int) -> None:
        annotations = self.annotations(decl.annotations)
        table = Table(self.name(own), self.id(_VALUE_SET, own), "ParserValueSet", size, annotations)
        for number, (name, t) in enumerate(numbers(self.facts.types[decl]), 1):
            table.key(number, name, scalar(t), mandatory=False, match="Ternary")
        table.attributes.append("EntryScope")
        self.tables.append(table)


def _pipe(lowered: Lowered) -> str:
    """Return the name of the pipeline: that of its instance, or else of the parameter it is passed to."""
    main, facts = lowered.source.main, lowered.source.facts
    assert main is not None
    binding = facts.bindings[main]
    pairs = zip(binding.params, binding.bound, strict=True)
    param, given = [(param, given) for param, given in pairs if given is not None][lowered.source.pipeline or 0]
    decl = facts.decls[given] if isinstance(given, ast.Name) else None
    return control_name(decl.name, decl.annotations, "") if isinstance(decl, ast.Instantiation) else param.name


def build(lowered: Lowered, p4info: Any) -> Json | None:
    """Return a program's `bf-rt.json`, or None for packages that BfRuntime does not know."""
    return Schema(lowered, p4info).build() if lowered.package.bfrt else None
