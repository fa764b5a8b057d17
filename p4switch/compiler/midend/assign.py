"""Copies of values: assignments to places, temporaries, and overlaps of places."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.storage import flat_fields, header_field
from p4switch.compiler.midend.values import (
    EXPRS,
    PLACES,
    ElementPlace,
    HeaderValue,
    Ignored,
    ListValue,
    MovingSlicePlace,
    SlicePlace,
    StackValue,
    StructValue,
    UnionValue,
    Value,
)

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering

# Storage of a value: the instance, or the stack or union that contains it; and the field, or "*"
# for all fields.
Leaf = tuple[str, str]


class Footprint:
    """Set of storage that values occupy or that code reads and writes.

    Detecting an overlap of two sets takes time in proportion to the smaller set.
    """

    __slots__ = ("_fields", "_names", "_whole")

    def __init__(self, leaves: Iterable[Leaf] = ()) -> None:
        self._fields: set[Leaf] = set()
        self._names: set[str] = set()
        self._whole: set[str] = set()
        self.add(leaves)

    def add(self, leaves: Iterable[Leaf]) -> None:
        for name, part in leaves:
            self._fields.add((name, part))
            self._names.add(name)
            if part == "*":
                self._whole.add(name)

    def update(self, other: Footprint) -> None:
        self._fields |= other._fields
        self._names |= other._names
        self._whole |= other._whole

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, leaf: Leaf) -> bool:
        return leaf in self._fields

    def overlaps(self, other: Footprint) -> bool:
        return not (
            self._fields.isdisjoint(other._fields)
            and self._names.isdisjoint(other._whole)
            and self._whole.isdisjoint(other._names)
        )


class Assignments:
    def __init__(self, low: Lowering) -> None:
        self.low = low

    # Looking into values

    def flatten(self, value: Value, path: str) -> Iterator[tuple[str, ir.Expr]]:
        """Yield the scalars in a value of structs, with dotted paths."""
        if isinstance(value, EXPRS):
            yield path, value
        elif isinstance(value, StructValue):
            for name, inner in value.fields.items():
                yield from self.flatten(inner, f"{path}.{name}")

    def header_leaves(self, header: ir.HeaderRef | HeaderValue) -> dict[str, ir.Expr] | None:
        """Return the fields of a header, or None if it is known to be invalid."""
        if isinstance(header, HeaderValue):
            return header.fields
        leaves: dict[str, ir.Expr] = {}
        for name, _ in flat_fields(header.type):
            leaf = header_field(header, name)
            assert isinstance(leaf, EXPRS)
            leaves[name] = leaf
        return leaves

    def valid(self, header: Value) -> ir.Expr:
        if isinstance(header, HeaderValue):
            return fold.boolean(header.fields is not None)
        if isinstance(header, UnionValue):
            result: ir.Expr = fold.FALSE
            for member in header.members.values():
                result = fold.make("||", types.BOOL, result, ir.Valid(member))
            return result
        assert isinstance(header, ir.HeaderRef)
        return ir.Valid(header)

    def footprint(self, value: Value) -> Footprint:
        """Return the storage of `value`, and of the places whose values it depends on."""
        result = Footprint(self.leaves(value))
        self.low.spend(len(result))
        return result

    def leaves(self, value: Value) -> Iterator[Leaf]:
        """Yield the storage that an expression reads, or that a place consists of."""
        if isinstance(value, ir.FieldRef):
            yield self.low.storage.roots.get(value.header, value.header), value.name
        elif isinstance(value, ir.Op):
            for arg in value.args:
                yield from self.leaves(arg)
        elif isinstance(value, ir.Valid):
            yield from self.leaves(value.header)
        elif isinstance(value, ir.HeaderRef):
            name = value.stack or value.name
            yield self.low.storage.roots.get(name, name), "*"
            if value.index is not None:
                yield from self.leaves(value.index)
        elif isinstance(value, ir.ElemField):
            yield value.stack, "*"
            yield from self.leaves(value.index)
        elif isinstance(value, (ir.LastField, ir.LastIndex)):
            yield value.stack, "*"
        elif isinstance(value, StructValue):
            for inner in value.fields.values():
                yield from self.leaves(inner)
        elif isinstance(value, HeaderValue):
            for leaf in (value.fields or {}).values():
                yield from self.leaves(leaf)
        elif isinstance(value, UnionValue):
            for member in value.members.values():
                yield from self.leaves(member)
        elif isinstance(value, StackValue):
            yield value.ref.name, "*"
        elif isinstance(value, ListValue):
            for item in value.items:
                yield from self.leaves(item)
        elif isinstance(value, SlicePlace):
            yield from self.leaves(value.base)
        elif isinstance(value, ElementPlace):
            yield from self.leaves(value.base)
            yield from self.leaves(value.index)
        elif isinstance(value, MovingSlicePlace):
            yield from self.leaves(value.base)
            yield from self.leaves(value.low)

    # Reading places

    def read(self, place: Value) -> Value:
        """Return the value at `place`."""
        if isinstance(place, ElementPlace):
            return self.dynamic_read(place.base, place.index)
        if isinstance(place, SlicePlace):
            base = self.read(place.base)
            assert isinstance(base, EXPRS)
            return fold.slice_(base, place.high, place.low)
        if isinstance(place, MovingSlicePlace):
            whole = self._unsigned(self.read(place.base))
            return fold.cast(self.shifted(">>", whole.type, whole, place.low), types.Bits(place.width))
        return place

    @staticmethod
    def _unsigned(whole: Value) -> ir.Expr:
        assert isinstance(whole, EXPRS)
        return fold.cast(whole, types.Bits(types.width_of(whole.type) or 0))

    def shifted(self, op: str, t: types.Type, value: ir.Expr, amount: ir.Expr) -> ir.Expr:
        """Return a shift, `<<` or `>>`, in a form that BMv2 can execute."""
        if fold.is_long_shift(op, amount):
            return fold.long_shift(op, t, value, amount, self.held)
        return fold.make(op, t, value, amount)

    def dynamic_read(self, base: ListValue, index: ir.Expr) -> Value:
        """Return an array element at a run-time index, as a chain of conditionals."""
        index = self.held(index)
        self.low.spend(len(base.items))
        result = base.items[-1]
        for position in reversed(range(len(base.items) - 1)):
            item = base.items[position]
            assert isinstance(result, EXPRS)
            assert isinstance(item, EXPRS)
            same = fold.make("==", types.BOOL, index, fold.const(position, index.type))
            result = fold.make("?:", item.type, same, item, result)
        return result

    # Copies

    def saved(self, expr: ir.Expr) -> ir.Expr:
        """Return the present value of `expr` as a constant, or as a temporary that holds it."""
        if isinstance(expr, (ir.Const, ir.Param)):
            return expr
        place = self.low.temp(expr.type)
        assert isinstance(place, EXPRS)
        self.assign(place, expr)
        return place

    def held(self, expr: ir.Expr) -> ir.Expr:
        """Return a form of `expr` for repeated use: `expr` itself if it is as cheap as a temporary, else a temporary.

        Checksum controls have no temporaries. There the result is `expr`, and each use increases the
        size of the enclosing expression.
        """
        trivial = not isinstance(expr, ir.Op) or (expr.op == "cast" and expr.size == 1)
        return expr if trivial or not self.low.site.statements else self.saved(expr)

    def snapshot(self, value: Value) -> Value:
        """Return the present `value`, which later assignments do not affect."""
        if isinstance(value, EXPRS):
            return self.saved(value)
        if isinstance(value, StructValue):
            return StructValue(value.type, {n: self.snapshot(v) for n, v in value.fields.items()})
        if isinstance(value, ListValue):
            return ListValue([self.snapshot(v) for v in value.items])
        if isinstance(value, HeaderValue):
            fields = value.fields
            return HeaderValue(value.type, fields and {n: self.saved(v) for n, v in fields.items()})
        t: types.Type
        if isinstance(value, ir.HeaderRef):
            t = value.type
        elif isinstance(value, UnionValue):
            t = value.ref.type
        elif isinstance(value, StackValue):
            t = types.Stack(value.ref.element, value.ref.size)
        else:
            return value
        copy = self.low.temp(t)
        self.assign(copy, value)
        return copy

    def _saved_from(self, expr: ir.Expr, target: Footprint) -> ir.Expr:
        """Return `expr`, saved in a temporary if an assignment to `target` would change it."""
        return self.saved(expr) if self.footprint(expr).overlaps(target) else expr

    def freeze(self, place: Value, indices: dict[Leaf, ir.Expr] | None = None) -> Value:
        """Return `place` with its indices fixed to their present values. `indices` are those already saved."""
        indices = {} if indices is None else indices
        if isinstance(place, SlicePlace):
            return SlicePlace(self.freeze(place.base, indices), place.high, place.low)
        if isinstance(place, MovingSlicePlace):
            return MovingSlicePlace(self.freeze(place.base, indices), self.saved(place.low), place.width)
        if isinstance(place, StructValue):
            return StructValue(place.type, {n: self.freeze(v, indices) for n, v in place.fields.items()})
        if isinstance(place, ListValue):
            return ListValue([self.freeze(v, indices) for v in place.items])
        if isinstance(place, UnionValue) and not place.ref.name:
            frozen = {n: self.freeze(m, indices) for n, m in place.members.items()}
            return UnionValue(place.ref, {n: m for n, m in frozen.items() if isinstance(m, ir.HeaderRef)})
        if isinstance(place, (ir.HeaderRef, ir.ElemField)) and isinstance(place.index, ir.FieldRef):
            leaf = (place.index.header, place.index.name)
            if leaf not in indices:
                indices[leaf] = self.saved(place.index)
            return dataclasses.replace(place, index=indices[leaf])
        return place

    def _index_leaves(self, place: Value) -> Iterator[Leaf]:
        """Yield the positions of indices in `place` that `freeze` saves."""
        if isinstance(place, SlicePlace):
            yield from self._index_leaves(place.base)
        elif isinstance(place, MovingSlicePlace):
            yield from self._index_leaves(place.base)
            yield from self.leaves(place.low)
        elif isinstance(place, StructValue):
            for inner in place.fields.values():
                yield from self._index_leaves(inner)
        elif isinstance(place, ListValue):
            for inner in place.items:
                yield from self._index_leaves(inner)
        elif isinstance(place, UnionValue):
            for inner in place.members.values():
                yield from self._index_leaves(inner)
        elif isinstance(place, (ir.HeaderRef, ir.ElemField)) and place.index is not None:
            yield from self.leaves(place.index)

    def reset(self, place: Value) -> None:
        """Invalidate the headers in `place`, which is an `out` parameter or a variable without initialiser."""
        if isinstance(place, ir.HeaderRef):
            self.invalidate(place)
        elif isinstance(place, UnionValue):
            self.invalidate(next(iter(place.members.values())))
        elif isinstance(place, StackValue):
            for element in place.elements:
                self.reset(element)
            if self.low.site.parses:
                self.low.emit(ir.RewindStack(place.ref))
        elif isinstance(place, StructValue):
            for inner in place.fields.values():
                self.reset(inner)

    # Headers

    def siblings(self, header: ir.HeaderRef) -> list[ir.HeaderRef]:
        """Return the other members of the union that contains `header`; none if it is not a member."""
        if not header.member:
            return [m for m in self.low.storage.members.get(header.name, ()) if m.name != header.name]
        union = next(ref.element for ref, _ in self.low.out.stacks if ref.name == header.stack)
        return [
            dataclasses.replace(header, type=f.type, member=f.name, position=i)
            for i, f in enumerate(union.fields)
            if i != header.position and isinstance(f.type, types.Header)
        ]

    def invalidate(self, header: ir.HeaderRef, span: int | None = None) -> None:
        self.low.emit(ir.Invalidate(header, self.siblings(header), span))

    def in_place(self, header: ir.HeaderRef, span: int | None = None) -> ir.HeaderRef:
        """Return `header` in a form that operations accept: `last` of a stack becomes the present element."""
        if header.where != "last":
            return header
        index = self.saved(ir.LastIndex(header.stack))
        if self.low.site.parses:
            size = next(ref.size for ref, _ in self.low.out.stacks if ref.name == header.stack)
            inside = fold.make("<", types.BOOL, index, fold.const(size, ir.ENUM_TYPE))
            self.low.emit(ir.Verify(inside, self.low.error_value("StackOutOfBounds"), span))
        return dataclasses.replace(header, index=index, where="")

    # Assignment

    def assign(self, dst: Value, src: Value, span: int | None = None) -> None:
        """Assign `src` to `dst`, both of the same type."""
        if not isinstance(dst, PLACES):
            indices = Footprint(self._index_leaves(dst))
            if len(indices) and indices.overlaps(Footprint(leaf for leaf in self.leaves(dst) if leaf not in indices)):
                dst = self.freeze(dst)
        pairs = list(self._pairs(dst, src))
        if len(pairs) > 1:
            pairs = self._without_hazards(pairs)
        for place, value in pairs:
            self._assign_one(place, value, span)

    def _pairs(self, dst: Value, src: Value) -> Iterator[tuple[Value, Value]]:
        if isinstance(dst, StructValue) and isinstance(src, StructValue):
            for place, value in zip(dst.fields.values(), src.fields.values(), strict=True):
                yield from self._pairs(place, value)
        elif isinstance(dst, ListValue) and isinstance(src, ListValue):
            for place, value in zip(dst.items, src.items, strict=True):
                yield from self._pairs(place, value)
        elif isinstance(dst, StackValue) and isinstance(src, ListValue):
            for place, value in zip(dst.elements, src.items, strict=True):
                yield from self._pairs(place, value)
        elif not isinstance(dst, Ignored):
            yield dst, src

    def _without_hazards(self, pairs: list[tuple[Value, Value]]) -> list[tuple[Value, Value]]:
        """Return the pairs, after saving each value that an earlier pair would overwrite, as in `s = { s.b, s.a }`."""
        written = Footprint()
        result: list[tuple[Value, Value]] = []
        for place, value in pairs:
            if len(written) and self.footprint(value).overlaps(written):
                value = self.snapshot(value)
            result.append((place, value))
            written.add(self.leaves(place))
        return result

    def _assign_one(self, dst: Value, src: Value, span: int | None) -> None:
        if isinstance(dst, PLACES):
            assert isinstance(src, EXPRS)
            if dst is not src and not self._same_field(dst, src):
                self.low.emit(ir.Assign(dst, fold.cast(src, dst.type) if isinstance(src, ir.Const) else src, span))
        elif isinstance(dst, SlicePlace):
            assert isinstance(src, EXPRS)
            self._assign_slice(dst, src, span)
        elif isinstance(dst, MovingSlicePlace):
            assert isinstance(src, EXPRS)
            self._assign_moving_slice(dst, src, span)
        elif isinstance(dst, ElementPlace):
            self._assign_element(dst, src, span)
        elif isinstance(dst, ir.HeaderRef):
            self._assign_header(dst, src, span)
        elif isinstance(dst, UnionValue):
            self._assign_union(dst, src, span)
        elif isinstance(dst, StackValue):
            assert isinstance(src, StackValue)
            if dst.ref.name != src.ref.name:
                self.low.emit(ir.CopyStack(dst.ref, src.ref, span))
        else:
            raise AssertionError((dst, src))

    @staticmethod
    def _same_field(dst: Value, src: Value) -> bool:
        return (
            isinstance(dst, ir.FieldRef)
            and isinstance(src, ir.FieldRef)
            and (dst.header, dst.name) == (src.header, src.name)
        )

    def _assign_slice(self, dst: SlicePlace, src: ir.Expr, span: int | None) -> None:
        base, high, low = dst.base, dst.high, dst.low
        if isinstance(base, SlicePlace):
            self._assign_slice(SlicePlace(base.base, base.low + high, base.low + low), src, span)
        elif isinstance(base, PLACES):
            self.low.emit(ir.AssignSlice(base, high, low, src, span))
        else:
            whole = self.read(base)
            assert isinstance(whole, EXPRS)
            self._assign_one(base, fold.with_slice(whole, high, low, src), span)

    def _assign_moving_slice(self, dst: MovingSlicePlace, src: ir.Expr, span: int | None) -> None:
        old = self.read(dst.base)
        assert isinstance(old, EXPRS)
        whole = self._unsigned(old)
        t = whole.type
        mask = self.shifted("<<", t, fold.const((1 << dst.width) - 1, t), dst.low)
        kept = fold.make("&", t, whole, fold.make("~", t, mask))
        new = fold.make("|", t, kept, self.shifted("<<", t, fold.cast(src, t), dst.low))
        self._assign_one(dst.base, fold.cast(new, old.type), span)

    def _assign_element(self, dst: ElementPlace, src: Value, span: int | None) -> None:
        if not isinstance(src, EXPRS):
            raise self.low.error(span, "an index known only at run time is not supported here")
        value = self.saved(src)
        for position, item in enumerate(dst.base.items):
            assert isinstance(item, EXPRS)
            here = fold.make("==", types.BOOL, dst.index, fold.const(position, dst.index.type))
            self._assign_one(item, fold.make("?:", item.type, here, value, item), span)

    def _assign_header(self, dst: ir.HeaderRef, src: Value, span: int | None) -> None:
        dst = self.in_place(dst, span)
        if isinstance(src, StructValue):
            src = HeaderValue(dst.type, {p: v for n, f in src.fields.items() for p, v in self.flatten(f, n)})
        if isinstance(src, HeaderValue):
            if dst.where:
                raise self.low.error(span, f"'{dst.where}' of a stack cannot be assigned to on this target")
            if src.fields is None:
                self.invalidate(dst, span)
                return
            target = self.footprint(dst)
            values = {n: self._saved_from(v, target) for n, v in src.fields.items()}
            places = {name: header_field(dst, name) for name in values}
            fields = [(place, values[name]) for name, place in places.items() if isinstance(place, PLACES)]
            self.low.emit(ir.FillHeader(dst, fields, span))
            return
        assert isinstance(src, ir.HeaderRef)
        src = self.in_place(src, span)
        if src.where or dst.where:
            raise self.low.error(span, f"'{src.where or dst.where}' of a stack cannot be copied on this target")
        if not dst.stack and not src.stack and dst.name == src.name:
            return
        siblings = self.siblings(dst)
        if siblings and self.footprint(src).overlaps(self.footprint(dst)):
            copy = self.low.temp(src.type)
            assert isinstance(copy, ir.HeaderRef)
            self.low.emit(ir.CopyHeader(copy, src, span))
            src = copy
        self.low.emit(ir.AssignHeader(dst, src, siblings, span))

    def _assign_union(self, dst: UnionValue, src: Value, span: int | None) -> None:
        if isinstance(src, HeaderValue):
            self.reset(dst)
            return
        assert isinstance(src, UnionValue)
        if dst.ref.name and src.ref.name:
            if dst.ref.name != src.ref.name:
                self.low.emit(ir.CopyUnion(dst.ref, src.ref, span))
            return
        # The union is an element of a stack at a run-time index. At most one member is valid, so the
        # order does not matter.
        for name, member in dst.members.items():
            yes, join = ir.Block(), ir.Block()
            self.low.branch_on(ir.Valid(src.members[name]), yes, join, span)
            self.low.start(yes)
            self._assign_header(member, src.members[name], span)
            self.low.goto(join)
            self.low.start(join)
        no, end = ir.Block(), ir.Block()
        self.low.branch_on(self.valid(src), end, no, span)
        self.low.start(no)
        self.reset(dst)
        self.low.goto(end)
        self.low.start(end)
