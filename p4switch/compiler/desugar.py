"""Short forms written out, so that later steps meet one form of each.

- A case or entry gets a key set for each key: a single `_` or `default` stands for all of them.
- A select without keys becomes a transition to the state of its first case.
- `C.apply()` on the name of a parser or control applies an instance, which is declared beside the other locals.
"""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import Reporter


def desugar(program: ast.Program, _: Reporter) -> None:
    """Write out the short forms in a checked program."""
    for declaration in program.declarations:
        if isinstance(declaration, ast.ParserDecl | ast.ControlDecl):
            _Container(program, declaration).write_out()


class _Container:
    """A parser or control."""

    def __init__(self, program: ast.Program, declaration: ast.ParserDecl | ast.ControlDecl) -> None:
        self._facts = program.facts
        self._declaration = declaration

    def write_out(self) -> None:
        waiting: list[ast.Node] = [self._declaration]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.SelectCase | ast.TableEntry):
                node.keysets = self._facts.keysets[node]
            elif isinstance(node, ast.ParserState):
                node.transition = self._transition(node.transition)
            elif isinstance(node, ast.Call):
                self._call(node)
            waiting += reversed(ast.parts(node))

    def _transition(self, transition: ast.Transition | ast.Select | None) -> ast.Transition | ast.Select | None:
        if not isinstance(transition, ast.Select) or transition.keys:
            return transition
        first = transition.cases[0]
        result = ast.Transition(transition.pos, first.state)
        self._facts.states[result] = self._facts.states[first]
        return result

    def _call(self, call: ast.Call) -> None:
        binding = self._facts.bindings[call]
        if binding.receiver is None:
            return
        applied = self._facts.types[binding.receiver]
        if isinstance(applied, types.Meta) and isinstance(applied.type, types.Parser | types.Control):
            binding.receiver = self._instance(binding.receiver.pos, applied.type)

    def _instance(self, pos: int, t: types.Parser | types.Control) -> ast.Name:
        """Declare an instance of type `t`; return its name, used at `pos`."""
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
