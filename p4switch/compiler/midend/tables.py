"""Lowering of tables, of their actions, and of their applications."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.facts import Facts
from p4switch.compiler.midend.elaborate import Block, ExternObject, control_name, local_name, passed
from p4switch.compiler.midend.jumps import Jumps
from p4switch.compiler.midend.limits import MAX_SIZE
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import Frame, Value
from p4switch.compiler.walk import walk

if TYPE_CHECKING:
    from p4switch.architectures.extern import KeyMasks
    from p4switch.compiler.midend.lowering import Lowering


_ENTRY = types.Bits(32)  # width of the number of an entry


@dataclass(slots=True, eq=False)
class TableObject:
    """Table of an instance, in lowered form and with its declaration.

    `refs` has the reference for each element of `ir.actions`.
    """

    decl: ast.TableDecl
    block: Block
    ir: ir.Table
    refs: list[ast.ActionRef] = field(default_factory=list)
    key_types: list[types.Type] = field(default_factory=list)
    computed: list[tuple[Value, ast.Expr]] = field(default_factory=list)  # keys that are assigned before each lookup
    masks: KeyMasks | None = None
    profile: ExternObject | None = None
    counter: ExternObject | None = None
    meter: ExternObject | None = None
    direct: list[ExternObject] = field(default_factory=list)
    implicit_default: bool = False
    soft: bool = False


@dataclass(slots=True, eq=False)
class ActionObject:
    """Action that a table refers to."""

    decl: ast.ActionDecl
    block: Block | None  # None: declared at top level
    ir: ir.Action
    direct: list[ExternObject] = field(default_factory=list)  # direct objects that its tables need as properties


def key_text(node: ast.Expr, facts: Facts, block: Block | None = None) -> str | None:
    """Return the name of a table key without `@name`: its expression as text; None if it is not simple enough.

    If `node` is in `block`, the block's parameters are replaced by their arguments (see `passed`).
    """
    node, block = passed(node, block, facts)
    if isinstance(node, ast.Name):
        return node.name
    if isinstance(node, ast.Member):
        base = key_text(node.base, facts, block)
        name = local_name(facts.fields[node].decl) if node in facts.fields else node.name
        return name[1:] if name.startswith(".") else base and f"{base}.{name}"
    if isinstance(node, ast.Index):
        base, index = key_text(node.base, facts, block), key_text(node.index, facts, block)
        return base and index and f"{base}[{index}]"
    if isinstance(node, ast.Slice):
        base, high, low = (key_text(part, facts, block) for part in (node.base, node.high, node.low))
        return base and high and low and f"{base}[{high}:{low}]"
    if isinstance(node, ast.Call) and facts.bindings[node].method == "isValid":
        receiver = facts.bindings[node].receiver
        base = None if receiver is None else key_text(receiver, facts, block)
        return base and f"{base}.$valid$"
    if isinstance(node, ast.Binary) and node.op == "&":
        left, right = key_text(node.left, facts, block), key_text(node.right, facts, block)
        return left and right and f"{left} & {right}"
    if isinstance(node, ast.Cast) and node.implicit:
        return key_text(node.operand, facts, block)
    if isinstance(node, ast.IntLiteral):
        return hex(node.value) if node.base == 16 else str(node.value)
    return None


def _is_prefix(mask: int, t: types.Type) -> bool:
    width = types.width_of(t) or 1
    gap = ~mask & ((1 << width) - 1)
    return gap & (gap + 1) == 0


def _widens(source: types.Type, target: types.Type) -> bool:
    """Return whether a cast from `source` to `target` leaves all values unchanged."""
    if not isinstance(source, types.Bits) or not isinstance(target, types.Bits) or source.signed:
        return False
    return source.width < target.width + (0 if target.signed else 1)


class Tables:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self.tables: dict[tuple[Block, ast.TableDecl], TableObject] = {}
        self.actions: dict[Any, ActionObject] = {}
        self.direct_actions: dict[tuple[Block | None, ast.ActionDecl], ActionObject] = {}
        self._lowered: tuple[TableObject, ActionObject] | None = None  # table whose action is being lowered
        self._exits: dict[ast.TableDecl, bool] = {}
        self._own_inputs: dict[ir.Profile, TableObject] = {}  # table of each profile with computed selector keys
        self._no_action = next(
            (d for d in low.source.declarations if isinstance(d, ast.ActionDecl) and d.name == "NoAction"), None
        )

    # Applying

    def run_table(self, call: ast.Call) -> None:
        after = ir.Block()
        self._apply(call, {}, after)
        self.low.start(after)

    def apply_table(self, call: ast.Call, hit: ir.Block, miss: ir.Block) -> None:
        self._apply(call, {True: hit, False: miss}, miss)

    def switch_table(self, node: ast.Switch, after: ir.Block) -> None:
        call = node.value
        while not isinstance(call, ast.Call):
            assert isinstance(call, ast.Member)
            call = call.base
        targets = self.low.statements.switch_bodies(node, after)
        table = self.table(self.facts.switched[node])
        on: dict[bool | int, ir.Block] = {}
        default = after
        for case, target in zip(node.cases, targets, strict=True):
            if case not in self.facts.actions:
                default = target
                continue
            for i, ref in enumerate(table.refs):
                if self.facts.actions[ref] is self.facts.actions[case]:
                    on.setdefault(i, target)
        self._apply(call, on, default)

    def _apply(self, call: ast.Call, on: dict[bool | int, ir.Block], default: ir.Block) -> None:
        binding = self.facts.bindings[call]
        assert isinstance(binding.decl, ast.TableDecl)
        if self.low.jumps.in_action:
            raise self.low.error(call, "a table cannot be applied in an action")
        table = self.table(binding.decl)
        for target, source in table.computed:
            self.low.copies.assign(target, self.low.expressions.scalar(source), source.pos)
        for number, key in enumerate(table.ir.keys if table.masks is not None else ()):
            assert table.masks is not None
            masked = table.masks.masked(table.ir, number, key.target, self.low)
            self.low.copies.assign(key.target, masked, table.decl.pos)
        if table.soft:
            wrapped: dict[ir.Block, ir.Block] = {}
            on = {label: self._unless_exited(target, wrapped) for label, target in on.items()}
            default = self._unless_exited(default, wrapped)
        if self.low.code.end is None:
            self.low.code.end = ir.Apply(table.ir, on, default)
            self.low.reach_from_here(default, *on.values())

    def _unless_exited(self, target: ir.Block, wrapped: dict[ir.Block, ir.Block]) -> ir.Block:
        """Return a block that continues at `target`, unless the action executed `exit`.

        After an `exit` the block copies out and leaves the control.
        """
        if target not in wrapped:
            check = wrapped[target] = ir.Block()
            leave = ir.Block()
            saved = self.low.code
            self.low.start(check)
            assert self.low.jumps.exit is not None
            self.low.branch_on(self._exit_flag(), leave, target)
            self.low.start(leave)
            self.low.calls.cleanup()
            self.low.goto(self.low.jumps.exit)
            self.low.start(saved)
        return wrapped[target]

    def _exit_flag(self) -> ir.FieldRef:
        name = f"{self.low.site.name}.$exited"
        if name not in self.low.out.scalars:
            self.low.storage.allocate(types.BOOL, name)
        return ir.FieldRef("scalars", name, types.BOOL)

    def _has_exit(self, decl: ast.TableDecl) -> bool:
        if decl not in self._exits:
            seen: set[ast.Node] = set()
            pending: list[ast.Node] = [self.facts.actions[ref] for ref in decl.actions]
            has_exit = False
            while pending and not has_exit:
                action = pending.pop()
                if action in seen:
                    continue
                seen.add(action)
                for node in walk(action, self.facts):
                    has_exit = has_exit or isinstance(node, ast.Exit)
                    called = self.facts.bindings[node].decl if isinstance(node, ast.Call) else None
                    if isinstance(called, ast.ActionDecl):
                        pending.append(called)
            self._exits[decl] = has_exit
        return self._exits[decl]

    # Tables

    def table(self, decl: ast.TableDecl) -> TableObject:
        """Return the table of the current instance. A table is lowered at its first application."""
        assert self.low.block is not None
        key = (self.low.block, decl)
        table = self.tables.get(key)
        if table is None:
            path = control_name(decl.name, decl.annotations, self.low.block.path)
            table = self.tables[key] = TableObject(decl, self.low.block, ir.Table(path, span=decl.pos))
            table.soft = self._has_exit(decl) and any(self.low.jumps.cleanups)
            self._properties(table)
            self._keys(table)
            self._actions(table)
            self._entries(table)
        return table

    def _keys(self, table: TableObject) -> None:
        table.masks = self.low.architecture.masks_of(table.decl)
        for i, expr, changes_later in self.low.expressions.in_order([key.expr for key in table.decl.keys]):
            key = table.decl.keys[i]
            t = self.low.type_of(expr)
            scalar = scalar_type(t)
            if not isinstance(scalar, (types.Bits, types.Bool)):
                raise self.low.error(expr, f"a key of type {t} is not supported: expected a number, bool or enum")
            name = next((a.string for a in key.annotations if a.name == "name"), None) or key_text(expr, self.facts)
            if name is None:
                raise self.low.error(expr, 'this key is not a name: expected an annotation @name("...") after it')
            if key.match_kind == "selector":
                self._selector_input(expr, scalar, changes_later, table)
                continue
            value, mask = self._key_target(expr, scalar, changes_later or table.masks is not None, table)
            kind = self.low.architecture.match_kinds.get(key.match_kind, key.match_kind)
            table.ir.keys.append(ir.Key(value, kind, name, mask))
            table.key_types.append(t)
        kinds = [key.match_kind for key in table.ir.keys]
        if table.masks is not None:
            if set(kinds) - {"exact"}:
                raise self.low.error(table.decl, "a table with dynamic key masks has to have exact keys only")
            table.masks.declare_for(table.ir, self.low)
        if kinds.count("lpm") > 1 and set(kinds) <= {"exact", "lpm"}:
            raise self.low.error(table.decl, "a table with more than one lpm key is not supported on this target")

    def _key_target(
        self, node: ast.Expr, t: types.Type, changes_later: bool, table: TableObject
    ) -> tuple[ir.FieldRef | ir.Valid, int | None]:
        """Return the place whose value is looked up for a key, and the key's constant mask.

        If the place has to be assigned before the lookup, it is added to `table.computed`. This is
        necessary with `changes_later`, which means that evaluating a later key or a mask may change the
        key's value.
        """
        fixed = not changes_later and not self.low.expressions.effects(node)
        if fixed and isinstance(node, ast.Binary) and node.op == "&":
            left, right = self.low.expressions.expr(node.left), self.low.expressions.expr(node.right)
            if isinstance(left, ir.FieldRef) and isinstance(right, ir.Const):
                return left, right.value
        if fixed:
            key = self.low.expressions.apart(node)
            if key.takes_no_code and isinstance(key.value, (ir.FieldRef, ir.Valid)):
                header = key.value.header
                if isinstance(header, str) or not header.stack:
                    return key.value, None
        return self._computed(node, t, table), None

    def _computed(self, node: ast.Expr, t: types.Type, table: TableObject) -> ir.FieldRef:
        """Return a new place for a key, whose value is assigned to it before the lookup."""
        place = self.low.storage.allocate(t, f"{table.ir.name}.key{len(table.ir.keys)}")
        assert isinstance(place, ir.FieldRef)
        table.computed.append((place, node))
        return place

    def _selector_input(self, node: ast.Expr, t: types.Type, changes_later: bool, table: TableObject) -> None:
        profile = table.ir.profile
        if profile is None or not profile.algorithm:
            # Without a selector, only the side effects of such a key's evaluation matter.
            if self.low.expressions.effects(node):
                self._key_target(node, t, changes_later, table)
            return
        before = len(table.computed)
        value, mask = self._key_target(node, t, changes_later, table)
        if isinstance(value, ir.Valid) or mask is not None:  # a selector hashes whole fields
            value = self._computed(node, t, table)
        if len(table.computed) > before:
            self._own_inputs[profile] = table
            if changes_later:
                what = "a selector key has to be a field that no later key may change on this target"
                raise self.low.error(node, what)
        if self._own_inputs.get(profile, table) is not table or (profile in self._own_inputs and self._shares(table)):
            raise self.low.error(node, "a selector key of tables that share an action selector cannot be computed")
        profile.inputs.append(value)

    def _shares(self, table: TableObject) -> bool:
        """Return whether another table uses the same profile."""
        return any(each.ir.profile is table.ir.profile for each in self.tables.values() if each is not table)

    def _actions(self, table: TableObject) -> None:
        decl = table.decl
        refs = list(decl.actions)
        if decl.default_action is None and all(self.facts.actions[r] is not self._no_action for r in refs):
            assert self._no_action is not None
            table.implicit_default = True
            implicit = ast.ActionRef(decl.pos, "NoAction", None, [])
            self.facts.actions[implicit] = self._no_action
            self.facts.bindings[implicit].bound = []
            refs.append(implicit)
        for ref in refs:
            table.refs.append(ref)
            action = self.table_action(ref, table)
            for extern in action.direct:
                if extern not in table.direct:
                    raise self._not_of(table, extern, ref)
            table.ir.actions.append(action.ir)
        default = decl.default_action
        if default is not None:
            table.ir.default = self._action_call(table, default)
        else:
            index = next(i for i, r in enumerate(refs) if self.facts.actions[r] is self._no_action)
            table.ir.default = ir.ActionCall(table.ir.actions[index], [])
        table.ir.default_const = decl.const_default_action

    def _action_call(self, table: TableObject, ref: ast.ActionRef) -> ir.ActionCall:
        index = next((i for i, r in enumerate(table.refs) if self.facts.actions[r] is self.facts.actions[ref]), None)
        if index is None:
            raise self.low.error(ref, f"action '{ref.name}' is not among the actions of table '{table.decl.name}'")
        listed = table.refs[index]
        args: list[int] = []
        for given, fixed in zip(self.facts.bindings[ref].bound, self.facts.bindings[listed].bound, strict=True):
            if fixed is None:
                assert given is not None
                args.append(self.low.expressions.constant(given).value)
        return ir.ActionCall(table.ir.actions[index], args)

    def _entries(self, table: TableObject) -> None:
        entries = table.decl.entries
        if entries is None:
            return
        table.ir.entries = []
        declared = table.decl.keys
        for entry, rank in zip(entries, self._ranks(table), strict=True):
            self.low.work(entry)
            # Selector keys are not looked up.
            nodes = [n for n, k in zip(entry.keysets, declared, strict=True) if k.match_kind != "selector"]
            keys = [self.keyset(node) for node in nodes]
            for key, keyset, node in zip(table.ir.keys, keys, nodes, strict=True):
                if key.match_kind == "lpm" and isinstance(keyset, tuple) and not _is_prefix(keyset[1], key.target.type):
                    raise self.low.error(node, f"mask {keyset[1]:#x} is not a prefix: lpm keys need leading ones only")
            call, const = self._action_call(table, entry.action), entry.const or table.decl.const_entries
            parts = [self._ranges(*each) for each in zip(table.ir.keys, keys, nodes, strict=True)]
            self.low.spend(math.prod(map(len, parts)))
            table.ir.entries += [ir.Entry(list(one), call, rank, const, entry.pos) for one in itertools.product(*parts)]

    def _ranges(self, key: ir.Key, keyset: ir.KeyValue, node: ast.Expr) -> list[ir.KeyValue]:
        """Return the key sets for `keyset`: a signed range across zero is split in two.

        The target compares unsigned numbers.
        """
        if key.match_kind != "range" or not isinstance(keyset, tuple):
            return [keyset]
        low, high = keyset
        if low > high:
            raise self.low.error(node, f"the range {low} .. {high} is empty: its low end is above its high end")
        full = (1 << (types.width_of(key.target.type) or 1)) - 1
        if low < 0 <= high:
            return [(0, high), (low & full, full)]
        return [(low & full, high & full)]

    def _ranks(self, table: TableObject) -> list[int]:
        """Return the priorities of the entries in BMv2's order, where the lowest number wins.

        Constant entries have the priorities 1, 2, ... in order, or that of `@priority`. The priorities of other entries
        (language specification, section 14.2.1.4) are negated, so that they compare correctly with entries added later.
        """
        decl = table.decl
        entries = decl.entries or []
        marks = [next((a.args for a in e.annotations if a.name == "priority"), None) for e in entries]
        if decl.const_entries or all(k.match_kind in ("exact", "lpm") for k in decl.keys):
            return [self.low.expressions.constant(m[0]).value if m else i for i, m in enumerate(marks, start=1)]
        largest_wins = self._flag(decl, "largest_priority_wins", True)
        delta_property = decl.properties.get("priority_delta")
        delta = 1 if delta_property is None else self.low.expressions.constant(delta_property.value).value
        given = [None if e.priority is None else self.low.expressions.constant(e.priority).value for e in entries]
        if all(p is None for p in given):
            priorities = [1 + i * delta for i in range(len(entries))]
            if largest_wins:
                priorities.reverse()
        else:
            if given[0] is None:
                raise self.low.error(entries[0], "the first entry needs a priority if others have one")
            priorities = []
            for p in given:
                priorities.append(priorities[-1] + (-delta if largest_wins else delta) if p is None else p)
        if any(not 0 <= p < 1 << 31 for p in priorities):
            raise self.low.error(decl, "the priorities of the entries leave the range 0 to 2147483647")
        highest = max(priorities, default=0)
        return [-p if largest_wins else p - highest - 1 for p in priorities]

    def keyset(self, node: ast.Expr) -> ir.KeyValue:
        if isinstance(node, (ast.DontCare, ast.DefaultExpr)):
            return None
        if isinstance(node, ast.Mask):
            return self.low.expressions.constant(node.value).value, self.low.expressions.constant(node.mask).value
        if isinstance(node, ast.Range):
            return self.low.expressions.constant(node.low).value, self.low.expressions.constant(node.high).value
        return self.low.expressions.constant(node).value

    # Properties

    def _flag(self, decl: ast.TableDecl, name: str, default: bool) -> bool:
        prop = decl.properties.get(name)
        return default if prop is None else bool(self.low.expressions.constant(prop.value).value)

    def _properties(self, table: TableObject) -> None:
        decl = table.decl
        size = decl.properties.get("size")
        if size is not None:
            table.ir.size = self.low.size_of(
                size.value, self.low.expressions.constant(size.value).value or table.ir.size, MAX_SIZE
            )
        names = self.low.architecture.properties
        table.ir.support_timeout = self._flag(decl, names.idle_timeout, False)
        given = self._extern(decl, names.profile, (*names.profiles, *names.layouts))
        table.profile = given if given is not None and given.decl.name in names.profiles else None
        if table.profile is not None:
            table.ir.profile = self.low.externs.profile(table.profile)
        table.counter = self._extern(decl, names.counter, names.counters)
        if table.counter is not None:
            table.ir.counter = table.counter.path
        table.meter = self._extern(decl, names.meter, names.meters)
        if table.meter is not None:
            table.ir.meter = table.meter.path
        for name, kinds in names.direct.items():
            extern = self._extern(decl, name, kinds)
            kind = None if extern is None else self.low.architecture.extern_type(extern.decl.name)
            if extern is not None and kind is not None and kind.direct:
                if self.low.externs.table_of(extern) is not None:
                    raise self.low.error(decl.properties[name], f"'{extern.path}' is another table's already")
                table.direct.append(extern)
        if table.direct:
            table.ir.direct = [extern.path for extern in table.direct]
            place = self.low.storage.allocate(_ENTRY, f"{table.ir.name}.entry")
            assert isinstance(place, ir.FieldRef)
            table.ir.entry = place

    def _extern(self, decl: ast.TableDecl, name: str, expected: tuple[str, ...]) -> ExternObject | None:
        prop = decl.properties.get(name)
        if prop is None:
            return None
        value: Value = self.low.expressions.expr(prop.value)
        if not isinstance(value, ExternObject) or value.decl.name not in expected:
            raise self.low.error(prop.value, f"property '{name}' has to be of type {' or '.join(expected)}")
        if not value.path:
            assert self.low.block is not None
            value.path = control_name(f"{self.low.block.path}.{decl.name}.{name}", prop.annotations, "")
            value.annotations = prop.annotations
        return value

    # Actions of tables

    def called_directly(self, decl: ast.ActionDecl) -> None:
        """Record an action that a control calls directly: the control plane sees its name, but not its parameters."""
        block = self.low.block if self.low.calls.home(decl) is not self.low.globals else None
        if not any(a.decl is decl and a.block is block for a in self.actions.values()):
            name = control_name(decl.name, decl.annotations, block.path if block is not None else "")
            self.direct_actions.setdefault((block, decl), ActionObject(decl, block, ir.Action(name, [], ir.Block())))

    def entry(self, extern: ExternObject, call: ast.Call) -> ir.Expr:
        """Return the field with the number of the entry that was hit, for a direct object.

        Raises CompileError outside of the actions of the table that `extern` belongs to.
        """
        table, action = self._lowered or (None, None)
        if table is None or action is None or table.ir.entry is None or extern not in table.direct:
            raise self._not_of(table, extern, call)
        action.direct.append(extern)
        return table.ir.entry

    def _not_of(self, table: TableObject | None, extern: ExternObject, node: ast.Node) -> CompileError:
        what = "no table's action" if table is None else f"an action of '{table.ir.name}', which does not have it"
        return self.low.error(node, f"'{extern.path}' is of the entries of its table, and this is {what}")

    def table_action(self, ref: ast.ActionRef, table: TableObject) -> ActionObject:
        soft = table.soft
        decl = self.facts.actions[ref]
        home = self.low.calls.home(decl)
        block = self.low.block if home is not self.low.globals else None
        bound = tuple(b for b in self.facts.bindings[ref].bound if b is not None)
        key = (block, decl, bound, soft)
        action = self.actions.get(key)
        if action is None:
            prefix = block.path if block is not None else ""
            name = control_name(decl.name, decl.annotations, prefix)
            lowered = ir.Action(name, [], ir.Block(), decl.pos)
            action = self.actions[key] = ActionObject(decl, block, lowered)
            self._lowered = table, action
            self._lower_action(action, ref, home, soft)
            self._lowered = None
        return action

    def _lower_action(self, action: ActionObject, ref: ast.ActionRef, home: Frame, soft: bool) -> None:
        decl = action.decl
        saved = self.low.code, self.low.jumps, self.low.prefix
        end = ir.Block()
        jumps = Jumps(end, self._exit_flag() if soft else None, in_action=True)
        self.low.code, self.low.jumps, self.low.prefix = action.ir.body, jumps, f"{action.ir.name}."
        frame = Frame(home)
        given: list[int] = []
        arguments = self.facts.bindings[ref].bound
        for i, (param, bound) in enumerate(zip(decl.params, arguments, strict=True)):
            if bound is None:
                t = scalar_type(self.low.type_of(param))
                if not isinstance(t, (types.Bits, types.Bool)):
                    raise self.low.error(
                        param, f"a parameter of type {self.facts.types[param]} cannot be given by the control plane"
                    )
                empty = t == types.Bits(0)  # in BMv2 the control plane binds it, so there is no value to read
                frame.values[param] = ir.Const(0, t) if empty else ir.Param(len(action.ir.params), t)
                name = local_name(param)
                action.ir.params.append((name, t))
            else:
                given.append(i)
        params = [decl.params[i] for i in given]
        copies = self.low.calls.bind(
            params,
            [self.facts.types[p] for p in params],
            [arguments[i] for i in given],
            frame,
            self.low.calls.reach(decl, home),
        )
        with self.low.activation(frame):
            self.low.calls.body(decl.body, None, copies)
        self.low.calls.copy_out(copies)
        self.low.goto(end)
        self.low.code, self.low.jumps, self.low.prefix = saved

    def is_direct(self, value: Value) -> bool:
        """Return whether `value` can be an argument of a primitive without a temporary."""
        return isinstance(value, (ir.Const, ir.FieldRef, ir.Param))

    def simple(self, value: ir.Expr) -> ir.Expr:
        """Return `value`, or a temporary that holds it if primitives do not accept it as an argument."""
        while isinstance(value, ir.Op) and value.op == "cast" and _widens(value.args[0].type, value.type):
            value = value.args[0]
        return value if self.is_direct(value) else self.low.copies.saved(value)
