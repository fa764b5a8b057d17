"""`ActionProfile` and `ActionSelector`: actions with their data, which entries of tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.psa.algorithms import ALGORITHMS
from p4switch.architectures.v1model.externs import action_profile

if TYPE_CHECKING:
    from p4switch.compiler.midend.elaborate import ExternObject


EXTERNS.add("ActionProfile", action_profile.ActionProfile)  # as v1model's


@EXTERNS.register("ActionSelector")
class ActionSelector(action_profile.ActionSelector):
    """A table's property: `ir.Table.profile`, with an algorithm."""

    def algorithm(self, extern: ExternObject) -> str:
        algorithm = extern.args["algo"]
        assert isinstance(algorithm, ir.Const)
        return ALGORITHMS[algorithm.member]
