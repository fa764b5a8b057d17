"""The syntax tree of a P4-16 program.

The tree represents the text; the meaning of its nodes is in `facts`. The checker does not change the tree. The passes
`desugar` and `casts`, which follow it, replace parts of it, so that after `frontend.parse_and_check`

- implicit casts are explicit `Cast` nodes;
- scalars that are known at compile time are folded to `IntLiteral`, `BoolLiteral`,
`StringLiteral` or `EnumRef`. Constants of struct, tuple or list type remain a `Name` of the
`ConstDecl`. Constructor parameters remain names, because they are known only when instances
are created;
- `{...}` for a struct or header is a `StructExpr` with one value per field, in the order of the fields; `...` is
replaced by defaults. For a tuple, list or stack it is a `ListExpr`;
- the instance of a call `C.apply()` on a type name is an `Instantiation` (`implicit`) among the locals of the
enclosing parser or control.

Positions are offsets that `Program.source.locate(pos)` turns into file, line and column. Nodes compare by identity.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from p4switch.architectures.architecture import Architecture
    from p4switch.compiler.diagnostics import Diagnostic
    from p4switch.compiler.facts import Facts
    from p4switch.compiler.source import SourceMap
    from p4switch.compiler.types import Bits


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """Base of nodes. `pos` is the position where the node starts."""

    pos: int

    def __repr__(self) -> str:
        label = getattr(self, "name", None) or getattr(self, "value", "")
        return f"<{type(self).__name__} {label}>" if isinstance(label, (str, int)) else f"<{type(self).__name__}>"


class Direction(enum.Enum):
    NONE = ""
    IN = "in"
    OUT = "out"
    INOUT = "inout"


# Annotations


@dataclass(eq=False, repr=False, slots=True)
class Annotation(Node):
    """`@name`, `@name(...)` (unstructured) or `@name[...]` (structured).

    `tokens` is the text of each token between the brackets. `args` are the expressions; constants are folded to
    literals. It is None for an unstructured annotation whose text is not a list of expressions. `pairs` are the pairs
    of `[key = value, ...]`.
    """

    name: str
    structured: bool = False
    tokens: list[str] = field(default_factory=list)
    args: list[Expr] | None = None
    pairs: dict[str, Expr] | None = None

    def key_values(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of `@name(key = value, ...)` as written. Parentheses are accepted like square brackets."""
        for i, token in enumerate(self.tokens):
            if token == "=" and 0 < i < len(self.tokens) - 1:
                yield self.tokens[i - 1], self.tokens[i + 1]

    @property
    def string(self) -> str | None:
        """The text of `@name("text")`."""
        if self.args and len(self.args) == 1 and isinstance(self.args[0], StringLiteral):
            return self.args[0].value
        return None


# Declarations


@dataclass(eq=False, repr=False, slots=True)
class Declaration(Node):
    """Base of all nodes with a name. `pos` is the position of the name."""

    name: str
    annotations: list[Annotation] = field(default_factory=list, kw_only=True)

    def annotation(self, name: str) -> Annotation | None:
        """Return the last annotation of that name."""
        return next((a for a in reversed(self.annotations) if a.name == name), None)


@dataclass(eq=False, repr=False, slots=True)
class TypeParam(Declaration):
    """Type parameter of a generic declaration, or a new type parameter in place of a type argument `_`."""


@dataclass(eq=False, repr=False, slots=True)
class Parameter(Declaration):
    """Parameter of an action, function, method, parser, control, constructor or package.

    Arguments for an action's parameters without direction come from the control plane (action data)
    or from the table's list of actions.
    """

    direction: Direction
    type_expr: TypeExpr
    default: Expr | None = None

    @property
    def optional(self) -> bool:
        return self.annotation("optional") is not None


@dataclass(eq=False, repr=False, slots=True)
class FieldDecl(Declaration):
    type_expr: TypeExpr


@dataclass(eq=False, repr=False, slots=True)
class TypeDeclaration(Declaration):
    """Base of the declarations that introduce a type."""


@dataclass(eq=False, repr=False, slots=True)
class RecordDecl(TypeDeclaration):
    """Base of struct, header and header_union declarations."""

    type_params: list[TypeParam]
    fields: list[FieldDecl]


@dataclass(eq=False, repr=False, slots=True)
class StructDecl(RecordDecl):
    pass


@dataclass(eq=False, repr=False, slots=True)
class HeaderDecl(RecordDecl):
    pass


@dataclass(eq=False, repr=False, slots=True)
class UnionDecl(RecordDecl):
    """`header_union`."""


