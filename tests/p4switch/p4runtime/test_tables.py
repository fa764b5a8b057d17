"""Table entries: every match kind, don't care, priorities, default entries, constant entries, errors."""

from __future__ import annotations

from typing import Any

import pytest

from p4switch.p4runtime.messages import p4runtime_pb2
from tests.p4switch.p4runtime.conftest import Bench
from tests.p4switch.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from tests.p4switch.p4runtime.fake import FakeSwitch

TABLE = "EverythingIngress."


def test_exact(controller: Controller, switch: FakeSwitch) -> None:
    entry = controller.entry("exact_one", {"e": 0x1234}, ("counted_send", {"port": 3}))
    controller.insert(entry)
    ((key, priority, target),) = switch.tables[TABLE + "exact_one"].values()
    assert key == ((b"\x12\x34", b""),)
    assert priority == 0
    assert target == ("action", TABLE + "counted_send", (b"\x00\x03",))
    assert controller.read(controller.entry("exact_one")) == [entry]
    controller.delete(controller.entry("exact_one", {"e": 0x1234}))
    assert controller.read(controller.entry("exact_one")) == []
    assert not switch.tables[TABLE + "exact_one"]


def test_all_kinds_at_once(controller: Controller, switch: FakeSwitch) -> None:
    match = {"e": 7, "l": (0x0A000000, 8), "t": (0x1200, 0xFF00), "r": (5, 9), "o": 0}
    entry = controller.entry("mixed", match, ("send", {"port": 511}), priority=10)
    controller.insert(entry)
    ((key, priority, _),) = switch.tables[TABLE + "mixed"].values()
    assert key == ((b"\x00\x07", b""), (b"\x0a\0\0\0", 8), (b"\x12\0", b"\xff\0"), (b"\x05", b"\x09"), (b"\0", b"\xff"))
    assert priority == 10
    assert controller.read(controller.entry("mixed", match, priority=10)) == [entry]


def test_dont_care_is_left_out(controller: Controller, switch: FakeSwitch) -> None:
    entry = controller.entry("mixed", {"e": 0}, ("drop",), priority=1)
    controller.insert(entry)
    ((key, _, _),) = switch.tables[TABLE + "mixed"].values()
    assert key == ((b"\0\0", b""), (bytes(4), 0), (b"\0\0", b"\0\0"), (b"\0", b"\xff"), (b"\0", b"\0"))
    assert controller.read(controller.entry("mixed")) == [entry]


@pytest.mark.parametrize("spelling", [b"\x63", b"\x00\x63", b"\x00\x00\x00\x63"])
def test_byte_strings_of_any_length_are_one_value(controller: Controller, spelling: bytes) -> None:
    controller.insert(controller.entry("exact_one", {"e": spelling}, ("counted_send", {"port": b"\x00\x00\x01"})))
    controller.refused("ALREADY_EXISTS", INSERT, controller.entry("exact_one", {"e": 0x63}, ("counted_drop",)))
    (entry,) = controller.read(controller.entry("exact_one"))
    assert entry.match[0].exact.value == b"\x63"
    assert entry.action.action.params[0].value == b"\x01"


@pytest.mark.parametrize(
    ("table", "match", "says"),
    [
        ("exact_one", {"e": b""}, "empty"),
        ("exact_one", {"e": 0x10000}, "16 bits"),
        ("exact_one", {}, "missing"),
        ("lpm_one", {"l": (0x0A000001, 8)}, "beyond the prefix"),
        ("lpm_one", {"l": (0, 0)}, "prefix length 0"),
        ("lpm_one", {"l": (0, 33)}, "prefix length 33"),
        ("lpm_one", {"l": (0, -1)}, "prefix length -1"),
        ("mixed", {"e": 1, "t": (1, 0)}, "mask is 0"),
        ("mixed", {"e": 1, "t": (0x11, 0x10)}, "excludes"),
        ("mixed", {"e": 1, "r": (9, 5)}, "down to"),
        ("mixed", {"e": 1, "r": (0, 255)}, "every value"),
        ("mixed", {"e": 1, "o": 256}, "8 bits"),
        ("mixed", {"t": (1, 1)}, "missing: e"),
    ],
)
def test_malformed_match(
    controller: Controller, switch: FakeSwitch, table: str, match: dict[str, Any], says: str
) -> None:
    action = ("counted_drop",) if table == "exact_one" else ("drop",)
    entry = controller.entry(table, match, action, priority=1 if table == "mixed" else 0)
    assert says in controller.refused("INVALID_ARGUMENT", INSERT, entry)
    assert not switch.tables.get(TABLE + table)


