"""Name resolution: the declaration that each use of a name refers to, by scopes alone.

This pass runs between parsing and checking. It reports no errors, because only the checker knows whether a name must
have a declaration. For instance, a name in the text of an annotation need not have one, and a label of a switch over
actions is an action of the table. The checker uses the results of this pass and reports the errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from p4switch.compiler import ast
from p4switch.compiler.source import SourceMap

Scope = dict[str, tuple[ast.Declaration, ...]]
"""Declarations by name. Only overloaded functions have several."""
_OVERLOADABLE = (ast.FunctionDecl, ast.ExternFunctionDecl)


@dataclass(eq=False, slots=True)
class Names:
    """Results of name resolution, in tables keyed by the nodes of the tree."""

    decls: dict[ast.Node, tuple[ast.Declaration, ...]] = field(default_factory=dict)
    """Declarations for each use of a name: none if the name is unknown, and several for overloaded functions.

    A table uses the name of the action `NoAction`, a table key that of its match kind, and a
    transition that of its state.
    """
    wrong: dict[ast.Node, str] = field(default_factory=dict)
    """Error message for each declaration whose name is taken or that hides a parameter."""
    _known: dict[ast.Node, list[tuple[Scope, int]]] = field(default_factory=dict)
    """Scopes around each unresolved name, and the number of names that each scope had at that point."""

    def found(self, node: ast.Node, declared: tuple[ast.Declaration, ...], scopes: Iterable[Scope]) -> None:
        """Record the declarations to which the name in `node`, within `scopes`, may refer."""
        self.decls[node] = declared
        if not declared:
            self._known[node] = [(scope, len(scope)) for scope in scopes]

    def known(self, node: ast.Node) -> Iterator[str]:
        """Yield the names that are declared at the place of the unresolved name in `node`."""
        for scope, count in self._known[node]:
            yield from itertools.islice(scope, count)


def resolve(program: ast.Program) -> None:
    """Fill `program.facts.names`."""
    _Resolver(program.source, program.facts.names).visit(program.declarations)


class _Resolver:
    """Walk through the program in the order of its text. A name is known after the end of its declaration."""

    def __init__(self, source: SourceMap, names: Names) -> None:
        self._names = names
        self._source = source
        self._scopes: list[Scope] = [{}]
        self._errors: Scope = {}
        self._match_kinds: Scope = {}
        self._states: Scope = {}
        self._in_body = False
        self._rules: dict[type[ast.Node], Callable[..., None]] = {
            ast.Name: self._name,
            ast.NamedTypeExpr: self._type,
            ast.This: self._this,
            ast.ActionRef: self._action,
            ast.TableKey: self._key,
            ast.Transition: self._transition,
            ast.SelectCase: self._transition,
            ast.ErrorDecl: lambda d: self._members(d.members, self._errors),
            ast.MatchKindDecl: lambda d: self._members(d.members, self._match_kinds),
            ast.ExternDecl: self._extern,
            ast.Method: self._signature,
            ast.Instantiation: self._instance,
            ast.ControlDecl: self._container,
            ast.ParserDecl: self._container,
            ast.ParserState: lambda state: self._body(ast.parts(state)),
            ast.TableDecl: self._table,
            ast.TypeParam: self._declare,
            ast.Parameter: self._part,
            ast.EnumMember: self._part,
            ast.Block: self._block,
            ast.If: self._if,
            ast.For: self._for,
            ast.ForIn: self._for_in,
        }
        for kind in (
            *(ast.StructDecl, ast.HeaderDecl, ast.UnionDecl, ast.TypedefDecl, ast.NewTypeDecl, ast.ConstDecl),
            *(ast.VarDecl, ast.ValueSetDecl, ast.ActionDecl, ast.FunctionDecl, ast.ExternFunctionDecl),
            *(ast.PackageDecl, ast.ParserTypeDecl, ast.ControlTypeDecl, ast.EnumDecl),
        ):
            self._rules[kind] = self._declaration

    def visit(self, nodes: Iterable[ast.Node]) -> None:
        rules = self._rules
        for node in nodes:
            rule = rules.get(type(node))
            if rule is not None:
                rule(node)
            elif below := ast.parts(node):
                self.visit(below)

    def _below(self, node: ast.Node) -> None:
        self.visit(ast.parts(node))

    def _scoped(self, nodes: Iterable[ast.Node]) -> None:
        self._scopes.append({})
        self.visit(nodes)
        self._scopes.pop()

    def _body(self, nodes: Iterable[ast.Node]) -> None:
        outer, self._in_body = self._in_body, True
        self._scoped(nodes)
        self._in_body = outer

    # Uses

    def _lookup(self, name: str, absolute: bool = False) -> tuple[ast.Declaration, ...]:
        for scope in self._scopes[:1] if absolute else reversed(self._scopes):
            if name in scope:
                return scope[name]
        return ()

    def _name(self, e: ast.Name) -> None:
        declarations = self._lookup(e.name, e.absolute) or self._match_kinds.get(e.name, ())
        self._names.found(e, declarations, self._scopes)

    def _this(self, e: ast.This) -> None:
        self._names.found(e, self._lookup("this"), self._scopes)

    def _type(self, t: ast.NamedTypeExpr) -> None:
        self._names.found(t, self._lookup(t.name, t.absolute), self._scopes)
        self.visit(t.args)

    def _action(self, ref: ast.ActionRef) -> None:
        declarations = self._lookup(ref.name.lstrip("."), ref.name.startswith("."))
        self._names.found(ref, declarations, self._scopes)
        self._below(ref)

    def _key(self, key: ast.TableKey) -> None:
        self._names.found(key, self._match_kinds.get(key.match_kind, ()), [self._match_kinds])
        self._below(key)

    def _transition(self, node: ast.Transition | ast.SelectCase) -> None:
        self._names.found(node, self._states.get(node.state, ()), [self._states])
        self._below(node)

    # Declarations

    def _declare(self, decl: ast.Declaration) -> None:
        self._declare_in(self._scopes[-1], decl)

    def _declare_in(self, scope: Scope, decl: ast.Declaration) -> None:
        """Declare `decl`. Functions may share a name if their parameters differ in number or names."""
        others = scope.get(decl.name, ())
        if not others:
            scope[decl.name] = (decl,)
            if self._in_body:
                self._check_shadowing(decl)
        elif isinstance(decl, _OVERLOADABLE) and not _taken([p.name for p in decl.params], others):
            scope[decl.name] = (*others, decl)
        else:
            here, there = (self._source.locate(one.pos) for one in (decl, others[0]))
            place = f"line {there.line}" if there.file == here.file else f"{there.file}:{there.line}"
            self._names.wrong[decl] = f"{decl.name!r} is already declared ({place})"

    def _check_shadowing(self, decl: ast.Declaration) -> None:
        """Check that a declaration in a body does not hide a parameter."""
        hidden = next((scope[decl.name][0] for scope in reversed(self._scopes[1:-1]) if decl.name in scope), None)
        if isinstance(hidden, ast.Parameter):
            line = self._source.locate(hidden.pos).line
            self._names.wrong[decl] = f"{decl.name!r} hides a parameter of that name (line {line})"

    def _members(self, members: Sequence[ast.Declaration], space: Scope) -> None:
        for member in members:
            self._declare_in(space, member)

    def _declaration(self, decl: ast.Declaration) -> None:
        self._signature(decl)
        self._declare(decl)

    def _signature(self, decl: ast.Declaration) -> None:
        """Resolve the names in `decl` in a new scope, and those in its annotations outside of that scope."""
        self.visit(decl.annotations)
        self._scoped(ast.parts(decl)[len(decl.annotations) :])

    def _part(self, decl: ast.Parameter | ast.EnumMember) -> None:
        """Resolve the names in `decl` and declare it; the checker reports duplicates."""
        self._below(decl)
        if decl.name not in self._scopes[-1]:
            self._declare(decl)

    def _extern(self, decl: ast.ExternDecl) -> None:
        self._declare(decl)
        self._signature(decl)

    def _instance(self, decl: ast.Instantiation) -> None:
        self.visit([*decl.annotations, decl.type_expr, *decl.args])
        self._scopes.append({"this": (decl,)})
        self.visit(decl.instances)
        for method in decl.methods:
            self._signature(method)
        self._scopes.pop()
        self._declare(decl)

    def _container(self, decl: ast.ControlDecl | ast.ParserDecl) -> None:
        self.visit(decl.annotations)
        self._scopes.append({})
        self.visit([*decl.type_params, *decl.params, *decl.ctor_params])
        if isinstance(decl, ast.ControlDecl):
            self._scoped([*decl.locals, decl.body])
        else:
            self._states = {"accept": (ast.ACCEPT,), "reject": (ast.REJECT,)}
            self._members(decl.states, self._states)
            self._scoped([*decl.locals, *decl.states])
        self._scopes.pop()
        self._declare(decl)

    def _table(self, t: ast.TableDecl) -> None:
        self._declare(t)
        self._names.found(t, self._lookup("NoAction", absolute=True), self._scopes)
        self._below(t)

    # Statements

    def _block(self, b: ast.Block) -> None:
        self.visit(b.annotations)
        self._body(b.statements)

    def _if(self, s: ast.If) -> None:
        rest: ast.Statement | None = s
        while isinstance(rest, ast.If):
            self.visit([rest.condition])
            self._scoped([rest.then])
            rest = rest.otherwise
        if rest is not None:
            self._scoped([rest])

    def _for(self, s: ast.For) -> None:
        self.visit(s.annotations)
        self._scopes.append({})
        self.visit([*s.init, s.condition, *s.update])
        self._scoped([s.body])
        self._scopes.pop()

    def _for_in(self, s: ast.ForIn) -> None:
        self.visit([*s.annotations, *s.variable.annotations, s.variable.type_expr, s.values])
        self._scopes.append({})
        self._declare(s.variable)
        self._scoped([s.body])
        self._scopes.pop()


def _taken(signature: list[str], others: Sequence[ast.Declaration]) -> bool:
    """Return whether a function with parameters of these names cannot coexist with the `others`."""
    return any(not isinstance(o, _OVERLOADABLE) or [p.name for p in o.params] == signature for o in others)
