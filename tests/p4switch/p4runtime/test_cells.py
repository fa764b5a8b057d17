"""Counters, meters and registers, direct and indexed; value sets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from p4switch.p4runtime.messages import Message, p4runtime_pb2
from tests.p4switch.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from tests.p4switch.p4runtime.fake import FakeSwitch

CELLS = "EverythingIngress.cells"


def counter(controller: Controller, index: int | None, data: tuple[int, int] | None = None) -> Message:
    message = p4runtime_pb2.CounterEntry(counter_id=controller.id("counters", "cells"))
    if index is not None:
        message.index.index = index
    if data is not None:
        message.data.packet_count, message.data.byte_count = data
    return message


def meter(controller: Controller, index: int | None, *rates: int) -> Message:
    message = p4runtime_pb2.MeterEntry(meter_id=controller.id("meters", "limits"))
    if index is not None:
        message.index.index = index
    if rates:
        message.config.CopyFrom(config(*rates))
    return message


def config(cir: int, cburst: int, pir: int, pburst: int, eburst: int = 0) -> Message:
    return p4runtime_pb2.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst, eburst=eburst)


def register(controller: Controller, name: str, index: int | None, value: bytes | None = None) -> Message:
    message = p4runtime_pb2.RegisterEntry(register_id=controller.id("registers", name))
    if index is not None:
        message.index.index = index
    if value is not None:
        message.data.bitstring = value
    return message


def test_counters(controller: Controller, switch: FakeSwitch) -> None:
    switch.counters[CELLS, 2] = (3, 400)
    assert controller.read(counter(controller, 2)) == [counter(controller, 2, (3, 400))]
    everything = controller.read(counter(controller, None))
    assert everything == [counter(controller, i, (3, 400) if i == 2 else (0, 0)) for i in range(4)]
    assert controller.read(p4runtime_pb2.CounterEntry()) == everything
    controller.modify(counter(controller, 1, (7, 8)))
    assert switch.counters[CELLS, 1] == (7, 8)
    controller.modify(counter(controller, None, (1, 1)))
    assert all(switch.counters[CELLS, i] == (1, 1) for i in range(4))
    controller.modify(counter(controller, 0))  # without data: not modified
    assert switch.counters[CELLS, 0] == (1, 1)


def test_meters(controller: Controller, switch: FakeSwitch) -> None:
    controller.modify(meter(controller, 1, 1, 2, 3, 4))
    assert switch.meters["EverythingIngress.limits", 1] == (1, 2, 3, 4)
    assert controller.read(meter(controller, 1)) == [meter(controller, 1, 1, 2, 3, 4)]
    assert controller.read(meter(controller, None))[0] == meter(controller, 0)
    controller.modify(meter(controller, 1))
    assert switch.meters["EverythingIngress.limits", 1] is None
    assert controller.read(p4runtime_pb2.MeterEntry()) == [meter(controller, i) for i in range(4)]


@pytest.mark.parametrize(
    ("rates", "code"),
    [((-1, 1, 1, 1), "INVALID_ARGUMENT"), ((2, 1, 1, 1), "INVALID_ARGUMENT"), ((1, 1, 1, 1, 1), "INVALID_ARGUMENT")],
)
def test_meter_errors(controller: Controller, rates: tuple[int, ...], code: str) -> None:
    controller.refused(code, MODIFY, meter(controller, 1, *rates))


def test_colour_counters_are_not_there(controller: Controller) -> None:
    message = meter(controller, 1, 1, 1, 1, 1)
    message.counter_data.SetInParent()
    controller.refused("UNIMPLEMENTED", MODIFY, message)
    controller.read_refused("UNIMPLEMENTED", message)


def test_registers(controller: Controller, switch: FakeSwitch) -> None:
    controller.modify(register(controller, "words", 1, b"\x00\x01\x02"))
    assert switch.registers["EverythingIngress.words", 1] == b"\0\0\x01\x02"
    assert controller.read(register(controller, "words", 1)) == [register(controller, "words", 1, b"\x01\x02")]
    assert controller.read(register(controller, "words", None))[0] == register(controller, "words", 0, b"\0")
    assert len(controller.read(p4runtime_pb2.RegisterEntry())) == 4 + 2
    controller.modify(register(controller, "words", None, b"\x09"))
    assert [r.data.bitstring for r in controller.read(register(controller, "words", None))] == [b"\x09"] * 4


@pytest.mark.parametrize(
    ("text", "fixed", "canonical"),
    [
        (b"\xff\x9d", b"\x0f\x9d", b"\x9d"),
        (b"\x9d", b"\x0f\x9d", b"\x9d"),
        (b"\xfd\x1d", b"\x0d\x1d", b"\xfd\x1d"),
        (b"\x00\x9d", b"\x00\x9d", b"\x00\x9d"),
        (b"\x00\x00", b"\0\0", b"\0"),
    ],
)
def test_signed_registers(
    controller: Controller, switch: FakeSwitch, text: bytes, fixed: bytes, canonical: bytes
) -> None:
    controller.modify(register(controller, "signs", 1, text))
    assert switch.registers["EverythingIngress.signs", 1] == fixed
    assert controller.read(register(controller, "signs", 1)) == [register(controller, "signs", 1, canonical)]


def test_register_errors(controller: Controller) -> None:
    controller.refused("OUT_OF_RANGE", MODIFY, register(controller, "words", 0, b"\1\0\0\0\0"))
    controller.refused("OUT_OF_RANGE", MODIFY, register(controller, "words", 0, b""))
    controller.refused("OUT_OF_RANGE", MODIFY, register(controller, "signs", 0, b"\x08\x00"))
    controller.refused("INVALID_ARGUMENT", MODIFY, register(controller, "words", 0))
    wrong = register(controller, "words", 0)
    wrong.data.bool = True
    controller.refused("INVALID_ARGUMENT", MODIFY, wrong)


def test_indices_and_update_types(controller: Controller) -> None:
    makers: tuple[Callable[[int], Message], ...] = (
        lambda i: counter(controller, i, (1, 1)),
        lambda i: meter(controller, i, 1, 1, 1, 1),
        lambda i: register(controller, "words", i, b"\1"),
    )
    for make in makers:
        controller.refused("INVALID_ARGUMENT", MODIFY, make(-1))
        controller.refused("OUT_OF_RANGE", MODIFY, make(4))
        controller.read_refused("INVALID_ARGUMENT", make(-1))
        controller.read_refused("OUT_OF_RANGE", make(4))
        for kind in (INSERT, DELETE):
            controller.refused("INVALID_ARGUMENT", kind, make(0))
    controller.refused("INVALID_ARGUMENT", MODIFY, counter(controller, 0, (-1, 0)))
    unknown = p4runtime_pb2.CounterEntry(counter_id=3)
    controller.refused("INVALID_ARGUMENT", MODIFY, unknown)
    controller.read_refused("INVALID_ARGUMENT", unknown)


def direct_counter(controller: Controller, e: int | None, data: tuple[int, int] | None = None) -> Message:
    match = None if e is None else {"e": e}
    message = p4runtime_pb2.DirectCounterEntry(table_entry=controller.entry("exact_one", match))
    if data is not None:
        message.data.packet_count, message.data.byte_count = data
    return message


def test_direct_counters(controller: Controller, switch: FakeSwitch) -> None:
    controller.insert(
        controller.entry("exact_one", {"e": 1}, ("counted_drop",), counter_data={"packet_count": 5, "byte_count": 6}),
        controller.entry("exact_one", {"e": 2}, ("counted_drop",)),
    )
    assert controller.read(direct_counter(controller, 1)) == [direct_counter(controller, 1, (5, 6))]
    both = [direct_counter(controller, 1, (5, 6)), direct_counter(controller, 2, (0, 0))]
    assert controller.read(direct_counter(controller, None)) == both
    assert controller.read(p4runtime_pb2.DirectCounterEntry()) == both
    controller.modify(direct_counter(controller, 2, (7, 8)))
    controller.modify(direct_counter(controller, 2))  # without data: not modified
    query = controller.entry("exact_one", {"e": 2}, counter_data={})
    (entry,) = controller.read(query)
    assert (entry.counter_data.packet_count, entry.counter_data.byte_count) == (7, 8)
    assert not controller.read(controller.entry("exact_one", {"e": 2}))[0].HasField("counter_data")
    controller.modify(controller.entry("exact_one", {"e": 2}, ("counted_drop",)))  # counter unset: unchanged
    assert controller.read(direct_counter(controller, 2)) == [direct_counter(controller, 2, (7, 8))]
    controller.refused("NOT_FOUND", MODIFY, direct_counter(controller, 3, (1, 1)))
    controller.read_refused("NOT_FOUND", direct_counter(controller, 3))
    for kind in (INSERT, DELETE):
        controller.refused("INVALID_ARGUMENT", kind, direct_counter(controller, 1, (1, 1)))
    other = p4runtime_pb2.DirectCounterEntry(table_entry=controller.entry("preset", {"r": 1}))
    controller.refused("INVALID_ARGUMENT", MODIFY, other)
    controller.read_refused("INVALID_ARGUMENT", other)
    no_counter = controller.entry("preset", {"r": 3}, ("drop",), counter_data={})
    controller.refused("INVALID_ARGUMENT", INSERT, no_counter)


def test_direct_meters(controller: Controller, switch: FakeSwitch) -> None:
    controller.insert(controller.entry("exact_one", {"e": 1}, ("counted_drop",), meter_config=config(1, 2, 3, 4)))
    controller.insert(controller.entry("exact_one", {"e": 2}, ("counted_drop",)))
    query = p4runtime_pb2.DirectMeterEntry(table_entry=controller.entry("exact_one"))
    first, second = controller.read(query)
    assert first.config == config(1, 2, 3, 4)
    assert not second.HasField("config")
    (entry, other) = controller.read(controller.entry("exact_one", None, meter_config={}))
    assert entry.meter_config == config(1, 2, 3, 4)
    assert not other.HasField("meter_config")
    write = p4runtime_pb2.DirectMeterEntry(
        table_entry=controller.entry("exact_one", {"e": 2}), config=config(5, 5, 5, 5)
    )
    controller.modify(write)
    assert set(switch.direct_meters.values()) == {(1, 2, 3, 4), (5, 5, 5, 5)}
    controller.modify(controller.entry("exact_one", {"e": 1}, ("counted_drop",)))  # left out: back to the default
    controller.modify(p4runtime_pb2.DirectMeterEntry(table_entry=controller.entry("exact_one", {"e": 2})))
    assert set(switch.direct_meters.values()) == {None}
    controller.refused("INVALID_ARGUMENT", INSERT, write)
    controller.refused("INVALID_ARGUMENT", INSERT, controller.entry("preset", {"r": 3}, ("drop",), meter_config={}))


def value_set(controller: Controller, *values: bytes) -> Message:
    message = p4runtime_pb2.ValueSetEntry(value_set_id=controller.id("value_sets", "kinds"))
    for value in values:
        message.members.add().match.add(field_id=1).exact.value = value
    return message


def test_value_sets(controller: Controller, switch: FakeSwitch) -> None:
    assert controller.read(p4runtime_pb2.ValueSetEntry()) == [value_set(controller)]
    controller.modify(value_set(controller, b"\x01", b"\x08\x00"))
    assert switch.value_sets["EverythingParser.kinds"] == [((b"\x00\x01", b""),), ((b"\x08\x00", b""),)]
    assert controller.read(value_set(controller)) == [value_set(controller, b"\x01", b"\x08\x00")]
    controller.refused("ALREADY_EXISTS", MODIFY, value_set(controller, b"\x01", b"\x00\x01"))
    controller.refused("RESOURCE_EXHAUSTED", MODIFY, value_set(controller, *(bytes([i]) for i in range(5))))
    controller.refused("INVALID_ARGUMENT", INSERT, value_set(controller))
    controller.refused("INVALID_ARGUMENT", DELETE, value_set(controller))
    controller.refused("INVALID_ARGUMENT", MODIFY, value_set(controller, b"\x01\x00\x00"))
    controller.modify(value_set(controller))
    assert controller.read(value_set(controller)) == [value_set(controller)]
