"""Contents of a program: control-flow graphs over scalar storage, tables, objects with state.

A program has no structs, tuples, generics, sub-parsers, sub-controls, functions and directions of parameters. Its
storage consists of header instances with scalar fields: packet headers, locals of header type, and metadata. Its code
consists of basic blocks. Parser states, control flow and action bodies are all blocks, and differ in their terminators.
Enums without an underlying type, and errors, are 32-bit numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from p4switch.compiler.types import Header, Type
from p4switch.ir.expressions import Const, Expr, FieldRef, HeaderRef, Result, StackRef, UnionRef
from p4switch.ir.operations import Operation
from p4switch.ir.places import Place

if TYPE_CHECKING:
    from p4switch.ir.visitor import TerminatorVisitor

DEFAULT_TABLE_SIZE = 1024


# Control flow


@dataclass(slots=True, eq=False)
class Block:
    ops: list[Operation] = field(default_factory=list)
    end: Terminator | None = None  # None: the end of the parser, control or action
    name: str = ""
    span: int | None = None  # span of a parser state

    @property
    def is_end(self) -> bool:
        """True if the block is empty and has no successor."""
        return not self.ops and self.end is None


@dataclass(slots=True, eq=False)
class Goto:
    target: Block
    span: int | None = None

    def accept(self, visitor: TerminatorVisitor[Result]) -> Result:
        return visitor.goto(self)


@dataclass(slots=True, eq=False)
class Branch:
    condition: Expr
    if_true: Block
    if_false: Block
    span: int | None = None

    def accept(self, visitor: TerminatorVisitor[Result]) -> Result:
        return visitor.branch(self)


@dataclass(slots=True, eq=False)
class Apply:
    """Application of `table` with a jump to `on[label]`, or else to `default`.

    Labels are `True` and `False` (hit, miss) or indices into the actions of the table.
    """

    table: Table
    on: dict[bool | int, Block]
    default: Block

    @property
    def by_hit(self) -> bool:
        """True if the labels are hit and miss.

        In Python, True and False are equal to the numbers 1 and 0 of actions, so that a look-up
        cannot distinguish them.
        """
        return any(isinstance(label, bool) for label in self.on)

    def after(self, action: Action | None, hit: bool) -> Block:
        """Return the block that follows a lookup that runs `action`, or no action if it is None."""
        if self.by_hit:
            return self.on.get(hit, self.default)
        name = None if action is None else action.name
        number = next((i for i, each in enumerate(self.table.actions) if each.name == name), None)
        return self.default if number is None else self.on.get(number, self.default)

    def accept(self, visitor: TerminatorVisitor[Result]) -> Result:
        return visitor.apply(self)


@dataclass(slots=True, eq=False)
class Select:
    """Selection by keys.

    `cases` are pairs of a condition and a target. The condition is a list with (value, mask) for each
    key, or the name of a value set. A mask of None stands for an exact match.

    In a program for a target, a case without values matches any key, and is the last case.
    """

    keys: list[Expr]
    cases: list[tuple[list[tuple[int, int | None]] | str, Block | None]]  # None: accept
    spans: list[int | None] = field(default_factory=list)  # spans of the cases

    def accept(self, visitor: TerminatorVisitor[Result]) -> Result:
        return visitor.select(self)


Terminator: TypeAlias = "Goto | Branch | Apply | Select"


# Objects


@dataclass(slots=True, eq=False)
class Action:
    name: str
    params: list[tuple[str, Type]]
    body: Block
    span: int | None = None
    number: int = 0  # number by which BMv2 JSON refers to it


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


KeyValue: TypeAlias = "int | tuple[int, int] | None"
"""Value of a key in an entry: a number, (value, mask), (low, high) for a range, or None if any value matches.

In a program for a target there is no None.
"""


@dataclass(slots=True, eq=False)
class Entry:
    """Entry of a table, with a value for each key."""

    keys: Sequence[KeyValue]
    call: ActionCall
    priority: int  # priority as in BMv2, where the lowest number wins
    const: bool | None = True  # None: the JSON does not say
    span: int | None = None


@dataclass(slots=True, eq=False)
class Table:
    """Table. `entry` is set to the number of the entry that is hit, or to one more than the highest number.

    The cells of `direct` objects are initialised when their entry is added.
    """

    name: str
    keys: list[Key] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    default: ActionCall | None = None
    default_const: bool = False
    default_action_const: bool = False  # True if the action is constant; its data may still change
    entries: list[Entry] | None = None
    size: int = DEFAULT_TABLE_SIZE
    profile: Profile | None = None
    counter: str = ""
    meter: str = ""
    direct: list[str] = field(default_factory=list)  # registers and extern objects with a cell for each entry
    entry: Expr | None = None
    support_timeout: bool = False
    span: int | None = None
    ordered: bool = False  # True if priorities decide which entry is hit
    hidden: bool = False  # True if its action has statements that are not in an action in the source

    @property
    def room(self) -> int:
        """Maximum number of entries. The program's own entries may be more than the declared size."""
        return max(self.size, len(self.entries or ()))


