"""Keys, data and types in the form of `bf-rt.json`, and the ids of fields whose names begin with `$`.

The ids are those of p4c's Tofino back end. They begin at 65536, and a kind of field has the same id in all tables.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from p4switch.compiler import types

Json = dict[str, Any]


class Id(enum.IntEnum):
    """Ids of table fields that do not come from the program."""

    MATCH_PRIORITY = 65537
    ACTION_MEMBER_ID = 65539
    SELECTOR_GROUP_ID = 65540
    ENTRY_TTL = 65543
    ENTRY_HIT_STATE = 65544
    METER_SPEC_CIR_KBPS = 65545
    METER_SPEC_PIR_KBPS = 65546
    METER_SPEC_CBS_KBITS = 65547
    METER_SPEC_PBS_KBITS = 65548
    METER_SPEC_CIR_PPS = 65549
    METER_SPEC_PIR_PPS = 65550
    METER_SPEC_CBS_PKTS = 65551
    METER_SPEC_PBS_PKTS = 65552
    COUNTER_SPEC_BYTES = 65553
    COUNTER_SPEC_PKTS = 65554
    METER_INDEX = 65555
    COUNTER_INDEX = 65556
    REGISTER_INDEX = 65557
    GET_MEMBER_ACTION_MEMBER_ID = 65562
    GET_MEMBER_SELECTOR_GROUP_ID = 65563
    ACTION_MEMBER_STATUS = 65564
    MAX_GROUP_SIZE = 65565
    ADT_OFFSET = 65566
    PORT_METADATA_PORT = 65575
    PORT_METADATA_DEFAULT_FIELD = 65576
    HASH_ALGORITHM_ROTATE = 65577
    HASH_ALGORITHM_SEED = 65578
    HASH_ALGORITHM_MSB = 65579
    HASH_ALGORITHM_EXTEND = 65580
    HASH_ALGORITHM_PRE_DEFINED = 65581
    HASH_ALGORITHM_USER_DEFINED = 65582
    HASH_VALUE = 65583
    HASH_CONFIGURE_START_BIT = 65584
    HASH_CONFIGURE_LENGTH = 65585
    HASH_CONFIGURE_ORDER = 65586


_NO_DEFAULT = object()


def value_type(kind: str, default: Any = _NO_DEFAULT, **more: Any) -> Json:
    """Return a type: `uint8` to `uint64`, `bool`, `string` or `bytes`."""
    return {"type": kind, **({} if default is _NO_DEFAULT else {"default_value": default}), **more}


def in_bytes(width: int) -> Json:
    """Return the type of a number of `width` bits, rounded up to whole bytes."""
    return value_type("bytes", width=width)


def scalar(t: types.Type) -> Json:
    """Return the type of a number or bool of the program."""
    t = types.strip_newtype(t)
    if isinstance(t, types.Bool):
        return value_type("bool", True)
    return in_bytes(types.width_of(t) or 0)


def numbers(t: types.Type, prefix: str = "") -> list[tuple[str, types.Type]]:
    """Return the names and types of the numbers in a value of type `t`; a plain number is named `f1`."""
    t = types.strip_newtype(t)
    if isinstance(t, types.Record):
        leaves = []
        for f in t.fields:
            inner = types.strip_newtype(f.type)
            nested = isinstance(inner, types.Record)
            leaves += numbers(inner, f"{prefix}{f.name}.") if nested else [(prefix + f.name, inner)]
        return leaves
    if isinstance(t, types.Tuple):
        return [(f"{prefix}f{number}", types.strip_newtype(each)) for number, each in enumerate(t.elements, 1)]
    return [(f"{prefix}f1", t)]


def annotation(name: str, **more: str) -> Json:
    return {"name": name, **more}


@dataclass
class Table:
    """Table in `bf-rt.json`. `actions` is None for a type of table without actions; `size` counts entries."""

    name: str
    id: int
    type: str
    size: int
    annotations: list[Json] | None = None
    depends_on: list[int] = field(default_factory=list)
    const_default: bool | None = None
    keys: list[Json] = field(default_factory=list)
    actions: list[Json] | None = None
    data: list[Json] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    read_only: bool = False

    def key(
        self,
        number: int,
        name: str,
        t: Json,
        *,
        mandatory: bool = True,
        match: str = "Exact",
        annotations: list[Json] | None = None,
    ) -> None:
        self.keys.append(
            {
                "id": int(number),
                "name": name,
                "repeated": False,
                "annotations": annotations or [],
                "mandatory": mandatory,
                "match_type": match,
                "type": t,
            }
        )

    def singleton(self, field: Json, *, mandatory: bool = False, read_only: bool = False) -> None:
        self.data.append({"mandatory": mandatory, "read_only": read_only, "singleton": field})

    def one_of(self, *made: Json) -> None:
        """Add alternative data fields. An entry has exactly one of them."""
        self.data.append({"mandatory": True, "read_only": False, "oneof": list(made)})

    def depends(self, number: int) -> None:
        if number not in self.depends_on:
            self.depends_on.append(number)

    def as_json(self) -> Json:
        result: Json = {"name": self.name, "id": self.id, "table_type": self.type, "size": self.size}
        if self.annotations is not None:
            result["annotations"] = self.annotations
        result["depends_on"] = self.depends_on
        if self.const_default is not None:
            result["has_const_default_action"] = self.const_default
        result["key"] = self.keys
        if self.actions is not None:
            result["action_specs"] = self.actions
        result |= {"data": self.data, "supported_operations": self.operations, "attributes": self.attributes}
        if self.read_only:
            result["read_only"] = True
        return result


def data_field(
    number: int, name: str, t: Json, *, repeated: bool = False, annotations: list[Json] | None = None
) -> Json:
    """Return a field of data; see `Table.singleton`."""
    return {"id": int(number), "name": name, "repeated": repeated, "annotations": annotations or [], "type": t}


def parameter(
    number: int, name: str, t: Json, *, mandatory: bool = True, annotations: list[Json] | None = None
) -> Json:
    """Return a parameter of an action."""
    return {
        "id": int(number),
        "name": name,
        "repeated": False,
        "mandatory": mandatory,
        "read_only": False,
        "annotations": annotations or [],
        "type": t,
    }
