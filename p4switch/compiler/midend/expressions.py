"""Lowering of expressions to scalar expressions without side effects; side effects are emitted as operations.

Operands are evaluated from left to right (language specification, section 8.1). If a later operand has side effects,
earlier operands are saved first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.facts import CallKind
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.storage import header_field, scalar_type
from p4switch.compiler.midend.values import (
    EXPRS,
    ElementPlace,
    HeaderValue,
    Ignored,
    ListValue,
    MovingSlicePlace,
    SlicePlace,
    StackValue,
    StructValue,
    Text,
    UnionValue,
    Value,
)
from p4switch.compiler.walk import parts

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering

_MAX_DEPTH, _MAX_SIZE = 40, 400  # limits of an expression that is passed to the target as a whole
_PURE_METHODS = {"isValid", "lookahead", "length", "minSizeInBits", "minSizeInBytes"}


@dataclass(slots=True, eq=False)
class Apart:
    """Value with the code that computes it: from the start of `first` to the end of `last`."""

    value: Value
    first: ir.Block
    last: ir.Block

    @property
    def takes_no_code(self) -> bool:
        return self.first is self.last and not self.first.ops and self.first.end is None


T = TypeVar("T", bound=Value)


class Expressions:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.facts = low.facts
        self._kinds: dict[type[ast.Expr], Callable[..., Value]] = {
            ast.IntLiteral: self._eval_int_literal,
            ast.BoolLiteral: self._eval_bool_literal,
            ast.StringLiteral: self._eval_string_literal,
            ast.EnumRef: self._eval_enum_ref,
            ast.Name: self._eval_name,
            ast.Member: self._eval_member,
            ast.Index: self._eval_index,
            ast.Slice: self._eval_slice,
            ast.WidthSlice: self._eval_width_slice,
            ast.Unary: self._eval_unary,
            ast.Binary: self._eval_binary,
            ast.Conditional: self._eval_conditional,
            ast.Cast: self._eval_cast,
            ast.Call: self._eval_call,
            ast.ListExpr: self._eval_list_expr,
            ast.StructExpr: self._eval_struct_expr,
            ast.InvalidHeader: self._eval_invalid_header,
            ast.DontCare: self._eval_dont_care,
        }
        self._effects: dict[ast.Node, bool] = {}
        self.known: dict[ast.Node, Value] = {}  # values of expressions that have already been evaluated

    # Effects

    def effects(self, node: ast.Node) -> bool:
        """Return whether the evaluation of `node` may change the values of other operands."""
        known = self._effects.get(node)
        if known is None:
            known = any(self.effects(p) for p in parts(node, self.facts))
            if isinstance(node, ast.Call):
                binding = self.facts.bindings[node]
                known |= not (binding.kind is CallKind.CONSTRUCTOR or binding.method in _PURE_METHODS)
            self._effects[node] = known
        return known

    def in_order(self, nodes: Sequence[ast.Expr | None]) -> Iterator[tuple[int, ast.Expr, bool]]:
        """Yield the expressions in `nodes` in the order of evaluation, which is the order of the source.

        Named arguments are evaluated in the order of the call, and fields of a struct in the order of the initialiser,
        even if they are declared in another order.

        Yields
        ------
        int, ast.Expr, bool
            The index in `nodes`, the node, and whether a later node may change the value of this one.
        """
        given = sorted(((i, n) for i, n in enumerate(nodes) if n is not None), key=lambda item: item[1].pos)
        last = max((rank for rank, (_, node) in enumerate(given) if self.effects(node)), default=-1)
        for rank, (i, node) in enumerate(given):
            yield i, node, rank < last

    def operands(self, nodes: Sequence[ast.Expr]) -> list[Value]:
        """Return the values of `nodes`, evaluated in the order of the source."""
        values: dict[int, Value] = {}
        for i, node, changes_later in self.in_order(nodes):
            value = self.expr(node)
            values[i] = self.low.copies.snapshot(value) if changes_later else value
        return [values[i] for i in range(len(nodes))]

    # Evaluation

    def apart(self, node: ast.Expr) -> Apart:
        """Return the value of `node`, with the code that computes it in blocks of its own.

        A deparser cannot branch. There the code is placed before both paths, and cannot fail.
        """
        first = ir.Block()
        if not self.low.site.branches:
            return Apart(self.expr(node), first, first)
        saved, self.low.code = self.low.code, first
        value = self.expr(node)
        last, self.low.code = self.low.code, saved
        return Apart(value, first, last)

    def expr(self, node: ast.Expr) -> Value:
        """Return the value of `node`; l-values evaluate to places."""
        if node in self.known:
            return self.known[node]
        self.low.work(node)
        value = self._kinds[type(node)](node)
        if not self.low.site.statements:
            return self.limited(value, node)
        if isinstance(value, ir.Op) and (value.depth > _MAX_DEPTH or value.size > _MAX_SIZE):
            return self.low.copies.saved(value)
        return value

    def limited(self, value: T, node: ast.Node) -> T:
        """Return `value`. Raises CompileError if it is too large for a control without temporaries."""
        if isinstance(value, ir.Op) and value.size > _MAX_SIZE:
            raise self.low.error(
                node,
                f"this expression takes over {_MAX_SIZE} operations: this target has no variables to hold its parts "
                "where checksums are computed",
            )
        return value

    def scalar(self, node: ast.Expr) -> ir.Expr:
        value = self.expr(node)
        if not isinstance(value, EXPRS):
            raise self.low.error(node, "a value of one number or bool is expected here")
        return value

    def constant(self, node: ast.Expr) -> ir.Const:
        value = self.scalar(node)
        if not isinstance(value, ir.Const):
            raise self.low.error(node, "a compile-time constant is expected here")
        return value

    def place(self, node: ast.Expr) -> Value:
        """Return the place of the l-value `node`."""
        if isinstance(node, ast.Slice):
            high, low = self.constant(node.high), self.constant(node.low)
            return SlicePlace(self.place(node.base), high.value, low.value)
        if isinstance(node, ast.WidthSlice):
            return MovingSlicePlace(self.place(node.base), self.scalar(node.low), self.constant(node.width).value)
        if isinstance(node, ast.Index):
            base, index = self.place(node.base), self.scalar(node.index)
            if isinstance(base, ListValue) and not isinstance(index, ir.Const):
                return ElementPlace(base, self.low.copies.saved(index))
            return self._item(base, index, node)
        if isinstance(node, ast.Member) and node in self.facts.fields:
            return self.select(self.place(node.base), node.name, node)
        return self.expr(node)

    def _eval_int_literal(self, node: ast.IntLiteral) -> Value:
        t = scalar_type(self.low.type_of(node))
        assert t is not None
        return fold.const(node.value, t)

    def _eval_bool_literal(self, node: ast.BoolLiteral) -> Value:
        return fold.boolean(node.value)

    def _eval_string_literal(self, node: ast.StringLiteral) -> Value:
        return Text(node.value)

    def _eval_enum_ref(self, node: ast.EnumRef) -> Value:
        t = scalar_type(self.low.type_of(node))
        assert t is not None
        return ir.Const(self.facts.values[node.decl], t, node.decl.name)

    def _eval_name(self, node: ast.Name) -> Value:
        decl = self.facts.decls[node]
        value = self.low.frame.lookup(decl)
        if value is not None:
            return value
        if isinstance(decl, ast.ConstDecl):
            return self.expr(decl.init)
        if isinstance(decl, ast.Instantiation):
            return self.low.instances.instance(decl)
        raise self.low.error(node, f"'{node.name}' cannot be used here on this target")

    def _eval_member(self, node: ast.Member) -> Value:
        if node not in self.facts.fields:
            base_type = self.low.type_of(node.base)
            if isinstance(base_type, types.ApplyResult):
                return self._control_flow(node)
            if isinstance(base_type, types.Stack):
                return self._stack_member(node)
        return self.select(self.expr(node.base), node.name, node)

    def select(self, base: Value, name: str, node: ast.Node) -> Value:
        """Return field `name` of `base`."""
        if isinstance(base, StructValue):
            return base.fields[name]
        if isinstance(base, ir.HeaderRef):
            if base.where == "next":
                raise self.low.error(node, f"'next' of stack '{base.stack}': this target can only extract to it")
            return header_field(base, name)
        if isinstance(base, UnionValue):
            return base.members[name]
        if isinstance(base, HeaderValue) and base.fields is not None and name in base.fields:
            return base.fields[name]
        raise self.low.error(node, f"field '{name}' cannot be read here on this target")

    def _stack_member(self, node: ast.Member) -> Value:
        base = self.expr(node.base)
        if not isinstance(base, StackValue):
            raise self.low.error(node, f"'{node.name}' is only supported on header stacks that are variables")
        if node.name == "lastIndex":
            return ir.LastIndex(base.ref.name)
        return self.element(base, None, node.name)

    def element(self, stack: StackValue, index: ir.Expr | None, where: str = "") -> Value:
        """Return the element at a run-time `index`, or `next` or `last`."""
        ref = stack.ref
        if isinstance(ref.element, types.Header):
            return ir.HeaderRef(ref.element, stack=ref.name, index=index, where=where)
        members = {}
        for i, f in enumerate(ref.element.fields):
            assert isinstance(f.type, types.Header)
            members[f.name] = ir.HeaderRef(f.type, "", ref.name, index, where, f.name, i)
        return UnionValue(ir.UnionRef(ref.element, ""), members)

    def _eval_index(self, node: ast.Index) -> Value:
        base, index = self.operands([node.base, node.index])
        assert isinstance(index, EXPRS)
        return self._item(base, index, node)

    def _item(self, base: Value, index: ir.Expr, node: ast.Index) -> Value:
        """Return the item of `base`, a place or a value, at `index`."""
        if isinstance(index, ir.Const):
            items: Sequence[Value] = ()
            if isinstance(base, StackValue):
                items = base.elements
            elif isinstance(base, ListValue):
                items = base.items
            elif isinstance(base, StructValue):
                items = list(base.fields.values())
            if not 0 <= index.value < len(items):
                raise self.low.error(node, f"index {index.value} is out of bounds: expected 0 to {len(items) - 1}")
            return items[index.value]
        if isinstance(base, StackValue):
            if not isinstance(index, (ir.FieldRef, ir.Param)):
                index = self.low.copies.saved(index)
            return self.element(base, index)
        if isinstance(base, ListValue) and base.items and all(isinstance(i, EXPRS) for i in base.items):
            return self.low.copies.dynamic_read(base, index)
        raise self.low.error(node, "an index known only at run time is not supported here")

    def _eval_slice(self, node: ast.Slice) -> Value:
        return fold.slice_(self.scalar(node.base), self.constant(node.high).value, self.constant(node.low).value)

    def _eval_width_slice(self, node: ast.WidthSlice) -> Value:
        base, low = self.operands([node.base, node.low])
        assert isinstance(low, EXPRS)
        return self.low.copies.read(MovingSlicePlace(base, low, self.constant(node.width).value))

    def _eval_unary(self, node: ast.Unary) -> Value:
        operand = self.scalar(node.operand)
        return fold.make("neg" if node.op == "-" else node.op, operand.type, operand)

    def _eval_binary(self, node: ast.Binary) -> Value:
        op = node.op
        if op in ("&&", "||"):
            return self._eval_short_circuit(node)
        left, right = self.operands([node.left, node.right])
        if op in ("==", "!=") and not (isinstance(left, EXPRS) and isinstance(right, EXPRS)):
            same = self.equal(left, right, node)
            return same if op == "==" else fold.make("!", types.BOOL, same)
        if not isinstance(left, EXPRS) or not isinstance(right, EXPRS):
            raise self.low.error(node, f"operands of '{op}' have to be numbers or bools")
        t = scalar_type(self.low.type_of(node))
        assert t is not None
        return self.low.copies.shifted(op, t, left, right) if op in ("<<", ">>") else fold.make(op, t, left, right)

    def _eval_short_circuit(self, node: ast.Binary) -> Value:
        if self.effects(node.right):
            return self._control_flow(node)
        left, right = self.scalar(node.left), self.apart(node.right)
        if right.takes_no_code:
            assert isinstance(right.value, EXPRS)
            return fold.make(node.op, types.BOOL, left, right.value)
        block = ir.Block()
        decided = Apart(fold.boolean(node.op == "||"), block, block)
        return self._choice(left, *((decided, right) if node.op == "||" else (right, decided)), types.BOOL, node)

    def _eval_conditional(self, node: ast.Conditional) -> Value:
        t = scalar_type(self.low.type_of(node))
        if t is None or isinstance(t, types.Varbit) or self.effects(node.then) or self.effects(node.otherwise):
            result = self.low.temp(self.low.type_of(node))
            yes, no, join = ir.Block(), ir.Block(), ir.Block()
            self.branch(node.condition, yes, no)
            for block, value in ((yes, node.then), (no, node.otherwise)):
                self.low.start(block)
                self.low.copies.assign(result, self.expr(value), node.pos)
                self.low.goto(join)
            self.low.start(join)
            return result
        condition = self.scalar(node.condition)
        then, otherwise = self.apart(node.then), self.apart(node.otherwise)
        if then.takes_no_code and otherwise.takes_no_code:
            assert isinstance(then.value, EXPRS)
            assert isinstance(otherwise.value, EXPRS)
            return fold.make("?:", t, condition, then.value, otherwise.value)
        return self._choice(condition, then, otherwise, t, node)

    def _choice(self, condition: ir.Expr, then: Apart, otherwise: Apart, t: types.Type, node: ast.Expr) -> Value:
        """Return the value of the operand that `condition` selects; only this operand is evaluated."""
        result, join = self.low.temp(t), ir.Block()
        self.low.branch_on(condition, then.first, otherwise.first, node.pos)
        for side in (then, otherwise):
            self.low.start(side.last)
            self.low.copies.assign(result, side.value, node.pos)
            self.low.goto(join)
        self.low.start(join)
        return result

    def _eval_cast(self, node: ast.Cast) -> Value:
        return self.convert(self.expr(node.operand), self.low.type_of(node), node)

    def convert(self, value: Value, t: types.Type, node: ast.Node) -> Value:
        """Return `value` as one of type `t`."""
        t = types.strip_newtype(t)
        scalar = scalar_type(t)
        if isinstance(value, EXPRS):
            if scalar is None:
                raise self.low.error(node, f"a cast to {t} is not supported here")
            return fold.cast(value, scalar)
        if isinstance(value, (StructValue, ListValue)):
            parts_ = list(value.fields.values()) if isinstance(value, StructValue) else value.items
            if isinstance(t, (types.Struct, types.Header)):
                fields = {f.name: self.convert(v, f.type, node) for f, v in zip(t.fields, parts_, strict=True)}
                return StructValue(t, fields) if isinstance(t, types.Struct) else self.header_value(t, fields)
            if isinstance(t, types.Tuple):
                elements = [self.convert(v, e, node) for e, v in zip(t.elements, parts_, strict=True)]
                return StructValue(t, {str(i): v for i, v in enumerate(elements)})
            if isinstance(t, (types.Stack, types.List)):
                return ListValue([self.convert(v, t.element, node) for v in parts_])
        return value

    def header_value(self, t: types.Header, fields: dict[str, Value]) -> HeaderValue:
        flat: dict[str, ir.Expr] = {}
        for name, value in fields.items():
            for path, leaf in self.low.copies.flatten(value, name):
                flat[path] = leaf
        return HeaderValue(t, flat)

    def _eval_call(self, node: ast.Call) -> Value:
        value = self.low.calls.call(node)
        if value is None:
            raise self.low.error(node, f"'{self.facts.bindings[node].method}' gives no value")
        return value

    def _eval_list_expr(self, node: ast.ListExpr) -> Value:
        values = self.operands(node.items)
        t = types.strip_newtype(self.low.type_of(node))
        if isinstance(t, (types.Stack, types.List)):
            return ListValue(values)
        return StructValue(t, {str(i): v for i, v in enumerate(values)})

    def _eval_struct_expr(self, node: ast.StructExpr) -> Value:
        values = self.operands([f.value for f in node.fields])
        fields = {f.name: v for f, v in zip(node.fields, values, strict=True)}
        t = types.strip_newtype(self.low.type_of(node))
        return self.header_value(t, fields) if isinstance(t, types.Header) else StructValue(t, fields)

    def _eval_invalid_header(self, node: ast.InvalidHeader) -> Value:
        t = self.low.type_of(node)
        return HeaderValue(t if isinstance(t, types.Header) else None, None)

    def _eval_dont_care(self, node: ast.DontCare) -> Value:
        return Ignored()

    # Conditions

    def _control_flow(self, node: ast.Expr) -> Value:
        """Return a bool whose evaluation needs branches."""
        result = self.low.temp(types.BOOL)
        yes, no, join = ir.Block(), ir.Block(), ir.Block()
        self.branch(node, yes, no)
        for block, value in ((yes, fold.TRUE), (no, fold.FALSE)):
            self.low.start(block)
            self.low.copies.assign(result, value, node.pos)
            self.low.goto(join)
        self.low.start(join)
        return result

    def branch(self, node: ast.Expr, yes: ir.Block, no: ir.Block) -> None:
        """End the current block with a branch: to `yes` if `node` is true, else to `no`."""
        if isinstance(node, ast.Unary) and node.op == "!":
            self.branch(node.operand, no, yes)
            return
        if isinstance(node, ast.Binary) and node.op in ("&&", "||") and self.effects(node.right):
            middle = ir.Block()
            if node.op == "&&":
                self.branch(node.left, middle, no)
            else:
                self.branch(node.left, yes, middle)
            self.low.start(middle)
            self.branch(node.right, yes, no)
            return
        if isinstance(node, ast.Member) and node.name in ("hit", "miss") and isinstance(node.base, ast.Call):
            hit, miss = (yes, no) if node.name == "hit" else (no, yes)
            self.low.tables.apply_table(node.base, hit, miss)
            return
        self.low.branch_on(self.scalar(node), yes, no, node.pos)

    def equal(self, a: Value, b: Value, node: ast.Node) -> ir.Expr:
        """Return whether `a` and `b` are equal (language specification, sections 8.11 to 8.18)."""
        if isinstance(a, EXPRS) and isinstance(b, EXPRS):
            return fold.make("==", types.BOOL, a, b)
        if isinstance(a, (StructValue, ListValue)) and isinstance(b, (StructValue, ListValue)):
            left = a.fields.values() if isinstance(a, StructValue) else a.items
            right = b.fields.values() if isinstance(b, StructValue) else b.items
            return fold.conjunction([self.equal(x, y, node) for x, y in zip(left, right, strict=True)])
        if isinstance(a, StackValue) and isinstance(b, StackValue):
            return fold.conjunction([self.equal(x, y, node) for x, y in zip(a.elements, b.elements, strict=True)])
        if isinstance(a, UnionValue) and isinstance(b, UnionValue):
            return fold.conjunction([self.equal(x, b.members[n], node) for n, x in a.members.items()])
        if isinstance(a, (ir.HeaderRef, HeaderValue)) and isinstance(b, (ir.HeaderRef, HeaderValue)):
            a, b = (self.low.copies.in_place(h, node.pos) if isinstance(h, ir.HeaderRef) else h for h in (a, b))
            return self._equal_headers(a, b)
        if isinstance(a, UnionValue) or isinstance(b, UnionValue):
            union, other = (a, b) if isinstance(a, UnionValue) else (b, a)
            if isinstance(union, UnionValue) and isinstance(other, HeaderValue) and other.fields is None:
                return fold.make("!", types.BOOL, self.low.copies.valid(union))
        raise self.low.error(node, "these cannot be compared on this target")

    def _equal_headers(self, a: ir.HeaderRef | HeaderValue, b: ir.HeaderRef | HeaderValue) -> ir.Expr:
        valid_a, valid_b = self.low.copies.valid(a), self.low.copies.valid(b)
        both_invalid = fold.make(
            "&&", types.BOOL, fold.make("!", types.BOOL, valid_a), fold.make("!", types.BOOL, valid_b)
        )
        fields_a, fields_b = self.low.copies.header_leaves(a), self.low.copies.header_leaves(b)
        if fields_a is None or fields_b is None:
            return both_invalid
        same = [fold.make("==", types.BOOL, fields_a[name], fields_b[name]) for name in fields_a]
        return fold.make("||", types.BOOL, both_invalid, fold.conjunction([valid_a, valid_b, *same]))
