"""Tables: keys, actions, entries, properties (language specification, section 14.2)."""

from __future__ import annotations

from collections.abc import Iterator

from p4switch.compiler import ast, types
from p4switch.compiler.ast import Direction
from p4switch.compiler.check_base import MAX_INT64, Place
from p4switch.compiler.check_convert import describe
from p4switch.compiler.check_statements import StatementChecker
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.types import Type


class TableChecker(StatementChecker):
    # Keysets, of tables and of select

    def keyset(self, e: ast.Expr, t: Type) -> ast.Expr:
        """Check a keyset expression against a key of type `t`."""
        if isinstance(e, (ast.DontCare, ast.DefaultExpr)):
            e.type = t
            return e
        if isinstance(e, ast.Mask):
            e.value, e.mask = self._keyset_part(e.value, t, "&&&"), self._keyset_part(e.mask, t, "&&&")
            e.type = types.Set(t)
            return e
        if isinstance(e, ast.Range):
            e.low, e.high = self._keyset_part(e.low, t, ".."), self._keyset_part(e.high, t, "..")
            e.type = types.Set(t)
            return e
        e = self.expr(e, t)
        if isinstance(e.type, types.Set):
            if same_bits(e.type.element) != same_bits(t):
                self.error(e, f"expected a set of {t}, not {e.type}")
            return e
        return self.key_value(e, t)

    def empty(self, e: ast.Expr) -> str:
        """What to say of a keyset that nothing is in; empty if something is."""
        if isinstance(e, ast.Range) and isinstance(e.low, ast.IntLiteral) and isinstance(e.high, ast.IntLiteral):
            low, high = e.low.value, e.high.value
            return f"the range {low} .. {high} is empty: its low end is above its high end" if low > high else ""
        return ""

    def key_value(self, e: ast.Expr, t: Type) -> ast.Expr:
        return self.convert(e, t, "the key")

    def _keyset_part(self, e: ast.Expr, t: Type, op: str) -> ast.Expr:
        e = self.expr(e, t)
        base = types.strip_newtype(t)
        if isinstance(base, types.Enum) and base.underlying is not None:
            base = base.underlying
        if not isinstance(base, (types.Bits, types.Unknown)):
            self.error(e, f"{op!r} needs a key of type bit<> or int<>, not {t}")
            return e
        if isinstance(e.type, types.InfInt) and isinstance(e, ast.IntLiteral) and isinstance(base, types.Bits):
            return self.literal_as(e, base)
        e = self.as_bits(e)
        return e if e.type == t else self.convert(e, base, "the key")

    # The table

    def table(self, t: ast.TableDecl) -> None:
        self.annotations(t.annotations)
        self.declare(t)
        with self.at(Place.TABLE):
            for key in t.keys:
                self._key(key)
            seen: dict[str, ast.ActionRef] = {}
            for ref in t.actions:
                self._listed_action(t, ref, seen)
            if t.default_action is not None:
                self._default_action(t, t.default_action)
            else:
                self._check_no_action(t)
            for prop in t.properties.values():
                self._property(t, prop)
            if t.entries is not None:
                self.annotations(t.entries_annotations)
                if not t.keys and t.entries:
                    self.error(t, f"table {t.name!r} has entries, but no key")
                elif t.entries:
                    self._entries(t, t.entries)

    def _key(self, key: ast.TableKey) -> None:
        self.annotations(key.annotations)
        with self.at(Place.CONTROL):
            key.expr = self.expr(key.expr)
        t = key.expr.type
        base = types.strip_newtype(t)
        allowed = (types.Bits, types.Bool, types.Enum, types.Error, types.Varbit, types.TypeVar, types.Unknown)
        if isinstance(base, types.InfInt):
            self.error(key.expr, "a key needs a width (as in 8w1)")
        elif not isinstance(base, allowed):
            self.error(key.expr, f"a key cannot have type {t}")
        kind = self.program.match_kinds.get(key.match_kind)
        if kind is None:
            hint = did_you_mean(key.match_kind, self.program.match_kinds)
            self.error(key, f"match kind {key.match_kind!r} is not declared{hint}")
            return
        key.kind = kind
        if kind.name in ("lpm", "range") and isinstance(base, (types.Bool, types.Error)):
            self.error(key.expr, f"a key of type {t} cannot be matched with {kind.name}")

    def _action(self, ref: ast.ActionRef) -> ast.ActionDecl | None:
        found = self.lookup(ref.name.lstrip("."), ref.name.startswith("."))
        if not found:
            self.unknown_name(ref, ref.name, "action")
            return None
        actions = [d for d in found if isinstance(d, ast.ActionDecl)]
        if not actions:
            self.error(ref, f"{ref.name!r} is not an action")
            return None
        ref.decl = actions[0]
        return ref.decl

    def _listed_action(self, t: ast.TableDecl, ref: ast.ActionRef, seen: dict[str, ast.ActionRef]) -> None:
        self.annotations(ref.annotations)
        name = ref.name.lstrip(".")
        if name in seen:
            self.error(ref, f"action {name!r} is listed twice")
            return
        seen[name] = ref
        if {"defaultonly", "tableonly"} <= {a.name for a in ref.annotations}:
            self.error(ref, f"action {name!r} is @defaultonly and @tableonly, so nothing can have it")
        decl = self._action(ref)
        if decl is None:
            return
        directed = [p for p in decl.params if p.direction != Direction.NONE]
        args = ref.args or []
        ref.bound = [None] * len(decl.params)
        if any(a.name is not None for a in args):
            names = {a.name for a in args}
            undirected = next((p for p in decl.params if p.direction == Direction.NONE and p.name in names), None)
            if undirected is not None:
                self._given_by_control_plane(ref, undirected)
                return
        elif len(args) > len(directed) and len(args) <= len(decl.params):
            self._given_by_control_plane(ref, next(p for p in decl.params if p.direction == Direction.NONE))
            return
        matched = self.match_arguments(ref, f"action {name!r} in this list", directed, args)
        if matched is not None:
            self._bind(ref, decl, directed, matched)

    def _given_by_control_plane(self, ref: ast.ActionRef, param: ast.Parameter) -> None:
        self.error(ref, f"parameter {param.name!r} of action {ref.name!r} is given by the control plane, not here")

    def _bind(
        self,
        ref: ast.ActionRef,
        decl: ast.ActionDecl,
        params: list[ast.Parameter],
        matched: list[ast.Argument | None],
    ) -> None:
        """Check the arguments of an action reference, and put them where they belong in `ref.bound`."""
        by_param: dict[ast.Parameter, ast.Expr] = {}
        what = f"action {decl.name!r}"
        with self.at(Place.CONTROL):
            for param, arg in zip(params, matched, strict=True):
                if arg is None:
                    if param.default is not None:
                        by_param[param] = param.default
                    continue
                if not isinstance(arg.value, ast.DontCare):
                    arg.value = self.expr(arg.value, param.type)
                value = by_param[param] = self.pass_argument(what, param, param.type, arg.value, True)
                if any(call_kind(x) == ast.CallKind.TABLE_APPLY for x in subexpressions(value)):
                    self.error(value, "a table cannot be applied in the argument of an action")
        ref.bound = [by_param.get(p) for p in decl.params]

    def _chosen_action(self, t: ast.TableDecl, ref: ast.ActionRef, where: str) -> bool:
        """Check a full action reference (all parameters given) against the list of the table's actions."""
        self.annotations(ref.annotations)
        decl = self._action(ref)
        if decl is None:
            return False
        listed = next((a for a in t.actions if getattr(a, "decl", None) is decl), None)
        if listed is None:
            self.error(ref, f"{where} is {decl.name!r}, which is not among the actions of table {t.name!r}")
            return False
        matched = self.match_arguments(ref, f"action {decl.name!r}", decl.params, ref.args or [])
        if matched is None:
            return False
        self._bind(ref, decl, decl.params, matched)
        for param, here, there in zip(decl.params, ref.bound, listed.bound, strict=True):
            if param.direction == Direction.NONE or here is None or there is None:
                continue
            if not same_expression(here, there):
                self.error(ref, f"argument {param.name!r} of {decl.name!r} must be the same as in the list of actions")
        return True

    def _check_no_action(self, t: ast.TableDecl) -> None:
        """Without a default action it is NoAction, so that must be what core.p4 makes it."""
        for ref in t.actions:
            if ref.name.lstrip(".") == "NoAction" and "tableonly" in {a.name for a in ref.annotations}:
                self.error(ref, "action 'NoAction' is @tableonly, so the table needs another default action")
        for decl in self.lookup("NoAction", absolute=True):
            if not isinstance(decl, ast.ActionDecl) or decl.params:
                self.error(decl, "'NoAction' must be an action without parameters, as core.p4 declares it")

    def _default_action(self, t: ast.TableDecl, ref: ast.ActionRef) -> None:
        if self._chosen_action(t, ref, "the default action") and self._listed_with(t, ref, "tableonly"):
            self.error(ref, f"action {ref.name!r} is @tableonly, so it cannot be the default action")

    def _listed_with(self, t: ast.TableDecl, ref: ast.ActionRef, annotation: str) -> bool:
        """Whether the action, which is among those of the table, has the annotation there."""
        listed = next(a for a in t.actions if getattr(a, "decl", None) is ref.decl)
        return any(a.name == annotation for a in listed.annotations)

    def _property(self, t: ast.TableDecl, prop: ast.TableProperty) -> None:
        self.annotations(prop.annotations)
        name = prop.name
        if name == "size":
            self._size_property(prop)
        elif name in ("largest_priority_wins", "priority_delta"):
            self._priority_property(t, prop)
        elif name in ("implementation", "counters", "meters"):
            prop.value = self.expr(prop.value)
            if not isinstance(prop.value.type, (types.Extern, types.Unknown)):
                self.error(prop.value, f"property {name!r} must be an extern instance, not {describe(prop.value)}")
        else:
            prop.value = self.expr(prop.value)

    def _size_property(self, prop: ast.TableProperty) -> None:
        """A number, or a constructor parameter that will be one."""
        value = prop.value = self.expr(prop.value)
        if isinstance(value, ast.IntLiteral):
            if value.value < 0:
                self.error(value, f"the size of a table must not be negative, but is {value.value}")
            elif value.value > MAX_INT64:
                self.error(value, "the size of a table must fit into 64 bits")
        elif not isinstance(value.type, (types.Bits, types.InfInt, types.Unknown)) or not self.is_constant(value):
            self.error(value, "the size of a table must be an integer known at compile time")

    def _priority_property(self, t: ast.TableDecl, prop: ast.TableProperty) -> None:
        if prop.name == "largest_priority_wins":
            prop.value = self.expr(prop.value)
            if not isinstance(prop.value, ast.BoolLiteral) and not isinstance(prop.value.type, types.Unknown):
                self.error(prop.value, "'largest_priority_wins' must be true or false")
            return
        prop.value, delta = self.constant_int(prop.value, "'priority_delta'")
        if delta is not None and delta <= 0:
            self.error(prop.value, f"'priority_delta' must be positive, not {delta}")

    # Entries

    def _entries(self, t: ast.TableDecl, entries: list[ast.TableEntry]) -> None:
        kinds = [k.match_kind for k in t.keys]
        prioritised = any(k in ("ternary", "range", "optional") for k in kinds)
        if entries[0].priority is None and any(e.priority is not None for e in entries):
            self.error(entries[0], "the first entry needs a priority, because another one has one")
        self._check_priorities(t, entries)
        for entry in entries:
            self.annotations(entry.annotations)
            if entry.const and t.const_entries:
                self.warn(entry, "'const' is not needed: all entries of the table are constant")
            if entry.priority is not None:
                if t.const_entries:
                    self.error(entry.priority, "entries of a constant list have no explicit priority: order decides")
                elif not prioritised:
                    self.error(
                        entry.priority,
                        "entries of this table have no priority: it has no ternary, range or optional key",
                    )
                entry.priority, value = self.constant_int(entry.priority, "the priority")
                if value is not None and value < 0:
                    self.error(entry.priority, f"the priority must not be negative, but is {value}")
            if self._entry_keys(t, entry):
                for key, keyset in zip(t.keys, entry.keysets, strict=True):
                    self._entry_keyset(key, keyset)
            with self.at(Place.TABLE):
                chosen = self._chosen_action(t, entry.action, "the action of this entry")
            if chosen and self._listed_with(t, entry.action, "defaultonly"):
                self.error(entry.action, f"action {entry.action.name!r} is @defaultonly, so no entry can have it")
        if all(k == "exact" for k in kinds):
            self._check_distinct(entries)

    def _check_distinct(self, entries: list[ast.TableEntry]) -> None:
        seen: set[tuple[int | bool | str, ...]] = set()
        for entry in entries:
            values = [k.decl.name if isinstance(k, ast.EnumRef) else getattr(k, "value", None) for k in entry.keysets]
            key = tuple(v for v in values if isinstance(v, (int, str)))
            if len(key) == len(values):
                if key in seen:
                    self.error(entry, "an entry before this one has the same key")
                seen.add(key)

    def _check_priorities(self, t: ast.TableDecl, entries: list[ast.TableEntry]) -> None:
        """Entries without priority continue from the one before, which must not lead below zero."""
        largest_wins = t.properties.get("largest_priority_wins")
        delta = t.properties.get("priority_delta")
        step = delta.value.value if delta is not None and isinstance(delta.value, ast.IntLiteral) else 1
        order = largest_wins.value if largest_wins is not None else None
        if isinstance(order, ast.BoolLiteral) and not order.value:
            step = -step
        last: int | None = None
        for entry in entries:
            if isinstance(entry.priority, ast.IntLiteral):
                last = entry.priority.value
            elif last is not None:
                last -= step
                if not 0 <= last < 1 << 31:
                    self.error(t, f"an entry of table {t.name!r} would have priority {last}")
                    return

    def _entry_keys(self, t: ast.TableDecl, entry: ast.TableEntry) -> bool:
        keys = entry.keysets
        if len(keys) == 1 and len(t.keys) > 1 and isinstance(keys[0], (ast.DontCare, ast.DefaultExpr)):
            keys = [type(keys[0])(keys[0].pos) for _ in t.keys]
        if len(keys) == 1 and isinstance(keys[0], ast.ListExpr):
            keys = keys[0].items
        if len(keys) != len(t.keys):
            self.error(entry, f"this entry has {len(keys)} keys, but table {t.name!r} has {len(t.keys)}")
            return False
        entry.keysets = [self.keyset(e, k.expr.type) for e, k in zip(keys, t.keys, strict=True)]
        return True

    def _entry_keyset(self, key: ast.TableKey, e: ast.Expr) -> None:
        """An entry's keyset must be constant, and of a form that the match kind allows."""
        parts = [e]
        form = "a value"
        if isinstance(e, ast.Mask):
            parts, form = [e.value, e.mask], "a mask"
        elif isinstance(e, ast.Range):
            parts, form = [e.low, e.high], "a range"
            if said := self.empty(e):
                self.error(e, said)
        elif isinstance(e, (ast.DontCare, ast.DefaultExpr)):
            parts, form = [], "'_'"
        for part in parts:
            if not self.is_constant(part):
                self.error(part, "a key of an entry must be known at compile time")
        allowed = {
            "exact": ("a value",),
            "lpm": ("a value", "a mask", "'_'"),
            "ternary": ("a value", "a mask", "'_'"),
            "range": ("a value", "a range", "'_'"),
            "optional": ("a value", "'_'"),
        }.get(key.match_kind)
        if allowed is not None and form not in allowed:
            self.error(e, f"{form} cannot be matched with {key.match_kind}")
        elif key.match_kind == "lpm" and isinstance(e, ast.Mask) and isinstance(e.mask, ast.IntLiteral):
            width = types.width_of(key.expr.type)
            if width is not None:
                low_bits = e.mask.value & ((1 << width) - 1) ^ ((1 << width) - 1)
                if low_bits & (low_bits + 1):
                    self.error(e, f"{e.mask.value:#x} is not the mask of a prefix, which lpm needs")


