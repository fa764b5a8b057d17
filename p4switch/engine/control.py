"""Generation of C for actions and tables, and of their descriptions for the control plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from p4switch import ir
from p4switch.compiler import types
from p4switch.engine import calc, cexpr, cnodes, keys
from p4switch.engine.cexpr import Code, Fields, Name, Rows, String
from p4switch.engine.cnodes import array
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Parameter
from p4switch.engine.program import Program, labels
from p4switch.engine.statements import Statements
from p4switch.engine.value import Native, c_member, struct_bytes
from p4switch.ir.errors import ProgramError

_KINDS = {
    "exact": "P4_EXACT", "lpm": "P4_LPM", "ternary": "P4_TERNARY", "range": "P4_RANGE", "optional": "P4_OPTIONAL",
    "valid": "P4_VALID",
}

NO_NAME = Fields({"name": "NULL"})
"""Element that ends an array of descriptions."""


@dataclass
class Table:
    """Table with its layout in memory. Offsets are in bytes from the start of an entry."""

    number: int
    declared: ir.Table
    fields: list[keys.KeyField]
    words: int
    kind: str
    actions: list[int]
    profile: int
    meter: int
    counter_offset: int = 0
    last_hit_offset: int = 0
    data_offset: int = 0
    stride: int = 0
    fallback_offset: int = 0

    label: str = ""

    def named(self, what: str) -> str:
        """Return the C name of an object `what` of the table."""
        return f"{what}_{self.label}"

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def has_range(self) -> bool:
        return any(f.kind == "P4_RANGE" for f in self.fields)


@dataclass
class Control:
    """Actions, tables and action profiles of a program, with their C names and their layout in memory."""

    program: Program
    tables: list[Table] = field(default_factory=list)
    exits: set[int] = field(default_factory=set)  # actions that may execute `exit`
    empty: set[int] = field(default_factory=set)  # actions that do nothing
    functions: dict[int, str] = field(default_factory=dict)  # C function of each other action, by number
    loops: bool = False  # True if a pipeline or an action has a loop
    fallbacks_bytes: int = 0

    def __post_init__(self) -> None:
        nodes = self.program.nodes
        self.actions = nodes.actions
        self.numbers = {action: i for i, action in enumerate(nodes.actions)}
        self.parameters = [Parameter.of(action) for action in nodes.actions]
        # Tables with lookups come first, so that they share cache lines.
        tables = [table for pipeline in nodes.pipelines for table in pipeline.tables]
        self.statements = {t.name: self._fixed_action(t) for t in tables if _is_statement(t)}
        for table in sorted(tables, key=lambda table: not table.keys):
            if table.name not in self.statements:
                self.tables.append(self._table(len(self.tables), table))
        for generated, label in zip(self.tables, labels([each.name for each in self.tables]), strict=True):
            generated.label = label
        self.action_labels = labels([action.name for action in nodes.actions])
        self.profile_labels = labels([profile.name for profile in nodes.profiles])
        self.offered = self._offered()
        for generated in self.tables:
            self._place(generated)
        if len(nodes.actions) >= 0xFFFF:
            raise ProgramError(f"{len(nodes.actions)} actions are too many")
        self.table_of = {t.name: t for t in self.tables}

    # --- tables ---

    def _table(self, number: int, table: ir.Table) -> Table:
        specs = [
            (key.name, 8 if key.match_kind == "valid" else types.width_of(key.target.type) or 1,
             _KINDS[key.match_kind], key.mask)
            for key in table.keys
        ]
        fields, words = keys.layout(specs)
        prefixes = sum(f.kind == "P4_LPM" for f in fields)
        if not fields:
            kind = "P4_TABLE_KEYLESS"
        elif table.ordered:
            kind = "P4_TABLE_ORDERED"
        elif prefixes > 1:
            raise ProgramError(f"table {table.name} has more than one lpm field")
        else:
            kind = "P4_TABLE_LPM" if prefixes else "P4_TABLE_EXACT"
        nodes = self.program.nodes
        profile = -1 if table.profile is None else nodes.profiles.index(table.profile)
        meter = self.program.meter(table.meter)[0] if table.meter else -1
        built = Table(number, table, fields, words, kind, [self.numbers[a] for a in table.actions], profile, meter)
        offset = 8 + 8 * words * (2 if kind == "P4_TABLE_ORDERED" else 1)
        built.counter_offset = offset
        offset += 16 * bool(table.counter)
        built.last_hit_offset = offset
        built.data_offset = offset + 8 * table.support_timeout
        return built

    def _fixed_action(self, table: ir.Table) -> int:
        """Return the action of a table without key whose default entry cannot change."""
        assert table.default is not None
        return self.numbers[table.default.action]

    def _offered(self) -> dict[int, int]:
        """Map each action that a control plane may choose, by its number in the program, to a number from 0 on."""
        used = [a for table in self.tables for a in self.possible(table)]
        used += [self.numbers[entry.call.action] for table in self.tables for entry in table.declared.entries or ()]
        return {a: i for i, a in enumerate(sorted({*used}))}

    def possible(self, table: Table) -> list[int]:
        """Return the actions that a table may run."""
        actions = list(table.actions)
        if table.declared.default is not None:
            actions.append(self.numbers[table.declared.default.action])
        if table.profile >= 0:
            actions += self.profile_actions(table.profile)
        return list(dict.fromkeys(actions))

    def args_bytes(self, action: int) -> int:
        """Return the size of the struct of an action's arguments."""
        return struct_bytes([p.width for p in self.parameters[action]])

    def _data_bytes(self, actions: Iterable[int]) -> int:
        """Return the size of a slot for the arguments of any of the actions."""
        return -(-max([8, *map(self.args_bytes, actions)]) // 8) * 8

    def _place(self, table: Table) -> None:
        """Determine sizes and offsets of entries and of the default entry."""
        has_data = table.profile >= 0 or any(self.parameters[a] for a in table.actions)
        table.stride = _stride(table.data_offset + has_data * self._data_bytes(table.actions))
        table.fallback_offset = self.fallbacks_bytes
        self.fallbacks_bytes += 8 + self._data_bytes(self.possible(table))

    # --- actions ---

    def named(self, what: str, number: int) -> str:
        """Return the C name of an object `what` of an action."""
        return f"{what}_{self.action_labels[number]}"

    def profile_named(self, what: str, number: int) -> str:
        """Return the C name of an object `what` of an action profile."""
        return f"{what}_{self.profile_labels[number]}"

    def action_functions(self) -> Iterator[cnodes.Declaration]:
        """Yield structs of arguments and a function for every action.

        Statements outside of actions become functions, too, because compilers generate better code for them than for
        the same statements inside the pipeline's function (8% fewer instructions for a contribution to a sum).
        Functions with the same statements are shared.
        """
        written: dict[str, str] = {}
        for number, action in enumerate(self.actions):
            args, parameters = self.named("args", number), self.parameters[number]
            if parameters:
                members = [c_member(p.width, p.member) for p in parameters]
                yield cnodes.Macro("P4_ARGS", (args, self.args_bytes(number), members))
            if action.body.is_end:
                self.empty.add(number)
                continue
            em = Emitter(traced=self.program.traced)
            given = [Native(p.width, False, Name("a").arrow(p.member)) for p in parameters]
            code = Statements(self.program, em, given, f"a{number}")
            body = code.body(action.body)
            self.loops |= code.loops
            if code.exits:
                self.exits.add(number)
            a = [cnodes.Declare(f"const {args} *", "a")] if parameters else []
            taken = (cnodes.SWITCH, cnodes.PACKET, *a)
            text = cnodes.source([cnodes.Function("", "", taken, body)])
            name = self.functions[number] = written.setdefault(text, self.named("action", number))
            if name == self.named("action", number):
                yield cnodes.Function("P4_INLINE void", name, taken, body)

    # --- selectors ---

    def selectors(self) -> Iterator[cnodes.Function]:
        for i, profile in enumerate(self.program.nodes.profiles):
            if profile.algorithm:
                calculation = ir.Calculation(profile.name, profile.algorithm, profile.inputs)
                yield from calc.function(self.program, self.profile_named("select", i), calculation)

    # --- descriptions ---

    def description(self) -> Iterator[cnodes.Declaration]:
        """Yield constant tables for the control plane."""
        rows = []
        for number in self.offered:
            action, args = self.actions[number], self.named("args", number)
            params = [
                Fields({
                    "name": String(parameter.name),
                    "width": parameter.width,
                    "offset": cexpr.call("offsetof", "", args, parameter.member),
                })
                for parameter in self.parameters[number]
            ]
            rows.append(Fields({
                "name": String(action.name),
                "id": action.number,
                "n_params": len(params),
                "size": self.args_bytes(number),
                "params": Rows(params, "p4_param_info") if params else "NULL",
            }))
        yield array("p4_action_info", "actions", rows, NO_NAME)
        for table in self.tables:
            yield from self._table_parts(table)
        yield array("p4_table_info", "tables", [self._table_row(t) for t in self.tables], NO_NAME)
        yield self._profiles()

    def _args(self, call: ir.ActionCall) -> bytes:
        """Return action data as the control plane would supply it."""
        widths = [parameter.width for parameter in self.parameters[self.numbers[call.action]]]
        return b"".join(
            value.to_bytes((width + 7) // 8, "big") for value, width in zip(call.args, widths, strict=True)
        )

    def _table_parts(self, table: Table) -> Iterator[cnodes.Declaration]:
        if table.fields:
            yield array("p4_key_info", table.named("keys"), keys.description(table.fields))
        if table.declared.entries:
            # In the JSON the lowest number is the highest priority; everywhere else the highest number is. For a
            # controller, the last of the program's entries has priority 1. Negative numbers in the JSON are negated
            # priorities that the program itself gives.
            lowest = max(entry.priority for entry in table.declared.entries)
            top = 0 if lowest < 0 else lowest + 1
            rows = [self._own_entry(table, entry, top - entry.priority) for entry in table.declared.entries]
            yield array("p4_entry_info", table.named("entries"), rows)
        if table.declared.direct:
            cells = [self._cells(table, name) for name in table.declared.direct]
            yield array("p4_cells_info", table.named("cells"), cells)

    def _cells(self, table: Table, name: str) -> Fields:
        """Return the initialiser of an object with a cell for each entry of a table and one for the default entry."""
        register = self.program.registers.get(name)
        cells = self.program.object(name) if register is None else register
        if cells.size <= table.declared.room:
            raise ProgramError(f"{name} has {cells.size} cells, too few for the entries of table {table.name}")
        return Fields({"in_register": int(register is not None), "number": cells.number})

    def _own_entry(self, table: Table, entry: ir.Entry, priority: int) -> Fields:
        values, masks, prefixes = b"", b"", []
        for key, f in zip(entry.keys, table.fields, strict=True):
            ones = (1 << f.width) - 1
            assert key is not None
            value, mask = key if isinstance(key, tuple) else (key, ones)
            prefix = f.kind == "P4_LPM"
            values += value.to_bytes(f.nbytes, "big")
            masks += (ones if prefix else mask).to_bytes(f.nbytes, "big")
            prefixes.append(mask.bit_count() if prefix else -1)
        args = self._args(entry.call)
        return Fields({
            "values": keys.byte_array(values),
            "masks": keys.byte_array(masks),
            "prefixes": Rows(prefixes, "int32_t"),
            "args": keys.byte_array(args),
            "priority": priority,
            "action": self.offered[self.numbers[entry.call.action]],
        })

    def _table_row(self, table: Table) -> Fields:
        own = table.declared
        entries = len(own.entries or ())
        default: Code = "P4_NO_ACTION"
        data: Code = "NULL"
        if own.default is not None:
            default = self.offered[self.numbers[own.default.action]]
            data = keys.byte_array(self._args(own.default))
        return Fields({
            "name": String(own.name),
            "kind": table.kind,
            "key_words": table.words,
            "default_constant": 2 if own.default_const else int(own.default_action_const),
            "n_keys": len(table.fields),
            "n_actions": len(table.actions),
            "n_entries": entries,
            "profile": table.profile,
            "with_counters": int(bool(own.counter)),
            "with_last_hit": int(own.support_timeout),
            "meter": table.meter,
            "n_cells": len(own.direct),
            "cells": table.named("cells") if own.direct else "NULL",
            "max_size": max(own.room, 0),
            "data_offset": table.data_offset,
            "stride": table.stride,
            "fallback_offset": table.fallback_offset,
            "keys": table.named("keys") if table.fields else "NULL",
            "actions": Rows([self.offered[a] for a in table.actions], "uint32_t"),
            "entries": table.named("entries") if entries else "NULL",
            "default_action": default,
            "default_args": data,
        })

    def profile_actions(self, number: int) -> list[int]:
        """Return the actions of all tables that use the profile."""
        return sorted({a for table in self.tables if table.profile == number for a in table.actions})

    def _profiles(self) -> cnodes.Declaration:
        rows = []
        for i, profile in enumerate(self.program.nodes.profiles):
            actions = self.profile_actions(i)
            rows.append(Fields({
                "name": String(profile.name),
                "with_selector": int(bool(profile.algorithm)),
                "n_actions": len(actions),
                "actions": Rows([self.offered[a] for a in actions], "uint32_t"),
                "stride": _stride(8 + self._data_bytes(actions)),
                "max_size": profile.size,
            }))
        return array("p4_profile_info", "profiles", rows, NO_NAME)


def _is_statement(table: ir.Table) -> bool:
    """Return whether a compiler created a table for statements outside of actions.

    The control plane does not know such a table.
    """
    return table.hidden and table.profile is None and not (table.counter or table.meter)


def _stride(size: int) -> int:
    """Return the distance between entries in bytes. An entry that fits into a cache line does not cross one."""
    return next((s for s in (16, 32) if size <= s), -(-size // 64) * 64)