@dataclass(eq=False, repr=False, slots=True)
class EnumMember(Declaration):
    """A member of an enum (`decl` is its enum) or an error code (`decl` is None)."""

    init: Expr | None = None
    decl: EnumDecl | None = None


@dataclass(eq=False, repr=False, slots=True)
class EnumDecl(TypeDeclaration):
    """`enum E { ... }`, or serializable `enum bit<8> E { a = 1 }`."""

    underlying_expr: TypeExpr | None
    members: list[EnumMember]

    def member(self, name: str) -> EnumMember | None:
        return next((m for m in self.members if m.name == name), None)


@dataclass(eq=False, repr=False, slots=True)
class ErrorDecl(Node):
    """`error { ... }`. `Program.errors` has the members of all such declarations."""

    members: list[EnumMember]


@dataclass(eq=False, repr=False, slots=True)
class MatchKindMember(Declaration):
    pass


@dataclass(eq=False, repr=False, slots=True)
class MatchKindDecl(Node):
    members: list[MatchKindMember]


@dataclass(eq=False, repr=False, slots=True)
class TypedefDecl(TypeDeclaration):
    type_expr: TypeExpr


@dataclass(eq=False, repr=False, slots=True)
class NewTypeDecl(TypeDeclaration):
    """`type T name`."""

    type_expr: TypeExpr


@dataclass(eq=False, repr=False, slots=True)
class Method(Declaration):
    """Method or constructor of an extern. A constructor has the extern's name, and `returns` is None."""

    type_params: list[TypeParam]
    returns: TypeExpr | None
    params: list[Parameter]
    abstract: bool = False


@dataclass(eq=False, repr=False, slots=True)
class ExternDecl(TypeDeclaration):
    """`extern name<T> { ... }`."""

    type_params: list[TypeParam]
    methods: list[Method]
    constructors: list[Method]


@dataclass(eq=False, repr=False, slots=True)
class ExternFunctionDecl(Declaration):
    """Declaration `extern T name<...>(...);`."""

    type_params: list[TypeParam]
    returns: TypeExpr
    params: list[Parameter]


@dataclass(eq=False, repr=False, slots=True)
class FunctionDecl(Declaration):
    type_params: list[TypeParam]
    returns: TypeExpr
    params: list[Parameter]
    body: Block


@dataclass(eq=False, repr=False, slots=True)
class ActionDecl(Declaration):
    params: list[Parameter]
    body: Block


@dataclass(eq=False, repr=False, slots=True)
class ConstDecl(Declaration):
    """Constant. After checking, `init` is cast to the constant's type and folded."""

    type_expr: TypeExpr
    init: Expr


@dataclass(eq=False, repr=False, slots=True)
class VarDecl(Declaration):
    """Variable, declared by a statement or as a local of a parser or control."""

    type_expr: TypeExpr
    init: Expr | None = None


@dataclass(eq=False, repr=False, slots=True)
class Argument(Node):
    """`name = value` or a positional argument (`name` None)."""

    name: str | None
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class Instantiation(Declaration):
    """`type(args) name [= { abstract methods }];`: instance of an extern, parser, control or package.

    For a call on a type name (`C.apply()`), the pass `desugar` adds an instance `C_inst` with
    `@name("C")`.
    """

    type_expr: TypeExpr
    args: list[Argument]
    methods: list[FunctionDecl] = field(default_factory=list)
    instances: list[Instantiation] = field(default_factory=list)  # declarations next to the abstract methods


@dataclass(eq=False, repr=False, slots=True)
class PackageDecl(TypeDeclaration):
    type_params: list[TypeParam]
    params: list[Parameter]


@dataclass(eq=False, repr=False, slots=True)
class ParserTypeDecl(TypeDeclaration):
    """Declaration `parser P<H>(...);`."""

    type_params: list[TypeParam]
    params: list[Parameter]


@dataclass(eq=False, repr=False, slots=True)
class ControlTypeDecl(TypeDeclaration):
    """Declaration `control C<H>(...);`."""

    type_params: list[TypeParam]
    params: list[Parameter]


@dataclass(eq=False, repr=False, slots=True)
class ParserDecl(TypeDeclaration):
    """Parser with its states; `start` is the state of that name.

    `locals` are VarDecl, ConstDecl, Instantiation and ValueSetDecl.
    `accept` and `reject` are not among `states`: a transition to them goes to ACCEPT or REJECT.
    """

    params: list[Parameter]
    ctor_params: list[Parameter]
    locals: list[Declaration]
    states: list[ParserState]
    type_params: list[TypeParam] = field(default_factory=list, kw_only=True)

    @property
    def start(self) -> ParserState:
        return next(s for s in self.states if s.name == "start")


