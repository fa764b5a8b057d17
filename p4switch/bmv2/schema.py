"""The BMv2 JSON format as types. This module checks structure and types; `program` checks names and meaning.

The format is described in docs/JSON_format.md of the behavioral-model project. Keys that the engine does not need are
ignored. Expressions stay plain JSON (`Json`): `expressions` reads them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from p4switch.ir.errors import ProgramError
from p4switch.ir.places import Place

Json = Any  # nested dict, list, str, int, bool, None


def place_of(source: Any) -> Place | None:
    """Return the position of a source info, or None if the JSON has none or an invalid one."""
    if not isinstance(source, Mapping):
        return None
    file, line, column = source.get("filename"), source.get("line"), source.get("column", 1)
    if not isinstance(file, str) or not file or not isinstance(line, int) or not isinstance(column, int):
        return None
    return Place(file, line, column, str(source.get("source_fragment") or ""))


FieldRef = tuple[str, str]  # header, field
Source = Annotated[Place | None, BeforeValidator(place_of), Field(alias="source_info")]
Int = Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)]


MAX_FIELD_BITS = 2048
MAX_NESTING = 500
"""Maximum nesting of objects and lists.

An operator takes four or five levels. JSON of the built-in compiler reaches less than half of the
limit.
"""


class JsonError(ProgramError):
    """BMv2 JSON that violates the format, or that refers to something that does not exist."""


class Model(BaseModel):
    # Validators are built when JSON is first read, because most commands read none.
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Item(Model):
    name: str
    id: Int


class HeaderType(Item):
    fields: list[tuple[str, int | Literal["*"]] | tuple[str, int | Literal["*"], bool]]
    length_exp: Json = None
    max_length: Int | None = None


class Header(Item):
    header_type: str
    metadata: bool


class HeaderStack(Item):
    header_type: str
    header_ids: list[Int]


class HeaderUnionType(Model):
    name: str
    headers: list[tuple[str, str]]


class HeaderUnion(Item):
    union_type: str
    header_ids: list[Int]


class HeaderUnionStack(Item):
    union_type: str
    header_union_ids: list[Int]


class FieldList(Model):
    id: Int
    name: str = ""
    elements: list[dict[str, Json]]


class LearnList(Item):
    elements: list[dict[str, Json]]


class Enum(Model):
    name: str
    entries: list[tuple[str, Int]]


class ParserOp(Model):
    op: str
    parameters: list[Json] = []
    place: Source = None


class Transition(Model):
    type: Literal["default", "hexstr", "parse_vset"] = "hexstr"
    value: str | None
    mask: str | None = None
    next_state: str | None
    place: Source = None

    @model_validator(mode="before")
    @classmethod
    def _old_default(cls, data: Json) -> Json:
        """Convert the form in which older compilers write the default transition."""
        if isinstance(data, dict) and data.get("value") == "default":
            return {**data, "type": "default", "value": None}
        return data


class ParseState(Item):
    parser_ops: list[ParserOp]
    transition_key: list[dict[str, Json]]
    transitions: list[Transition]
    place: Source = None


class Parser(Model):
    name: str
    init_state: str | None
    parse_states: list[ParseState]


class ParseVset(Item):
    compressed_bitwidth: Int
    max_size: Int = 0


class Primitive(Model):
    op: str
    parameters: list[Json] = []
    place: Source = None


class Deparser(Model):
    name: str
    order: list[str]
    primitives: list[Primitive] = []


class MeterArray(Item):
    type: Literal["bytes", "packets"]
    rate_count: Int = 2
    size: int = Field(default=0, ge=0, le=1 << 28)
    is_direct: bool = False
    binding: str | None = None
    result_target: FieldRef | None = None
    place: Source = None


class CounterArray(Item):
    size: int = Field(default=0, ge=0, le=1 << 28)
    is_direct: bool = False
    binding: str | None = None
    place: Source = None


class RegisterArray(Item):
    size: int = Field(ge=0, le=1 << 28)
    bitwidth: int = Field(ge=1, le=2048)
    initial_value: str | int = 0
    place: Source = None


class Calculation(Model):
    name: str
    algo: str
    input: list[dict[str, Json]]
    place: Source = None


class RuntimeData(Model):
    name: str
    bitwidth: int = Field(ge=0, le=2048)


class Action(Item):
    runtime_data: list[RuntimeData]
    primitives: list[Primitive]
    place: Source = None


class Selector(Model):
    algo: str
    input: list[dict[str, Json]]


class ActionProfile(Item):
    max_size: int = Field(default=0, ge=0)
    selector: Selector | None = None
    place: Source = None


class TableKey(Model):
    match_type: Literal["exact", "lpm", "ternary", "range", "optional", "valid"]
    target: FieldRef | str
    mask: str | None = None
    name: str = ""


class DefaultEntry(Model):
    action_id: Int
    action_const: bool = False
    action_data: list[str] = []
    action_entry_const: bool = False


class ActionEntry(Model):
    action_id: Int
    action_data: list[str]


class Entry(Model):
    place: Source = None
    match_key: list[dict[str, Json]]
    action_entry: ActionEntry
    priority: Int = 0
    is_const: bool | None = None


class Table(Item):
    match_type: Literal["exact", "lpm", "ternary", "range", "optional", "valid"]
    type: Literal["simple", "indirect", "indirect_ws"] = "simple"
    action_profile: str | None = None
    max_size: Int = 16384
    with_counters: bool = False
    support_timeout: bool = False
    key: list[TableKey]
    actions: list[str] = []
    action_ids: list[Int] | None = None
    next_tables: dict[str, str | None]
    base_default_next: str | None = None
    direct_meters: str | None = None
    direct_cells: list[str] = []
    entry_target: FieldRef | None = None
    default_entry: DefaultEntry | None = None
    entries: list[Entry] | None = None
    place: Source = None


class Conditional(Model):
    name: str
    expression: Json
    true_next: str | None
    false_next: str | None
    place: Source = None


class ActionCall(Model):
    name: str
    action_id: Int
    next_node: str | None


class Pipeline(Model):
    name: str
    init_table: str | None
    tables: list[Table]
    action_profiles: list[ActionProfile] = []
    conditionals: list[Conditional] = []
    action_calls: list[ActionCall] = []
    place: Source = None


class Checksum(Model):
    name: str
    target: FieldRef
    calculation: str
    update: bool = True
    verify: bool = True
    if_cond: Json = None
    place: Source = None


class Attribute(Model):
    name: str
    type: Literal["hexstr", "string", "expression"]
    value: str | int | dict[str, Json]


class ExternInstance(Model):
    name: str
    type: str
    attribute_values: list[Attribute] = []
    place: Source = None


class Meta(Model):
    """Meta data. `package` is given for programs that are not for simple_switch; p4c omits it."""

    package: str | None = None
    source_names: dict[str, str] = {}


class Program(Model):
    """A whole BMv2 JSON."""

    meta: Meta = Field(default=Meta(), alias="__meta__")
    header_types: list[HeaderType]
    headers: list[Header]
    header_stacks: list[HeaderStack] = []
    header_union_types: list[HeaderUnionType] = []
    header_unions: list[HeaderUnion] = []
    header_union_stacks: list[HeaderUnionStack] = []
    field_lists: list[FieldList] = []
    learn_lists: list[LearnList] = []
    errors: list[tuple[str, Int]] = []
    enums: list[Enum] = []
    parsers: list[Parser]
    parse_vsets: list[ParseVset] = []
    deparsers: list[Deparser]
    meter_arrays: list[MeterArray] = []
    counter_arrays: list[CounterArray] = []
    register_arrays: list[RegisterArray] = []
    calculations: list[Calculation] = []
    actions: list[Action]
    pipelines: list[Pipeline]
    checksums: list[Checksum] = []
    extern_instances: list[ExternInstance] = []
    field_aliases: list[tuple[str, FieldRef]] = []


def _check_nesting(document: Json) -> None:
    """Raise JsonError for nesting too deep for the recursion limits of readers and of the C compiler."""
    level: list[Json] = [document]
    for _ in range(MAX_NESTING + 1):
        level = [
            inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise JsonError(f"BMv2 JSON: it is nested over {MAX_NESTING} deep")


def validate(document: Mapping[str, Json]) -> Program:
    """Return the validated program.

    Raises JsonError, which names the first violation of the format.
    """
    if not isinstance(document, Mapping):
        raise JsonError(f"BMv2 JSON: expected an object, not a {type(document).__name__}")
    _check_nesting(document)
    try:
        return Program.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise JsonError(f"BMv2 JSON: {place}: {first['msg']}") from error
