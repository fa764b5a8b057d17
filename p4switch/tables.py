"""Base of all models that check tables of a file, such as those of a scenario, a sweep or a traffic manager."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from p4switch.numbers import integral

Bytes = Annotated[int, BeforeValidator(integral), Field(ge=0, lt=2**48)]
NONE = "none"  # stands for no value in TOML, which has no null


class Table(BaseModel):
    """Table of a TOML or JSON file; unknown keys are errors.

    For a key that may have no value (`int | None`), `"none"` stands for no value, unless "none" is one of
    the key's own values.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_value(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        optional = _optional(cls)
        return {key: None if value == NONE and key in optional else value for key, value in values.items()}


def as_written(value: Any) -> Any:
    """Return a model, or values that contain models, as the tables of a file from which they can be read.

    A key without a value is omitted, or is "none" where omission means something else.
    """
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        given = {name: getattr(value, name) for name in fields}
        return {
            name: NONE if below is None else as_written(below)
            for name, below in given.items()
            if below is not None or fields[name].default is not None
        }
    if isinstance(value, Mapping):
        return {key: as_written(below) for key, below in value.items() if below is not None}
    return [as_written(below) for below in value] if isinstance(value, list | tuple) else value


@cache
def _optional(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys of a model for which "none" stands for no value."""
    hints = {name: field.annotation for name, field in model.model_fields.items()}
    return frozenset(name for name, hint in hints.items() if _may_be_none(hint) and NONE not in _literals(hint))


def _may_be_none(hint: Any) -> bool:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_may_be_none(part) for part in typing.get_args(hint))
    return hint is type(None)


def _literals(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return tuple(value for part in typing.get_args(hint) for value in _literals(part))
