"""Meaning of written types, and where each may be used (language specification, section 7)."""

from __future__ import annotations

from p4switch.compiler import ast, types
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.sizes import PartCounts
from p4switch.compiler.types import Type

MAX_WIDTH = 2048
"""Maximum width of `bit<>` and `int<>`."""
MAX_VARBIT = 1 << 20
MAX_STACK = 1 << 16
MAX_PARTS = 1 << 17
"""Maximum number of parts of a value."""
_SIMPLE: dict[str, Type] = {
    "bool": types.BOOL,
    "int": types.INT,
    "string": types.STRING,
    "error": types.ERROR,
    "match_kind": types.MATCH_KIND,
    "void": types.VOID,
}
_STACKABLE = (
    types.Header,
    types.Union,
    types.Bits,
    types.Bool,
    types.Struct,
    types.Enum,
    types.NewType,
    types.Tuple,
    types.Error,
    types.TypeVar,
    types.Stack,
    types.Unknown,
)
Generic = (
    ast.RecordDecl,
    ast.ExternDecl,
    ast.PackageDecl,
    ast.ParserTypeDecl,
    ast.ControlTypeDecl,
    ast.ParserDecl,
    ast.ControlDecl,
)
"""Declarations of types that may have type parameters."""


def is_object(t: Type) -> bool:
    """Return whether `t` is a type of instances (extern, parser, control, package)."""
    return isinstance(t, (types.Extern, types.Parser, types.Control, types.Package))


