"""P4Info of a program: the objects that its control plane can read and write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p4switch import ir
from p4switch.architectures.extern import ExternType
from p4switch.compiler import ast, types
from p4switch.compiler.midend.elaborate import ExternObject, local_name
from p4switch.compiler.midend.tables import ActionObject, TableObject
from p4switch.compiler.midend.whole import Lowered
from p4switch.compiler.p4info.annotations import add_annotations, add_documentation
from p4switch.compiler.p4info.symbols import Symbols, field_ids
from p4switch.compiler.p4info.typespecs import TypeSpecs, bitwidth, encode, type_name
from p4switch.p4runtime.messages import p4info_pb2, p4types_pb2

_IDS = p4info_pb2.P4Ids
ACTION: int = _IDS.ACTION
TABLE: int = _IDS.TABLE
VALUE_SET: int = _IDS.VALUE_SET
CONTROLLER_HEADER: int = _IDS.CONTROLLER_HEADER
ACTION_PROFILE: int = _IDS.ACTION_PROFILE
DIGEST: int = _IDS.DIGEST

_UNITS = {"packets_and_bytes": "BOTH", "PACKETS_AND_BYTES": "BOTH"}
_PROFILE_ANNOTATIONS = ("max_group_size", "selector_size_semantics", "max_member_weight")


def _prefix(kind: ExternType) -> int:
    """Return the highest byte of the ids of objects of an extern type."""
    number: int = _IDS.Prefix.Value(kind.p4info)
    return number


def _hidden(annotations: list[ast.Annotation]) -> bool:
    return any(a.name == "hidden" for a in annotations)


def _number(annotations: list[ast.Annotation], name: str) -> int | None:
    for a in annotations:
        if a.name == name and a.args and isinstance(a.args[0], ast.IntLiteral):
            return a.args[0].value
    return None


class Builder:
    """P4Info message under construction; extern types add their objects to it."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.facts = lowered.source.facts
        self.info = p4info_pb2.P4Info()
        self.symbols = Symbols()
        self.specs = TypeSpecs(self.info, p4types_pb2.P4DataTypeSpec, list(lowered.program.errors), self.facts)
        self.actions: dict[str, ActionObject] = {}
        for action in lowered.actions:
            self.actions.setdefault(action.ir.name, action)
        self.direct = {
            extern: table
            for table in lowered.tables
            for extern in (table.counter, table.meter)
            if extern is not None
        }

    def build(self) -> Any:
        self._collect()
        self.symbols.number()
        for table in self.lowered.tables:
            if not _hidden(table.decl.annotations):
                self._table(table)
        for action in self.actions.values():
            if not _hidden(action.decl.annotations):
                self._action(action)
        for extern, kind in self._extern_objects():
            if not kind.direct or extern in self.direct:
                kind.describe(extern, self)
        for header in self._controller_headers():
            self._controller_header(header)
        for _, decl, value_set in self.lowered.value_sets:
            self._value_set(decl, value_set)
        for t, name in self._digests():
            self._digest(t, name)
        self._package()
        return self.info

    # Objects

    def _collect(self) -> None:
        add = self.symbols.add
        for table in self.lowered.tables:
            add(TABLE, table.ir.name, table.decl.annotations)
        for action in self.actions.values():
            add(ACTION, action.ir.name, action.decl.annotations)
        for extern, kind in self._extern_objects():
            add(_prefix(kind), extern.path, extern.annotations)
        for header in self._controller_headers():
            add(CONTROLLER_HEADER, header.name, header.annotations)
        for _, decl, value_set in self.lowered.value_sets:
            add(VALUE_SET, value_set.name, decl.annotations)
        for _, name in self._digests():
            add(DIGEST, name, [])

    def _extern_objects(self) -> Iterator[tuple[ExternObject, ExternType]]:
        """Yield the extern objects that have a control-plane name."""
        for extern in self.lowered.externs:
            kind = self.lowered.architecture.extern_type(extern.decl.name)
            if kind is not None and kind.p4info and extern.path:
                yield extern, kind

    def _controller_headers(self) -> list[ast.HeaderDecl]:
        return [
            d
            for d in self.lowered.source.declarations
            if isinstance(d, ast.HeaderDecl) and d.annotation("controller_header") and not _hidden(d.annotations)
        ]

    def _digests(self) -> list[tuple[types.Type, str]]:
        result: dict[str, types.Type] = {}
        unnamed = 0
        for t in self.lowered.digests:
            if isinstance(t, types.Record):
                result.setdefault(type_name(t), t)
            else:
                result[f"digest_{unnamed}"] = t
                unnamed += 1
        return [(t, name) for name, t in result.items()]

    # Objects

    def _preamble(
        self, message: Any, kind: int, name: str, annotations: list[ast.Annotation], *skip: str
    ) -> None:
        preamble = message.preamble
        preamble.id = self.symbols.id(kind, name)
        preamble.name = name
        preamble.alias = self.symbols.alias(name)
        add_annotations(preamble, annotations, *skip)
        add_documentation(preamble, annotations)

    def _typed(self, message: Any, t: types.Type) -> None:
        """Fill in `bitwidth` and `type_name` of a match field, parameter or metadata field."""
        if not (isinstance(t, types.Enum) and t.underlying is None):
            message.bitwidth = bitwidth(t)
        self.specs.convert(t)
        if isinstance(t, types.NewType) or (isinstance(t, types.Enum) and t.underlying is None):
            message.type_name.name = type_name(t)

    def _table(self, table: TableObject) -> None:
        decl, lowered = table.decl, table.ir
        message = self.info.tables.add()
        self._preamble(message, TABLE, lowered.name, decl.annotations)
        self._match_fields(message, table)
        self._action_refs(message, table)
        if lowered.default is not None:
            default_id = self.symbols.id(ACTION, lowered.default.action.name)
            if lowered.default_const:
                message.const_default_action_id = default_id
            self._default_action(message.initial_default_action, table, lowered.default)
        message.size = lowered.size
        message.is_const_table = decl.entries is not None and decl.const_entries
        message.has_initial_entries = bool(decl.entries)
        if table.profile is not None:
            message.implementation_id = self.symbols.id(ACTION_PROFILE, self._members(table.profile).path)
        for extern in (table.counter, table.meter):
            kind = None if extern is None else self.lowered.architecture.extern_type(extern.decl.name)
            if extern is not None and kind is not None:
                message.direct_resource_ids.append(self.symbols.id(_prefix(kind), extern.path))
        if lowered.support_timeout:
            message.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL

    def _match_fields(self, message: Any, table: TableObject) -> None:
        keys = iter(zip(table.ir.keys, table.key_types, strict=True))
        ids = field_ids(k.annotations for k in table.decl.keys)
        for number, declared in zip(ids, table.decl.keys, strict=True):
            if declared.match_kind == "selector":
                continue
            key, t = next(keys)
            match = message.match_fields.add(id=number, name=key.name)
            add_annotations(match, declared.annotations)
            add_documentation(match, declared.annotations)
            self._typed(match, t)
            self._match_type(match, key.match_kind)

    def _match_type(self, match: Any, kind: str) -> None:
        if kind in ("exact", "lpm", "ternary", "range", "optional"):
            match.match_type = getattr(p4info_pb2.MatchField, kind.upper())
        else:
            match.other_match_type = kind

    def _action_refs(self, message: Any, table: TableObject) -> None:
        scopes = p4info_pb2.ActionRef
        for i, (ref, action) in enumerate(zip(table.refs, table.ir.actions, strict=True)):
            entry = message.action_refs.add(id=self.symbols.id(ACTION, action.name))
            implicit = table.implicit_default and i == len(table.refs) - 1
            add_annotations(entry, ref.annotations)
            names = {a.name for a in ref.annotations}
            if implicit:
                entry.annotations.append("@defaultonly")
            if "tableonly" in names:
                entry.scope = scopes.TABLE_ONLY
            elif "defaultonly" in names or implicit:
                entry.scope = scopes.DEFAULT_ONLY

    def _default_action(self, message: Any, table: TableObject, call: ir.ActionCall) -> None:
        message.action_id = self.symbols.id(ACTION, call.action.name)
        params = self._unbound(self.actions[call.action.name])
        ids = field_ids(p.annotations for p in params)
        for number, param, value in zip(ids, params, call.args, strict=True):
            message.arguments.add(param_id=number, value=encode(value, bitwidth(self.facts.types[param])))

    def _unbound(self, action: ActionObject) -> list[ast.Parameter]:
        """Return the parameters that the control plane binds."""
        names = {name for name, _ in action.ir.params}
        return [p for p in action.decl.params if local_name(p) in names]

    def _action(self, action: ActionObject) -> None:
        message = self.info.actions.add()
        self._preamble(message, ACTION, action.ir.name, action.decl.annotations)
        params = self._unbound(action)
        for number, param in zip(field_ids(p.annotations for p in params), params, strict=True):
            entry = message.params.add(id=number, name=local_name(param))
            add_annotations(entry, param.annotations)
            add_documentation(entry, param.annotations)
            self._typed(entry, self.facts.types[param])

    # Externs

    def object(self, message: Any, extern: ExternObject, *skip: str) -> None:
        kind = self.lowered.architecture.extern_type(extern.decl.name)
        assert kind is not None
        self._preamble(message, _prefix(kind), extern.path, extern.annotations, *skip)

    def indexed(self, message: Any, extern: ExternObject, type_argument: int = 0, size_argument: str = "size") -> None:
        """Fill in the fields of an array of cells.

        `type_argument` is the position of the index type among the type arguments. `size_argument` is the name of the
        constructor's argument for the size.
        """
        self.object(message, extern)
        size = extern.args[size_argument]
        assert isinstance(size, ir.Const)
        message.size = size.value
        if len(extern.type_args) > type_argument:
            index = extern.type_args[type_argument]
            self.specs.convert(index)
            if isinstance(index, types.NewType):
                message.index_type_name.name = type_name(index)

    def of_table(self, message: Any, extern: ExternObject) -> None:
        """Fill in the fields of a direct object, which belongs to a table."""
        self.object(message, extern)
        message.direct_table_id = self.symbols.id(TABLE, self.direct[extern].ir.name)

    @staticmethod
    def unit(spec: Any, extern: ExternObject) -> int:
        """Return the unit of a counter or meter as a value of the enum in `spec`."""
        unit = extern.args["type"]
        assert isinstance(unit, ir.Const)
        number: int = spec.Unit.Value(_UNITS.get(unit.member, unit.member).upper())
        return number

    def _members(self, profile: ExternObject) -> ExternObject:
        """Return the action profile with the members of a table's action profile or selector."""
        kind = self.lowered.architecture.extern_type(profile.decl.name)
        assert kind is not None
        return kind.profile(profile)

    def users(self, extern: ExternObject) -> list[TableObject]:
        """Return the tables whose entries use the members of an action profile."""
        return [t for t in self.lowered.tables if t.profile is not None and self._members(t.profile) is extern]

    def profile(self, extern: ExternObject, selects: bool) -> None:
        """Add an action profile, with a selector or without."""
        message = self.info.action_profiles.add()
        self.object(message, extern, *_PROFILE_ANNOTATIONS)
        size = extern.args["size"]
        assert isinstance(size, ir.Const)
        message.size = size.value
        message.with_selector = selects
        if selects:
            self._selector(message, extern.annotations)
        tables = sorted(t.ir.name for t in self.users(extern))
        message.table_ids.extend(self.symbols.id(TABLE, t) for t in tables)

    def _selector(self, message: Any, annotations: list[ast.Annotation]) -> None:
        message.max_group_size = _number(annotations, "max_group_size") or 0
        semantics = next((a.string or "" for a in annotations if a.name == "selector_size_semantics"), "")
        if semantics.lower() == "sum_of_weights":
            message.sum_of_weights.SetInParent()
        elif semantics.lower() == "sum_of_members":
            message.sum_of_members.SetInParent()
            message.sum_of_members.max_member_weight = _number(annotations, "max_member_weight") or 0

    # Other objects

    def _controller_header(self, header: ast.HeaderDecl) -> None:
        annotation = header.annotation("controller_header")
        assert annotation is not None
        name = annotation.string or header.name
        message = self.info.controller_packet_metadata.add()
        message.preamble.id = self.symbols.id(CONTROLLER_HEADER, header.name)
        message.preamble.name = message.preamble.alias = name
        add_annotations(message.preamble, header.annotations)
        add_documentation(message.preamble, header.annotations)
        t = self.facts.types[header]
        assert isinstance(t, types.Header)
        fields = list(_flat_fields("", [], t))
        for number, (field_name, field_type, annotated) in zip(field_ids(a for _, _, a in fields), fields, strict=True):
            if _hidden(annotated):
                continue
            entry = message.metadata.add(id=number, name=field_name)
            add_annotations(entry, annotated)
            self._typed(entry, field_type)

    def _value_set(self, decl: ast.ValueSetDecl, value_set: ir.ValueSet) -> None:
        message = self.info.value_sets.add()
        self._preamble(message, VALUE_SET, value_set.name, decl.annotations)
        message.size = value_set.size
        element = types.strip_newtype(self.facts.types[decl])
        if isinstance(element, types.Struct):
            for number, f in zip(field_ids(f.decl.annotations for f in element.fields), element.fields, strict=True):
                match = message.match.add(id=number, name=f.name, bitwidth=types.width_of(f.type) or 0)
                kind = next((a.tokens[0] for a in f.decl.annotations if a.name == "match" and a.tokens), "exact")
                self._match_type(match, kind)
                add_annotations(match, f.decl.annotations, "match")
                add_documentation(match, f.decl.annotations)
        else:  # also for serializable enums, whose members are plain values
            match = message.match.add(id=1, bitwidth=value_set.width)
            self._match_type(match, "exact")

    def _digest(self, t: types.Type, name: str) -> None:
        message = self.info.digests.add()
        self._preamble(message, DIGEST, name, [])
        message.type_spec.CopyFrom(self.specs.convert(t))

    def _package(self) -> None:
        package = self.info.pkg_info
        package.arch = self.lowered.architecture.name
        main = self.lowered.source.main
        assert main is not None
        for annotation in main.annotations:
            if annotation.name == "pkginfo":
                for key, text in annotation.key_values():
                    if key in ("name", "version", "organization", "contact", "url", "arch"):
                        setattr(package, key, text.strip('"'))
            elif annotation.name == "platform_property":
                self._platform_properties(package.platform_properties, annotation)
        others = [a for a in main.annotations if a.name not in ("pkginfo", "platform_property")]
        add_annotations(package, others)
        add_documentation(package, others)


    @staticmethod
    def _platform_properties(message: Any, annotation: ast.Annotation) -> None:
        known = {f.name for f in message.DESCRIPTOR.fields}
        for key, text in annotation.key_values():
            if key in known:
                setattr(message, key, int(text, 0))


def _flat_fields(
    prefix: str, outer: list[ast.Annotation], record: types.Record
) -> list[tuple[str, types.Type, list[ast.Annotation]]]:
    """Return fields with structs flattened. A field's own annotations precede those of its struct."""
    result: list[tuple[str, types.Type, list[ast.Annotation]]] = []
    for f in record.fields:
        own = {a.name for a in f.decl.annotations}
        annotations = [*f.decl.annotations, *(a for a in outer if a.name not in own)]
        name = next((a.string for a in f.decl.annotations if a.name == "name" and a.string), f.name)
        if isinstance(f.type, types.Struct):
            result += _flat_fields(f"{prefix}{name}.", annotations, f.type)
        else:
            result.append((prefix + name, f.type, annotations))
    return result


def build_p4info(lowered: Lowered) -> Any:
    """Return the P4Info message of `lowered`."""
    return Builder(lowered).build()
