"""Conversions: implicit and explicit casts, initialisers, default values (language specification, section 8.11 on)."""

from __future__ import annotations

from p4switch.bits.domain import fits, wrap
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.facts import Constant, default_constant
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.sizes import PartCounts
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.types import Type

MAX_DEFAULTS = 10_000
"""Maximum number of fields and elements that `...` may stand for."""


class Conversions:
    def __init__(self, ctx: Checking, part_counts: PartCounts, values: Values) -> None:
        self.ctx = ctx
        self.part_counts = part_counts
        self.values = values
        self.facts = ctx.facts
        self.types = ctx.facts.types
        self.constants = ctx.facts.constants

    def convert(self, e: ast.Expr, target: Type, what: str = "") -> Type:
        """Convert the checked expression `e` implicitly to `target`, and return that type; report a failure.

        `what` names the part of the program that requires the type, for the message.
        """
        given, meant = self.types[e], self.values.meant(e)
        if isinstance(given, types.Unknown) or isinstance(target, types.Unknown):
            return given
        if meant is not e:
            self.convert(meant, target, what)
            return self.facts.same(e, meant)
        if given == target and not isinstance(e, (ast.ListExpr, ast.StructExpr)):
            return target
        if self._converted(e, target):
            return self.types[e]
        self.ctx.error(e, f"expected {target}{' for ' + what if what else ''}, not {self.ctx.describe(e)}")
        return self.facts.type(e, types.UNKNOWN)

    def as_bits(self, e: ast.Expr) -> Type:
        """Convert `e`, if it is a serializable enum, to its representation; return the type of `e` afterwards."""
        t = self.types[e]
        if isinstance(t, types.Enum) and t.underlying is not None:
            return self.convert(e, t.underlying)
        return t

    def _converted(self, e: ast.Expr, target: Type) -> bool:
        """Convert `e` to `target`; return whether that is possible. Errors within `e` are reported."""
        t = self.types[e]
        if isinstance(e, ast.DefaultInit):
            self._check_default(e, target)
        elif isinstance(e, ast.ListExpr):
            return self._convert_list(e, target)
        elif isinstance(e, ast.StructExpr):
            return self._convert_struct(e, target)
        elif isinstance(e, ast.InvalidHeader) and isinstance(t, types.AnonRecord):
            if not isinstance(target, (types.Header, types.Union)):
                return False
        elif isinstance(t, types.InfInt) and isinstance(target, types.Bits):
            self.sized(e, target)
        elif isinstance(t, types.InfInt) and isinstance(target, types.NewType) and e in self.constants:
            # The specification requires a cast, but p4c accepts the literal, and existing programs rely on that.
            bits = types.strip_newtype(target)
            if not isinstance(bits, types.Bits):
                return False
            self.literal_as(e, bits)
        elif isinstance(t, types.Enum) and t.underlying is not None and t.underlying == target:
            self._implicitly_cast(e, target)
        elif isinstance(e, ast.Conditional) and isinstance(t, (types.Tuple, types.AnonRecord, types.InfInt)):
            self.convert(e.then, target)
            self.convert(e.otherwise, target)
        elif not (t == target or (e in self.constants and isinstance(t, types.Bits) and target == types.INT)):
            return False
        self.types[e] = target
        return True

    def _implicitly_cast(self, e: ast.Expr, target: Type) -> None:
        value = self.constants.get(e)
        if isinstance(value, ast.EnumMember):
            self.constants[e] = self.facts.values[value]
        else:
            self.facts.uncast[e] = self.types[e]
        self.types[e] = target

    def literal_as(self, e: ast.Expr, t: types.Bits) -> None:
        """Convert a constant of type `int` to type `t`; warn if bits are lost."""
        value = self.facts.integer(e)
        assert value is not None
        self.facts.constant(e, self._fitted(e, value, t), t)

    def _fitted(self, e: ast.Expr, value: int, t: types.Bits) -> int:
        """Return the value of `e` truncated to the range of `t`; warn if bits are lost."""
        if fits(value, t):
            return value
        wrapped = wrap(value, t)
        # Negative numbers for unsigned types, and large masks for signed types, stand for their bit patterns.
        if value >= 1 << t.width or value < -(1 << max(t.width - 1, 0)):
            self.ctx.warn(e, f"{value} does not fit in {t}: it becomes {wrapped}")
        return wrapped

    def sized(self, e: ast.Expr, t: types.Bits) -> None:
        """Convert an expression of type `int` to type `t`, modulo 2**width.

        A value that is known only at run time, as in `(bit<8>)((int)x + 1)`, is computed in `t` throughout.
        """
        meant = self.values.meant(e)
        if meant is not e:
            self.sized(meant, t)
            self.facts.same(e, meant)
        elif e in self.constants:
            self.literal_as(e, t)
        elif isinstance(e, ast.Binary) and e.op in ("+", "-", "*", "&", "|", "^"):
            self.sized(e.left, t)
            self.sized(e.right, t)
        elif isinstance(e, ast.Unary):
            self.sized(e.operand, t)
        elif not (isinstance(e, ast.Cast) and isinstance(self.types[e.operand], types.Bits)):
            self._implicitly_cast(e, t)
        self.types[e] = t

    def _convert_list(self, e: ast.ListExpr, target: Type) -> bool:
        if not isinstance(self.types[e], types.Tuple):  # it is converted already
            return self.types[e] == target
        if isinstance(target, types.Tuple):
            wanted = list(target.elements)
        elif isinstance(target, types.Stack):
            wanted = [target.element] * target.size
        elif isinstance(target, types.List):
            wanted = [target.element] * len(e.items)
        elif isinstance(target, (types.Struct, types.Header)):
            wanted = [f.type for f in target.fields]
        else:
            return False
        if len(e.items) > len(wanted) or (len(e.items) < len(wanted) and not e.rest):
            self.ctx.error(e, f"{target} needs {len(wanted)} values, not {len(e.items)}")
            target = types.UNKNOWN
        else:
            for item, t in zip(e.items, wanted, strict=False):
                self.convert(item, t)
            for t in wanted[len(e.items) :]:
                self._check_default(e, t)
        self.types[e] = target
        return True

    def _convert_struct(self, e: ast.StructExpr, target: Type) -> bool:
        if not isinstance(self.types[e], types.AnonRecord):
            return self.types[e] == target
        if not isinstance(target, (types.Struct, types.Header)):
            return False
        given = {f.name: f for f in e.fields}
        for f in e.fields:
            if target.find(f.name) is None:
                hint = did_you_mean(f.name, [wanted.name for wanted in target.fields])
                self.ctx.error(f, f"{target} has no field {f.name!r}{hint}")
        for wanted in target.fields:
            field = given.get(wanted.name)
            if field is not None:
                self.convert(field.value, wanted.type, f"field {wanted.name!r}")
            elif e.rest:
                self._check_default(e, wanted.type)
            else:
                self.ctx.error(e, f"field {wanted.name!r} of {target} has no value")
        self.types[e] = target
        return True

    def _check_default(self, at: ast.Node, t: Type) -> None:
        """Report a type without default value (specification, section 7.3), or whose default has too many parts."""
        base = types.strip_newtype(t)
        if self.part_counts.of(base) > MAX_DEFAULTS:
            self.ctx.error(at, f"'...' cannot stand for more than {MAX_DEFAULTS} values")
        elif isinstance(base, types.Struct):
            for f in base.fields:
                self._check_default(at, f.type)
        elif isinstance(base, types.Tuple):
            for element in base.elements:
                self._check_default(at, element)
        elif isinstance(base, types.Stack):
            self._check_default(at, base.element)
        elif not (
            isinstance(base, (types.Header, types.Union, types.Unknown))
            or (isinstance(base, types.Enum) and base.underlying is not None)
            or default_constant(t, self.ctx.program) is not None
        ):
            self.ctx.error(at, f"there is no default value of type {t}")

    def cast(self, node: ast.Cast, target: Type) -> Type:
        """Check `(target) operand`, where the operand is already checked, and return its type."""
        e = node.operand
        t = self.types[e]
        if isinstance(t, types.Unknown) or isinstance(target, types.Unknown):
            return self.facts.type(node, types.UNKNOWN)
        if isinstance(e, (ast.ListExpr, ast.StructExpr, ast.DefaultInit, ast.InvalidHeader)) and isinstance(
            target, (types.Record, types.Tuple, types.Stack, types.List)
        ):
            return self.facts.type(node, self.convert(e, target))
        if t == target:
            return self.facts.same(node, e)
        if not self._castable(e, t, target):
            self.ctx.error(node, f"{self.ctx.describe(e)} cannot be cast to {target}")
            return self.facts.type(node, types.UNKNOWN)
        value = self._cast_value(e, types.strip_newtype(target))
        return self.facts.type(node, target) if value is None else self.facts.constant(node, value, target)

    def _castable(self, e: ast.Expr, t: Type, target: Type) -> bool:
        if t == target:
            return True
        if isinstance(target, types.NewType) or isinstance(t, types.NewType):
            inner, wanted = types.strip_newtype(t), types.strip_newtype(target)
            return inner == wanted or (e in self.constants and isinstance(t, types.InfInt))
        if isinstance(t, types.Enum) and t.underlying is not None:
            return self._castable(e, t.underlying, target)
        if isinstance(target, types.Enum) and target.underlying is not None:
            return t == target.underlying or isinstance(t, types.InfInt)
        if isinstance(t, types.Bits):
            if isinstance(target, types.Bits):
                return t.signed == target.signed or t.width == target.width
            if isinstance(target, types.Bool):
                return t == types.Bits(1)
            return isinstance(target, types.InfInt)
        if isinstance(t, types.InfInt):
            if isinstance(target, types.Bool):
                return self.facts.integer(e) in (0, 1)
            return isinstance(target, types.Bits)
        if isinstance(t, types.Bool):
            return target == types.Bits(1)
        return False

    def _cast_value(self, e: ast.Expr, target: Type) -> Constant | None:
        """Return the value of `e` cast to `target`, or None if it is not known.

        An `int` gets the width of the target.
        """
        value, t = self.constants.get(e), self.types[e]
        if isinstance(value, ast.EnumMember):
            return wrap(self.facts.values[value], target) if isinstance(target, types.Bits) else None
        if isinstance(value, bool):
            return value if isinstance(target, types.Bool) else int(value)
        if not isinstance(value, int):
            if isinstance(t, types.InfInt) and isinstance(target, types.Bits):
                self.sized(e, target)
            return None
        if isinstance(target, types.Bool):
            return bool(value)
        if isinstance(target, types.Enum):
            assert target.underlying is not None
            if isinstance(t, types.InfInt):
                value = self._fitted(e, value, target.underlying)
                self.facts.constant(e, value, target.underlying)
            return next((m for m in target.decl.members if self.facts.values[m] == value), None)
        if isinstance(target, types.Bits):
            return self._fitted(e, value, target) if isinstance(t, types.InfInt) else wrap(value, target)
        return value