def test_match_field_of_the_wrong_kind_unknown_or_twice(controller: Controller) -> None:
    entry = controller.entry("exact_one", {"e": 1}, ("counted_drop",))
    entry.match[0].lpm.value = b"\x01"
    assert "is exact, not lpm" in controller.refused("INVALID_ARGUMENT", INSERT, entry)
    entry.match[0].ClearField("lpm")
    assert "not unset" in controller.refused("INVALID_ARGUMENT", INSERT, entry)
    entry = controller.entry("exact_one", {"e": 1}, ("counted_drop",))
    entry.match.add().CopyFrom(entry.match[0])
    assert "twice" in controller.refused("INVALID_ARGUMENT", INSERT, entry)
    entry.match[1].field_id = 9
    assert "id 9" in controller.refused("INVALID_ARGUMENT", INSERT, entry)


def test_priority_is_where_it_belongs(controller: Controller) -> None:
    controller.refused(
        "INVALID_ARGUMENT", INSERT, controller.entry("exact_one", {"e": 1}, ("counted_drop",), priority=1)
    )
    controller.refused("INVALID_ARGUMENT", INSERT, controller.entry("mixed", {"e": 1}, ("drop",)))
    controller.refused("INVALID_ARGUMENT", INSERT, controller.entry("mixed", {"e": 1}, ("drop",), priority=-1))


def test_priority_is_part_of_the_key(controller: Controller) -> None:
    low = controller.entry("mixed", {"e": 1}, ("drop",), priority=1)
    high = controller.entry("mixed", {"e": 1}, ("send", {"port": 1}), priority=2)
    controller.insert(low, high)
    assert controller.read(controller.entry("mixed", {"e": 1}, priority=2)) == [high]
    assert controller.read(controller.entry("mixed", priority=1)) == [low]
    assert controller.read(controller.entry("mixed", {"e": 1})) == [low, high]
    controller.delete(controller.entry("mixed", {"e": 1}, priority=1))
    assert controller.read(controller.entry("mixed")) == [high]


def test_malformed_action(controller: Controller) -> None:
    def refuse(code: str, table: str, action: object) -> str:
        match = {"e": 1} if table == "exact_one" else {"l": (0x0A000000, 8)}
        return controller.refused(code, INSERT, controller.entry(table, match, action))

    assert "action is missing" in refuse("INVALID_ARGUMENT", "lpm_one", None)
    assert "missing: port" in refuse("INVALID_ARGUMENT", "lpm_one", ("send",))
    assert "9 bits" in refuse("INVALID_ARGUMENT", "lpm_one", ("send", {"port": 512}))
    assert "no action" in refuse("INVALID_ARGUMENT", "lpm_one", ("counted_drop",))
    assert "may not" in refuse("PERMISSION_DENIED", "exact_one", ("NoAction",))
    twice = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("send", {"port": 1}))
    twice.action.action.params.add(param_id=1, value=b"\x02")
    assert "twice" in controller.refused("INVALID_ARGUMENT", INSERT, twice)
    twice.action.action.params[1].param_id = 2
    assert "id 2" in controller.refused("INVALID_ARGUMENT", INSERT, twice)
    member = p4runtime_pb2.TableAction(action_profile_member_id=1)
    assert "expected an action" in refuse("INVALID_ARGUMENT", "lpm_one", member)


def test_unknown_table(controller: Controller) -> None:
    for kind in (INSERT, MODIFY, DELETE):
        controller.refused("INVALID_ARGUMENT", kind, p4runtime_pb2.TableEntry(table_id=77))
        controller.refused("INVALID_ARGUMENT", kind, p4runtime_pb2.TableEntry())
    controller.read_refused("INVALID_ARGUMENT", p4runtime_pb2.TableEntry(table_id=77))


def test_what_is_not_there(controller: Controller) -> None:
    controller.refused("NOT_FOUND", MODIFY, controller.entry("exact_one", {"e": 1}, ("counted_drop",)))
    controller.refused("NOT_FOUND", DELETE, controller.entry("exact_one", {"e": 1}))
    assert controller.read(controller.entry("exact_one", {"e": 1})) == []


