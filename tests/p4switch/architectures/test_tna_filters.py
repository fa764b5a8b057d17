"""`Lpf` and `Wred` of TNA and T2NA, with an index and for each table entry."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.tna.externs.lpf import Lpf
from p4switch.architectures.tna.externs.wred import Wred
from p4switch.bmv2 import read
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import build_traced, load
from p4switch.engine.objects import packed, values
from p4switch.fit import load as load_target
from p4switch.fit import measure
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev
from tests import margins
from tests.p4switch.architectures.tofino import compiled, switch, write
from tests.p4switch.ir.test_handed_over import differences

BOTH = """
Lpf<bit<32>, bit<8>>(4) low_pass;
Wred<bit<19>, bit<8>>(4, 7, 3) red;
apply {
    tm.ucast_egress_port = 2;
    hdr.wide.setValid();
    hdr.wide.a = low_pass.execute((bit<32>) hdr.h.value, hdr.h.kind);
    hdr.wide.b = (bit<32>) red.execute((bit<19>) hdr.h.value, hdr.h.kind);
}
"""
DIRECT = """
DirectLpf<bit<8>>() low_pass;
DirectWred<bit<8>>(1, 0) red;
action average() { hdr.h.value = low_pass.execute(hdr.h.value); }
action judge() { meta.seen = red.execute(hdr.h.value); }
table averages { key = { hdr.h.kind: exact; } actions = { average; } filters = low_pass; size = 4; }
table verdicts { key = { hdr.h.kind: exact; } actions = { judge; } filters = red; size = 4; }
apply { tm.ucast_egress_port = 2; verdicts.apply(); averages.apply(); if (meta.seen == 1) { deparsed.drop_ctl = 1; } }
"""


def results(made: Any, cell: int, value: int, now_ns: int) -> tuple[int, int]:
    ((_, frame),) = made.process(1, bytes([cell, value]), now_ns)
    return int.from_bytes(frame[2:6], "big"), int.from_bytes(frame[6:10], "big")


def sample_of(value: float, x: float, elapsed_ns: int, gain_ns: float, decay_ns: float) -> float:
    return x + (value - x) * math.exp(-elapsed_ns / (gain_ns if x > value else decay_ns))


def rate_of(value: float, x: float, elapsed_ns: int, gain_ns: float, decay_ns: float) -> float:
    elapsed_ns = max(1, elapsed_ns)
    return sample_of(value, x * decay_ns / elapsed_ns, elapsed_ns, gain_ns, decay_ns)


@pytest.mark.parametrize(("step", "rate"), [(sample_of, 0), (rate_of, 1)])
@pytest.mark.parametrize(("gain_ns", "decay_ns"), [(1_000, 1_000), (20_000, 3_000), (500, 1_000_000_000), (2.5, 0.75)])
def test_a_filter_follows_what_comes_in(
    tmp_path: Path, step: Callable[..., float], rate: int, gain_ns: float, decay_ns: float
) -> None:
    made = switch(tmp_path, INGRESS=BOTH)
    cell = {"gain_ps": round(1000 * gain_ns), "decay_ps": round(1000 * decay_ns), "rate": rate}
    made.object_write("In.low_pass", 1, packed(Lpf, cell))
    expected, before = 0.0, 0
    for now in (0, 0, 1, 2, 100, 101, 4_000, 4_000, 50_000, 50_001, 9_000_000):
        x = 200 if now < 4_000 else 10
        expected = step(expected, x, now - before, gain_ns, decay_ns)
        before = now
        result, _ = results(made, 1, x, now)
        kept = values(Lpf, made.object_read("In.low_pass", 1))
        assert kept["value"] / 2**32 == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert (result, kept["since_ns"]) == (math.floor(kept["value"] / 2**32 + 0.5), now)


def test_a_rate_is_what_comes_in_during_the_time_constant(tmp_path: Path) -> None:
    made = switch(tmp_path, INGRESS=BOTH)
    cell = {"gain_ps": 10_000_000, "decay_ps": 10_000_000, "rate": 1, "scale": 2}
    made.object_write("In.low_pass", 0, packed(Lpf, cell))
    for now in range(100, 200_100, 100):
        result, _ = results(made, 0, 50, now)
    assert result == 50 * 100 // 4


def test_a_cell_without_time_constants_gives_back_what_comes(tmp_path: Path) -> None:
    made = switch(tmp_path, INGRESS=BOTH)
    assert [results(made, 3, x, now) for x, now in ((200, 0), (10, 5), (11, 5))] == [(200, 3), (10, 3), (11, 3)]
    made.object_write("In.low_pass", 3, packed(Lpf, {"scale": 3}))
    assert results(made, 3, 200, 6) == (25, 3)


def test_a_result_is_as_wide_as_the_number(tmp_path: Path) -> None:
    narrow = BOTH.replace("Lpf<bit<32>,", "Lpf<bit<8>,").replace("(bit<32>) hdr.h.value, hdr", "hdr.h.value, hdr")
    made = switch(tmp_path, INGRESS=narrow.replace("= low_pass", "= (bit<32>) low_pass"))
    made.object_write("In.low_pass", 0, packed(Lpf, {"gain_ps": 1_000_000, "decay_ps": 1_000_000, "rate": 1}))
    assert results(made, 0, 100, 1)[0] == 100
    assert results(made, 0, 200, 2)[0] == 255


def test_red_drops_by_its_average(tmp_path: Path) -> None:
    made = switch(tmp_path, INGRESS=BOTH)
    half = {"least": 50, "most": 150, "probability": 1 << 31, "enabled": 1}
    made.object_write("In.red", 2, packed(Wred, half))
    verdicts = {x: [results(made, 2, x, now)[1] for now in range(2000)] for x in (49, 50, 100, 149, 150, 255)}
    assert {*verdicts[49]} == {*verdicts[50]} == {3}
    assert {*verdicts[150]} == {*verdicts[255]} == {7}
    for average, probability in ((100, 0.25), (149, 0.495)):
        dropped = verdicts[average].count(7) / 2000
        assert dropped == pytest.approx(probability, abs=margins.share(probability, 2000))
    made.object_write("In.red", 2, packed(Wred, half | {"constant_ps": 1_000_000}))
    assert [results(made, 2, 255, now)[1] for now in (100, 10_000)] == [3, 7]


def test_one_that_is_not_enabled_keeps_every_packet(tmp_path: Path) -> None:
    made = switch(tmp_path, INGRESS=BOTH)
    assert {results(made, 2, 255, now)[1] for now in range(100)} == {3}


def test_beyond_the_last_cell_nothing_is_done(tmp_path: Path) -> None:
    made = switch(tmp_path, INGRESS=BOTH)
    made.process(1, bytes([4, 9]))
    assert all(values(Lpf, made.object_read("In.low_pass", i))["value"] == 0 for i in range(4))


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_entries_have_filters_of_their_own(tmp_path: Path, arch: str) -> None:
    made = switch(tmp_path, arch, INGRESS=DIRECT)
    entries = {}
    for table, action in (("averages", "average"), ("verdicts", "judge")):
        for kind in (1, 2):
            entry = made.table_add(f"In.{table}", [(bytes([kind]), b"")], 0, ("action", f"In.{action}", []))
            entries[table, kind] = entry
    slow = packed(Lpf, {"gain_ps": 1_000_000, "decay_ps": 1_000_000})
    made.object_write("In.low_pass", entries["averages", 1], slow)
    made.object_write("In.red", entries["verdicts", 2], packed(Wred, {"least": 100, "most": 100, "enabled": 1}))
    sent = [made.process(1, bytes([kind, 200]), 1_000) for kind in (1, 2, 3)]
    assert sent == [[(2, bytes([1, round(200 * (1 - 1 / math.e))]))], [], [(2, bytes([3, 200]))]]
    assert made.process(1, bytes([2, 99]), 2_000) == [(2, bytes([2, 99]))]
    made.table_delete("In.averages", entries["averages", 1])
    assert made.table_add("In.averages", [(b"\x05", b"")], 0, ("action", "In.average", [])) == entries["averages", 1]
    assert made.process(1, bytes([5, 200]), 9_000) == [(2, bytes([5, 200]))]


def test_their_json_is_read(tmp_path: Path) -> None:
    for ingress in (BOTH, DIRECT):
        made = compiled(tmp_path, INGRESS=ingress)
        assert made.program is not None
        assert differences(made.program, read(made.json)) == []


def test_a_trace_has_the_average(tmp_path: Path) -> None:
    traced = build_traced(compiled(tmp_path, INGRESS=BOTH).program)
    made = load().Switch(str(traced.library))
    made.set_tracing(True)
    made.process(1, bytes([1, 200]))
    told = [(e.extern, e.index, e.text) for e in Trace(Decoder(traced)(made.traced()[0])).of(ev.ExternTold)]
    assert told == [("In.low_pass", 1, "value 200.000"), ("In.red", 1, "average 200.000")]


def test_an_index_may_be_of_a_filter_that_is_a_property(tmp_path: Path) -> None:
    text = (
        "Lpf<bit<8>, bit<8>>(4) f; action a(bit<8> at) { hdr.h.value = f.execute(hdr.h.value, at); }"
        " table t { key = { hdr.h.kind: exact; } actions = { a; } filters = f; } apply { t.apply(); }"
    )
    made = compiled(tmp_path, INGRESS=text)
    assert [each["name"] for each in made.json["extern_instances"]] == ["In.f"]


def test_bf_rt_json_has_the_cells(tmp_path: Path) -> None:
    made = json.loads(compiled(tmp_path, INGRESS=BOTH)._bf_rt_text)
    found = {table["name"]: table for table in made["tables"]}
    low_pass, red = found["pipe.In.low_pass"], found["pipe.In.red"]
    assert (low_pass["table_type"], low_pass["id"] >> 24, low_pass["size"]) == ("Lpf", 0x89, 4)
    assert [(each["id"], each["name"]) for each in low_pass["key"]] == [(65560, "$LPF_INDEX")]
    assert [each["singleton"]["name"] for each in low_pass["data"]] == [
        "$LPF_SPEC_TYPE", "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS",
        "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR",
    ]  # fmt: skip
    assert (red["table_type"], red["id"] >> 24, red["size"]) == ("Wred", 0x87, 4)
    assert [each["singleton"]["id"] for each in red["data"]] == [65571, 65572, 65573, 65574]


def test_it_takes_memory_as_a_meter(tmp_path: Path) -> None:
    meter = (
        "Meter<bit<8>>(SIZE, MeterType_t.BYTES) f; apply { tm.ucast_egress_port = 2;"
        " hdr.h.value = f.execute(hdr.h.kind); }"
    )
    low_pass = meter.replace("Meter<bit<8>>", "Lpf<bit<8>, bit<8>>").replace(", MeterType_t.BYTES", "")
    low_pass = low_pass.replace("execute(hdr.h.kind)", "execute(hdr.h.value, hdr.h.kind)")
    blocks = [
        measure(write(tmp_path, INGRESS=text.replace("SIZE", size)), arch="tna").fit(load_target("stages12")).memory
        for text in (meter, low_pass)
        for size in ("16", "65536")
    ]
    assert blocks[:2] == blocks[2:]
    assert blocks[0] != blocks[1]


@pytest.mark.parametrize(
    ("ingress", "message"),
    [
        ("Lpf<bit<48>, bit<8>>(4) f; apply { hdr.h.value = (bit<8>) f.execute(1, 0); }", "Lpf of bit<48> is not"),
        ("Wred<int<8>, bit<8>>(4, 1, 0) f; apply { hdr.h.value = f.execute(1, 0); }", "Wred of int<8> is not"),
        ("DirectLpf<bit<8>>() f; apply { hdr.h.value = f.execute(1); }", "'In.f' is of the entries of its table"),
        ("DirectWred<bit<8>>(1, 0) f; apply { hdr.h.value = f.execute(1); }", "'In.f' is of the entries of its table"),
    ],
)
def test_what_is_refused(tmp_path: Path, ingress: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(tmp_path, INGRESS=ingress)
    assert message in str(caught.value)
