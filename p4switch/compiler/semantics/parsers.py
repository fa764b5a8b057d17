"""Parsers: states, transitions, select (language specification, section 13)."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.semantics.annotations import Annotations
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.keysets import Keysets, same_bits
from p4switch.compiler.semantics.places import MAX_INT32, Place
from p4switch.compiler.semantics.statements import Statements
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes
from p4switch.compiler.types import Type


class Parsers:
    def __init__(
        self,
        ctx: Checking,
        annotations: Annotations,
        keysets: Keysets,
        statements: Statements,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.annotations = annotations
        self.keysets = keysets
        self.statements = statements
        self.values = values
        self.written_types = written_types
        self.types = ctx.facts.types

    def parser(self, parser: ast.ParserDecl) -> None:
        for state in parser.states:
            if state.name in ("accept", "reject"):
                self.ctx.error(state, f"state {state.name!r} is built in and cannot be declared")
            else:
                self.ctx.declared(state)
        start = next((state for state in parser.states if state.name == "start"), None)
        if start is None:
            self.ctx.error(parser, f"parser {parser.name!r} has no state 'start'")
        with self.ctx.at(Place.PARSER):
            for state in parser.states:
                self._state(state)
        if start is not None and not self._ends(start):
            self.ctx.error(parser, f"parser {parser.name!r} never reaches 'accept' or 'reject'")

    def _ends(self, start: ast.ParserState) -> bool:
        """Return whether a path from `start` leaves the parser."""
        todo, seen = [start], {start}
        while todo:
            transition = todo.pop().transition
            if isinstance(transition, ast.Transition):
                targets = [self.ctx.facts.states[transition]]
            elif isinstance(transition, ast.Select):
                targets = [self.ctx.facts.states[c] for c in transition.cases]
            else:
                return True
            if ast.ACCEPT in targets or ast.REJECT in targets:
                return True
            todo += [t for t in targets if t not in seen]
            seen.update(targets)
        return False

    def _state(self, state: ast.ParserState) -> None:
        self.annotations.check(state.annotations)
        self.statements.statements(state.statements)
        transition = state.transition
        if isinstance(transition, ast.Transition):
            self.ctx.facts.states[transition] = self._target(transition)
        elif transition is not None:
            self._select(transition)

    def _target(self, at: ast.Transition | ast.SelectCase) -> ast.ParserState:
        for target in self.ctx.names.decls[at]:
            assert isinstance(target, ast.ParserState)
            return target
        self.ctx.unknown_name(at, at.state, "state")
        return ast.REJECT

    def _select(self, select: ast.Select) -> None:
        for key in select.keys:
            if isinstance(self.ctx.expressions.expr(key), types.InfInt):
                self.ctx.error(key, "a key needs a width (as in 8w1)")
                self.types[key] = types.UNKNOWN
            elif not _selectable(self.types[key]):
                self.ctx.error(key, f"a key of 'select' cannot have type {self.types[key]}")
                self.types[key] = types.UNKNOWN
        key_types = [_matched_as(self.types[k]) for k in select.keys]
        default_at: int | None = None
        for index, case in enumerate(select.cases):
            self.ctx.facts.states[case] = self._target(case)
            self._case(case, key_types)
            if default_at is not None:
                self.ctx.warn(case, "this case is never reached: one before it takes everything")
            elif all(isinstance(k, (ast.DefaultExpr, ast.DontCare)) for k in case.keysets):
                default_at = index
        if not select.cases:
            self.ctx.error(select, "'select' needs at least one case")

    def _case(self, case: ast.SelectCase, key_types: list[Type]) -> None:
        keys = self.ctx.facts.keysets[case] = self.keysets.spread(case, len(key_types))
        if len(keys) == 1 and len(key_types) != 1 and isinstance(keys[0], ast.Name):
            self._value_set_case(keys[0], key_types)
            return
        if len(keys) != len(key_types):
            self.ctx.error(case, f"this case has {len(keys)} keys, but 'select' has {len(key_types)}")
            return
        for keyset, t in zip(keys, key_types, strict=True):
            self.keysets.keyset(keyset, t)
        for keyset in keys:
            if isinstance(keyset, ast.Name) and isinstance(self.types[keyset], types.Set):
                continue
            if isinstance(keyset, ast.Mask):
                bounds = [keyset.value, keyset.mask]
            elif isinstance(keyset, ast.Range):
                bounds = [keyset.low, keyset.high]
                if said := self.keysets.empty(keyset):
                    self.ctx.warn(keyset, f"{said}, so this case never matches", "empty-range")
            else:
                bounds = []
                if self.values.calls(keyset, *(k for k in CallKind if k is not CallKind.BUILTIN)):
                    self.ctx.error(keyset, "a key of 'select' cannot call functions")
                elif not isinstance(keyset, (ast.DefaultExpr, ast.DontCare)) and not self.values.is_constant(
                    keyset
                ):
                    self.ctx.warn(keyset, "this key is not known at compile time, which not all targets support")
            for bound in bounds:
                if not self.values.is_constant(bound):
                    self.ctx.error(bound, "the parts of a mask or range must be known at compile time")

    def _value_set_case(self, name: ast.Name, key_types: list[Type]) -> None:
        given = self.ctx.expressions.expr(name)
        if isinstance(given, types.Unknown):
            return
        wanted_parts = [x for t in key_types for x in same_bits(t)]
        if not isinstance(given, types.Set) or same_bits(given.element) != wanted_parts:
            wanted = ", ".join(map(str, key_types))
            self.ctx.error(name, f"expected a value set with elements of type ({wanted}), not {given}")

    def value_set(self, v: ast.ValueSetDecl) -> None:
        self.types[v] = self.written_types.resolve(v.element_expr)
        size = self.written_types.constant_int(v.size, "the size of a value set")
        if size is not None and size <= 0:
            self.ctx.error(v.size, f"the size of a value set must be positive, not {size}")
        elif size is not None and size > MAX_INT32:
            self.ctx.error(v.size, f"the size of a value set must be at most {MAX_INT32}")
        base = types.strip_newtype(self.types[v])
        allowed = (types.Bits, types.Bool, types.Enum, types.Error, types.Struct, types.Tuple, types.Unknown)
        if not isinstance(base, allowed):
            self.ctx.error(v.element_expr, f"a value set cannot have elements of type {self.types[v]}")


def _matched_as(t: Type) -> Type:
    """Return the type of the cases for a key of type `t`; for a serializable enum it is the underlying type."""
    return t.underlying or t if isinstance(t, types.Enum) else t


def _selectable(t: Type) -> bool:
    """Return whether a key of `select` can have type `t`."""
    base = types.strip_newtype(t)
    if isinstance(base, types.Tuple):
        return all(map(_selectable, base.elements))
    return isinstance(base, (types.Bits, types.Bool, types.Enum, types.Error, types.TypeVar, types.Unknown))