def test_full_table(controller: Controller) -> None:
    controller.insert(*(controller.entry("exact_one", {"e": i}, ("counted_drop",)) for i in range(16)))
    controller.refused("RESOURCE_EXHAUSTED", INSERT, controller.entry("exact_one", {"e": 16}, ("counted_drop",)))
    assert len(controller.read(controller.entry("exact_one"))) == 16


def test_modify_is_a_snapshot_but_for_action_and_counter(controller: Controller, switch: FakeSwitch) -> None:
    controller.insert(
        controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("send", {"port": 1}), metadata=b"m", controller_metadata=4)
    )
    controller.modify(controller.entry("lpm_one", {"l": (0x0A000000, 8)}, controller_metadata=5))
    (entry,) = controller.read(controller.entry("lpm_one"))
    assert (entry.metadata, entry.controller_metadata) == (b"", 5)
    assert entry.action.action.params[0].value == b"\x01"
    assert "table_modify" not in switch.calls
    controller.modify(controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("to_group", {"group": 9})))
    ((_, _, target),) = switch.tables[TABLE + "lpm_one"].values()
    assert target == ("action", TABLE + "to_group", (b"\x00\x09",))


def test_delete_looks_at_the_key_only(controller: Controller) -> None:
    controller.insert(controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("send", {"port": 1})))
    nonsense = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("counted_drop",), metadata=b"x", idle_timeout_ns=-3)
    controller.delete(nonsense)
    assert controller.read(controller.entry("lpm_one")) == []


def test_default_entry(controller: Controller, switch: FakeSwitch) -> None:
    def default(action: object = None, **more: object) -> object:
        return controller.entry("lpm_one", None, action, is_default_action=True, **more)

    (entry,) = controller.read(default())
    assert entry == default(("drop",))
    controller.modify(default(("send", {"port": 4}), metadata=b"mine"))
    assert switch.defaults[TABLE + "lpm_one"] == ("action", TABLE + "send", (b"\x00\x04",))
    assert controller.read(default()) == [default(("send", {"port": 4}), metadata=b"mine")]
    assert controller.read(controller.entry("lpm_one")) == []
    controller.modify(default())
    assert switch.defaults[TABLE + "lpm_one"] is None
    assert controller.read(default()) == [default(("drop",))]
    controller.refused("INVALID_ARGUMENT", INSERT, default(("drop",)))
    controller.refused("INVALID_ARGUMENT", DELETE, default())
    controller.refused("INVALID_ARGUMENT", MODIFY, default(("drop",), priority=1))
    controller.refused("INVALID_ARGUMENT", MODIFY, default(("drop",), idle_timeout_ns=1))
    controller.refused("PERMISSION_DENIED", MODIFY, default(("learn",)))
    with_match = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("drop",), is_default_action=True)
    controller.refused("INVALID_ARGUMENT", MODIFY, with_match)


def test_constant_default(controller: Controller) -> None:
    for table in ("mixed", "selected", "profiled"):
        entry = controller.entry(table, None, ("NoAction",), is_default_action=True)
        controller.refused("PERMISSION_DENIED", MODIFY, entry)
        (read,) = controller.read(controller.entry(table, is_default_action=True))
        assert read.is_const
        assert read.action.action.action_id == controller.actions["NoAction"].preamble.id


def test_constant_table(controller: Controller, switch: FakeSwitch) -> None:
    first = controller.entry("constant", {"t": (0x0100, 0xFF00)}, ("send", {"port": 1}), priority=2, is_const=True)
    second = controller.entry("constant", {"t": (0, 0xF000)}, ("send", {"port": 2}), priority=1, is_const=True)
    assert controller.read(controller.entry("constant")) == [first, second]
    same = controller.entry("constant", {"t": (0x0100, 0xFF00)}, ("send", {"port": 1}), priority=2)
    for kind in (INSERT, MODIFY, DELETE):
        controller.refused("PERMISSION_DENIED", kind, same)
    assert not any(call.startswith("table_") for call in switch.calls)
    # The default action is not constant.
    controller.modify(controller.entry("constant", None, ("drop",), is_default_action=True))


def test_preset_table(controller: Controller, bench: Bench) -> None:
    one = controller.entry("preset", {"r": 1}, ("send", {"port": 1}))
    two = controller.entry("preset", {"r": 2}, ("drop",))
    assert controller.read(controller.entry("preset")) == [one, two]
    controller.refused("ALREADY_EXISTS", INSERT, one)
    controller.insert(controller.entry("preset", {"r": 3}, ("drop",)))
    controller.delete(controller.entry("preset", {"r": 2}))
    assert [e.match[0].exact.value for e in controller.read(controller.entry("preset"))] == [b"\x01", b"\x03"]


