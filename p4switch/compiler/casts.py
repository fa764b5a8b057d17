"""Pass that writes implicit conversions into the tree, for the passes after the checker.

The checker does not change the tree. It records in `facts` which expressions are constants, and
the type that each expression has in its context. This pass replaces expressions accordingly:

- A constant becomes a literal or an `EnumRef`.
- An implicit conversion becomes a `Cast`, and a cast to the operand's own type is removed.
- An initialiser gets a value for each field or element, in their order.
- An expression whose value is always that of one operand becomes that operand.
- A division by a power of two becomes a shift or a mask. A slice by width at a known position
becomes a slice by bounds.
"""

from __future__ import annotations

from collections.abc import Callable

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import Reporter
from p4switch.compiler.facts import Constant, default_constant
from p4switch.compiler.types import Type


def insert_casts(program: ast.Program, _: Reporter) -> None:
    """Write implicit conversions into the tree of a checked program, and into its bindings."""
    casts = _Casts(program)
    for declaration in program.declarations:
        casts.node(declaration)
    for binding in program.facts.bindings.values():
        if binding.receiver is not None:
            binding.receiver = casts.expr(binding.receiver)
        binding.bound = [None if value is None else casts.expr(value) for value in binding.bound]


class _Casts:
    def __init__(self, program: ast.Program) -> None:
        self._program = program
        self._facts = program.facts
        self._types = program.facts.types
        self._typed = program.facts.typed
        self._done: dict[ast.Expr, ast.Expr] = {}
        self._rules: dict[type[ast.Node], Callable[..., ast.Expr]] = {
            ast.WidthSlice: self._slice,
            ast.Unary: lambda e: e.operand if e.op == "+" else e,
            ast.Binary: self._binary,
            ast.Conditional: self._conditional,
            ast.Cast: self._cast,
            ast.ListExpr: self._list,
            ast.StructExpr: self._struct,
            ast.DefaultInit: lambda e: self._default(e.pos, self._types[e]),
        }

    def node(self, node: ast.Node) -> ast.Node:
        """Return the node that replaces `node`, after replacing its child nodes."""
        if isinstance(node, ast.Expr):
            return self.expr(node)
        if isinstance(node, ast.CallStatement) and node.call in self._facts.constants:
            return ast.Empty(node.pos)
        if not isinstance(node, ast.TypeExpr):
            ast.replace_parts(node, self.node)
        return node

    def expr(self, e: ast.Expr) -> ast.Expr:
        known = self._done.get(e)
        if known is not None:
            return known
        t, given = self._types[e], self._facts.uncast.get(e)
        if given is not None:
            self._types[e] = given
        value = self._facts.constants.get(e)
        if value is not None:
            result = self._literal(e.pos, value, self._types[e], self._base(e))
        else:
            ast.replace_parts(e, self.node)
            rule = self._rules.get(type(e))
            result = e if rule is None else rule(e)
        if given is not None:
            result = self._typed(ast.Cast(e.pos, None, result, True), t)
        self._done[e] = self._done[result] = result
        return result

    def _literal(self, pos: int, value: Constant, t: Type, base: int = 10) -> ast.Expr:
        if isinstance(value, ast.EnumMember):
            return self._typed(ast.EnumRef(pos, value), t)
        if isinstance(value, bool):
            return self._typed(ast.BoolLiteral(pos, value), t)
        if isinstance(value, str):
            return self._typed(ast.StringLiteral(pos, value), t)
        return self._typed(ast.IntLiteral(pos, value, base), t)

    def _base(self, e: ast.Expr) -> int:
        """Return the base in which the leftmost number of a constant is written."""
        if isinstance(e, ast.IntLiteral):
            return e.base
        if isinstance(e, (ast.Unary, ast.Cast)):
            return self._base(e.operand)
        if isinstance(e, ast.Binary):
            return self._base(e.left)
        decl = self._facts.decls.get(e)
        return self._base(decl.init) if isinstance(decl, ast.ConstDecl) else 10

    def _slice(self, e: ast.WidthSlice) -> ast.Expr:
        if not isinstance(e.low, ast.IntLiteral):
            return e
        assert isinstance(e.width, ast.IntLiteral)
        high = self._literal(e.low.pos, e.low.value + e.width.value - 1, types.INT)
        return self._typed(ast.Slice(e.pos, e.base, high, e.low), self._types[e])

    def _binary(self, e: ast.Binary) -> ast.Expr:
        if e.op in ("&&", "||"):
            return e.right if isinstance(e.left, ast.BoolLiteral) else e
        t = self._types[e]
        if e.op not in ("/", "%") or not isinstance(t, types.Bits):
            return e
        if isinstance(e.right, ast.IntLiteral) and e.right.value & (e.right.value - 1) == 0:
            if e.op == "%":
                return self._typed(ast.Binary(e.pos, "&", e.left, self._literal(e.right.pos, e.right.value - 1, t)), t)
            amount = self._literal(e.right.pos, e.right.value.bit_length() - 1, types.INT)
            return self._typed(ast.Binary(e.pos, ">>", e.left, amount), t)
        if isinstance(e.left, ast.IntLiteral) and e.left.value == 0:
            return self._typed(ast.Binary(e.pos, "&", e.right, e.left), t)  # 0, but the divisor is still evaluated
        return e

    def _conditional(self, e: ast.Conditional) -> ast.Expr:
        if isinstance(e.condition, ast.BoolLiteral):
            return e.then if e.condition.value else e.otherwise
        return e

    def _cast(self, e: ast.Cast) -> ast.Expr:
        t, given = self._types[e], self._types[e.operand]
        if t == given:
            return e.operand
        if not isinstance(t, types.Bits) or e.type_expr is None or self._types[e.type_expr] != types.INT:
            return e
        operand = e.operand
        if isinstance(given, types.Bits) and given.signed != t.signed and given.width != t.width:
            operand = self._typed(ast.Cast(e.pos, None, operand, True), types.Bits(t.width, given.signed))
        return self._typed(ast.Cast(e.pos, None, operand, True), t)

    def _list(self, e: ast.ListExpr) -> ast.Expr:
        t = self._types[e]
        if isinstance(t, types.Record):
            values = [*e.items, *(self._default(e.pos, f.type) for f in t.fields[len(e.items) :])]
            fields = [ast.NamedExpr(value.pos, f.name, value) for f, value in zip(t.fields, values, strict=True)]
            return self._typed(ast.StructExpr(e.pos, None, fields), t)
        if e.rest:
            e.rest = False
            if isinstance(t, types.Tuple):
                e.items += [self._default(e.pos, element) for element in t.elements[len(e.items) :]]
            elif isinstance(t, types.Stack):
                e.items += [self._default(e.pos, t.element) for _ in range(t.size - len(e.items))]
        return e

    def _struct(self, e: ast.StructExpr) -> ast.Expr:
        t = self._types[e]
        if isinstance(t, types.Record):
            given = {f.name: f for f in e.fields}
            e.fields = [
                given.get(f.name) or ast.NamedExpr(e.pos, f.name, self._default(e.pos, f.type)) for f in t.fields
            ]
        return e

    def _default(self, pos: int, t: Type) -> ast.Expr:
        """Return the default value of type `t` (language specification, section 7.3)."""
        value, base = default_constant(t, self._program), types.strip_newtype(t)
        if value is not None:
            return self._literal(pos, value, t)
        if isinstance(base, types.Enum):
            assert base.underlying is not None
            return self._typed(ast.Cast(pos, None, self._literal(pos, 0, base.underlying)), t)
        if isinstance(base, types.Struct):
            fields = [ast.NamedExpr(pos, f.name, self._default(pos, f.type)) for f in base.fields]
            return self._typed(ast.StructExpr(pos, None, fields), t)
        if isinstance(base, types.Tuple):
            return self._typed(ast.ListExpr(pos, [self._default(pos, element) for element in base.elements]), t)
        if isinstance(base, types.Stack):
            items = [self._default(pos, base.element) for _ in range(base.size)]
            return self._typed(ast.ListExpr(pos, items), t)
        return self._typed(ast.InvalidHeader(pos), t)
