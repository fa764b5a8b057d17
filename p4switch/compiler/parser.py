"""Parser: from tokens to the syntax tree of declarations, parsers, controls and tables."""

from __future__ import annotations

from collections.abc import Callable

from p4switch.compiler import ast
from p4switch.compiler.lexer import Tokens
from p4switch.compiler.parse_expressions import NAMES, ParseError, T
from p4switch.compiler.parse_statements import StatementParser

TopLevel = ast.Declaration | ast.ErrorDecl | ast.MatchKindDecl

_STARTS = frozenset(
    (
        *("action", "const", "control", "enum", "error", "extern", "header", "header_union", "match_kind"),
        *("package", "parser", "struct", "typedef"),
    )
)
"""Keywords that start a top-level declaration, at which parsing resumes after an error."""

_INLINE_TYPES = frozenset(("struct", "header", "header_union", "enum"))
"""Keywords of declarations that a `typedef` may contain."""


class Parser(StatementParser):
    def __init__(self, text: str, tokens: Tokens, report: Callable[[int, str], None]) -> None:
        super().__init__(text, tokens, report)
        self._result: list[TopLevel] = []
        self._declarations: dict[str, Callable[[list[ast.Annotation]], TopLevel | None]] = {
            "const": self.constant,
            "extern": self._extern,
            "action": self._action,
            "parser": self._parser,
            "control": self._control,
            "package": self._package,
            "struct": lambda a: self._record(a, ast.StructDecl),
            "header": lambda a: self._record(a, ast.HeaderDecl),
            "header_union": lambda a: self._record(a, ast.UnionDecl),
            "enum": self._enum,
            "typedef": self._typedef,
        }

    def program(self) -> list[TopLevel]:
        """Parse all declarations; those with errors are reported and skipped."""
        result = self._result
        while self.kind != "end of file":
            start = self.at
            try:
                if self.accept(";"):
                    continue
                decl = self._declaration()
                if decl is not None:
                    result.append(decl)
            except ParseError as error:
                del self.scopes[1:]
                self._recover_declaration(error, start)
        return result

    def _recover_declaration(self, error: ParseError, start: int) -> None:
        """Report the error, and skip to the probable start of the next declaration."""
        self.report(error.pos, error.message)
        self.nesting = 0
        if self.at == start:
            self.at += 1
        while self.kind != "end of file":
            kind = self.kind
            starts_line = self.text.rfind("\n", 0, self.pos) == self.pos - 1
            if kind in _STARTS and (starts_line or self.kinds[self.at - 1] in (";", "}")):
                return
            self.at += 1

    def _declaration(self) -> TopLevel | None:
        annotations = self.annotations()
        kind = self.kind
        if kind == "error" and self.kinds[self.at + 1] == "{":
            pos = self.expect("error")
            return ast.ErrorDecl(pos, [ast.EnumMember(p, n) for p, n in self._identifiers()])
        if kind == "match_kind" and self.kinds[self.at + 1] == "{":
            pos = self.expect("match_kind")
            return ast.MatchKindDecl(pos, [ast.MatchKindMember(p, n) for p, n in self._identifiers()])
        if kind == "type" and self.kinds[self.at + 1] not in ("<", "("):
            return self._typedef(annotations)
        parse = self._declarations.get(kind)
        if parse is not None:
            return parse(annotations)
        if self.starts_type() or kind in NAMES or kind == ".":
            return self._function_or_instance_at_top(annotations)
        raise self.unexpected("a declaration")

    def _function_or_instance_at_top(self, annotations: list[ast.Annotation]) -> TopLevel:
        start = self.at
        result = self.attempt(self._top_variable)
        if result is not None:
            raise self.fail(f"variable {result!r} cannot be declared outside a parser, control, action or function")
        self.at = start
        return self.function_or_instance(annotations)

    def _top_variable(self) -> str | None:
        self.type_ref()
        name = self.name()
        return name if self.kind in ("=", ";") else None

    def _identifiers(self) -> list[tuple[int, str]]:
        """Parse the names in `{ a, b, }`."""
        return self._members(self.named)

    def _members(self, parse: Callable[[], T]) -> list[T]:
        """Parse at least one element in braces."""
        self.expect("{")
        if self.kind == "}":
            raise self.unexpected("a name")
        return self.separated("}", parse, trailing=True)

    # Types

    def _record(
        self,
        annotations: list[ast.Annotation],
        make: type[ast.StructDecl] | type[ast.HeaderDecl] | type[ast.UnionDecl],
    ) -> ast.RecordDecl:
        self.at += 1
        pos, name = self.named()
        self.declare(name, True)
        with self.scope():
            type_params = self.type_params()
            self.expect("{")
            fields = self.recovering(self._field)
            self.expect("}")
        return make(pos, name, type_params, fields, annotations=annotations)

    def _field(self) -> ast.FieldDecl:
        annotations = self.annotations()
        pos, name, type_expr = self.declarator(self.type_ref())
        self.expect(";")
        return ast.FieldDecl(pos, name, type_expr, annotations=annotations)

    def _enum(self, annotations: list[ast.Annotation]) -> ast.EnumDecl:
        self.expect("enum")
        underlying = None if self.kind in NAMES and self.kinds[self.at + 1] == "{" else self.type_ref()
        pos, name = self.named()
        self.declare(name, True)
        if underlying is None:
            members = [ast.EnumMember(p, n) for p, n in self._identifiers()]
        else:
            members = self._members(self._enum_member)
        decl = ast.EnumDecl(pos, name, underlying, members, annotations=annotations)
        for m in members:
            m.decl = decl
        return decl

    def _enum_member(self) -> ast.EnumMember:
        pos, name = self.named()
        self.expect("=")
        return ast.EnumMember(pos, name, self.expression())

    def _typedef(self, annotations: list[ast.Annotation]) -> ast.TypeDeclaration:
        distinct = self.kind == "type"
        self.at += 1
        if not distinct and self.kind in _INLINE_TYPES:
            inner = self._declarations[self.kind]([])
            assert isinstance(inner, ast.TypeDeclaration)
            self._result.append(inner)
            base: ast.TypeExpr = ast.NamedTypeExpr(inner.pos, inner.name, [])
        else:
            base = self.type_ref()
        pos, name, type_expr = self.declarator(base)
        self.expect(";")
        self.declare(name, True)
        make = ast.NewTypeDecl if distinct else ast.TypedefDecl
        return make(pos, name, type_expr, annotations=annotations)

    def _package(self, annotations: list[ast.Annotation]) -> ast.PackageDecl:
        self.expect("package")
        pos, name = self.named()
        self.declare(name, True)
        with self.scope():
            type_params = self.type_params()
            params = self.parameters()
        self.expect(";")
        return ast.PackageDecl(pos, name, type_params, params, annotations=annotations)

    # Externs and actions

    def _extern(self, annotations: list[ast.Annotation]) -> TopLevel | None:
        self.expect("extern")
        if self.kind in NAMES:
            if self.kinds[self.at + 1] == ";":
                self.declare(self.name(), True)
                self.expect(";")
                return None
            if self.attempt(self._extern_object_ahead):
                return self._extern_object(annotations)
        pos, name, type_params, returns, params = self._prototype()
        self.expect(";")
        return ast.ExternFunctionDecl(pos, name, type_params, returns, params, annotations=annotations)

    def _extern_object_ahead(self) -> bool | None:
        start = self.at
        self.name()
        with self.scope():
            self.type_params()
        yes = self.kind == "{"
        self.at = start
        return yes or None

    def _extern_object(self, annotations: list[ast.Annotation]) -> ast.ExternDecl:
        pos, name = self.named()
        self.declare(name, True)
        with self.scope():
            type_params = self.type_params()
            self.expect("{")
            found = self.recovering(lambda: self._method(name))
            self.expect("}")
        methods = [method for method in found if method.returns is not None]
        constructors = [method for method in found if method.returns is None]
        return ast.ExternDecl(pos, name, type_params, methods, constructors, annotations=annotations)

    def _method(self, extern: str) -> ast.Method:
        annotations = self.annotations()
        abstract = self.accept("abstract")
        pos = self.pos
        if self.kind in NAMES and self.kinds[self.at + 1] == "(":
            name = self.name()
            if name != extern:
                raise self.fail(f"method {name!r} has no return type, and is no constructor of {extern!r}", pos)
            with self.scope():
                params = self.parameters()
            self.expect(";")
            return ast.Method(pos, name, [], None, params, annotations=annotations)
        pos, name, type_params, returns, params = self._prototype()
        self.expect(";")
        return ast.Method(pos, name, type_params, returns, params, abstract, annotations=annotations)

    def _prototype(self) -> tuple[int, str, list[ast.TypeParam], ast.TypeExpr, list[ast.Parameter]]:
        returns = self.type_ref()
        pos, name = self.named()
        if len(self.scopes) == 1:
            self.declare(name)
        with self.scope():
            return pos, name, self.type_params(), returns, self.parameters()

    def _action(self, annotations: list[ast.Annotation]) -> ast.ActionDecl:
        self.expect("action")
        pos, name = self.named()
        self.declare(name)
        with self.scope():
            params = self.parameters()
            body = self.block(self.annotations())
        return ast.ActionDecl(pos, name, params, body, annotations=annotations)

    # Parsers

    def _header(self) -> tuple[int, str, list[ast.TypeParam], list[ast.Parameter]]:
        """Parse `parser name<T>(params)` in the scope that the caller opened."""
        self.at += 1
        pos, name = self.named()
        self.scopes[0][name] = True
        return pos, name, self.type_params(), self.parameters()

    def _ctor_params(self) -> list[ast.Parameter]:
        return self.parameters() if self.kind == "(" else []

    def _parser(self, annotations: list[ast.Annotation]) -> ast.ParserTypeDecl | ast.ParserDecl:
        with self.scope():
            pos, name, type_params, params = self._header()
            if self.accept(";"):
                return ast.ParserTypeDecl(pos, name, type_params, params, annotations=annotations)
            ctor_params = self._ctor_params()
            self.expect("{")
            locals_: list[ast.Declaration] = []
            states: list[ast.ParserState] = []
            self.recovering(lambda: self._state_or_local(states, locals_))
            if not states:
                raise self.unexpected("a state")
            self.expect("}")
        return ast.ParserDecl(
            pos, name, params, ctor_params, locals_, states, type_params=type_params, annotations=annotations
        )

    def _state_or_local(self, states: list[ast.ParserState], locals_: list[ast.Declaration]) -> None:
        annotations = self.annotations()
        if self.kind == "state" and self.kinds[self.at + 1] in NAMES:
            states.append(self._state(annotations))
        elif states:
            raise self.unexpected("a state or '}'")
        else:
            locals_.append(self._parser_local(annotations))

    def _parser_local(self, annotations: list[ast.Annotation]) -> ast.Declaration:
        if self.kind == "const":
            return self.constant(annotations)
        if self.kind == "value_set":
            return self._value_set(annotations)
        if self.starts_declaration() or self.kind in NAMES:
            return self.variable_or_instance(annotations)
        raise self.unexpected("a declaration or a state")

    def _value_set(self, annotations: list[ast.Annotation]) -> ast.ValueSetDecl:
        self.expect("value_set")
        self.expect("<")
        element = self.type_ref()
        self.expect(">")
        self.expect("(")
        size = self.expression()
        self.expect(")")
        pos, name = self.named()
        self.expect(";")
        self.declare(name)
        return ast.ValueSetDecl(pos, name, element, size, annotations=annotations)

    def _state(self, annotations: list[ast.Annotation]) -> ast.ParserState:
        self.expect("state")
        pos, name = self.named()
        annotations += self.annotations()
        self.expect("{")
        statements: list[ast.Statement] = []
        transition: ast.Transition | ast.Select | None = None
        nesting = self.nesting
        with self.scope():
            while self.kind not in ("}", "end of file"):
                try:
                    if self.kind == "transition":
                        transition = self._transition()
                        if self.kind != "}":
                            raise self.unexpected("'}' after the transition")
                        break
                    statements.append(self.statement_or_declaration())
                except ParseError as error:
                    self.recover(error, nesting)
        self.expect("}")
        return ast.ParserState(pos, name, statements, transition, annotations=annotations)

    def _transition(self) -> ast.Transition | ast.Select:
        self.expect("transition")
        pos = self.pos
        if not self.accept("select"):
            name = self.name("the name of a state")
            self.expect(";")
            return ast.Transition(pos, name)
        self.expect("(")
        keys = self.separated(")", self.expression, trailing=True)
        self.expect("{")
        cases = self.recovering(self._select_case)
        self.expect("}")
        return ast.Select(pos, keys, cases)

    def _select_case(self) -> ast.SelectCase:
        pos, keysets = self.pos, self.keysets()
        self.expect(":")
        state = self.name("the name of a state")
        self.expect(";")
        return ast.SelectCase(pos, keysets, state)

    def keysets(self) -> list[ast.Expr]:
        """Parse `(k, l)` or a single keyset."""
        if self.kind == "(":
            several = self.attempt(self._tuple_keyset)
            if several is not None:
                return several
        return [self.keyset()]

    def _tuple_keyset(self) -> list[ast.Expr] | None:
        self.expect("(")
        result = [self.keyset()]
        while self.accept(","):
            result.append(self.keyset())
        self.expect(")")
        return result if self.kind == ":" else None

    # Controls and tables

    def _control(self, annotations: list[ast.Annotation]) -> ast.ControlTypeDecl | ast.ControlDecl:
        with self.scope():
            pos, name, type_params, params = self._header()
            if self.accept(";"):
                return ast.ControlTypeDecl(pos, name, type_params, params, annotations=annotations)
            ctor_params = self._ctor_params()
            self.expect("{")
            locals_ = self.recovering(lambda: self._control_local(self.annotations()), "apply")
            self.expect("apply")
            body = self.block(self.annotations())
            self.expect("}")
        return ast.ControlDecl(
            pos, name, params, ctor_params, locals_, body, type_params=type_params, annotations=annotations
        )

    def _control_local(self, annotations: list[ast.Annotation]) -> ast.Declaration:
        kind = self.kind
        if kind == "const":
            return self.constant(annotations)
        if kind == "action":
            return self._action(annotations)
        if kind == "table":
            return self._table(annotations)
        if self.starts_declaration() or kind in NAMES:
            return self.variable_or_instance(annotations)
        raise self.unexpected("a declaration or 'apply'")

    def _table(self, annotations: list[ast.Annotation]) -> ast.TableDecl:
        self.expect("table")
        pos, name = self.named()
        self.expect("{")
        self.declare(name)
        table = ast.TableDecl(pos, name, [], [], None, False, None, False, {}, annotations=annotations)
        seen: set[str] = set()
        if self.kind == "}":
            raise self.unexpected("a table property")
        self.recovering(lambda: self._table_property(table, seen))
        self.expect("}")
        if "actions" not in seen:
            self.report(pos, f"table {name!r} has no list of actions")
        return table

    def _table_property(self, table: ast.TableDecl, seen: set[str]) -> None:
        annotations = self.annotations()
        const = self.accept("const")
        pos, name = self.named("a table property")
        self.expect("=")
        if name in seen:
            self.report(pos, f"duplicate table property {name!r}")
        seen.add(name)
        if name in ("key", "actions"):
            if const:
                raise self.fail(f"table property {name!r} is constant anyway", pos)
            self.expect("{")
            if name == "key":
                while self.kind != "}":
                    table.keys.append(self._key())
            else:
                while self.kind != "}":
                    table.actions.append(self._action_ref(self.annotations(), ";"))
            self.expect("}")
        elif name == "entries":
            if "key" not in seen and self._key_follows():
                self.report(pos, "the entries of a table must come after its key")
            self.expect("{")
            table.const_entries = const
            table.entries_annotations = annotations
            table.entries = self.recovering(self._entry)
            self.expect("}")
        elif name == "default_action":
            table.const_default_action = const
            if "actions" not in seen:
                self.report(table.pos, "the default action of a table must come after the list of its actions")
            table.default_action = self._action_ref(annotations, ";")
        else:
            value = self.expression()
            self.expect(";")
            table.properties[name] = ast.TableProperty(pos, name, value, const, annotations)

    def _key_follows(self) -> bool:
        """Return whether a property `key` follows in this table."""
        depth, at = 0, self.at
        while depth >= 0 and self.kinds[at] != "end of file":
            kind = self.kinds[at]
            if depth == 0 and kind == "key" and self.kinds[at + 1] == "=":
                return True
            depth += (kind == "{") - (kind == "}")
            at += 1
        return False

    def _key(self) -> ast.TableKey:
        pos = self.pos
        expr = self.expression()
        self.expect(":")
        kind = self.name("a match kind")
        annotations = self.annotations()
        self.expect(";")
        return ast.TableKey(pos, expr, kind, annotations)

    def _action_ref(self, annotations: list[ast.Annotation], end: str | None) -> ast.ActionRef:
        pos = self.pos
        dot = "." if self.accept(".") else ""
        name = dot + self.name("the name of an action")
        args = self.arguments() if self.kind == "(" else None
        if end is not None:
            self.expect(end)
        return ast.ActionRef(pos, name, args, annotations)

    def _entry(self) -> ast.TableEntry:
        const = self.accept("const")
        priority: ast.Expr | None = None
        if self.kind == "priority" and self.kinds[self.at + 1] == "=":
            self.at += 2
            if self.accept("("):
                priority = self.expression()
                self.expect(")")
            else:
                priority = self.integer()
            self.expect(":")
        pos = self.pos
        keysets = self.keysets()
        self.expect(":")
        action = self._action_ref([], None)
        annotations = self.annotations()
        self.expect(";")
        return ast.TableEntry(pos, keysets, action, priority, const, annotations)