class WrittenTypes:
    def __init__(self, ctx: Checking, conversions: Conversions, part_counts: PartCounts) -> None:
        self.ctx = ctx
        self.conversions = conversions
        self.part_counts = part_counts
        self.types = ctx.facts.types

    def constant_int(self, e: ast.Expr, what: str) -> int | None:
        """Check `e` and return its value.

        If it is not a compile-time integer, report an error and return None.
        """
        self.ctx.expressions.expr(e)
        t, value = self.conversions.as_bits(e), self.ctx.facts.integer(e)
        if value is None and not isinstance(t, types.Unknown):
            self.ctx.error(e, f"{what} must be an integer known at compile time")
        return value

    def resolve(self, t: ast.TypeExpr, infer: bool = False) -> Type:
        """Return the meaning of a type as written.

        With `infer`, type arguments of a generic type may be omitted. The result then contains the
        type parameters of the declaration.
        """
        self.types[t] = self._resolve(t, infer)
        return self.types[t]

    def _resolve(self, t: ast.TypeExpr, infer: bool) -> Type:
        if isinstance(t, ast.SizedTypeExpr):
            return self._sized(t)
        if isinstance(t, ast.NamedTypeExpr):
            return self._named(t, infer)
        if isinstance(t, ast.SimpleTypeExpr):
            if t.name == "_":
                return types.TypeVar(ast.TypeParam(t.pos, "_"))
            if t.name == "error" and not self.ctx.program.errors:
                self.ctx.error(t, "type error has no values: no error code is declared (core.p4 declares some)")
                return types.UNKNOWN
            return _SIMPLE[t.name]
        if isinstance(t, ast.TupleTypeExpr):
            elements = tuple(self.resolve(e) for e in t.elements)
            for written, element in zip(t.elements, elements, strict=True):
                if isinstance(element, types.Void) or is_object(element):
                    self.ctx.error(written, f"{element} cannot be an element of a tuple")
            if not self.small_enough(t, sum(map(self.part_counts.of, elements))):
                return types.UNKNOWN
            return types.Tuple(elements)
        if isinstance(t, ast.ListTypeExpr):
            element = self.resolve(t.element)
            if isinstance(element, types.Void) or is_object(element):
                self.ctx.error(t.element, f"{element} cannot be an element of a list")
            return types.List(element)
        assert isinstance(t, ast.StackTypeExpr)
        return self._stack(t)

    def _stack(self, t: ast.StackTypeExpr) -> Type:
        element = self.resolve(t.element)
        size = self.constant_int(t.size, "the size of a stack")
        if size is not None and not 0 < size <= MAX_STACK:
            self.ctx.error(t.size, f"the size of a stack must be 1 to {MAX_STACK}, not {size}")
            size = None
        if not isinstance(element, _STACKABLE):
            self.ctx.error(t.element, f"{element} cannot be the element of a stack or array")
            return types.UNKNOWN
        if size is None or not self.small_enough(t, size * self.part_counts.of(element)):
            return types.UNKNOWN
        return types.Stack(element, size)

    def small_enough(self, at: ast.Node, parts: int) -> bool:
        if parts > MAX_PARTS:
            self.ctx.error(at, f"a value of this type would consist of more than {MAX_PARTS} single values")
        return parts <= MAX_PARTS

    def _sized(self, t: ast.SizedTypeExpr) -> Type:
        if t.width is None:
            return types.Bits(1)
        width = self.constant_int(t.width, f"the width of {t.name}<>")
        if width is None:
            return types.UNKNOWN
        least = 1 if t.name == "int" else 0
        most = MAX_VARBIT if t.name == "varbit" else MAX_WIDTH
        if not least <= width <= most:
            self.ctx.error(t.width, f"the width of {t.name}<> must be {least} to {most}, not {width}")
            return types.UNKNOWN
        return types.Varbit(width) if t.name == "varbit" else types.Bits(width, t.name == "int")

    def _named(self, t: ast.NamedTypeExpr, infer: bool) -> Type:
        declarations = self.ctx.names.decls[t]
        if not declarations:
            self.ctx.unknown_name(t, t.name, "type")
            return types.UNKNOWN
        decl = declarations[0]
        if isinstance(decl, ast.TypeParam):
            if t.args:
                self.ctx.error(t, f"type parameter {t.name!r} takes no type arguments")
            return types.TypeVar(decl)
        if not isinstance(decl, ast.TypeDeclaration):
            self.ctx.error(t, f"{t.name!r} is not a type")
            return types.UNKNOWN
        params = decl.type_params if isinstance(decl, Generic) else []
        args = tuple(self.resolve(a) for a in t.args)
        for written, arg in zip(t.args, args, strict=True):
            if isinstance(arg, types.MatchKind):
                self.ctx.error(written, f"{arg} cannot be a type argument")
        if any(self._mentions(a, decl) for a in args):
            self.ctx.error(t, f"{t.name!r} cannot be a type argument of itself")
            return types.UNKNOWN
        if not t.args and (infer or not params or isinstance(self.types[decl], types.Unknown)):
            return self.types[decl]
        if len(args) != len(params):
            wanted = f"{len(params)} type argument{'s' if len(params) != 1 else ''}"
            wrong = f"takes {wanted}, not {len(args)}" if params else "is not generic"
            self.ctx.error(t, f"type {t.name!r} {wrong}")
            return types.UNKNOWN
        result = types.substitute(self.types[decl], dict(zip(params, args, strict=True)))
        if isinstance(decl, ast.RecordDecl):
            self._check_arguments(t, decl, args)
            if not self.small_enough(t, self.part_counts.of(result)):
                return types.UNKNOWN
        return result

    def _mentions(self, t: Type, decl: ast.Declaration) -> bool:
        """Return whether the type that `decl` declares occurs in `t`."""
        if isinstance(t, (types.Record, types.Extern, types.Parser, types.Control, types.Package)):
            if t.decl is decl or any(self._mentions(a, decl) for a in t.args):
                return True
            params = [] if isinstance(t, (types.Record, types.Extern)) else t.decl.params
            return any(self._mentions(self.types[p], decl) for p in params)
        if isinstance(t, (types.Stack, types.List, types.Set)):
            return self._mentions(t.element, decl)
        return isinstance(t, types.Tuple) and any(self._mentions(e, decl) for e in t.elements)

    def _check_arguments(self, t: ast.NamedTypeExpr, decl: ast.RecordDecl, args: tuple[Type, ...]) -> None:
        """Check that the fields of a specialised struct or header have allowed types."""
        bound = dict(zip(decl.type_params, args, strict=True))
        for field in decl.fields:
            if isinstance(self.types[field], types.TypeVar):
                self.check_field(t, decl, types.substitute(self.types[field], bound), field.name)

    def check_field(self, at: ast.Node, decl: ast.RecordDecl, t: Type, name: str) -> None:
        """Report an error if the declaration `decl` cannot have a field of type `t`."""
        if isinstance(t, (types.Unknown, types.TypeVar)):
            return
        if isinstance(decl, ast.HeaderDecl):
            ok = self._fits_header(t)
            kind = "a header"
        elif isinstance(decl, ast.UnionDecl):
            ok = isinstance(t, types.Header)
            kind = "a header union (only headers can)"
        else:
            ok = not isinstance(t, (types.Void, types.InfInt, types.MatchKind, types.Set)) and not is_object(t)
            kind = "a struct"
        if not ok:
            self.ctx.error(at, f"field {name!r} of type {t} cannot be in {kind}")

    def _fits_header(self, t: Type) -> bool:
        t = types.strip_newtype(t)
        if isinstance(t, types.Struct):
            return all(self._fits_header(f.type) and not isinstance(f.type, types.Varbit) for f in t.fields)
        if isinstance(t, types.Enum):
            return t.underlying is not None
        if isinstance(t, types.Stack):
            return self._fits_header(t.element) and not isinstance(t.element, types.Varbit)
        return isinstance(t, (types.Bits, types.Varbit, types.Bool, types.TypeVar, types.Unknown))

    def check_variable_type(self, written: ast.TypeExpr, t: Type, what: str) -> None:
        """Report an error if a variable (or the object that `what` describes) cannot have type `t`."""
        if isinstance(t, (types.Void, types.InfInt, types.String, types.MatchKind, types.List, types.Set)):
            self.ctx.error(written, f"{what} cannot have type {t}")
        elif is_object(t):
            self.ctx.error(written, f"{what} cannot have type {t}: write '{t}(...) name;' to make an instance")
