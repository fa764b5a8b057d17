"""`action_profile` and `action_selector`: actions with data that the entries of tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType
from p4switch.architectures.v1model import EXTERNS

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, ExternObject


@EXTERNS.register("action_profile")
class ActionProfile(ExternType):
    """Action profile of a table: `ir.Table.profile`."""

    p4info = "ACTION_PROFILE"

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        builder.profile(extern, selects=False)


@EXTERNS.register("action_selector")
class ActionSelector(ExternType):
    """Action selector of a table: `ir.Table.profile` with an algorithm."""

    p4info = "ACTION_PROFILE"

    def algorithm(self, extern: ExternObject) -> str:
        algorithm = extern.args["algorithm"]
        assert isinstance(algorithm, ir.Const)
        return algorithm.member

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        builder.profile(extern, selects=True)