@dataclass(eq=False, repr=False, slots=True)
class ControlDecl(TypeDeclaration):
    """Control; `locals` are ConstDecl, VarDecl, Instantiation, ActionDecl and TableDecl, in source order."""

    params: list[Parameter]
    ctor_params: list[Parameter]
    locals: list[Declaration]
    body: Block
    type_params: list[TypeParam] = field(default_factory=list, kw_only=True)


@dataclass(eq=False, repr=False, slots=True)
class ValueSetDecl(Declaration):
    """Declaration `value_set<element>(size) name;`."""

    element_expr: TypeExpr
    size: Expr


# Parser states


@dataclass(eq=False, repr=False, slots=True)
class ParserState(Declaration):
    """State of a parser; `transition` is None if the source has none, which means `reject`."""

    statements: list[Statement]
    transition: Transition | Select | None


ACCEPT = ParserState(0, "accept", [], None)
REJECT = ParserState(0, "reject", [], None)


@dataclass(eq=False, repr=False, slots=True)
class Transition(Node):
    """Statement `transition state;`."""

    state: str


@dataclass(eq=False, repr=False, slots=True)
class SelectCase(Node):
    """Case of a select.

    After the pass `desugar`, `keysets` has one element for each key of the select. It may also be a single Name of a
    ValueSetDecl, which all keys together are looked up in.
    """

    keysets: list[Expr]
    state: str


@dataclass(eq=False, repr=False, slots=True)
class Select(Node):
    """`transition select (keys) { cases }`. If no case matches, the parser rejects with error.NoMatch."""

    keys: list[Expr]
    cases: list[SelectCase]


# Tables


@dataclass(eq=False, repr=False, slots=True)
class TableKey(Node):
    """`expr : match_kind`."""

    expr: Expr
    match_kind: str
    annotations: list[Annotation]


@dataclass(eq=False, repr=False, slots=True)
class ActionRef(Node):
    """An action in `actions`, `default_action` or an entry. `name` may start with a dot."""

    name: str
    args: list[Argument] | None
    annotations: list[Annotation]


@dataclass(eq=False, repr=False, slots=True)
class TableEntry(Node):
    """Entry of a table.

    `keysets` has one element for each key after the pass `desugar`. `priority` is an IntLiteral once checked, or None.
    """

    keysets: list[Expr]
    action: ActionRef
    priority: Expr | None
    const: bool
    annotations: list[Annotation]


@dataclass(eq=False, repr=False, slots=True)
class TableProperty(Node):
    """A property other than key, actions, default_action and entries; `value` is checked."""

    name: str
    value: Expr
    const: bool
    annotations: list[Annotation]


@dataclass(eq=False, repr=False, slots=True)
class TableDecl(Declaration):
    """Table with its properties.

    `actions` are in the order of the source. `default_action` None means NoAction. `keys` is empty for a table without
    key. `entries` is None if there is no such property; `const_entries` says whether it is constant.
    `properties` holds the rest by name: size, implementation, counters, meters, support_timeout,
    largest_priority_wins, priority_delta ...
    """

    keys: list[TableKey]
    actions: list[ActionRef]
    default_action: ActionRef | None
    const_default_action: bool
    entries: list[TableEntry] | None
    const_entries: bool
    properties: dict[str, TableProperty]
    entries_annotations: list[Annotation] = field(default_factory=list)


# Statements


@dataclass(eq=False, repr=False, slots=True)
class Block(Node):
    statements: list[Statement]
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, repr=False, slots=True)
class Assign(Node):
    """`target = value`; the parser makes `x = x + e` of `x += e`."""

    target: Expr
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class CallStatement(Node):
    call: Call


@dataclass(eq=False, repr=False, slots=True)
class If(Node):
    condition: Expr
    then: Statement
    otherwise: Statement | None


