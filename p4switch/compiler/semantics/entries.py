"""Entries of tables (language specification, section 14.2.1.4)."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.facts import Constant
from p4switch.compiler.semantics.action_references import ActionReferences
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.keysets import Keysets
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes


class Entries:
    def __init__(
        self,
        ctx: Checking,
        references: ActionReferences,
        annotations: Annotations,
        keysets: Keysets,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.references = references
        self.annotations = annotations
        self.keysets = keysets
        self.values = values
        self.written_types = written_types
        self.facts = ctx.facts
        self.types = ctx.facts.types

    def entries(self, t: ast.TableDecl, entries: list[ast.TableEntry]) -> None:
        kinds = [k.match_kind for k in t.keys]
        prioritised = any(k in ("ternary", "range", "optional") for k in kinds)
        if entries[0].priority is None and any(e.priority is not None for e in entries):
            self.ctx.error(entries[0], "the first entry needs a priority, because another one has one")
        for entry in entries:
            self.annotations.check(entry.annotations)
            if entry.const and t.const_entries:
                self.ctx.warn(entry, "'const' is not needed: all entries of the table are constant")
            if entry.priority is not None:
                if t.const_entries:
                    self.ctx.error(
                        entry.priority, "entries of a constant list have no explicit priority: order decides"
                    )
                elif not prioritised:
                    self.ctx.error(
                        entry.priority,
                        "entries of this table have no priority: it has no ternary, range or optional key",
                    )
                value = self.written_types.constant_int(entry.priority, "the priority")
                if value is not None and value < 0:
                    self.ctx.error(entry.priority, f"the priority must not be negative, but is {value}")
            self._entry_keys(t, entry)
            with self.ctx.at(Place.TABLE):
                chosen = self.references.chosen_action(t, entry.action, "the action of this entry")
            if chosen and self.references.listed_with(t, entry.action, "defaultonly"):
                self.ctx.error(entry.action, f"action {entry.action.name!r} is @defaultonly, so no entry can have it")
        self._check_priorities(t, entries)
        if all(k == "exact" for k in kinds):
            self._check_distinct(entries)

    def _check_distinct(self, entries: list[ast.TableEntry]) -> None:
        seen: set[tuple[Constant | None, ...]] = set()
        for entry in entries:
            key = tuple(self.facts.constants.get(k) for k in self.facts.keysets[entry])
            if None not in key:
                if key in seen:
                    self.ctx.error(entry, "an entry before this one has the same key")
                seen.add(key)

    def _check_priorities(self, t: ast.TableDecl, entries: list[ast.TableEntry]) -> None:
        """Check that the entries without a priority, which continue from the previous entry, get no negative one."""
        largest_wins = t.properties.get("largest_priority_wins")
        delta = t.properties.get("priority_delta")
        step = None if delta is None else self.facts.integer(delta.value)
        step = 1 if step is None else step
        if largest_wins is not None and self.facts.boolean(largest_wins.value) is False:
            step = -step
        last: int | None = None
        for entry in entries:
            priority = None if entry.priority is None else self.facts.integer(entry.priority)
            if priority is not None:
                last = priority
            elif last is not None:
                last -= step
                if not 0 <= last < 1 << 31:
                    self.ctx.error(t, f"an entry of table {t.name!r} would have priority {last}")
                    return

    def _entry_keys(self, t: ast.TableDecl, entry: ast.TableEntry) -> None:
        keys = self.keysets.spread(entry, len(t.keys))
        if len(keys) == 1 and isinstance(keys[0], ast.ListExpr):
            keys = keys[0].items
        self.facts.keysets[entry] = keys
        if len(keys) != len(t.keys):
            self.ctx.error(entry, f"this entry has {len(keys)} keys, but table {t.name!r} has {len(t.keys)}")
            return
        for e, key in zip(keys, t.keys, strict=True):
            self.keysets.keyset(e, self.types[key.expr])
        for e, key in zip(keys, t.keys, strict=True):
            self._entry_keyset(key, e)

    def _entry_keyset(self, key: ast.TableKey, e: ast.Expr) -> None:
        """Check that an entry's keyset is constant, and that the match kind allows its form."""
        parts = [e]
        form = "a value"
        if isinstance(e, ast.Mask):
            parts, form = [e.value, e.mask], "a mask"
        elif isinstance(e, ast.Range):
            parts, form = [e.low, e.high], "a range"
            if said := self.keysets.empty(e):
                self.ctx.error(e, said)
        elif isinstance(e, (ast.DontCare, ast.DefaultExpr)):
            parts, form = [], "'_'"
        for part in parts:
            if not self.values.is_constant(part):
                self.ctx.error(part, "a key of an entry must be known at compile time")
        allowed = {
            "exact": ("a value",),
            "lpm": ("a value", "a mask", "'_'"),
            "ternary": ("a value", "a mask", "'_'"),
            "range": ("a value", "a range", "'_'"),
            "optional": ("a value", "'_'"),
        }.get(key.match_kind)
        if allowed is not None and form not in allowed:
            self.ctx.error(e, f"{form} cannot be matched with {key.match_kind}")
        elif key.match_kind == "lpm" and isinstance(e, ast.Mask):
            width, mask = types.width_of(self.types[key.expr]), self.facts.integer(e.mask)
            if width is not None and mask is not None:
                low_bits = mask & ((1 << width) - 1) ^ ((1 << width) - 1)
                if low_bits & (low_bits + 1):
                    self.ctx.error(e, f"{mask:#x} is not the mask of a prefix, which lpm needs")
