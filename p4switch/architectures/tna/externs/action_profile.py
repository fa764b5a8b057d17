"""`ActionProfile` and `ActionSelector`: actions with data that the entries of tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.architectures.extern import ExternType
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.hash import algorithm_of
from p4switch.bfrt.fields import Id, data_field, value_type
from p4switch.compiler.midend.elaborate import ExternObject

if TYPE_CHECKING:
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.compiler.p4info.build import Builder

_PROFILE, _SELECTOR, _GET_MEMBER = 0x81, 0x82, 0x9A
_MEMBER = data_field(Id.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", value_type("uint32"))
_GROUP = data_field(Id.SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", value_type("uint32"))
_MAX_GROUP_SIZE, _GROUPS = 120, 4  # sizes of a selector that declares none because it is its own action profile
_NO_OFFSET = 0xDEADBEEF


def _publish_profile(extern: ExternObject, schema: Schema) -> None:
    table = schema.table(_PROFILE, extern, "Action", extern.number("size"))
    table.key(Id.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", value_type("uint32"))
    users = sorted(schema.users(extern), key=lambda user: user.ir.name)
    table.actions = schema.action_specs(users[0]) if users else []
    for user in users[:1]:
        of = next(t for t in schema.tables if t.name == schema.name(user.ir.name))
        of.depends(table.id)


@EXTERNS.register("ActionProfile")
class ActionProfile(ExternType):
    """Action profile of a table (`ir.Table.profile`), used directly or through selectors."""

    p4info = "ACTION_PROFILE"
    bfrt = _PROFILE

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        builder.profile(extern, selects=any(table.profile is not extern for table in builder.users(extern)))

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        _publish_profile(extern, schema)

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        table.type = "MatchAction_Indirect"
        table.depends(schema.id(_PROFILE, extern.path))
        table.singleton(_MEMBER, mandatory=True)


@EXTERNS.register("ActionSelector")
class ActionSelector(ExternType):
    """Action selector of a table: `ir.Table.profile` with an algorithm.

    P4Runtime sees the selector and its action profile as one object.

    Only BfRuntime sees the mode, and the register with the states of the members' ports.
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

    def _own_name(self, extern: ExternObject) -> str:
        """Return the selector's name in `bf-rt.json`.

        If the object is also the action profile, the plain name belongs to the action profile.
        """
        return f"{extern.path}_sel" if self.profile(extern) is extern else extern.path

    def bfrt_names(self, extern: ExternObject) -> list[tuple[int, str]]:
        own = [(_SELECTOR, self._own_name(extern))]
        return [*own, (_PROFILE, extern.path)] if self.profile(extern) is extern else own

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        profile, whole = self.profile(extern), self.profile(extern) is extern
        if whole:
            _publish_profile(extern, schema)
        name = self._own_name(extern)
        groups = _GROUPS if whole else extern.number("num_groups")
        size = _MAX_GROUP_SIZE if whole else extern.number("max_group_size")
        selector = schema.table(_SELECTOR, extern, "Selector", groups, name=name)
        selector.key(Id.SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", value_type("uint32"))
        selector.singleton(data_field(Id.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", value_type("uint32"), repeated=True))
        states = data_field(Id.ACTION_MEMBER_STATUS, "$ACTION_MEMBER_STATUS", value_type("bool"), repeated=True)
        selector.singleton(states)
        selector.singleton(data_field(Id.MAX_GROUP_SIZE, "$MAX_GROUP_SIZE", value_type("uint32", size)))
        selector.singleton(data_field(Id.ADT_OFFSET, "$ADT_OFFSET", value_type("uint32", _NO_OFFSET)))
        selector.depends(schema.id(_PROFILE, profile.path))
        of = schema.table(_GET_MEMBER, extern, "SelectorGetMember", 1, name=f"{name}_get_member", like=selector.id)
        of.key(Id.GET_MEMBER_SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", value_type("uint64"))
        of.key(Id.HASH_VALUE, "hash_value", value_type("uint64"))
        of.singleton(data_field(Id.GET_MEMBER_ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", value_type("uint64")))
        of.depends(selector.id)

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        table.type = "MatchAction_Indirect_Selector"
        table.depends(schema.id(_SELECTOR, self._own_name(extern)))
        table.one_of(_MEMBER, _GROUP)
