"""`ActionProfile` and `ActionSelector`: actions with data that the entries of tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.psa.algorithms import ALGORITHMS
from p4switch.architectures.v1model.externs import action_profile

if TYPE_CHECKING:
    from p4switch.compiler.midend.elaborate import ExternObject


EXTERNS.add("ActionProfile", action_profile.ActionProfile)  # as in v1model


@EXTERNS.register("ActionSelector")
class ActionSelector(action_profile.ActionSelector):
    """Action selector of a table: `ir.Table.profile` with an algorithm."""

    def algorithm(self, extern: ExternObject) -> str:
        algorithm = extern.args["algo"]
        assert isinstance(algorithm, ir.Const)
        return ALGORITHMS[algorithm.member]
