"""Warnings about registers that one packet may access more than once, which a chip cannot do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind, Facts
from p4switch.compiler.walk import parts

if TYPE_CHECKING:
    from p4switch.architectures.package import Tell

NAME = "register-executions"
_REGISTERS, _ACTIONS = ("Register", "DirectRegister"), ("RegisterAction", "DirectRegisterAction")
_USES = dict.fromkeys(_REGISTERS, ("read", "write")) | dict.fromkeys(_ACTIONS, ("execute", "execute_log"))
_Instances = tuple[ast.Node, ...]  # the instances of controls that contain the one being checked
_Uses = Counter[tuple[_Instances, ast.Instantiation]]


@dataclass
class _Paths:
    """Highest number of accesses to each register on any path through some code.

    Paths that continue after the code and paths that end in it are counted separately.
    """

    going: _Uses | None = field(default_factory=Counter)  # None: no path continues
    ended: _Uses = field(default_factory=Counter)

    def then(self, after: _Paths) -> _Paths:
        """Return these paths, with the paths of the code that follows appended to those that continue."""
        if self.going is None:
            return self
        going = None if after.going is None else self.going + after.going
        return _Paths(going, self.ended | self.going + after.ended)

    @property
    def most(self) -> _Uses:
        return self.ended | (self.going or Counter())

    @classmethod
    def one_of(cls, ways: Iterable[_Paths]) -> _Paths:
        """Return the paths of code that takes one of several alternatives."""
        alternatives = list(ways)
        going = [way.going for way in alternatives if way.going is not None]
        ended: _Uses = Counter()
        for way in alternatives:
            ended |= way.ended
        together: _Uses = Counter()
        for each in going:
            together |= each
        return cls(together if going else None, ended)


def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
    """Warn about each register that a path through a control accesses more than once."""
    walk = _Walk(facts)
    most: Counter[ast.Instantiation] = Counter()
    for block in blocks:
        if isinstance(block, ast.ControlDecl):
            for (_, register), uses in walk.code(block.body, ()).most.items():
                most[register] = max(most[register], uses)
    for register, uses in most.items():
        if uses > 1:
            text = f"register '{register.name}' is used {uses} times for one packet, and a chip uses it once"
            tell(register, text, NAME)


class _Walk:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def code(self, node: ast.Node, inside: _Instances) -> _Paths:
        """Return the paths through a statement or an expression."""
        if isinstance(node, ast.Return | ast.Exit):
            return _Paths(None, self._of_parts(node, inside).most)
        if isinstance(node, ast.If):
            otherwise = _Paths() if node.otherwise is None else self.code(node.otherwise, inside)
            ways = _Paths.one_of([self.code(node.then, inside), otherwise])
            return self.code(node.condition, inside).then(ways)
        if isinstance(node, ast.Switch):
            return self._switch(node, inside)
        if isinstance(node, ast.Call):
            return self._of_parts(node, inside).then(self._call(node, inside))
        return self._of_parts(node, inside)

    def _of_parts(self, node: ast.Node, inside: _Instances) -> _Paths:
        paths = _Paths()
        for part in parts(node, self._facts):
            paths = paths.then(self.code(part, inside))
        return paths

    def _call(self, call: ast.Call, inside: _Instances) -> _Paths:
        binding = self._facts.bindings[call]
        kind, decl = binding.kind, binding.decl
        if kind is CallKind.EXTERN_METHOD:
            register = self._register(binding.receiver, binding.method)
            return _Paths() if register is None else _Paths(Counter({(inside, register): 1}))
        if kind in (CallKind.ACTION, CallKind.FUNCTION) and isinstance(decl, ast.ActionDecl | ast.FunctionDecl):
            return _Paths(self.code(decl.body, inside).most)
        if kind is CallKind.TABLE_APPLY and isinstance(decl, ast.TableDecl):
            return _Paths.one_of(self._actions(decl, inside).values())
        if kind is CallKind.CONTROL_APPLY and isinstance(decl, ast.ControlDecl):
            receiver = binding.receiver
            instance = self._facts.decls[receiver] if isinstance(receiver, ast.Name) else decl
            return _Paths(self.code(decl.body, (*inside, instance)).most)
        return _Paths()

    def _actions(self, table: ast.TableDecl, inside: _Instances) -> dict[ast.ActionDecl, _Paths]:
        """Return the paths of each action of a table."""
        refs = [*table.actions, *([table.default_action] if table.default_action is not None else [])]
        actions = [self._facts.actions[ref] for ref in refs]
        return {action: _Paths(self.code(action.body, inside).most) for action in actions}

    def _switch(self, node: ast.Switch, inside: _Instances) -> _Paths:
        """Return the paths of a `switch`. In a switch over a table, the action of the case comes before the case."""
        cases: dict[ast.SwitchCase, _Paths] = {}
        body: _Paths = _Paths()
        for case in reversed(node.cases):  # a case without a body shares that of the next case
            body = body if case.body is None else self.code(case.body, inside)
            cases[case] = body
        default = next((cases[case] for case in cases if isinstance(case.label, ast.DefaultExpr)), _Paths())
        table = self._facts.switched.get(node)
        if table is None:
            return self.code(node.value, inside).then(_Paths.one_of([*cases.values(), default]))
        own = {self._facts.actions[case]: paths for case, paths in cases.items() if case in self._facts.actions}
        actions = self._actions(table, inside)
        return _Paths.one_of(paths.then(own.get(action, default)) for action, paths in actions.items())

    def _register(self, receiver: ast.Expr | None, method: str) -> ast.Instantiation | None:
        """Return the register that a method of an object uses."""
        decl = self._facts.decls[receiver] if isinstance(receiver, ast.Name) else None
        if not isinstance(decl, ast.Instantiation):
            return None
        t = self._facts.types[decl]
        name = t.decl.name if isinstance(t, types.Extern) else ""
        if method not in _USES.get(name, ()):
            return None
        if name in _REGISTERS:
            return decl
        argument = decl.args[0].value if decl.args else None
        register = self._facts.decls[argument] if isinstance(argument, ast.Name) else None
        return register if isinstance(register, ast.Instantiation) else None
