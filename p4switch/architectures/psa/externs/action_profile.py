"""`ActionProfile` and `ActionSelector`: actions with their data, which entries of tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.psa.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from p4switch.compiler.midend.elaborate import ExternObject
    from p4switch.compiler.p4info.build import Builder


@EXTERNS.register("ActionProfile")
class ActionProfile(ExternType):
    """A table's property: `ir.Table.profile`."""

    p4info = "ACTION_PROFILE"

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        builder.profile(extern, selects=False)


@EXTERNS.register("ActionSelector")
class ActionSelector(ExternType):
    """A table's property: `ir.Table.profile`, with an algorithm."""

    p4info = "ACTION_PROFILE"

    def algorithm(self, extern: ExternObject) -> str:
        algorithm = extern.args["algo"]
        assert isinstance(algorithm, ir.Const)
        return ALGORITHMS[algorithm.member]

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        builder.profile(extern, selects=True)