Input: TypeAlias = "Const | FieldRef | HeaderRef"
"""Input of a checksum or hash; a header stands for all its fields."""


@dataclass(slots=True, eq=False)
class Profile:
    """An action profile or selector."""

    name: str
    size: int
    algorithm: str = ""  # selectors only
    inputs: list[Input] = field(default_factory=list)
    span: int | None = None


@dataclass(slots=True, eq=False)
class Counter:
    name: str
    size: int
    table: str = ""  # table of a direct counter
    span: int | None = None


@dataclass(slots=True, eq=False)
class Meter:
    name: str
    size: int
    unit: str  # "packets" or "bytes"
    table: str = ""
    result: Expr | None = None  # field that a direct meter writes
    span: int | None = None
    rates: int = 2


@dataclass(slots=True, eq=False)
class Register:
    name: str
    size: int
    width: int
    span: int | None = None
    initial: int = 0  # initial value of its cells


@dataclass(slots=True, eq=False)
class ValueSet:
    name: str
    width: int
    size: int


@dataclass(slots=True, eq=False)
class ExternInstance:
    """Object of an extern type of BMv2, with the arguments of its constructor."""

    name: str
    type: str
    attributes: Mapping[str, Const | str] = field(default_factory=dict)
    span: int | None = None


@dataclass(slots=True, eq=False)
class Calculation:
    """Checksum or hash over `inputs`."""

    name: str
    algorithm: str
    inputs: list[Input]
    with_payload: bool = False
    span: int | None = None


@dataclass(slots=True, eq=False)
class Checksum:
    """Field with a checksum that is verified or updated if a condition holds."""

    target: FieldRef
    calculation: Calculation
    condition: Expr
    verify: bool
    span: int | None = None
    name: str = ""


@dataclass(slots=True, eq=False)
class FieldList:
    name: str
    elements: list[Expr]
    number: int = 0


@dataclass(slots=True, eq=False)
class Pipeline:
    """Pipeline that begins at the block `start`.

    In a program for a target, `nodes` are its blocks. Each has a name, and applies a table or tests a condition.
    """

    name: str
    start: Block
    span: int | None = None
    nodes: list[Block] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        """Tables of the nodes, in their order."""
        return [node.end.table for node in self.nodes if isinstance(node.end, Apply)]


@dataclass(slots=True, eq=False)
class Parser:
    """Parser that begins at the block `start`; in a program for a target, `states` are its blocks, each with a name."""

    name: str
    start: Block
    states: list[Block] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Deparser:
    """Deparser: runs `body`, then appends the valid headers in `order`."""

    name: str
    body: Block = field(default_factory=Block)
    order: list[HeaderRef] = field(default_factory=list)
    span: int | None = None


@dataclass(slots=True, eq=False)
class Metadata:
    """Metadata instance that the architecture writes or reads: fields, and aliases of some of them.

    The architecture checks whether the fields in `written` were assigned. `written` maps each of them to a field that
    becomes 1 on assignment.
    """

    name: str
    fields: list[tuple[str, Type]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Instance:
    """Header instance. In a program for a target, metadata and variables are instances, too."""

    name: str
    type: Header
    metadata: bool = False


def nowhere(span: int | None) -> Place | None:
    """Return no place, for programs without a source."""
    return None


@dataclass(slots=True)
class Program:
    """Program.

    The compiler first lowers a program independently of a target. The engine and the writer of BMv2
    JSON take a program for a target. In that form headers have only scalar fields, operators have
    the type `int`, casts truncate results, and nodes have numbers and names.
    """

    scalars: dict[str, Type] = field(default_factory=dict)  # fields of the instance "scalars"
    varbits: dict[str, int] = field(default_factory=dict)  # maximum width of instances with one field "field"
    headers: list[Instance] = field(default_factory=list)
    stacks: list[tuple[StackRef, list[str]]] = field(default_factory=list)  # names of the elements
    unions: list[tuple[UnionRef, list[str]]] = field(default_factory=list)  # names of the member instances
    errors: dict[str, int] = field(default_factory=dict)
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
    # Attributes of a program for a target:
    name: str = "program"
    package: str | None = None  # None: the JSON does not say
    source_names: Mapping[str, str] = field(default_factory=dict)  # see `Package.source_names`
    actions: list[Action] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    aliases: dict[str, tuple[str, str]] = field(default_factory=dict)  # other names of fields of metadata
    lengths: dict[str, Expr] = field(default_factory=dict)  # length in bits of the varbit, by header type
    place: Callable[[int | None], Place | None] = nowhere
    """Function that returns the source position of a node's span."""

    def meter_result(self, table: Table) -> Expr | None:
        """Return the field that the direct meter of `table` writes; None without a meter."""
        return next((meter.result for meter in self.meters if meter.name == table.meter), None)