def call_kind(e: ast.Expr) -> ast.CallKind | None:
    """What `e` calls; None if it calls nothing, or nothing known (then an error is reported)."""
    return getattr(e, "kind", None) if isinstance(e, ast.Call) else None


def subexpressions(e: ast.Expr) -> Iterator[ast.Expr]:
    """`e` and the expressions in it, as far as they are evaluated."""
    yield e
    inner: list[ast.Expr | None] = []
    if isinstance(e, (ast.Cast, ast.Unary)):
        inner = [e.operand]
    elif isinstance(e, ast.Binary):
        inner = [e.left, e.right]
    elif isinstance(e, ast.Conditional):
        inner = [e.condition, e.then, e.otherwise]
    elif isinstance(e, (ast.Member, ast.Slice)):
        inner = [e.base]
    elif isinstance(e, ast.Index):
        inner = [e.base, e.index]
    elif isinstance(e, ast.Call):
        inner = [e.receiver, *e.bound]
    elif isinstance(e, ast.ListExpr):
        inner = [*e.items]
    elif isinstance(e, ast.StructExpr):
        inner = [f.value for f in e.fields]
    for x in inner:
        if x is not None:
            yield from subexpressions(x)


def same_expression(a: ast.Expr, b: ast.Expr) -> bool:
    """Whether two checked expressions are written alike."""
    if isinstance(a, ast.Cast) and isinstance(b, ast.Cast):
        return a.type == b.type and same_expression(a.operand, b.operand)
    if type(a) is not type(b):
        return False
    if isinstance(a, (ast.IntLiteral, ast.BoolLiteral, ast.StringLiteral)):
        return isinstance(b, (ast.IntLiteral, ast.BoolLiteral, ast.StringLiteral)) and a.value == b.value
    if isinstance(a, ast.Name) and isinstance(b, ast.Name):
        return getattr(a, "decl", None) is getattr(b, "decl", None)
    if isinstance(a, ast.EnumRef) and isinstance(b, ast.EnumRef):
        return a.decl is b.decl
    if isinstance(a, ast.Member) and isinstance(b, ast.Member):
        return a.name == b.name and same_expression(a.base, b.base)
    if isinstance(a, ast.Index) and isinstance(b, ast.Index):
        return same_expression(a.base, b.base) and same_expression(a.index, b.index)
    if isinstance(a, ast.Slice) and isinstance(b, ast.Slice):
        return all(same_expression(x, y) for x, y in ((a.base, b.base), (a.high, b.high), (a.low, b.low)))
    if isinstance(a, ast.Unary) and isinstance(b, ast.Unary):
        return a.op == b.op and same_expression(a.operand, b.operand)
    if isinstance(a, ast.Binary) and isinstance(b, ast.Binary):
        return a.op == b.op and same_expression(a.left, b.left) and same_expression(a.right, b.right)
    if isinstance(a, ast.Call) and isinstance(b, ast.Call):
        if a.method != b.method or len(a.bound) != len(b.bound) or (a.receiver is None) != (b.receiver is None):
            return False
        if a.receiver is not None and b.receiver is not None and not same_expression(a.receiver, b.receiver):
            return False
        pairs = zip(a.bound, b.bound, strict=True)
        return all(x is y or (x is not None and y is not None and same_expression(x, y)) for x, y in pairs)
    if isinstance(a, ast.StructExpr) and isinstance(b, ast.StructExpr):
        pairs_of_fields = zip(a.fields, b.fields, strict=False)
        return a.type == b.type and all(same_expression(x.value, y.value) for x, y in pairs_of_fields)
    if isinstance(a, ast.ListExpr) and isinstance(b, ast.ListExpr):
        return a.type == b.type and all(same_expression(x, y) for x, y in zip(a.items, b.items, strict=False))
    return isinstance(a, ast.DontCare)


def flattened(t: Type) -> list[Type]:
    """The types of the single values in `t`, structs and tuples taken apart."""
    if isinstance(t, types.Struct):
        return [x for f in t.fields for x in flattened(f.type)]
    if isinstance(t, types.Tuple):
        return [x for e in t.elements for x in flattened(e)]
    return [t]


def same_bits(t: Type) -> list[Type]:
    """As `flattened`, with serializable enums by their underlying types: what a set of values is matched by."""
    return [x.underlying or x if isinstance(x, types.Enum) else x for x in flattened(t)]
