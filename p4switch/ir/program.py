"""Contents of a program: control-flow graphs over scalar storage, tables, objects with state.

Structs, tuples, generics, sub-parsers, sub-controls, functions and the directions of parameters are gone. Storage is
header instances (real ones, locals of header type, and the metadata instances) with scalar fields. Code is basic
blocks; the same blocks serve parser states, control flow and action bodies, which differ in their terminators.
Enums without an underlying type and errors are 32-bit numbers here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from p4switch.compiler.types import Header, Type
from p4switch.ir.expressions import Const, Expr, FieldRef, HeaderRef, StackRef, UnionRef
from p4switch.ir.operations import Operation

DEFAULT_TABLE_SIZE = 1024


# Control flow


@dataclass(slots=True, eq=False)
class Block:
    ops: list[Operation] = field(default_factory=list)
    end: Terminator | None = None  # None: the end of the parser, control or action
    name: str = ""
    span: Any = None  # of a parser state


@dataclass(slots=True, eq=False)
class Goto:
    target: Block
    span: Any = None


@dataclass(slots=True, eq=False)
class Branch:
    condition: Expr
    if_true: Block
    if_false: Block
    span: Any = None


@dataclass(slots=True, eq=False)
class Apply:
    """Applies `table`, then continues at `on[label]` or else `default`.

    Labels are `True` and `False` (hit, miss) or indices into the actions of the table.
    """

    table: Table
    on: dict[Any, Block]
    default: Block


@dataclass(slots=True, eq=False)
class Select:
    """`cases`: a list of (value, mask) a key, or the name of a value set; and where to go. Masks: None is exact."""

    keys: list[Expr]
    cases: list[tuple[list[tuple[int, int | None]] | str, Block | None]]  # None: accept
    spans: list[Any] = field(default_factory=list)  # of the cases


Terminator: TypeAlias = "Goto | Branch | Apply | Select"


# Objects


@dataclass(slots=True, eq=False)
class Action:
    name: str
    params: list[tuple[str, Type]]
    body: Block
    span: Any = None
    hidden: bool = False


@dataclass(slots=True, eq=False)
class Key:
    target: Expr  # FieldRef, LastField or Valid
    match_kind: str
    name: str
    mask: int | None = None


@dataclass(slots=True, eq=False)
class ActionCall:
    action: Action
    args: list[int]


@dataclass(slots=True, eq=False)
class Entry:
    """`keys`: one value for each key: an int, (value, mask), (low, high) for range, or None for don't care."""

    keys: list[Any]
    call: ActionCall
    priority: int  # as in BMv2: the lowest wins
    const: bool = True
    span: Any = None


@dataclass(slots=True, eq=False)
class Table:
    name: str
    keys: list[Key] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    default: ActionCall | None = None
    default_const: bool = False
    entries: list[Entry] | None = None
    size: int = DEFAULT_TABLE_SIZE
    profile: Profile | None = None
    counter: str = ""
    meter: str = ""
    support_timeout: bool = False
    span: Any = None


@dataclass(slots=True, eq=False)
class Profile:
    """An action profile or selector."""

    name: str
    size: int
    algorithm: str = ""  # selectors only
    inputs: list[Expr] = field(default_factory=list)
    span: Any = None


@dataclass(slots=True, eq=False)
class Counter:
    name: str
    size: int
    table: str = ""  # of a direct one
    span: Any = None


@dataclass(slots=True, eq=False)
class Meter:
    name: str
    size: int
    unit: str  # "packets" or "bytes"
    table: str = ""
    result: Expr | None = None  # of a direct one
    span: Any = None


@dataclass(slots=True, eq=False)
class Register:
    name: str
    size: int
    width: int
    span: Any = None
    initial: int = 0  # what its cells begin with


@dataclass(slots=True, eq=False)
class ValueSet:
    name: str
    width: int
    size: int


@dataclass(slots=True, eq=False)
class ExternInstance:
    """An object of a type that BMv2 has by that name, with what its constructor is given."""

    name: str
    type: str
    attributes: Mapping[str, Const | str] = field(default_factory=dict)
    span: Any = None


@dataclass(slots=True, eq=False)
class Checksum:
    """`inputs` are FieldRef, Const or HeaderRef."""

    target: FieldRef
    inputs: list[Any]
    algorithm: str
    condition: Expr
    with_payload: bool
    verify: bool
    span: Any = None


@dataclass(slots=True, eq=False)
class Calculation:
    name: str
    algorithm: str
    inputs: list[Any]
    with_payload: bool = False
    span: Any = None


@dataclass(slots=True, eq=False)
class FieldList:
    name: str
    elements: list[Expr]


@dataclass(slots=True, eq=False)
class Pipeline:
    name: str
    start: Block
    span: Any = None


@dataclass(slots=True, eq=False)
class Parser:
    name: str
    start: Block


@dataclass(slots=True, eq=False)
class Deparser:
    """Runs `body`, then appends those of the headers in `order` that are valid."""

    name: str
    body: Block = field(default_factory=Block)
    order: list[HeaderRef] = field(default_factory=list)
    span: Any = None


@dataclass(slots=True, eq=False)
class Metadata:
    """An instance that the architecture fills in or looks at: fields, and the other names of some of them.

    `written` has the fields of which the architecture looks whether they were assigned to, and for each the field that
    becomes 1 then.
    """

    name: str
    fields: list[tuple[str, Type]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Instance:
    """A header instance."""

    name: str
    type: Header


@dataclass(slots=True)
class Program:
    """Everything that the BMv2 JSON is written from."""

    scalars: dict[str, Type] = field(default_factory=dict)  # fields of the instance "scalars"
    varbits: dict[str, int] = field(default_factory=dict)  # instances with one field "field": maximum width
    headers: list[Instance] = field(default_factory=list)
    stacks: list[tuple[StackRef, list[str]]] = field(default_factory=list)  # names of the elements
    unions: list[tuple[UnionRef, list[str]]] = field(default_factory=list)  # names of the member instances
    errors: list[str] = field(default_factory=list)
    enums: list[tuple[str, list[str]]] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    parsers: list[Parser] = field(default_factory=list)
    value_sets: list[ValueSet] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    deparsers: list[Deparser] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    meters: list[Meter] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    externs: list[ExternInstance] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    learn_lists: list[FieldList] = field(default_factory=list)
