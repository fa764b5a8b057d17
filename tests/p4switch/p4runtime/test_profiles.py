"""Action profile members and groups, one-shot action sets, weights, watched ports."""

from __future__ import annotations

from p4switch.p4runtime.messages import Message, p4runtime_pb2
from tests.p4switch.p4runtime.conftest import Bench
from tests.p4switch.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from tests.p4switch.p4runtime.fake import FakeSwitch

SELECTOR = "EverythingIngress.selector"
TABLE = "EverythingIngress.selected"


def member(controller: Controller, ident: int, port: int | None, profile: str = "selector") -> Message:
    message = p4runtime_pb2.ActionProfileMember(
        action_profile_id=controller.id("action_profiles", profile), member_id=ident
    )
    if port is not None:
        message.action.CopyFrom(controller.action("send", port=port))
    return message


def group(controller: Controller, ident: int, *members: tuple[int | bytes, ...], max_size: int = 0) -> Message:
    """Return a group of members (id, weight[, watched port])."""
    message = p4runtime_pb2.ActionProfileGroup(
        action_profile_id=controller.id("action_profiles", "selector"), group_id=ident, max_size=max_size
    )
    for member_id, weight, *watch in members:
        slot = message.members.add(member_id=member_id, weight=weight)
        if watch:
            slot.watch_port = watch[0]
    return message


def by_group(ident: int) -> Message:
    return p4runtime_pb2.TableAction(action_profile_group_id=ident)


def by_member(ident: int) -> Message:
    return p4runtime_pb2.TableAction(action_profile_member_id=ident)


def ports_of(switch: FakeSwitch, profile: str = SELECTOR) -> list[list[int]]:
    """Return the ports of the slots of each of the engine's groups."""
    return [
        [int.from_bytes(switch.members[profile, m][1][0], "big") for m in slots]
        for (p, _), slots in switch.groups.items()
        if p == profile
    ]


def test_members(controller: Controller, switch: FakeSwitch) -> None:
    controller.insert(member(controller, 1, 11), member(controller, 2, 12))
    assert list(controller.read(member(controller, 0, None))) == [
        member(controller, 1, 11),
        member(controller, 2, 12),
    ]
    assert controller.read(member(controller, 2, None)) == [member(controller, 2, 12)]
    assert controller.read(p4runtime_pb2.ActionProfileMember()) == controller.read(member(controller, 0, None))
    controller.modify(member(controller, 2, 22))
    assert controller.read(member(controller, 2, None)) == [member(controller, 2, 22)]
    controller.delete(member(controller, 1, None))
    assert len(switch.members) == 1
    controller.refused("ALREADY_EXISTS", INSERT, member(controller, 2, 1))
    controller.refused("NOT_FOUND", MODIFY, member(controller, 1, 1))
    controller.refused("NOT_FOUND", DELETE, member(controller, 1, None))
    controller.refused("INVALID_ARGUMENT", INSERT, member(controller, 0, 1))
    controller.refused("INVALID_ARGUMENT", INSERT, member(controller, 3, None))
    controller.refused("INVALID_ARGUMENT", MODIFY, member(controller, 2, None))
    unknown = p4runtime_pb2.ActionProfileMember(action_profile_id=99, member_id=1)
    controller.refused("INVALID_ARGUMENT", INSERT, unknown)
    controller.read_refused("INVALID_ARGUMENT", p4runtime_pb2.ActionProfileMember(member_id=1))


def test_a_profile_holds_as_many_members_as_its_size(controller: Controller) -> None:
    controller.insert(*(member(controller, i, 1, "profile") for i in range(1, 9)))
    controller.refused("RESOURCE_EXHAUSTED", INSERT, member(controller, 9, 1, "profile"))


def test_groups_and_their_weights(controller: Controller, switch: FakeSwitch) -> None:
    controller.insert(member(controller, 1, 11), member(controller, 2, 12), group(controller, 5, (1, 1), (2, 3)))
    assert ports_of(switch) == [[11, 12, 12, 12]]
    assert controller.read(group(controller, 0)) == [group(controller, 5, (1, 1), (2, 3))]
    assert controller.read(p4runtime_pb2.ActionProfileGroup()) == controller.read(group(controller, 5))
    controller.modify(group(controller, 5, (2, 1)))
    assert ports_of(switch) == [[12]]
    controller.delete(member(controller, 1, None))  # no longer in the group
    controller.refused("FAILED_PRECONDITION", DELETE, member(controller, 2, None))
    controller.modify(group(controller, 5))
    assert ports_of(switch) == [[]]
    controller.delete(group(controller, 5), member(controller, 2, None))
    assert not switch.groups
    assert not switch.members


