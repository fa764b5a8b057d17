"""Facts that the front end finds about a program: tables keyed by the nodes of its tree.

After `frontend.parse_and_check`:

- Every expression has the type to which its context converts it, without inference variables. Bodies of generic
functions keep `types.TypeVar`, and the `type_args` of a call are the types for it. Integer
literals have the width of their context. A literal keeps type `int` only where the language
requires an `int`: shift amounts, indexes, slices, `int` constants and parameters.
- Every name, label of a switch over actions, and transition has a declaration. Every accessed field has a `Field`.
- Every call, instance and reference to an action has a binding.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from p4switch.compiler import ast
from p4switch.compiler.names import Names
from p4switch.compiler.types import UNKNOWN, Bits, Bool, Enum, Error, Field, InfInt, Package, Type, strip_newtype

Node = TypeVar("Node", bound=ast.Node)
Constant: TypeAlias = int | bool | str | ast.EnumMember
"""Value of an expression that is known when the program is compiled."""


class CallKind(enum.Enum):
    """Kind of a callee, which determines what `Binding.decl` is."""

    FUNCTION = "function"  # a FunctionDecl
    ACTION = "action"  # an ActionDecl that a control or action calls directly
    EXTERN_FUNCTION = "extern function"  # an ExternFunctionDecl, including `verify`, `static_assert` and so on
    EXTERN_METHOD = "extern method"  # a Method; receiver: the extern object
    CONSTRUCTOR = "constructor"  # a Method for an extern, otherwise None
    ABSTRACT_METHOD = "abstract method"  # a Method called on an instance that implements it
    TABLE_APPLY = "table apply"  # a TableDecl
    CONTROL_APPLY = "control apply"  # a ControlDecl or ControlTypeDecl; receiver: the instance
    PARSER_APPLY = "parser apply"  # a ParserDecl or ParserTypeDecl; receiver: the instance
    BUILTIN = "builtin"  # None; `method` of the receiver: isValid setValid setInvalid push_front pop_front


class Types(dict[ast.Node, Type]):
    """Types of expressions, of declared objects, and of written types; UNKNOWN for nodes without one.

    The type of the declaration of a type is that type with its own type parameters as arguments.
    """

    __slots__ = ()

    def __missing__(self, node: ast.Node) -> Type:
        return UNKNOWN


@dataclass(eq=False, slots=True)
class Binding:
    """Binding of a call, an instance or a reference to an action: the callee and its arguments.

    `bound`, `params` and `param_types` have one element for each parameter. In `param_types`, type arguments are
    substituted. In `bound`, named arguments are in the order of the parameters, and default values are filled in. It
    has None for an omitted `@optional` parameter, and for an action's parameter that the control plane supplies.
    `decl` of an instance is the extern's constructor.
    """

    kind: CallKind | None = None
    method: str = ""
    receiver: ast.Expr | None = None
    decl: ast.Declaration | None = None
    type_args: dict[ast.TypeParam, Type] = field(default_factory=dict)
    params: list[ast.Parameter] = field(default_factory=list)
    param_types: list[Type] = field(default_factory=list)
    bound: list[ast.Expr | None] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Facts:
    """Facts about one program, in tables keyed by the nodes of its tree."""

    names: Names = field(default_factory=Names)
    """Results of name resolution: the declarations to which each use of a name may refer."""
    types: Types = field(default_factory=Types)
    constants: dict[ast.Node, Constant] = field(default_factory=dict)
    """Values of scalar expressions that are known at compile time. A value is in the range of its type."""
    uncast: dict[ast.Node, Type] = field(default_factory=dict)
    """Types of expressions before an implicit cast to their type in `types`. The pass `casts` inserts the cast."""
    decls: dict[ast.Node, ast.Declaration] = field(default_factory=dict)
    """Declaration to which each name and `this` refers. For overloaded functions it is the one that is called."""
    fields: dict[ast.Member, Field] = field(default_factory=dict)
    """Fields that member expressions of structs, headers and unions refer to."""
    bindings: defaultdict[ast.Node, Binding] = field(default_factory=lambda: defaultdict(Binding))
    """Bindings of calls, constructor calls, instances and references to actions."""
    actions: dict[ast.ActionRef | ast.SwitchCase, ast.ActionDecl] = field(default_factory=dict)
    """Actions to which references and the cases of a switch over `action_run` (except `default`) refer."""
    switched: dict[ast.Switch, ast.TableDecl] = field(default_factory=dict)
    """The tables of switches over `action_run`."""
    states: dict[ast.Transition | ast.SelectCase, ast.ParserState] = field(default_factory=dict)
    """Next states of parsers."""
    keysets: dict[ast.SelectCase | ast.TableEntry, list[ast.Expr]] = field(default_factory=dict)
    """Key sets of cases and entries, one for each key. The pass `desugar` writes them into the tree."""
    values: dict[ast.EnumMember, int] = field(default_factory=dict)
    """Value of each enum member: its representation in a serializable enum, otherwise its index from 0."""

    def package(self, main: ast.Instantiation | None) -> ast.PackageDecl | None:
        """Return the declaration of the package that `main` instantiates."""
        t = None if main is None else self.types[main]
        return t.decl if isinstance(t, Package) else None

    def typed(self, node: Node, t: Type) -> Node:
        """Record `t` as the type of `node` and return `node`."""
        self.types[node] = t
        return node

    def type(self, node: ast.Node, t: Type) -> Type:
        """Record `t` as the type of `node` and return `t`."""
        self.types[node] = t
        return t

    def constant(self, e: ast.Expr, value: Constant, t: Type) -> Type:
        """Record the type `t` and the value of `e`, and return `t`."""
        self.constants[e] = value
        self.types[e] = t
        return t

    def same(self, e: ast.Expr, other: ast.Expr) -> Type:
        """Record for `e` the type and value of `other`, and return the type."""
        if other in self.constants:
            self.constants[e] = self.constants[other]
        return self.type(e, self.types[other])

    def integer(self, e: ast.Expr) -> int | None:
        """Return the value of an integer expression, or None if it is not known at compile time."""
        value = self.constants.get(e)
        return value if type(value) is int else None

    def boolean(self, e: ast.Expr) -> bool | None:
        """Return the value of a condition, or None if it is not known at compile time."""
        value = self.constants.get(e)
        return value if isinstance(value, bool) else None


def default_constant(t: Type, program: ast.Program) -> Constant | None:
    """Return the default value of type `t` (language specification, section 7.3), or None if it is not a constant."""
    base = strip_newtype(t)
    if isinstance(base, Bits | InfInt):
        return 0
    if isinstance(base, Bool):
        return False
    if isinstance(base, Error):
        return program.errors.get("NoError")
    if isinstance(base, Enum):
        return next((m for m in base.decl.members if program.facts.values[m] == 0), None)
    return None
