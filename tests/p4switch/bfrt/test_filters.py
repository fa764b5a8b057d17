"""Low-pass filters and RED of an average, over BfRuntime."""

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
    Lpf<bit<32>, bit<8>>(8) filter;
    Wred<bit<32>, bit<8>>(8, 1, 0) red;
    apply {
        hdr.h.value = (bit<8>) filter.execute((bit<32>) hdr.h.value, hdr.h.kind);
        if (red.execute((bit<32>) hdr.h.value, hdr.h.kind) == 0) { tm.ucast_egress_port = 3; }
    }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("filters"), INGRESS=INGRESS)


def entry(client: Client, table: str, index: int, **data: Any) -> Message:
    return client.entry(table, {"$LPF_INDEX" if table == "In.filter" else "$WRED_INDEX": index}, **data)


def told(client: Client, table: str, index: int) -> dict[str, Any]:
    (found,) = client.read(entry(client, table, index))
    return {name.rpartition("_SPEC_")[2]: value for name, value in found.items() if "_SPEC_" in name}


def test_a_filter_is_read_as_it_was_written(bench: Bench) -> None:
    client = bench.client
    begins = {"TYPE": "SAMPLE", "GAIN_TIME_CONSTANT_NS": 0, "DECAY_TIME_CONSTANT_NS": 0, "OUT_SCALE_DOWN_FACTOR": 0}
    assert told(client, "In.filter", 2) == begins
    client.write(
        "INSERT",
        entry(client, "In.filter", 2, _LPF_SPEC_TYPE="RATE", _LPF_SPEC_GAIN_TIME_CONSTANT_NS=20.5,
              _LPF_SPEC_DECAY_TIME_CONSTANT_NS=30.0, _LPF_SPEC_OUT_SCALE_DOWN_FACTOR=1),
    )  # fmt: skip
    client.write("MODIFY", entry(client, "In.filter", 2, _LPF_SPEC_TYPE="SAMPLE"))
    changed = {"GAIN_TIME_CONSTANT_NS": 20.5, "DECAY_TIME_CONSTANT_NS": 30, "OUT_SCALE_DOWN_FACTOR": 1}
    assert told(client, "In.filter", 2) == {"TYPE": "SAMPLE"} | changed
    assert len(client.entities(table_entry=client.entry("In.filter"))) == 8
    ((_, frame),) = bench.switch.process(1, bytes([2, 40]), 1)
    assert frame[1] < 40  # the previous value was 0
    client.write("DELETE", client.entry("In.filter"))
    assert told(client, "In.filter", 2) == begins


def test_red_drops_once_its_cell_is_written(bench: Bench) -> None:
    client = bench.client
    begins = told(client, "In.red", 2)
    assert (begins["MIN_THRESH_CELLS"], begins["MAX_PROBABILITY"]) == (0xFF000000, 0)
    assert len(bench.switch.process(1, bytes([2, 40]))) == 1
    written = entry(
        client, "In.red", 2, _WRED_SPEC_TIME_CONSTANT_NS=0.0, _WRED_SPEC_MIN_THRESH_CELLS=10,
        _WRED_SPEC_MAX_THRESH_CELLS=20, _WRED_SPEC_MAX_PROBABILITY=0.5,
    )  # fmt: skip
    client.write("INSERT", written)
    assert told(client, "In.red", 2) == {
        "TIME_CONSTANT_NS": 0, "MIN_THRESH_CELLS": 10, "MAX_THRESH_CELLS": 20, "MAX_PROBABILITY": 0.5
    }  # fmt: skip
    assert bench.switch.process(1, bytes([2, 40])) == []
    client.write("DELETE", client.entry("In.red"))
    assert told(client, "In.red", 2) == begins


@pytest.mark.parametrize(
    ("table", "data", "message"),
    [
        ("In.filter", {"_LPF_SPEC_GAIN_TIME_CONSTANT_NS": -1.0}, "GAIN_TIME_CONSTANT_NS: expected a number"),
        ("In.filter", {"_LPF_SPEC_GAIN_TIME_CONSTANT_NS": float("nan")}, "GAIN_TIME_CONSTANT_NS: expected a number"),
        ("In.filter", {"_LPF_SPEC_OUT_SCALE_DOWN_FACTOR": 32}, "expected at most 31"),
        ("In.red", {"_WRED_SPEC_MAX_PROBABILITY": 1.5}, "from 0 to 1"),
        ("In.red", {"_WRED_SPEC_MIN_THRESH_CELLS": 5}, "MIN_THRESH_CELLS 5 is above MAX_THRESH_CELLS 0"),
    ],
)
def test_wrong_cells_are_refused(bench: Bench, table: str, data: dict[str, Any], message: str) -> None:
    ((code, found),) = refused(bench.client.write, "INSERT", entry(bench.client, table, 1, **data))
    assert code == code_pb2.INVALID_ARGUMENT
    assert message in found
    ((code, found),) = refused(bench.client.write, "INSERT", entry(bench.client, table, 9))
    assert (code, "index 9; expected less than 8" in found) == (code_pb2.INVALID_ARGUMENT, True)
