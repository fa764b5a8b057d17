"""Pass that replaces short forms, so that later passes have to handle one form of each.

- A case or entry gets a key set for each key, also in place of a single `_` or `default` for all keys.
- A select without keys becomes a transition to the state of its first case.
- `C.apply()` on the name of a parser or control becomes a call on an instance, which is declared with the other locals.
"""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import Reporter
from p4switch.compiler.facts import Binding, Facts


def desugar(program: ast.Program, _: Reporter) -> None:
    """Replace the short forms in a checked program."""
    facts = program.facts
    for node, keysets in facts.keysets.items():
        node.keysets = keysets
    containers = [d for d in program.declarations if isinstance(d, ast.ParserDecl | ast.ControlDecl)]
    for container in containers:
        for state in container.states if isinstance(container, ast.ParserDecl) else ():
            state.transition = _transition(state.transition, facts)
    if any(_applied(binding, facts) for binding in facts.bindings.values()):
        for container in containers:
            _Container(program, container).declare_instances()


def _transition(transition: ast.Transition | ast.Select | None, facts: Facts) -> ast.Transition | ast.Select | None:
    if not isinstance(transition, ast.Select) or transition.keys:
        return transition
    first = transition.cases[0]
    result = ast.Transition(transition.pos, first.state)
    facts.states[result] = facts.states[first]
    return result


def _applied(binding: Binding, facts: Facts) -> types.Parser | types.Control | None:
    """Return the parser or control if a call applies its name; None for other calls."""
    if binding.receiver is not None:
        receiver = facts.types[binding.receiver]
        if isinstance(receiver, types.Meta) and isinstance(receiver.type, types.Parser | types.Control):
            return receiver.type
    return None


class _Container:
    """A parser or control."""

    def __init__(self, program: ast.Program, declaration: ast.ParserDecl | ast.ControlDecl) -> None:
        self._facts = program.facts
        self._declaration = declaration

    def declare_instances(self) -> None:
        """Declare the instances for calls on names of types, in the order of the text."""
        waiting: list[ast.Node] = [self._declaration]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Call):
                binding = self._facts.bindings[node]
                applied = _applied(binding, self._facts)
                if applied is not None:
                    assert binding.receiver is not None
                    binding.receiver = self._instance(binding.receiver.pos, applied)
            waiting += reversed(ast.parts(node))

    def _instance(self, pos: int, t: types.Parser | types.Control) -> ast.Name:
        """Declare an instance of type `t`; return a reference to it at `pos`."""
        locals_ = self._declaration.locals
        taken = {local.name for local in locals_}
        name = f"{t.decl.name}_inst"
        while name in taken:
            name += "_"
        written = self._facts.typed(ast.NamedTypeExpr(pos, t.decl.name, []), t)
        label = ast.Annotation(pos, "name", args=[ast.StringLiteral(pos, t.decl.name)])
        instance = self._facts.typed(ast.Instantiation(pos, name, written, [], annotations=[label]), t)
        locals_.append(instance)
        result = self._facts.typed(ast.Name(pos, name), t)
        self._facts.decls[result] = instance
        return result
