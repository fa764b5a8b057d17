"""Parsing of expressions, types and annotations, and the token handling that all of the parser shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from p4switch.compiler import ast
from p4switch.compiler.lexer import KEYWORDS, Tokens
from p4switch.compiler.types import Bits

T = TypeVar("T")

MAX_NESTING = 150
"""Maximum nesting of expressions, types and statements."""
MAX_CHAIN = 1500
"""Maximum number of operators or selectors in a chain."""
MAX_DIGITS = 4000
MAX_DIMENSIONS = 8

NAMES = frozenset(("identifier", "actions", "apply", "entries", "key", "priority", "state", "type", "list"))
"""Kinds of tokens that can be names."""

_BASE_TYPES = frozenset(("bit", "int", "varbit", "bool", "string", "error", "match_kind", "tuple", "void"))
_SIMPLE_TYPES = frozenset(("bool", "string", "error", "match_kind", "void"))
_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "++": 9, "+": 9, "-": 9, "|+|": 9, "|-|": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_UNARY = frozenset("!~-+")
_BASES = {"x": 16, "X": 16, "b": 2, "B": 2, "o": 8, "O": 8, "d": 10, "D": 10}
_ESCAPE = re.compile(r'\\(["\\])')


class ParseError(Exception):
    """Syntax error at `pos`. It is caught at a place from which the parser can continue."""

    def __init__(self, pos: int, message: str) -> None:
        super().__init__(message)
        self.pos = pos
        self.message = message


class NestingError(ParseError):
    """Error for too deep nesting, after which the parser tries no other interpretation."""


class ExpressionParser:
    """Parser state: the position in the token list, and the names of types, on which P4's grammar depends."""

    def __init__(self, text: str, tokens: Tokens, report: Callable[[int, str], None]) -> None:
        self.text = text
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.positions = tokens.positions
        self.report = report
        self.at = 0
        self.nesting = 0
        self.scopes: list[dict[str, bool]] = [{}]

    # Tokens

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    @property
    def pos(self) -> int:
        return self.positions[self.at]

    def fail(self, message: str, pos: int | None = None) -> ParseError:
        """Return a syntax error to raise; `pos` is by default the present position."""
        return ParseError(self.pos if pos is None else pos, message)

    def unexpected(self, wanted: str) -> ParseError:
        """Return the error to raise if `wanted` was expected instead of the next token."""
        kind = self.kind
        if kind in ("identifier", "integer", "unexpected character"):
            got = f"{kind} {self.texts[self.at]!r}" if len(self.texts[self.at]) < 60 else kind
        elif kind in ("string literal", "end of file"):
            got = kind
        else:
            got = f"{kind!r}"
        return self.fail(f"expected {wanted}, not {got}")

    def accept(self, kind: str) -> bool:
        if self.kinds[self.at] == kind:
            self.at += 1
            return True
        return False

    def expect(self, kind: str) -> int:
        """Consume a token of that kind and return its position."""
        if self.kinds[self.at] != kind:
            raise self.unexpected(f"{kind!r}")
        self.at += 1
        return self.positions[self.at - 1]

    def name(self, what: str = "a name") -> str:
        if self.kinds[self.at] not in NAMES:
            raise self.unexpected(what)
        self.at += 1
        return self.texts[self.at - 1]

    def named(self, what: str = "a name") -> tuple[int, str]:
        """Return the position and the text of a name."""
        return self.pos, self.name(what)

    def separated(self, close: str, parse: Callable[[], T], *, trailing: bool = False) -> list[T]:
        """Parse elements separated by commas, and consume the token `close` after them.

        With `trailing`, a comma may precede `close`.
        """
        result: list[T] = []
        while self.kind != close:
            if result:
                self.expect(",")
                if trailing and self.kind == close:
                    break
            result.append(parse())
        self.at += 1
        return result

    def attempt(self, parse: Callable[[], T]) -> T | None:
        """Return `parse()`, or None without consuming tokens if it fails."""
        start, nesting = self.at, self.nesting
        try:
            result = parse()
        except NestingError:
            raise
        except ParseError:
            result = None
        if result is None:
            self.at, self.nesting = start, nesting
        return result

    def enter(self) -> None:
        """Enter a nesting level. The caller, or the recovery after an error, decrements `nesting` again."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise NestingError(self.pos, f"nested too deeply (more than {MAX_NESTING} levels)")

    # Names of types

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope for names, which is also closed after errors."""
        depth = len(self.scopes)
        self.scopes.append({})
        try:
            yield
        finally:
            del self.scopes[depth:]

    def declare(self, name: str, is_type: bool = False) -> None:
        self.scopes[-1][name] = is_type

    def is_type(self, name: str) -> bool:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return False

    def starts_type(self) -> bool:
        """Return whether the next token shows that a type follows."""
        kind = self.kind
        if kind in _BASE_TYPES:
            return not (kind == "error" and self.kinds[self.at + 1] == ".")
        if kind == "list":
            return self.kinds[self.at + 1] == "<"
        if kind == ".":
            return self.scopes[0].get(self.texts[self.at + 1], False)
        return kind == "identifier" and self.is_type(self.texts[self.at])

    # Types

    def type_ref(self) -> ast.TypeExpr:
        """Parse a type, including stack sizes."""
        self.enter()
        result = self._type_without_size()
        dimensions = 0
        while self.kind == "[":
            result = self._stack_type(result)
            dimensions += 1
            if dimensions > MAX_DIMENSIONS:
                raise self.fail(f"a stack cannot have more than {MAX_DIMENSIONS} dimensions")
        self.nesting -= 1
        return result

    def declarator(self, type_expr: ast.TypeExpr) -> tuple[int, str, ast.TypeExpr]:
        """Parse `name` or `name[size]`; return position, name and complete type."""
        pos, name = self.named()
        sizes: list[tuple[int, ast.Expr]] = []
        while self.kind == "[":
            at = self.expect("[")
            sizes.append((at, self.expression()))
            self.expect("]")
            if len(sizes) > MAX_DIMENSIONS:
                raise self.fail(f"a stack cannot have more than {MAX_DIMENSIONS} dimensions")
        for at, size in reversed(sizes):
            type_expr = ast.StackTypeExpr(at, type_expr, size)
        return pos, name, type_expr

    def _stack_type(self, element: ast.TypeExpr) -> ast.TypeExpr:
        self.expect("[")
        size = self.expression()
        self.expect("]")
        return ast.StackTypeExpr(element.pos, element, size)

    def _type_without_size(self) -> ast.TypeExpr:
        kind, pos = self.kind, self.pos
        if kind in _SIMPLE_TYPES:
            self.at += 1
            return ast.SimpleTypeExpr(pos, kind)
        if kind in ("bit", "int", "varbit"):
            self.at += 1
            if self.kind != "<":
                if kind == "varbit":
                    raise self.unexpected("'<'")
                return ast.SimpleTypeExpr(pos, "int") if kind == "int" else ast.SizedTypeExpr(pos, "bit", None)
            self.expect("<")
            width = self._conditional(no_greater=True)
            self.expect(">")
            return ast.SizedTypeExpr(pos, kind, width)
        if kind == "tuple":
            self.at += 1
            return ast.TupleTypeExpr(pos, self.type_args())
        if kind == "list" and self.kinds[self.at + 1] == "<":
            self.at += 1
            args = self.type_args()
            if len(args) != 1:
                raise self.fail("list needs one type argument", pos)
            return ast.ListTypeExpr(pos, args[0])
        absolute = self.accept(".")
        pos, name = self.named("a type")
        args = self.type_args() if self.kind == "<" else []
        return ast.NamedTypeExpr(pos, name, args, absolute)

    def type_args(self) -> list[ast.TypeExpr]:
        """Return the type arguments of `<T, U>`."""
        self.expect("<")
        return self.separated(">", self._type_arg)

    def _type_arg(self) -> ast.TypeExpr:
        return ast.SimpleTypeExpr(self.expect("_"), "_") if self.kind == "_" else self.type_ref()

    # Expressions

    def expression(self) -> ast.Expr:
        return self._conditional()

    def keyset(self) -> ast.Expr:
        """Return an expression, mask, range, `_` or `default`."""
        pos = self.pos
        if self.accept("default"):
            return ast.DefaultExpr(pos)
        if self.accept("_"):
            return ast.DontCare(pos)
        value = self.expression()
        if self.accept("&&&"):
            return ast.Mask(value.pos, value, self.expression())
        if self.accept(".."):
            return ast.Range(value.pos, value, self.expression())
        return value

    def arguments(self) -> list[ast.Argument]:
        """Return the arguments of `(a, name = b, _)`."""
        self.expect("(")
        return self.separated(")", self._argument)

    def _argument(self) -> ast.Argument:
        pos, name = self.pos, None
        if self.kind in NAMES and self.kinds[self.at + 1] == "=":
            name = self.name()
            self.expect("=")
        value = ast.DontCare(self.expect("_")) if self.kind == "_" else self.expression()
        return ast.Argument(pos, name, value)

    def _conditional(self, no_greater: bool = False) -> ast.Expr:
        self.enter()
        result = self._binary(1, no_greater)
        if self.accept("?"):
            then = self._conditional()
            self.expect(":")
            result = ast.Conditional(result.pos, result, then, self._conditional(no_greater))
        self.nesting -= 1
        return result

    def _binary(self, level: int, no_greater: bool) -> ast.Expr:
        left = self._unary()
        kinds = self.kinds
        length = 0
        while True:
            op = kinds[self.at]
            width = 1
            if op == ">":
                if no_greater:
                    return left
                if kinds[self.at + 1] == ">" and self.positions[self.at + 1] == self.positions[self.at] + 1:
                    op, width = ">>", 2
                elif kinds[self.at + 1] == ">=" and self.positions[self.at + 1] == self.positions[self.at] + 1:
                    return left  # `>>=`
            precedence = _PRECEDENCE.get(op, 0)
            if precedence < level:
                return left
            length += 1
            if length > MAX_CHAIN:
                raise self.fail(f"the expression is too long (more than {MAX_CHAIN} operators)")
            self.at += width
            right = self._binary(precedence + 1, no_greater)
            left = ast.Binary(left.pos, op, left, right)

    def _unary(self) -> ast.Expr:
        kind = self.kind
        if kind in _UNARY:
            pos = self.pos
            self.at += 1
            self.enter()
            operand = self._unary()
            self.nesting -= 1
            return ast.Unary(pos, kind, operand)
        if kind == "(":
            pos = self.pos
            self.at += 1
            if self.starts_type():
                target = self.attempt(self._cast_target)
                if target is not None:
                    self.enter()
                    operand = self._unary()
                    self.nesting -= 1
                    return ast.Cast(pos, target, operand)
            inner = self.expression()
            self.expect(")")
            return self._postfix(inner)
        return self._postfix(self._primary())

    def _cast_target(self) -> ast.TypeExpr:
        result = self.type_ref()
        self.expect(")")
        return result

    def _postfix(self, base: ast.Expr) -> ast.Expr:
        length = 0
        while True:
            kind = self.kind
            if kind == ".":
                self.at += 1
                base = ast.Member(base.pos, base, self.name("the name of a member"))
            elif kind == "[":
                base = self._index(base)
            elif kind == "(":
                base = ast.Call(base.pos, base, [], self.arguments())
            elif kind == "<" and isinstance(base, (ast.Name, ast.Member)):
                type_args = self.attempt(self._call_type_args)
                if type_args is None:
                    return base
                base = ast.Call(base.pos, base, type_args, self.arguments())
            else:
                return base
            length += 1
            if length > MAX_CHAIN:
                raise self.fail(f"the expression is too long (more than {MAX_CHAIN} selectors)")

    def _call_type_args(self) -> list[ast.TypeExpr] | None:
        """Return the `<T>` before `(`; None if `<` is a comparison."""
        self.expect("<")
        if not (self.starts_type() or self.kind in ("_", ">")):
            return None
        self.at -= 1
        args = self.type_args()
        return args if self.kind == "(" else None

    def _index(self, base: ast.Expr) -> ast.Expr:
        self.expect("[")
        first = self.expression()
        result: ast.Expr
        if self.accept(":"):
            result = ast.Slice(base.pos, base, first, self.expression())
        elif self.accept("+:"):
            result = ast.WidthSlice(base.pos, base, first, self.expression())
        else:
            result = ast.Index(base.pos, base, first)
        self.expect("]")
        return result

    def _primary(self) -> ast.Expr:
        kind, pos = self.kind, self.pos
        if kind in NAMES:
            if self.kinds[self.at + 1] == "<" and self.starts_type():
                type_expr = self.attempt(self._type_before_dot)
                if type_expr is not None:
                    return ast.TypeName(pos, type_expr)
            return ast.Name(pos, self.name())
        if kind == "integer":
            return self.integer()
        self.at += 1
        if kind == ".":
            return ast.Name(pos, self.name(), absolute=True)
        if kind == "string literal":
            return ast.StringLiteral(pos, _ESCAPE.sub(r"\1", self.texts[self.at - 1]))
        if kind in ("true", "false"):
            return ast.BoolLiteral(pos, kind == "true")
        if kind == "{":
            return self._braces(pos)
        if kind == "{#}":
            return ast.InvalidHeader(pos)
        if kind == "...":
            return ast.DefaultInit(pos)
        if kind == "this":
            return ast.This(pos)
        if kind == "error" and self.kind == ".":
            return ast.TypeName(pos, ast.SimpleTypeExpr(pos, "error"))
        self.at -= 1
        raise self.unexpected("an expression")

    def _type_before_dot(self) -> ast.TypeExpr | None:
        result = self.type_ref()
        return result if self.kind == "." else None

    def _braces(self, pos: int) -> ast.Expr:
        """Parse a list or struct initialiser after its `{`."""
        if self.kind in NAMES and self.kinds[self.at + 1] == "=":
            fields: list[ast.NamedExpr] = []
            rest = False
            while self.kind != "}":
                if self.accept("..."):
                    rest = True
                    self.accept(",")
                    break
                at = self.pos
                name = self.name("the name of a field")
                self.expect("=")
                fields.append(ast.NamedExpr(at, name, self.expression()))
                if self.kind != "}":
                    self.expect(",")
            self.expect("}")
            return ast.StructExpr(pos, None, fields, rest)
        items = self.separated("}", self.expression, trailing=True)
        rest = bool(items) and isinstance(items[-1], ast.DefaultInit)
        if rest:
            items.pop()
        return ast.ListExpr(pos, items, rest)

    def integer(self) -> ast.IntLiteral:
        if self.kind != "integer":
            raise self.unexpected("an integer")
        pos, text = self.pos, self.texts[self.at]
        self.at += 1
        digits = text.replace("_", "")
        width = ""
        sign = next((c for c in "ws" if c in digits), None)
        if sign is not None:
            width, _, digits = digits.partition(sign)
        base = 10
        if len(digits) > 1 and digits[0] == "0" and digits[1] in _BASES:
            base = _BASES[digits[1]]
            digits = digits[2:]
        if not digits:
            raise self.fail(f"{text!r} has no digits", pos)
        if len(digits) > MAX_DIGITS or len(width) > 9:
            raise self.fail(f"the number is too long (more than {MAX_DIGITS} digits)", pos)
        prefix = None if sign is None else Bits(int(width), sign == "s")
        return ast.IntLiteral(pos, int(digits, base), base, prefix)

    # Annotations

    def annotations(self) -> list[ast.Annotation]:
        result: list[ast.Annotation] = []
        while self.kind == "@":
            pos = self.expect("@")
            if self.kind != "identifier" and self.kind not in KEYWORDS:
                raise self.unexpected("the name of an annotation")
            name = self.texts[self.at]
            self.at += 1
            if name == "pragma":
                result.append(self._pragma(pos))
            elif self.kind == "(":
                result.append(self._unstructured(pos, name))
            elif self.kind == "[":
                result.append(self._structured(pos, name))
            else:
                result.append(ast.Annotation(pos, name))
        return result

    def _raw(self, start: int, end: int) -> list[str]:
        """Return the texts of tokens `start` to `end`. Strings keep their quotes."""
        return [f'"{self.texts[i]}"' if self.kinds[i] == "string literal" else self.texts[i] for i in range(start, end)]

    def _unstructured(self, pos: int, name: str) -> ast.Annotation:
        self.expect("(")
        start, depth = self.at, 1
        while depth:
            kind = self.kind
            if kind == "end of file":
                raise self.fail(f"the parenthesis of annotation @{name} is never closed", pos)
            depth += (kind == "(") - (kind == ")")
            self.at += 1
        end = self.at - 1
        args = self._annotation_args(start, end)
        return ast.Annotation(pos, name, False, self._raw(start, end), args)

    def _annotation_args(self, start: int, end: int) -> list[ast.Expr] | None:
        """Parse tokens `start` to `end` as a list of expressions; return None if they are no such list."""
        after, nesting = self.at, self.nesting
        self.at = start
        args: list[ast.Expr] | None = []
        try:
            while self.at < end:
                if args:
                    self.expect(",")
                assert args is not None
                args.append(self.expression())
        except ParseError:
            args = None
        exact = self.at == end
        self.at, self.nesting = after, nesting
        return args if exact else None

    def _structured(self, pos: int, name: str) -> ast.Annotation:
        start = self.at + 1
        self.expect("[")
        args: list[ast.Expr] | None = None
        pairs: dict[str, ast.Expr] | None = None
        if self.kind in NAMES and self.kinds[self.at + 1] == "=":
            pairs = {}
            while self.kind != "]":
                at = self.pos
                key = self.name()
                if key in pairs:
                    raise self.fail(f"duplicate key {key!r} in annotation @{name}", at)
                self.expect("=")
                pairs[key] = self.expression()
                if self.kind != "]":
                    self.expect(",")
            self.expect("]")
        else:
            args = self.separated("]", self.expression, trailing=True)
        return ast.Annotation(pos, name, True, self._raw(start, self.at - 1), args, pairs)

    def _pragma(self, pos: int) -> ast.Annotation:
        """Parse `@pragma name tokens`, up to the end of the line."""
        name = self.texts[self.at]
        if self.kind != "identifier" and self.kind not in KEYWORDS:
            raise self.unexpected("the name of an annotation")
        self.at += 1
        end_of_line = self.text.find("\n", pos)
        start = self.at
        while self.kind != "end of file" and self.pos < end_of_line:
            self.at += 1
        return ast.Annotation(pos, name, False, self._raw(start, self.at), self._annotation_args(start, self.at))