@dataclass(eq=False, repr=False, slots=True)
class Return(Node):
    value: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class Exit(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class Empty(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class Break(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class Continue(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class SwitchCase(Node):
    """`label: body`. `label` is a DefaultExpr, or an expression; `body` None falls through to the next case."""

    label: Expr
    body: Block | None


@dataclass(eq=False, repr=False, slots=True)
class Switch(Node):
    value: Expr
    cases: list[SwitchCase]


@dataclass(eq=False, repr=False, slots=True)
class For(Node):
    """`for (init; condition; update) body`."""

    init: list[Statement]
    condition: Expr
    update: list[Statement]
    body: Statement
    annotations: list[Annotation]


@dataclass(eq=False, repr=False, slots=True)
class ForIn(Node):
    """`for (type name in values) body`; `values` is a Range (both ends included), or a stack or list expression."""

    variable: VarDecl
    values: Expr
    body: Statement
    annotations: list[Annotation]


Statement: TypeAlias = (
    "Block | Assign | CallStatement | If | Return | Exit | Empty | Break | Continue | Switch | For | ForIn"
    " | VarDecl | ConstDecl"
)


# Expressions


@dataclass(eq=False, repr=False, slots=True)
class Expr(Node):
    pass


@dataclass(eq=False, repr=False, slots=True)
class IntLiteral(Expr):
    """Integer literal. `base` is the base in which it is written, and `prefix` the type before it (`8w5`).

    After checking, `value` is within the range of its type.
    """

    value: int
    base: int = 10
    prefix: Bits | None = None


@dataclass(eq=False, repr=False, slots=True)
class BoolLiteral(Expr):
    value: bool


@dataclass(eq=False, repr=False, slots=True)
class StringLiteral(Expr):
    value: str


@dataclass(eq=False, repr=False, slots=True)
class Name(Expr):
    """Reference to a declaration by name; `absolute` for `.name`.

    After checking, it refers to a Parameter, VarDecl, ConstDecl, Instantiation, TableDecl, ActionDecl, ValueSetDecl,
    function or the like, or to a type in a call (`C` in `C.apply()`).
    """

    name: str
    absolute: bool = False


@dataclass(eq=False, repr=False, slots=True)
class TypeName(Expr):
    """Type in the place of an expression: `error` in `error.NoError`, or `C<T>` in `C<T>()`."""

    type_expr: TypeExpr


@dataclass(eq=False, repr=False, slots=True)
class This(Expr):
    """Name `this` in an abstract method's implementation."""


@dataclass(eq=False, repr=False, slots=True)
class EnumRef(Expr):
    """Member of an enum, or error code. The pass `casts` replaces `E.a` and `error.NoError` by it."""

    decl: EnumMember


@dataclass(eq=False, repr=False, slots=True)
class Member(Expr):
    """Expression `base.name`: a field of a struct, header or union, or one of the following.

    - `next`, `last`, `lastIndex`, `size` of a header stack (`size` is folded to a literal);
    - `hit`, `miss`, `action_run` of the result of `table.apply()`.
    """

    base: Expr
    name: str


@dataclass(eq=False, repr=False, slots=True)
class Index(Expr):
    """`base[index]`: of a stack, or of a tuple (then `index` is an IntLiteral)."""

    base: Expr
    index: Expr


@dataclass(eq=False, repr=False, slots=True)
class Slice(Expr):
    """`base[high:low]`. `high` and `low` are IntLiterals after checking."""

    base: Expr
    high: Expr
    low: Expr


@dataclass(eq=False, repr=False, slots=True)
class WidthSlice(Expr):
    """`base[low+:width]`; after checking `low` is known only at run time, and `width` an IntLiteral."""

    base: Expr
    low: Expr
    width: Expr


@dataclass(eq=False, repr=False, slots=True)
class Unary(Expr):
    """Unary expression; `op` is one of `! ~ - +` (no `+` remains after checking)."""

    op: str
    operand: Expr


@dataclass(eq=False, repr=False, slots=True)
class Binary(Expr):
    """Binary expression; `op` is one of `+ - * / % |+| |-| & | ^ << >> ++ == != < <= > >= && ||`.

    Both operands have the same type, except those of shifts and of `++`.
    """

    op: str
    left: Expr
    right: Expr


@dataclass(eq=False, repr=False, slots=True)
class Conditional(Expr):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(eq=False, repr=False, slots=True)
class Cast(Expr):
    """`(type) operand`. A cast that the pass `casts` inserts is `implicit` and has no `type_expr`."""

    type_expr: TypeExpr | None
    operand: Expr
    implicit: bool = False


@dataclass(eq=False, repr=False, slots=True)
class Call(Expr):
    """Call of anything.

    `minSizeInBits` and the like are folded to literals.
    """

    func: Expr
    type_arg_exprs: list[TypeExpr]
    args: list[Argument]


@dataclass(eq=False, repr=False, slots=True)
class ListExpr(Expr):
    """`{a, b, ...}`, or a tuple of keysets `(a, b)`; `rest` is true if it ends in `...` (never after checking)."""

    items: list[Expr]
    rest: bool = False


@dataclass(eq=False, repr=False, slots=True)
class NamedExpr(Node):
    name: str
    value: Expr


@dataclass(eq=False, repr=False, slots=True)
class StructExpr(Expr):
    """`{a = 1, b = 2, ...}`, with or without a type in front.

    After checking, its type is a struct or a header, or an AnonRecord if the context does not determine the type. A
    header that it is assigned to becomes valid.
    """

    type_expr: TypeExpr | None
    fields: list[NamedExpr]
    rest: bool = False


@dataclass(eq=False, repr=False, slots=True)
class InvalidHeader(Expr):
    """`{#}`: an invalid header, or a union with none valid."""

    type_expr: TypeExpr | None = None


@dataclass(eq=False, repr=False, slots=True)
class DefaultInit(Expr):
    """`...` as a whole initialiser (never after checking)."""


@dataclass(eq=False, repr=False, slots=True)
class DontCare(Expr):
    """Placeholder `_`, as a keyset or as an argument for an unused `out` parameter."""


@dataclass(eq=False, repr=False, slots=True)
class DefaultExpr(Expr):
    """`default` as a keyset or switch label."""


@dataclass(eq=False, repr=False, slots=True)
class Mask(Expr):
    """`value &&& mask` in a keyset."""

    value: Expr
    mask: Expr


@dataclass(eq=False, repr=False, slots=True)
class Range(Expr):
    """`low .. high` (both included) in a keyset or a `for`."""

    low: Expr
    high: Expr


# Types as written


@dataclass(eq=False, repr=False, slots=True)
class TypeExpr(Node):
    """A type as written."""


@dataclass(eq=False, repr=False, slots=True)
class SimpleTypeExpr(TypeExpr):
    """Type without parameters: `bool`, `int` (no width), `string`, `error`, `void`, `match_kind`, `_`."""

    name: str


@dataclass(eq=False, repr=False, slots=True)
class SizedTypeExpr(TypeExpr):
    """`bit<w>`, `int<w>`, `varbit<w>`; `bit` alone has width None and means `bit<1>`."""

    name: str
    width: Expr | None


@dataclass(eq=False, repr=False, slots=True)
class NamedTypeExpr(TypeExpr):
    """`name` or `name<args>`; `absolute` for `.name`."""

    name: str
    args: list[TypeExpr]
    absolute: bool = False


@dataclass(eq=False, repr=False, slots=True)
class StackTypeExpr(TypeExpr):
    element: TypeExpr
    size: Expr


@dataclass(eq=False, repr=False, slots=True)
class TupleTypeExpr(TypeExpr):
    elements: list[TypeExpr]


@dataclass(eq=False, repr=False, slots=True)
class ListTypeExpr(TypeExpr):
    element: TypeExpr


# Parts of nodes


_PLAIN = frozenset(("int", "str", "bool", "str | None", "list[str]", "Bits | None", "Direction"))
"""Types of attributes that contain no nodes, in the spelling of this file."""
_ATTRIBUTES: dict[type[Node], tuple[str, ...]] = {}
"""Attributes that contain child nodes, by kind of node; references to other declarations are left out."""


def parts(node: Node) -> list[Node]:
    """Return the child nodes of `node` in the order of its attributes, which is the order of the text."""
    result: list[Node] = []
    for name in _attributes(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            result.append(value)
        elif value:
            result += value.values() if isinstance(value, dict) else value
    return result


def replace_parts(node: Node, replace: Callable[[Node], Node]) -> None:
    """Replace each child node of `node` by the result of `replace`."""
    for name in _attributes(node):
        value = getattr(node, name)
        if not value:
            continue
        if isinstance(value, Node):
            new = replace(value)
            if new is not value:
                setattr(node, name, new)
        else:
            for key, each in value.items() if isinstance(value, dict) else enumerate(value):
                value[key] = replace(each)


def _attributes(node: Node) -> tuple[str, ...]:
    names = _ATTRIBUTES.get(type(node))
    if names is None:
        parts = (f.name for f in fields(node) if f.name != "decl" and f.type not in _PLAIN)
        names = _ATTRIBUTES[type(node)] = tuple(parts)
    return names


# Programs


@dataclass(eq=False, repr=False, slots=True)
class Program:
    """A program, checked when it comes from `frontend.parse_and_check`.

    `facts` holds the meaning of the nodes. `declarations` are the top-level declarations in the order of the text,
    including those of included files. `errors` are all error codes in order of declaration. `main` is the instantiation
    of that name, or None. `architecture` is the requested architecture, or else the one that has the package of `main`.
    `pipeline` is the number of the pipeline of `main` to compile; None if the program should have only one.
    """

    path: str
    declarations: list[Declaration | ErrorDecl | MatchKindDecl]
    source: SourceMap
    facts: Facts
    errors: dict[str, EnumMember] = field(default_factory=dict)
    main: Instantiation | None = None
    architecture: Architecture | None = None
    pipeline: int | None = None
    warnings: list[Diagnostic] = field(default_factory=list)
