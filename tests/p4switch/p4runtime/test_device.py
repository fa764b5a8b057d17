"""The pipeline config, batches and their atomicity, and complete requests."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import text_format

from p4switch.bmv2.writer import to_json
from p4switch.p4runtime import Device, P4RuntimeError
from p4switch.p4runtime.errors import batch_error
from p4switch.p4runtime.messages import Message, P4DeviceConfig, code_pb2, p4info_pb2, p4runtime_pb2
from tests.p4switch.p4runtime import everything
from tests.p4switch.p4runtime.conftest import Bench
from tests.p4switch.p4runtime.controller import (
    ATOMIC,
    CONTINUE,
    DELETE,
    INSERT,
    MODIFY,
    ROLLBACK,
    Controller,
    config_request,
)
from tests.p4switch.p4runtime.fake import FakeSwitch, as_switch
from tests.p4switch.p4runtime.test_cells import counter, register, value_set
from tests.p4switch.p4runtime.test_profiles import by_group, by_member, group, member
from tests.p4switch.p4runtime.test_replication import group as multicast
from tests.p4switch.p4runtime.test_replication import session
from tests.p4switch.p4runtime.test_streams import digest

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField, Target

Config = p4runtime_pb2.SetForwardingPipelineConfigRequest


def request(action: str, device_id: int = 1) -> Message:
    return config_request(everything.p4info(), everything.device_config(), action, device_id)


def refuse(bench: Bench, code: str, message: Message) -> str:
    with pytest.raises(P4RuntimeError) as caught:
        bench.device.set_forwarding_pipeline_config(message)
    assert code_pb2.Code.Name(caught.value.code) == code
    assert not caught.value.errors
    return str(caught.value)


def get(bench: Bench, kind: str = "ALL") -> Message:
    cls = p4runtime_pb2.GetForwardingPipelineConfigRequest
    return bench.device.get_forwarding_pipeline_config(cls(device_id=1, response_type=cls.ResponseType.Value(kind)))


def test_nothing_works_without_a_pipeline(blank: Bench) -> None:
    for call in (lambda: blank.controller.insert(), lambda: blank.controller.read()):
        with pytest.raises(P4RuntimeError) as caught:
            call()
        assert caught.value.code == code_pb2.FAILED_PRECONDITION
    assert not get(blank).HasField("config")
    assert blank.device.poll() == []


def test_verify_changes_nothing(blank: Bench) -> None:
    blank.device.set_forwarding_pipeline_config(request("VERIFY"))
    assert not blank.installed
    assert not get(blank).HasField("config")


def test_save_then_commit(bench: Bench) -> None:
    old = bench.switch
    bench.controller.insert(bench.controller.entry("lpm_one", {"l": (1 << 31, 1)}, ("drop",)))
    bench.device.set_forwarding_pipeline_config(request("VERIFY_AND_SAVE"))
    assert bench.switch is old
    assert bench.controller.read(bench.controller.entry("lpm_one")) == []  # of the new config now
    bench.controller.insert(bench.controller.entry("lpm_one", {"l": (0, 1)}, ("drop",)))
    assert len(old.tables["EverythingIngress.lpm_one"]) == 1
    bench.device.set_forwarding_pipeline_config(Config(device_id=1, action=Config.COMMIT))
    assert bench.switch is not old
    assert len(bench.controller.read(bench.controller.entry("lpm_one"))) == 1
    assert "no config was saved" in refuse(bench, "NOT_FOUND", Config(device_id=1, action=Config.COMMIT))


def test_commit_clears(bench: Bench) -> None:
    bench.controller.insert(bench.controller.entry("lpm_one", {"l": (1 << 31, 1)}, ("drop",)))
    bench.device.set_forwarding_pipeline_config(request("VERIFY_AND_COMMIT"))
    assert bench.controller.read(bench.controller.entry("lpm_one")) == []


def test_get(bench: Bench) -> None:
    message = request("VERIFY_AND_COMMIT")
    message.config.cookie.cookie = 77
    bench.device.set_forwarding_pipeline_config(message)
    assert get(bench).config == message.config
    assert get(bench, "COOKIE_ONLY").config == p4runtime_pb2.ForwardingPipelineConfig(cookie={"cookie": 77})
    assert not get(bench, "P4INFO_AND_COOKIE").config.p4_device_config
    assert not get(bench, "DEVICE_CONFIG_AND_COOKIE").config.HasField("p4info")
    bench.device.set_forwarding_pipeline_config(request("VERIFY_AND_COMMIT"))
    assert not get(bench).config.HasField("cookie")


def test_bad_configs(bench: Bench) -> None:
    for action in ("VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"):
        assert "config is missing" in refuse(
            bench, "INVALID_ARGUMENT", Config(device_id=1, action=Config.Action.Value(action))
        )
        refuse(bench, "INVALID_ARGUMENT", config_request(everything.p4info(), b"{", action))
        refuse(bench, "INVALID_ARGUMENT", config_request(everything.p4info(), b"[]", action))
        refuse(bench, "INVALID_ARGUMENT", config_request(everything.p4info(), b'{"pipelines": [7]}', action))
    refuse(bench, "INVALID_ARGUMENT", request("UNSPECIFIED"))
    refuse(bench, "INVALID_ARGUMENT", request("COMMIT"))
    assert "device 2" in refuse(bench, "NOT_FOUND", request("VERIFY", device_id=2))
    other = everything.p4info()
    other.tables[0].preamble.name = "elsewhere"
    assert "table elsewhere" in refuse(bench, "INVALID_ARGUMENT", config_request(other, everything.device_config()))
    assert len(bench.installed) == 1


def test_reconcile(bench: Bench) -> None:
    c = bench.controller
    c.insert(
        c.entry(
            "exact_one",
            {"e": 1},
            ("counted_drop",),
            counter_data={"packet_count": 3},
            meter_config={"cir": 1, "cburst": 1, "pir": 2, "pburst": 2},
        ),
        member(c, 1, 11),
        group(c, 2, (1, 3)),
        c.entry("selected", {"o": 1}, by_group(2)),
        multicast(1, (b"\x05", 1)),
        session(2, (b"\x05", 1)),
        digest(c, 5),
        c.entry("preset", {"r": 9}, ("drop",)),
    )
    c.modify(
        counter(c, 1, (7, 8)),
        register(c, "words", 2, b"\x09"),
        value_set(c, b"\x01"),
        c.entry("lpm_one", None, ("send", {"port": 1}), is_default_action=True),
    )
    c.delete(c.entry("preset", {"r": 1}))
    queries = [
        p4runtime_pb2.TableEntry(),
        c.entry("exact_one", None, counter_data={}, meter_config={}),
        p4runtime_pb2.TableEntry(is_default_action=True),
        p4runtime_pb2.ActionProfileMember(),
        p4runtime_pb2.ActionProfileGroup(),
        multicast(0),
        session(0),
        p4runtime_pb2.DigestEntry(),
        p4runtime_pb2.CounterEntry(),
        p4runtime_pb2.RegisterEntry(),
        p4runtime_pb2.ValueSetEntry(),
    ]
    before = [sorted(map(str, c.read(query))) for query in queries]
    bench.device.set_forwarding_pipeline_config(request("RECONCILE_AND_COMMIT"))
    assert [sorted(map(str, c.read(query))) for query in queries] == before
    assert len(bench.installed) == 2
    smaller = everything.p4info()
    del smaller.action_profiles[0].table_ids[:]
    del smaller.tables[5]
    assert "cannot be preserved" in refuse(
        bench, "INVALID_ARGUMENT", config_request(smaller, everything.device_config(), "RECONCILE_AND_COMMIT")
    )
    assert len(bench.installed) == 2


def test_batch_continues_on_error(controller: Controller) -> None:
    good = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("drop",))
    bad = controller.entry("lpm_one", {"l": (0x0A000000, 8)}, ("send", {"port": 1}))
    last = controller.entry("lpm_one", {"l": (0x0B000000, 8)}, ("drop",))
    with pytest.raises(P4RuntimeError) as caught:
        controller.write((INSERT, good), (INSERT, bad), (DELETE, controller.entry("preset", {"r": 7})), (INSERT, last))
    assert [e.canonical_code for e in caught.value.errors] == [
        code_pb2.OK,
        code_pb2.ALREADY_EXISTS,
        code_pb2.NOT_FOUND,
        code_pb2.OK,
    ]
    assert caught.value.code == code_pb2.UNKNOWN
    status = caught.value.status()
    assert status.code == code_pb2.UNKNOWN
    assert len(status.details) == 4
    unpacked = p4runtime_pb2.Error()
    assert status.details[1].Unpack(unpacked)
    assert unpacked == caught.value.errors[1]
    assert controller.read(controller.entry("lpm_one")) == [good, last]


def snapshot(switch: FakeSwitch) -> dict[str, object]:
    """Return the contents of the data plane, without handles."""

    def entry(target: Any, profile: str = "EverythingIngress.selector") -> object:
        if target[0] == "member":
            return ("member", switch.members[profile, target[1]])
        if target[0] == "group":
            return ("group", [switch.members[profile, m] for m in switch.groups[profile, target[1]]])
        return target

    return {
        "tables": {
            t: sorted(
                str((k, p, entry(target), switch.direct_counter_read(t, h), switch.direct_meters.get((t, h))))
                for h, (k, p, target) in entries.items()
            )
            for t, entries in switch.tables.items()
        },
        "defaults": {t: d for t, d in switch.defaults.items() if d is not None},
        "members": sorted(map(str, switch.members.values())),
        "groups": len(switch.groups),
        "multicast": {k: v for k, v in switch.multicast.items() if v is not None},
        "sessions": {k: v for k, v in switch.sessions.items() if v is not None},
        "counters": {k: v for k, v in switch.counters.items() if v != (0, 0)},
        "registers": {k: v for k, v in switch.registers.items() if any(v)},
        "value_sets": {k: v for k, v in switch.value_sets.items() if v},
    }


@pytest.mark.parametrize("atomicity", [ROLLBACK, ATOMIC])
def test_a_batch_is_undone_as_a_whole(controller: Controller, switch: FakeSwitch, atomicity: int) -> None:
    c = controller
    meter_config = {"cir": 1, "cburst": 1, "pir": 2, "pburst": 2}
    c.insert(
        c.entry("exact_one", {"e": 1}, ("counted_drop",), counter_data={"packet_count": 3}, meter_config=meter_config),
        c.entry("exact_one", {"e": 2}, ("counted_send", {"port": 1}), metadata=b"m"),
        member(c, 1, 11),
        group(c, 1, (1, 2)),
        c.entry("selected", {"o": 1}, by_group(1)),
        multicast(1, (b"\x05", 1)),
        session(1, (b"\x05", 1)),
    )
    before = snapshot(switch)
    queries = [
        p4runtime_pb2.TableEntry(),
        c.entry("exact_one", None, counter_data={}, meter_config={}),
        multicast(0),
        session(0),
        p4runtime_pb2.ActionProfileMember(),
        p4runtime_pb2.ActionProfileGroup(),
    ]
    read_before = [sorted(map(str, c.read(q))) for q in queries]
    batch = [
        (DELETE, c.entry("exact_one", {"e": 1})),
        (MODIFY, c.entry("exact_one", {"e": 2}, ("counted_drop",))),
        (INSERT, c.entry("exact_one", {"e": 3}, ("counted_drop",))),
        (MODIFY, counter(c, 0, (1, 1))),
        (MODIFY, register(c, "words", None, b"\x05")),
        (MODIFY, value_set(c, b"\x01")),
        (MODIFY, member(c, 1, 12)),
        (INSERT, member(c, 2, 13)),
        (MODIFY, group(c, 1, (2, 1))),
        (MODIFY, c.entry("selected", {"o": 1}, by_member(2))),
        (DELETE, group(c, 1)),
        (DELETE, member(c, 1, None)),
        (DELETE, multicast(1)),
        (MODIFY, session(1)),
        (INSERT, multicast(2)),
        (INSERT, digest(c)),
        (MODIFY, c.entry("lpm_one", None, ("send", {"port": 1}), is_default_action=True)),
        (INSERT, c.entry("exact_one", {"e": 3}, ("counted_drop",))),  # exists
        (INSERT, c.entry("exact_one", {"e": 4}, ("counted_drop",))),
    ]
    with pytest.raises(P4RuntimeError) as caught:
        c.write(*batch, atomicity=atomicity)
    codes = [e.canonical_code for e in caught.value.errors]
    assert codes == [code_pb2.ABORTED] * 17 + [code_pb2.ALREADY_EXISTS, code_pb2.ABORTED]
    assert snapshot(switch) == before
    assert [sorted(map(str, c.read(q))) for q in queries] == read_before
    assert c.read(p4runtime_pb2.DigestEntry()) == []
    c.write(*batch[:17], atomicity=atomicity)
    assert snapshot(switch) != before


def test_malformed_requests(controller: Controller, bench: Bench) -> None:
    write = p4runtime_pb2.WriteRequest(device_id=2)
    with pytest.raises(P4RuntimeError) as caught:
        bench.device.write(write)
    assert caught.value.code == code_pb2.NOT_FOUND
    entry = controller.entry("lpm_one", None, ("drop",))
    controller.refused("INVALID_ARGUMENT", p4runtime_pb2.Update.UNSPECIFIED, entry)
    controller.refused("UNIMPLEMENTED", INSERT, p4runtime_pb2.ExternEntry())
    controller.read_refused("UNIMPLEMENTED", p4runtime_pb2.ExternEntry())
    with pytest.raises(P4RuntimeError) as caught:
        bench.device.write(p4runtime_pb2.WriteRequest(device_id=1, updates=[p4runtime_pb2.Update(type=INSERT)]))
    assert caught.value.errors[0].canonical_code == code_pb2.INVALID_ARGUMENT
    with pytest.raises(P4RuntimeError) as caught:
        bench.device.write(p4runtime_pb2.WriteRequest(device_id=1, atomicity=7))
    assert caught.value.code == code_pb2.INVALID_ARGUMENT


def test_a_read_answers_what_it_can(controller: Controller, bench: Bench) -> None:
    read = p4runtime_pb2.ReadRequest(device_id=1)
    read.entities.add().table_entry.table_id = controller.tables["preset"].preamble.id
    read.entities.add().table_entry.table_id = 5
    read.entities.add()
    responses = bench.device.read(read)
    assert len(next(responses).entities) == 2
    with pytest.raises(P4RuntimeError) as caught:
        next(responses)
    assert [e.canonical_code for e in caught.value.errors] == [
        code_pb2.OK,
        code_pb2.INVALID_ARGUMENT,
        code_pb2.INVALID_ARGUMENT,
    ]


def test_large_reads_come_in_pieces(controller: Controller, bench: Bench) -> None:
    controller.insert(*(controller.entry("lpm_one", {"l": (i << 16, 16)}, ("drop",)) for i in range(1, 1200)))
    read = p4runtime_pb2.ReadRequest(device_id=1, entities=[{"table_entry": controller.entry("lpm_one")}])
    assert [len(r.entities) for r in bench.device.read(read)] == [500, 500, 199]


def test_the_program_may_come_in_pis_device_config(bench: Bench) -> None:
    wrapped = P4DeviceConfig(reassign=True, extras={"kv": {"a": "b"}}, device_data=everything.device_config())
    # Field numbers and types as PI's p4config.proto has them.
    raw = wrapped.SerializeToString(deterministic=True)
    assert raw.startswith(b"\x08\x01\x12\x08\x0a\x06\x0a\x01a\x12\x01b\x1a")
    message = config_request(everything.p4info(), raw)
    bench.device.set_forwarding_pipeline_config(message)
    program = bench.built[-1].program
    assert program is not None
    assert to_json(program) == everything.compiled().json
    assert get(bench).config == message.config  # what is read is what was sent
    for broken in (P4DeviceConfig(reassign=True).SerializeToString(), raw[:-1], b""):
        assert "expected BMv2 JSON" in refuse(bench, "INVALID_ARGUMENT", config_request(everything.p4info(), broken))


@pytest.mark.parametrize(
    "config",
    [
        b"[]",
        b'{"pipelines": 1}',
        b'{"pipelines":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        everything.device_config().replace(b'["0x1"]', b'["-"]'),
        everything.device_config().replace(b'"priority": 1', b'"priority": "x"'),
    ],
    ids=["list", "number", "deep", "value", "priority"],
)
def test_json_that_is_malformed_is_refused(blank: Bench, config: bytes) -> None:
    assert "BMv2 JSON" in refuse(blank, "INVALID_ARGUMENT", config_request(everything.p4info(), config))


def test_capabilities(bench: Bench) -> None:
    version = bench.device.capabilities(p4runtime_pb2.CapabilitiesRequest()).p4runtime_api_version
    assert version.startswith("1.")
    with pytest.raises(P4RuntimeError):
        bench.device.capabilities(p4runtime_pb2.CapabilitiesRequest(device_id=9))


def test_p4info_without_widths_is_refused(bench: Bench) -> None:
    translated = p4info_pb2.P4Info()
    translated.CopyFrom(everything.p4info())
    next(table for table in translated.tables if table.match_fields).match_fields[0].bitwidth = 0
    assert "no bit width" in refuse(bench, "INVALID_ARGUMENT", config_request(translated, everything.device_config()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('actions { preamble { alias: "send" } params { bitwidth: 10 } }', "port has 10 bits in P4Info, 9 in the"),
        ('tables { preamble { alias: "exact_one" } match_fields { bitwidth: 17 } }', "e has 17 bits in P4Info, 16 in"),
        ('tables { preamble { alias: "lpm_one" } match_fields { match_type: TERNARY } }', "l is ternary in P4Info"),
        ('counters { size: 5 }', "cells: 5 cells in P4Info, 4 in the BMv2 JSON"),
        ('meters { size: 3 }', "limits: 3 cells in P4Info, 4 in"),
        ('meters { spec { unit: BYTES } }', "limits: counts bytes in P4Info, packets in"),
        ('registers { size: 2147483647 }', "words: 2147483647 cells in P4Info, 4 in"),
        ('registers { type_spec { bitstring { bit { bitwidth: 16 } } } }', "words: cells of 16 bits in P4Info, 32 in"),
        ('registers { type_spec { tuple { members { bool { } } members { bool { } } } } }', "words: cells of 1+1 bits"),
        ('type_info { structs { key: "learn_t" value { members { type_spec { bool { } } } } } }', "learn_t: 1 bits in"),
        ('registers { type_spec { new_type { name: "self" } } }', "words: new_type self contains itself"),
        ('registers { type_spec { struct { name: "ring" } } }', "words: struct ring contains itself"),
        ('registers { type_spec { struct { name: "wide9" } } }', "words: expected a type nested at most 32 deep, of"),
        ('digests { type_spec { struct { name: "deep0" } } }', "learn_t: expected a type nested at most 32 deep"),
        ('digests { type_spec { struct { name: "nowhere" } } }', "learn_t: struct nowhere is not in type_info"),
    ],
)
def test_p4info_that_does_not_fit_the_json_is_refused(bench: Bench, change: str, message: str) -> None:
    info = p4info_pb2.P4Info()
    info.CopyFrom(everything.p4info())
    types = info.type_info
    types.new_types["self"].original_type.new_type.name = "self"
    types.structs["ring"].members.add().type_spec.tuple.members.add().struct.name = "ring"
    types.structs["wide0"].members.add().type_spec.bool.SetInParent()
    for i in range(9):  # each level is ten times as large
        for _ in range(10):
            types.structs[f"wide{i + 1}"].members.add().type_spec.struct.name = f"wide{i}"
    for i in range(40):
        types.structs[f"deep{i}"].members.add().type_spec.struct.name = f"deep{i + 1}"
    types.structs["deep40"].members.add().type_spec.bool.SetInParent()
    _overlay(info, text_format.Parse(change, p4info_pb2.P4Info()))
    refused = refuse(bench, "INVALID_ARGUMENT", config_request(info, everything.device_config()))
    assert message in refused


def _overlay(info: Message, change: Message) -> None:
    """Merge `change` into the object with the same alias, or into the first of a kind."""
    for part, value in change.ListFields():
        if part.message_type is not None and part.message_type.GetOptions().map_entry:
            for key in value:
                getattr(info, part.name)[key].CopyFrom(value[key])
        elif part.is_repeated:
            for one in value:
                alias = one.preamble.alias if "preamble" in part.message_type.fields_by_name else ""
                many = getattr(info, part.name)
                _overlay(next((m for m in many if alias and m.preamble.alias == alias), many[0]), one)
        elif part.message_type is not None and part.name != "type_spec":
            _overlay(getattr(info, part.name), value)
        elif part.name == "type_spec":
            info.type_spec.CopyFrom(value)
        else:
            setattr(info, part.name, value)


def test_a_long_read_lets_packets_through_and_no_write(blank: Bench) -> None:
    class Lock:
        """Counts; `held` is called while the lock is free."""

        def __init__(self) -> None:
            self.taken = 0

        def __enter__(self) -> None:
            self.taken += 1

        def __exit__(self, *_: object) -> None:
            between()

    written: list[threading.Thread] = []
    reading = False

    def between() -> None:
        if reading and lock.taken == 3 and not written:  # during the read
            written.append(threading.Thread(target=controller.insert, args=(entry(9999),)))
            written[0].start()

    lock = Lock()
    device = Device(lambda config: as_switch(FakeSwitch(config)), lock=lock)
    controller = Controller(device, everything.p4info())
    device.set_forwarding_pipeline_config(request("VERIFY_AND_COMMIT"))

    def entry(number: int) -> Message:
        return controller.entry("lpm_one", {"l": (number, 32)}, ("drop",))

    controller.insert(*map(entry, range(1000)))
    lock.taken, reading = 0, True
    assert len(controller.read(controller.entry("lpm_one"))) == 1000
    assert lock.taken >= 16
    written[0].join()
    assert len(controller.read(controller.entry("lpm_one"))) == 1001


def test_no_garbage_is_collected_while_packets_wait() -> None:
    """With 100,000 entries a collection takes longer than all other work under the lock."""
    collects: list[bool] = []

    class Watched(FakeSwitch):
        def table_add(self, table: str, key: Sequence[KeyField], priority: int, target: Target) -> int:
            collects.append(gc.isenabled())
            return super().table_add(table, key, priority, target)

    device = Device(lambda config: as_switch(Watched(config)), lock=threading.RLock())
    controller = Controller(device, everything.p4info())
    device.set_forwarding_pipeline_config(request("VERIFY_AND_COMMIT"))
    controller.insert(*(controller.entry("lpm_one", {"l": (i, 32)}, ("drop",)) for i in range(65)))
    assert collects == [False] * 65
    assert gc.isenabled()


@pytest.mark.parametrize(("atomicity", "at_once"), [(CONTINUE, 64), (ROLLBACK, 64), (ATOMIC, 200)])
def test_packets_come_between_the_updates_of_a_batch_that_may_be_seen_half_done(
    atomicity: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []  # entries written while the lock was held
    depth = 0

    class Lock:
        def __enter__(self) -> None:
            nonlocal depth
            depth += 1
            if depth == 1:
                held.append(0)

        def __exit__(self, *_: object) -> None:
            nonlocal depth
            depth -= 1

    class Counting(FakeSwitch):
        def table_add(self, table: str, key: Sequence[KeyField], priority: int, target: Target) -> int:
            assert depth
            held[-1] += 1
            return super().table_add(table, key, priority, target)

        def table_delete(self, table: str, handle: int) -> None:
            assert depth
            held[-1] -= 1
            super().table_delete(table, handle)

    waited: list[int] = []  # how deep the lock was held while others were waited for
    monkeypatch.setattr(time, "sleep", lambda _: waited.append(depth))
    device = Device(lambda config: as_switch(Counting(config)), lock=Lock())
    controller = Controller(device, everything.p4info())
    device.set_forwarding_pipeline_config(request("VERIFY_AND_COMMIT"))
    entries = [controller.entry("lpm_one", {"l": (number, 32)}, ("drop",)) for number in range(200)]
    held.clear()
    controller.write(*((INSERT, entry) for entry in entries), atomicity=atomicity)
    assert max(held) == at_once
    assert sum(held) == 200
    others = [controller.entry("lpm_one", {"l": (number, 31)}, ("drop",)) for number in range(0, 300, 2)]
    with pytest.raises(P4RuntimeError):  # the last one exists: what was done is undone, in parts too
        controller.write(*((INSERT, entry) for entry in (*others, entries[0])), atomicity=atomicity)
    assert sum(held) == 200 + (150 if atomicity == CONTINUE else 0)
    assert min(held) >= -64
    assert set(waited) <= {0}
    assert (atomicity == ATOMIC) == (not waited)
    assert len(controller.read(controller.entry("lpm_one"))) == sum(held)


def test_cells_are_read_as_they_are_taken(bench: Bench) -> None:
    """There may be more cells than fit into memory; a controller that does not read on does not block writers."""
    bench.switch.calls.clear()
    query = p4runtime_pb2.ReadRequest(device_id=1, entities=[{"counter_entry": {}}])
    responses = bench.device.read(query)
    assert "counter_read" not in bench.switch.calls
    (response,) = responses
    assert len(response.entities) == 4


def test_what_looks_at_all_entries_does_so_in_parts() -> None:
    """Idle time-outs and reads that return few entries: the data plane runs between the parts."""
    looked: list[int] = [0]  # number of entries read each time the lock was held

    class Counting(FakeSwitch):
        def table_last_hit(self, table: str, handle: int) -> int:
            looked[-1] += 1
            return 0

    class Lock:
        def __enter__(self) -> None:
            looked.append(0)

        def __exit__(self, *_: object) -> None: ...

    device = Device(lambda config: as_switch(Counting(config)), lock=Lock(), clock_ns=lambda: 100)
    controller = Controller(device, everything.p4info())
    device.set_forwarding_pipeline_config(request("VERIFY_AND_COMMIT"))
    fading = [controller.entry("fading", {"e": n}, ("NoAction",), idle_timeout_ns=10**9) for n in range(2000)]
    controller.insert(*fading)
    assert device.poll() == []
    assert sum(looked) == 2000
    assert max(looked) <= 512
    looked[:] = [0]
    query = controller.entry("fading", metadata=b"of nobody")
    assert controller.read(query) == []
    assert len(looked) > 4


def test_counters_beyond_what_p4runtime_can_say_stay_at_the_highest(bench: Bench) -> None:
    bench.switch.counters["EverythingIngress.cells", 1] = (1 << 63, (1 << 64) - 1)
    entries = bench.controller.read(p4runtime_pb2.CounterEntry())
    highest = (1 << 63) - 1
    assert [(e.data.packet_count, e.data.byte_count) for e in entries][1] == (highest, highest)


def test_unused_atomicity_constant_is_the_default() -> None:
    assert p4runtime_pb2.WriteRequest().atomicity == CONTINUE


def test_the_text_of_a_refused_batch_has_only_its_first_errors() -> None:
    errors = [P4RuntimeError(code_pb2.NOT_FOUND, f"no table {i}").as_error() for i in range(5)]
    assert str(batch_error("write", errors)) == (
        "UNKNOWN: write failed for 5 of 5; [0] NOT_FOUND: no table 0; [1] NOT_FOUND: no table 1; "
        "[2] NOT_FOUND: no table 2; and 2 more"
    )
