"""Data of match-action entries in cells of direct registers, low-pass filters and RED."""

from __future__ import annotations

from typing import Any

import pytest

from p4switch.bfrt.messages import Message
from p4switch.compiler import Compiled
from p4switch.p4runtime.messages import code_pb2
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Bench, Client
from tests.p4switch.bfrt.test_server import refused

INGRESS = """
    DirectRegister<pair_t>({7, 9}) cells;
    DirectRegisterAction<pair_t, bit<32>>(cells) count = {
        void apply(inout pair_t value, out bit<32> found) { value.lo = value.lo + 1; value.hi = value.hi + 100; }
    };
    DirectLpf<bit<32>>() low_pass;
    DirectWred<bit<32>>(1, 0) red;
    action hit(bit<8> first, bit<8> second) { count.execute(); tm.ucast_egress_port = 3; }
    action smooth() { hdr.h.value = (bit<8>) low_pass.execute((bit<32>) hdr.h.value); }
    action early() { deparsed.drop_ctl = (bit<3>) red.execute((bit<32>) hdr.h.value); }
    table counted { key = { hdr.h.kind : exact; } actions = { hit; } registers = cells; size = 4; }
    table smoothed { key = { hdr.h.kind : exact; } actions = { smooth; } filters = low_pass; size = 4; }
    table dropped { key = { hdr.h.kind : exact; } actions = { early; } filters = red; size = 4; }
    apply { counted.apply(); smoothed.apply(); dropped.apply(); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("direct"), INGRESS=INGRESS)


def counted(client: Client, kind: int, action: str = "hit", **data: Any) -> Message:
    fields: dict[str, Any] = {"first": 1, "second": 2} if action else {}
    return client.entry("In.counted", {"hdr.h.kind": kind}, action, **fields, **data)


def query(client: Client, kind: int) -> Message:
    return client.entry("In.counted", {"hdr.h.kind": kind})


def cells(client: Client, entry: Message) -> list[tuple[int, int]]:
    return [(each["In.cells.lo"], each["In.cells.hi"]) for each in client.read(entry)]


def test_the_fields_of_a_register_follow_the_parameters_of_actions(program: Compiled) -> None:
    table = next(t for t in program.bf_rt["tables"] if t["name"] == "pipe.In.counted")
    assert [(d["singleton"]["id"], d["singleton"]["name"]) for d in table["data"]] == [
        (3, "In.cells.lo"), (4, "In.cells.hi")
    ]  # fmt: skip
    assert table["supported_operations"] == ["SyncRegisters"]


def test_an_entry_s_register_is_written_with_it_and_counts(bench: Bench) -> None:
    client = bench.client
    client.write("INSERT", counted(client, 1), counted(client, 2, lo=20, hi=30))
    assert cells(client, client.entry("In.counted")) == [(7, 9), (20, 30)]
    bench.switch.process(1, bytes([2, 40]))
    assert cells(client, query(client, 2)) == [(21, 130)]
    client.write("MODIFY", counted(client, 2, "", hi=5))
    assert cells(client, query(client, 2)) == [(21, 5)]
    (found,) = client.read(query(client, 2))
    assert found["action"] == "In.hit"


def test_a_batch_that_is_rolled_back_restores_registers(bench: Bench) -> None:
    client = bench.client
    client.write("INSERT", counted(client, 2, lo=20, hi=30))
    changes = counted(client, 2, "", lo=1), counted(client, 3, "", lo=1)
    assert refused(client.write, "MODIFY", *changes, atomicity="ROLLBACK_ON_ERROR")
    assert cells(client, query(client, 2)) == [(20, 30)]


def test_the_default_entry_has_a_register_of_its_own(bench: Bench) -> None:
    client = bench.client
    default = client.entry("In.counted", None, "hit", default=True, first=1, second=2, lo=50, hi=60)
    client.write("MODIFY", default)
    bench.switch.process(1, bytes([9, 40]))
    assert cells(client, client.entry("In.counted", default=True)) == [(51, 160)]


def test_filters_of_entries(bench: Bench) -> None:
    client = bench.client
    smoothed = client.entry(
        "In.smoothed", {"hdr.h.kind": 2}, "smooth", _LPF_SPEC_TYPE="RATE", _LPF_SPEC_GAIN_TIME_CONSTANT_NS=20.0,
        _LPF_SPEC_DECAY_TIME_CONSTANT_NS=30.0, _LPF_SPEC_OUT_SCALE_DOWN_FACTOR=3,
    )  # fmt: skip
    client.write("INSERT", counted(client, 2), smoothed)
    (found,) = client.read(client.entry("In.smoothed", {"hdr.h.kind": 2}))
    assert (found["$LPF_SPEC_TYPE"], found["$LPF_SPEC_DECAY_TIME_CONSTANT_NS"]) == ("RATE", 30)
    assert found["$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"] == 3
    client.write("DELETE", client.entry("In.smoothed"))
    assert len(bench.switch.process(1, bytes([2, 40]))) == 1
    dropped = client.entry(
        "In.dropped", {"hdr.h.kind": 2}, "early", _WRED_SPEC_TIME_CONSTANT_NS=0.0, _WRED_SPEC_MIN_THRESH_CELLS=10,
        _WRED_SPEC_MAX_THRESH_CELLS=20, _WRED_SPEC_MAX_PROBABILITY=0.5,
    )  # fmt: skip
    client.write("INSERT", dropped)
    assert bench.switch.process(1, bytes([2, 40])) == []


def test_wrong_data_leave_no_entry(bench: Bench) -> None:
    client = bench.client
    wrong = client.entry("In.smoothed", {"hdr.h.kind": 2}, "smooth", _LPF_SPEC_OUT_SCALE_DOWN_FACTOR=32)
    ((code, message),) = refused(client.write, "INSERT", wrong)
    assert (code, "expected at most 31" in message) == (code_pb2.INVALID_ARGUMENT, True)
    assert client.read(client.entry("In.smoothed")) == []