def test_keyless_table(controller: Controller) -> None:
    controller.refused("INVALID_ARGUMENT", INSERT, controller.entry("keyless", None, ("drop",)))
    controller.modify(controller.entry("keyless", None, ("drop",), is_default_action=True))


def test_is_const_cannot_be_written(controller: Controller) -> None:
    for kind in (INSERT, MODIFY, DELETE):
        entry = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("drop",), is_const=True)
        controller.refused("INVALID_ARGUMENT", kind, entry)


def test_reads_are_filtered(controller: Controller) -> None:
    a = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("send", {"port": 1}), metadata=b"a", controller_metadata=1)
    b = controller.entry("lpm_one", {"l": (0x0B000000, 8)}, ("drop",), metadata=b"b", controller_metadata=2)
    controller.insert(a, b)
    assert controller.read(controller.entry("lpm_one", None, metadata=b"b")) == [b]
    assert controller.read(controller.entry("lpm_one", None, controller_metadata=1)) == [a]
    query = controller.entry("lpm_one")
    query.action.action.action_id = controller.actions["drop"].preamble.id
    assert controller.read(query) == [b]
    assert controller.read(controller.entry("lpm_one", {"l": (0x0A000000, 8)})) == [a]
    assert len(controller.read(p4runtime_pb2.TableEntry())) == 2 + 2 + 2  # and the initial entries
    everything = controller.read(p4runtime_pb2.TableEntry(is_default_action=True))
    assert len(everything) == len(controller.tables)
    controller.read_refused("INVALID_ARGUMENT", p4runtime_pb2.TableEntry(priority=3))


def test_an_entry_that_matches_everything(controller: Controller) -> None:
    entry = controller.entry("lpm_one", None, ("send", {"port": 1}))
    controller.insert(entry)
    controller.refused("ALREADY_EXISTS", INSERT, entry)
    assert controller.read(controller.entry("lpm_one")) == [entry]
    controller.delete(controller.entry("lpm_one"))
    assert controller.read(controller.entry("lpm_one")) == []


def test_idle_timeout(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    entry = controller.entry("exact_one", {"e": 1}, ("counted_drop",), idle_timeout_ns=5)
    message = controller.refused("INVALID_ARGUMENT", INSERT, entry)
    assert message == "idle_timeout_ns must be set to 0 for tables which do not support idle timeout"
    entry = controller.entry("fading", {"e": 1}, ("NoAction",), idle_timeout_ns=-5)
    assert controller.refused("INVALID_ARGUMENT", INSERT, entry) == "idle_timeout_ns must be a positive value"
    for entry in (
        controller.entry("fading", {"e": 1}, ("NoAction",), time_since_last_hit={"elapsed_ns": 1}),
        controller.entry("fading", None, ("NoAction",), is_default_action=True, time_since_last_hit={"elapsed_ns": 1}),
    ):
        message = controller.refused("INVALID_ARGUMENT", MODIFY, entry)
        assert message == "has_time_since_last_hit must not be set in WriteRequest"
    bench.now_ns = 1000
    entry = controller.entry("fading", {"e": 1}, ("NoAction",), idle_timeout_ns=500, metadata=b"who")
    controller.insert(entry, controller.entry("fading", {"e": 2}, ("NoAction",)))
    query = controller.entry("fading", {"e": 1})
    query.time_since_last_hit.SetInParent()
    bench.now_ns = 1400
    assert controller.read(query)[0].time_since_last_hit.elapsed_ns == 400
    assert bench.device.poll() == []
    (handle,) = [h for h, (key, _, _) in switch.tables[TABLE + "fading"].items() if key[0][0] == b"\x00\x01"]
    switch.last_hits[TABLE + "fading", handle] = 1300
    bench.now_ns = 1600
    assert bench.device.poll() == []
    bench.now_ns = 1800
    (message,) = bench.device.poll()
    (idle,) = message.idle_timeout_notification.table_entry
    assert idle == controller.entry("fading", {"e": 1}, idle_timeout_ns=500, metadata=b"who")
    bench.now_ns = 2299
    assert bench.device.poll() == []
    bench.now_ns = 2300
    assert len(bench.device.poll()) == 1
    assert controller.read(query)[0].time_since_last_hit.elapsed_ns == 1000
    controller.read_refused("INVALID_ARGUMENT", controller.entry("lpm_one", None, time_since_last_hit={}))
