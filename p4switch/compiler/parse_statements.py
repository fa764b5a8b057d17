"""Parsing of statements and of the declarations that may occur among them."""

from __future__ import annotations

import copy
from collections.abc import Callable

from p4switch.compiler import ast
from p4switch.compiler.parse_expressions import MAX_CHAIN, NAMES, ExpressionParser, ParseError, T

_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="))

_SIMPLE: dict[str, type[ast.Exit] | type[ast.Break] | type[ast.Continue]] = {
    "exit": ast.Exit,
    "break": ast.Break,
    "continue": ast.Continue,
}


class StatementParser(ExpressionParser):
    # Recovery

    def recover(self, error: ParseError, nesting: int) -> None:
        """Report the error and skip past the next `;`, or to the `}` that closes the current block."""
        self.report(error.pos, error.message)
        self.nesting = nesting
        depth = 0
        while True:
            kind = self.kind
            if kind == "end of file" or (kind == "}" and depth == 0):
                return
            depth += (kind == "{") - (kind == "}")
            self.at += 1
            if depth == 0 and kind in (";", "}"):
                return

    def recovering(self, parse: Callable[[], T], *ends: str) -> list[T]:
        """Parse elements up to a closing brace or one of `ends`; those with errors are reported and skipped."""
        result: list[T] = []
        nesting = self.nesting
        while self.kind not in ("}", "end of file", *ends):
            try:
                result.append(parse())
            except ParseError as error:
                self.recover(error, nesting)
        return result

    # Blocks

    def block(self, annotations: list[ast.Annotation] | None = None) -> ast.Block:
        pos = self.expect("{")
        with self.scope():
            statements = self.recovering(self.statement_or_declaration)
        self.expect("}")
        return ast.Block(pos, statements, annotations or [])

    def statement_or_declaration(self) -> ast.Statement:
        annotations = self.annotations()
        if self.kind == "const":
            return self.constant(annotations)
        if self.starts_declaration():
            decl = self.variable_or_instance(annotations)
            if isinstance(decl, ast.Instantiation):
                self.report(decl.pos, "an instance cannot be made inside a block: declare it beside the actions")
                return ast.Empty(decl.pos)
            return decl
        return self.statement(annotations)

    def statement(self, annotations: list[ast.Annotation] | None = None) -> ast.Statement:
        self.enter()
        result = self._statement(annotations or self.annotations())
        self.nesting -= 1
        return result

    def _statement(self, annotations: list[ast.Annotation]) -> ast.Statement:
        kind, pos = self.kind, self.pos
        if kind == "{":
            return self.block(annotations)
        if kind == "for":
            return self._for(annotations)
        if annotations:
            raise self.fail("an annotation cannot stand before this statement", annotations[0].pos)
        if kind == "if":
            return self._if()
        if kind == "switch":
            return self._switch()
        if kind in NAMES or kind in (".", "this", "("):
            result = self._assignment_or_call()
            self.expect(";")
            return result
        self.at += 1
        if kind == ";":
            return ast.Empty(pos)
        if kind == "return":
            value = None if self.kind == ";" else self.expression()
            self.expect(";")
            return ast.Return(pos, value)
        simple = _SIMPLE.get(kind)
        if simple is not None:
            self.expect(";")
            return simple(pos)
        self.at -= 1
        raise self.unexpected("a statement")

    def _assignment_or_call(self) -> ast.Assign | ast.CallStatement:
        target = self._unary()
        pos, kind = self.pos, self.kind
        if kind in _ASSIGNMENTS:
            self.at += 1
            return self._assignment(pos, target, kind[:-1])
        if kind == ">" and self.kinds[self.at + 1] == ">=":
            self.at += 2
            return self._assignment(pos, target, ">>")
        if isinstance(target, ast.Call):
            return ast.CallStatement(target.pos, target)
        raise self.unexpected("'=' or a call")

    def _assignment(self, pos: int, target: ast.Expr, op: str) -> ast.Assign:
        """Parse the value of an assignment. `target op= value` becomes `target = target op value`."""
        value = self.expression()
        if op and isinstance(target, ast.WidthSlice):
            self.report(pos, f"'{op}=' cannot be applied to a slice given by its width")
        return ast.Assign(pos, target, ast.Binary(target.pos, op, copy.deepcopy(target), value) if op else value)

    def _if(self) -> ast.If:
        """Parse an `if`. A chain of `else if` is parsed without nesting."""
        first: ast.If | None = None
        last: ast.If | None = None
        for _ in range(MAX_CHAIN):
            pos = self.expect("if")
            self.expect("(")
            condition = self.expression()
            self.expect(")")
            current = ast.If(pos, condition, self.statement(), None)
            if last is None:
                first = current
            else:
                last.otherwise = current
            last = current
            assert first is not None
            if not self.accept("else"):
                return first
            if self.kind != "if":
                last.otherwise = self.statement()
                return first
        raise self.fail(f"more than {MAX_CHAIN} 'else if' in a row")

    def _switch(self) -> ast.Switch:
        pos = self.expect("switch")
        self.expect("(")
        value = self.expression()
        self.expect(")")
        self.expect("{")
        cases: list[ast.SwitchCase] = []
        while self.kind != "}":
            at = self.pos
            label = ast.DefaultExpr(at) if self.accept("default") else self.expression()
            self.expect(":")
            body = self.block(self.annotations()) if self.kind in ("{", "@") else None
            cases.append(ast.SwitchCase(at, label, body))
        self.expect("}")
        return ast.Switch(pos, value, cases)

    def _for(self, annotations: list[ast.Annotation]) -> ast.For | ast.ForIn:
        pos = self.expect("for")
        self.expect("(")
        with self.scope():
            in_variable = self.attempt(self._for_in_variable)
            if in_variable is not None:
                values = self.expression()
                if self.accept(".."):
                    values = ast.Range(values.pos, values, self.expression())
                self.expect(")")
                return ast.ForIn(pos, in_variable, values, self.statement(), annotations)
            init = self.separated(";", self._for_init)
            condition = self.expression()
            self.expect(";")
            update: list[ast.Statement] = [*self.separated(")", self._assignment_or_call)]
            return ast.For(pos, init, condition, update, self.statement(), annotations)

    def _for_in_variable(self) -> ast.VarDecl:
        annotations = self.annotations()
        type_expr = self.type_ref()
        pos, name = self.named()
        self.expect("in")
        self.declare(name)
        return ast.VarDecl(pos, name, type_expr, annotations=annotations)

    def _for_init(self) -> ast.Statement:
        annotations = self.annotations()
        if not self.starts_declaration():
            return self._assignment_or_call()
        return self._variable(annotations, self.type_ref())

    # Declarations

    def starts_declaration(self) -> bool:
        """Return whether `type name` or `type(args) name` follows, rather than an assignment or a call."""
        kind = self.kind
        if kind not in NAMES and kind != ".":
            return self.starts_type()
        following = self.kinds[self.at + (1 if kind != "." else 2)]
        if following in NAMES:
            return True
        if following in ("[", "(", "<"):
            known = self.starts_type()
            if following == "<" or (following == "[" and known):
                return self.attempt(self._declaration_ahead) is not None
            return known
        return False

    def _declaration_ahead(self) -> bool | None:
        start = self.at
        known = self.starts_type()
        self.type_ref()
        yes = self.kind in NAMES or (known and self.kind == "(")
        self.at = start
        return True if yes else None

    def constant(self, annotations: list[ast.Annotation]) -> ast.ConstDecl:
        self.expect("const")
        pos, name, type_expr = self.declarator(self.type_ref())
        self.expect("=")
        init = self.expression()
        self.expect(";")
        self.declare(name)
        return ast.ConstDecl(pos, name, type_expr, init, annotations=annotations)

    def variable_or_instance(self, annotations: list[ast.Annotation]) -> ast.VarDecl | ast.Instantiation:
        type_expr = self.type_ref()
        if self.kind == "(":
            return self.instantiation(annotations, type_expr)
        decl = self._variable(annotations, type_expr)
        self.expect(";")
        return decl

    def _variable(self, annotations: list[ast.Annotation], type_expr: ast.TypeExpr) -> ast.VarDecl:
        pos, name, type_expr = self.declarator(type_expr)
        init = self.expression() if self.accept("=") else None
        self.declare(name)
        return ast.VarDecl(pos, name, type_expr, init, annotations=annotations)

    def instantiation(self, annotations: list[ast.Annotation], type_expr: ast.TypeExpr) -> ast.Instantiation:
        """Parse the rest of an instantiation, from its `(` on."""
        args = self.arguments()
        pos, name = self.named()
        result = ast.Instantiation(pos, name, type_expr, args, annotations=annotations)
        if self.accept("="):
            self.expect("{")
            with self.scope():
                while self.kind != "}":
                    member = self.function_or_instance(self.annotations())
                    if isinstance(member, ast.FunctionDecl):
                        result.methods.append(member)
                    else:
                        result.instances.append(member)
            self.expect("}")
        self.expect(";")
        self.declare(name)
        return result

    def function_or_instance(self, annotations: list[ast.Annotation]) -> ast.FunctionDecl | ast.Instantiation:
        returns = self.type_ref()
        if self.kind == "(":
            return self.instantiation(annotations, returns)
        pos, name = self.named()
        self.declare(name)
        with self.scope():
            type_params = self.type_params()
            params = self.parameters()
            body = self.block()
        return ast.FunctionDecl(pos, name, type_params, returns, params, body, annotations=annotations)

    def type_params(self) -> list[ast.TypeParam]:
        """Parse `<T, U>`, if present; each name is declared as a type."""
        return self.separated(">", self._type_param) if self.accept("<") else []

    def _type_param(self) -> ast.TypeParam:
        pos, name = self.named("the name of a type parameter")
        self.declare(name, True)
        return ast.TypeParam(pos, name)

    def parameters(self) -> list[ast.Parameter]:
        self.expect("(")
        return self.separated(")", self._parameter)

    def _parameter(self) -> ast.Parameter:
        annotations = self.annotations()
        direction = ast.Direction.NONE
        if self.kind in ("in", "out", "inout"):
            direction = ast.Direction(self.kind)
            self.at += 1
        pos, name, type_expr = self.declarator(self.type_ref())
        default = self.expression() if self.accept("=") else None
        self.declare(name)
        return ast.Parameter(pos, name, direction, type_expr, default, annotations=annotations)
