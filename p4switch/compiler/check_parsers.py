"""Parsers: states, transitions, select (language specification, section 13)."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.check_base import Place
from p4switch.compiler.check_tables import TableChecker, flattened
from p4switch.compiler.types import Type


class ParserChecker(TableChecker):
    def states(self, parser: ast.ParserDecl) -> None:
        by_name: dict[str, ast.ParserState] = {"accept": ast.ACCEPT, "reject": ast.REJECT}
        for state in parser.states:
            if state.name in ("accept", "reject"):
                self.error(state, f"state {state.name!r} is built in and cannot be declared")
            elif state.name in by_name:
                self.duplicate(state, by_name[state.name])
            else:
                by_name[state.name] = state
        if "start" not in by_name:
            self.error(parser, f"parser {parser.name!r} has no state 'start'")
        for state in parser.states:
            with self.at(Place.PARSER), self.scope():
                self._state(state, by_name)

    def _state(self, state: ast.ParserState, by_name: dict[str, ast.ParserState]) -> None:
        self.annotations(state.annotations)
        state.statements = self.statements(state.statements)
        transition = state.transition
        if isinstance(transition, ast.Transition):
            transition.target = self._target(transition, transition.state, by_name)
        elif transition is not None:
            self._select(transition, by_name)
            if not transition.keys and transition.cases:
                first = transition.cases[0]
                state.transition = ast.Transition(transition.pos, first.state)
                state.transition.target = first.target

    def _target(self, at: ast.Node, name: str, by_name: dict[str, ast.ParserState]) -> ast.ParserState:
        target = by_name.get(name)
        if target is None:
            self.error(at, f"state {name!r} is not declared")
            return ast.REJECT
        return target

    def _select(self, select: ast.Select, by_name: dict[str, ast.ParserState]) -> None:
        select.keys = [self.expr(k) for k in select.keys]
        for key in select.keys:
            base = types.strip_newtype(key.type)
            allowed = (types.Bits, types.Bool, types.Enum, types.Error, types.Struct, types.Tuple, types.TypeVar)
            if isinstance(base, types.InfInt):
                self.error(key, "a key needs a width (as in 8w1)")
                key.type = types.UNKNOWN
            elif not isinstance(base, (*allowed, types.Unknown)):
                self.error(key, f"a key of 'select' cannot have type {key.type}")
                key.type = types.UNKNOWN
        key_types = [k.type for k in select.keys]
        default_at: int | None = None
        for index, case in enumerate(select.cases):
            case.target = self._target(case, case.state, by_name)
            self._case(case, key_types)
            if default_at is not None:
                self.warn(case, "this case is never reached: one before it takes everything")
            elif all(isinstance(k, (ast.DefaultExpr, ast.DontCare)) for k in case.keysets):
                default_at = index
        if not select.cases:
            self.error(select, "'select' needs at least one case")

    def _case(self, case: ast.SelectCase, key_types: list[Type]) -> None:
        keys = case.keysets
        if len(keys) == 1 and len(key_types) != 1:
            only = keys[0]
            if isinstance(only, (ast.DefaultExpr, ast.DontCare)):
                keys = [type(only)(only.pos) for _ in key_types]
            elif isinstance(only, ast.Name):
                self._value_set_case(case, only, key_types)
                return
            elif isinstance(only, ast.ListExpr) and len(only.items) == len(key_types):
                keys = only.items
        if len(keys) != len(key_types):
            self.error(case, f"this case has {len(keys)} keys, but 'select' has {len(key_types)}")
            return
        case.keysets = [self.keyset(k, t) for k, t in zip(keys, key_types, strict=True)]
        for keyset in case.keysets:
            if isinstance(keyset, ast.Name) and isinstance(keyset.type, types.Set):
                continue
            parts = [keyset]
            if isinstance(keyset, ast.Mask):
                parts = [keyset.value, keyset.mask]
            elif isinstance(keyset, ast.Range):
                parts = [keyset.low, keyset.high]
            for part in parts:
                if not isinstance(part, (ast.DefaultExpr, ast.DontCare)) and not self.is_constant(part):
                    self.warn(part, "this key is not known at compile time, which not all targets support")

    def _value_set_case(self, case: ast.SelectCase, name: ast.Name, key_types: list[Type]) -> None:
        e = self.expr(name)
        case.keysets = [e]
        if isinstance(e.type, types.Unknown):
            return
        if not isinstance(e.type, types.Set) or flattened(e.type.element) != [x for t in key_types for x in flattened(t)]:
            wanted = ", ".join(map(str, key_types))
            self.error(e, f"expected a value set with elements of type ({wanted}), not {e.type}")

    def value_set(self, v: ast.ValueSetDecl) -> None:
        self.annotations(v.annotations)
        v.element = self.resolve(v.element_expr)
        v.size, size = self.constant_int(v.size, "the size of a value set")
        if size is not None and size <= 0:
            self.error(v.size, f"the size of a value set must be positive, not {size}")
        base = types.strip_newtype(v.element)
        allowed = (types.Bits, types.Bool, types.Enum, types.Error, types.Struct, types.Tuple, types.Unknown)
        if not isinstance(base, allowed):
            self.error(v.element_expr, f"a value set cannot have elements of type {v.element}")
        self.declare(v)
