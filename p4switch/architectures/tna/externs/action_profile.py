"""`ActionProfile` and `ActionSelector`: actions with their data, which entries of tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.architectures.extern import ExternType
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.hash import algorithm_of
from p4switch.compiler.midend.elaborate import ExternObject

if TYPE_CHECKING:
    from p4switch.compiler.p4info.build import Builder


@EXTERNS.register("ActionProfile")
class ActionProfile(ExternType):
    """A table's property: `ir.Table.profile`, by itself or through the selectors that choose from it."""

    p4info = "ACTION_PROFILE"

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        builder.profile(extern, selects=any(table.profile is not extern for table in builder.users(extern)))


@EXTERNS.register("ActionSelector")
class ActionSelector(ExternType):
    """A table's property: `ir.Table.profile`, with an algorithm. To P4Runtime it is one with its action profile.

    The mode and the register that watches the members' ports are BfRuntime's alone.
    """

    p4info = "ACTION_PROFILE"

    def algorithm(self, extern: ExternObject) -> str:
        hashing = extern.args["hash"]
        assert isinstance(hashing, ExternObject)
        return algorithm_of(hashing)

    def profile(self, extern: ExternObject) -> ExternObject:
        members = extern.args.get("action_profile")
        return members if isinstance(members, ExternObject) else extern

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        if self.profile(extern) is extern:
            builder.profile(extern, selects=True)