def test_group_errors(controller: Controller) -> None:
    controller.insert(member(controller, 1, 11))
    controller.refused("NOT_FOUND", INSERT, group(controller, 5, (2, 1)))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 5, (1, 0)))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 5, (1, -1)))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 5, (1, 1), (1, 1)))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 0, (1, 1)))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 5, (1, 1), max_size=-1))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 5, (1, 1, b"\x02\x00")))  # 9 bits
    controller.refused("RESOURCE_EXHAUSTED", INSERT, group(controller, 5, (1, 65)))  # the selector's size is 64
    controller.refused("RESOURCE_EXHAUSTED", INSERT, group(controller, 5, (1, 3), max_size=2))
    controller.refused("RESOURCE_EXHAUSTED", INSERT, group(controller, 5, (1, 2**31 - 1)))
    controller.refused("NOT_FOUND", MODIFY, group(controller, 5, (1, 1)))
    controller.refused("NOT_FOUND", DELETE, group(controller, 5))
    controller.insert(group(controller, 5, (1, 1), max_size=2))
    controller.refused("ALREADY_EXISTS", INSERT, group(controller, 5, (1, 1)))
    controller.refused("INVALID_ARGUMENT", MODIFY, group(controller, 5, (1, 1), max_size=3))
    no_selector = p4runtime_pb2.ActionProfileGroup(
        action_profile_id=controller.id("action_profiles", "profile"), group_id=1
    )
    controller.refused("INVALID_ARGUMENT", INSERT, no_selector)


def test_the_size_of_a_selector_counts_weights(controller: Controller) -> None:
    controller.insert(member(controller, 1, 11), group(controller, 5, (1, 60)))
    controller.refused("RESOURCE_EXHAUSTED", INSERT, group(controller, 6, (1, 5)))
    controller.insert(group(controller, 6, (1, 4)))
    controller.modify(group(controller, 5, (1, 59)))
    controller.modify(group(controller, 6, (1, 5)))
    controller.refused("RESOURCE_EXHAUSTED", MODIFY, group(controller, 6, (1, 6)))


def test_entries_that_refer(controller: Controller, switch: FakeSwitch) -> None:
    controller.refused("NOT_FOUND", INSERT, controller.entry("selected", {"o": 1}, by_group(5)))
    controller.refused("NOT_FOUND", INSERT, controller.entry("selected", {"o": 1}, by_member(1)))
    controller.insert(member(controller, 1, 11), group(controller, 5, (1, 1)))
    controller.insert(
        controller.entry("selected", {"o": 1}, by_group(5)), controller.entry("selected", {"o": 2}, by_member(1))
    )
    (group_handle,) = [h for p, h in switch.groups]
    (member_handle,) = [h for p, h in switch.members]
    assert [e[2] for e in switch.tables[TABLE].values()] == [("group", group_handle), ("member", member_handle)]
    assert [e.action for e in controller.read(controller.entry("selected"))] == [by_group(5), by_member(1)]
    controller.refused("FAILED_PRECONDITION", DELETE, group(controller, 5))
    controller.modify(controller.entry("selected", {"o": 1}, by_member(1)))
    controller.delete(group(controller, 5))
    controller.refused("FAILED_PRECONDITION", DELETE, member(controller, 1, None))
    controller.delete(controller.entry("selected", {"o": 1}), controller.entry("selected", {"o": 2}))
    controller.delete(member(controller, 1, None))


def test_what_an_indirect_table_takes(controller: Controller) -> None:
    direct = controller.entry("selected", {"o": 1}, ("send", {"port": 1}))
    assert "a member, group or action set" in controller.refused("INVALID_ARGUMENT", INSERT, direct)
    controller.refused("INVALID_ARGUMENT", INSERT, controller.entry("profiled", {"o": 1}, by_group(1)))
    one_shot = controller.action_set(("send", {"port": 1}, 1))
    controller.refused("INVALID_ARGUMENT", INSERT, controller.entry("profiled", {"o": 1}, one_shot))
    controller.insert(member(controller, 1, 11, "profile"))
    controller.insert(controller.entry("profiled", {"o": 1}, by_member(1)))


def test_one_shot(controller: Controller, switch: FakeSwitch) -> None:
    action = controller.action_set(("send", {"port": 1}, 2), ("send", {"port": 1}, 1), ("drop", {}, 1))
    entry = controller.entry("selected", {"o": 1}, action)
    controller.insert(entry)
    assert controller.read(controller.entry("selected")) == [entry]
    assert controller.read(p4runtime_pb2.ActionProfileMember()) == []
    assert len(switch.members) == 3
    ((_, slots),) = switch.groups.items()
    assert [switch.members[SELECTOR, m][0].rsplit(".")[-1] for m in slots] == ["send", "send", "send", "drop"]
    other = controller.entry("selected", {"o": 1}, controller.action_set(("send", {"port": 7}, 1)))
    controller.modify(other)
    assert controller.read(controller.entry("selected")) == [other]
    assert ports_of(switch) == [[7]]
    assert len(switch.members) == 1
    controller.delete(controller.entry("selected", {"o": 1}))
    assert not switch.groups
    assert not switch.members


def test_one_shot_errors(controller: Controller) -> None:
    def refuse(code: str, action: Message) -> str:
        return controller.refused(code, INSERT, controller.entry("selected", {"o": 1}, action))

    refuse("INVALID_ARGUMENT", controller.action_set(("send", {"port": 1}, 0)))
    refuse("PERMISSION_DENIED", controller.action_set(("NoAction", {}, 1)))
    refuse("RESOURCE_EXHAUSTED", controller.action_set(("send", {"port": 1}, 65)))
    with_group_action = controller.action_set(("send", {"port": 1}, 1))
    with_group_action.action_profile_action_set.group_action.action_id = 101
    refuse("UNIMPLEMENTED", with_group_action)
    random = controller.action_set(("send", {"port": 1}, 1))
    random.action_profile_action_set.action_selection_mode = 2
    refuse("UNIMPLEMENTED", random)


def test_the_two_styles_do_not_mix(controller: Controller) -> None:
    entry = controller.entry("selected", {"o": 1}, controller.action_set(("send", {"port": 1}, 1)))
    controller.insert(member(controller, 1, 11))
    controller.refused("INVALID_ARGUMENT", INSERT, entry)
    controller.delete(member(controller, 1, None))
    controller.insert(entry)
    controller.refused("INVALID_ARGUMENT", INSERT, member(controller, 1, 11))
    controller.refused("INVALID_ARGUMENT", INSERT, group(controller, 1))


def test_a_one_shot_may_be_replaced_when_the_selector_is_full(controller: Controller) -> None:
    controller.insert(controller.entry("selected", {"o": 1}, controller.action_set(("send", {"port": 1}, 64))))
    controller.refused(
        "RESOURCE_EXHAUSTED",
        INSERT,
        controller.entry("selected", {"o": 2}, controller.action_set(("send", {"port": 1}, 1))),
    )
    controller.modify(controller.entry("selected", {"o": 1}, controller.action_set(("send", {"port": 2}, 64))))


def test_watched_ports(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    what = group(controller, 5, (1, 2, b"\x01"), (2, 1, b"\x02"), (3, 1))
    controller.insert(*(member(controller, i, 10 + i) for i in (1, 2, 3)), what)
    assert ports_of(switch) == [[11, 11, 12, 13]]
    bench.device.set_port_up(1, False)
    assert ports_of(switch) == [[12, 13]]
    assert controller.read(group(controller, 5)) == [what]
    bench.device.set_port_up(2, False)
    assert ports_of(switch) == [[13]]
    bench.device.set_port_up(1, True)
    assert ports_of(switch) == [[11, 11, 13]]


def test_watched_ports_of_a_one_shot(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    bench.device.set_port_up(9, False)
    entry = controller.entry(
        "selected", {"o": 1}, controller.action_set(("send", {"port": 8}, 1, 8), ("send", {"port": 9}, 1, 9))
    )
    controller.insert(entry)
    assert ports_of(switch) == [[8]]
    bench.device.set_port_up(9, True)
    assert ports_of(switch) == [[8, 9]]
    assert controller.read(controller.entry("selected")) == [entry]
