"""Traces of all actions of v1model on packets besides tables: copies, recirculation, digests, meters, counters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import p4cc
from p4switch.trace import events, from_json_line

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> todo; bit<8> round; bit<16> sum; }
struct headers { h_t h; }
struct learned_t { bit<8> todo; bit<9> port; }
struct meta { @field_list(1) bit<8> round; learned_t learned; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply {} }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    meter(4, MeterType.packets) rate;
    counter(4, CounterType.packets_and_bytes) seen;
    bit<8> color = 0;
    apply {
        s.egress_spec = 2;
        if (hdr.h.todo == 1) {
            if (m.round == 0) { m.round = 1; resubmit_preserving_field_list(1); }
        } else if (hdr.h.todo == 2) {
            clone_preserving_field_list(CloneType.I2E, 7, 1);
        } else if (hdr.h.todo == 3) {
            s.mcast_grp = 9;
        } else if (hdr.h.todo == 4) {
            m.learned = {hdr.h.todo, s.ingress_port};
            digest(1, m.learned);
        } else if (hdr.h.todo == 5) {
            rate.execute_meter((bit<32>)3, color);
            hdr.h.round = color;
            seen.count((bit<32>)2);
        } else if (hdr.h.todo == 6) {
            mark_to_drop(s);
        }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    apply {
        if (hdr.h.todo == 7 && hdr.h.round == 0) { hdr.h.round = 1; recirculate_preserving_field_list(1); }
        if (hdr.h.todo == 8 && s.instance_type == 0) { clone(CloneType.E2E, 7); }
    }
}
control C(inout headers hdr, inout meta m) {
    apply { update_checksum(hdr.h.todo == 9, { hdr.h.todo }, hdr.h.sum, HashAlgorithm.csum16); }
}
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> p4cc.Switch:
    file = tmp_path_factory.mktemp("trace") / "all.p4"
    file.write_text(PROGRAM)
    made = p4cc.Switch(file)
    made.clone_session(7, [5])
    made.multicast_group(9, [3, (4, 6)])
    return made


def send(switch: p4cc.Switch, todo: int) -> p4cc.Packets:
    return switch.send(1, bytes([todo, 0]) + bytes(30))


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.splitlines(), start=1) if text in line)


def only(packets: p4cc.Packets, kind: type[events.Event], text: str) -> events.Event:
    """Return the only event of a kind, at the source line with `text`."""
    (event,) = packets.trace.of(kind)
    assert event.place is not None
    assert (Path(event.place.file).name, event.place.line) == ("all.p4", line_of(text))
    return event


def test_a_resubmitted_packet(switch: p4cc.Switch) -> None:
    sent = send(switch, 1)
    event = only(sent, events.Resubmitted, "resubmit_preserving")
    assert event.copy == 0
    assert [e.pipeline for e in sent.trace.of(events.PipelineEntered)] == ["ingress", "ingress", "egress"]
    assert len(sent.trace.of(events.StateEntered)) == 2
    assert [p.port for p in sent] == [2]


def test_a_clone_of_ingress(switch: p4cc.Switch) -> None:
    sent = send(switch, 2)
    event = only(sent, events.Cloned, "CloneType.I2E")
    assert isinstance(event, events.Cloned)
    assert (event.session, event.made) == (7, 1)
    assert {(e.copy, e.port) for e in sent.trace.of(events.Transmitted)} == {(0, 2), (1, 5)}


def test_a_clone_of_egress(switch: p4cc.Switch) -> None:
    sent = send(switch, 8)
    event = only(sent, events.Cloned, "CloneType.E2E")
    assert isinstance(event, events.Cloned)
    assert event.session == 7
    assert {(e.copy, e.port) for e in sent.trace.of(events.Transmitted)} == {(0, 2), (event.made, 5)}


def test_a_multicast_packet(switch: p4cc.Switch) -> None:
    sent = send(switch, 3)
    event = only(sent, events.Multicast, "s.mcast_grp = 9")
    assert isinstance(event, events.Multicast)
    assert event.group == 9
    assert sorted(e.port for e in sent.trace.of(events.Enqueued)) == [3, 4]
    copies = {e.copy: e.port for e in sent.trace.of(events.Transmitted)}
    assert sorted(copies.values()) == [3, 4]  # each a copy of its own


def test_a_digest(switch: p4cc.Switch) -> None:
    switch.digests()
    event = only(send(switch, 4), events.DigestSent, "digest(1, m.learned)")
    assert isinstance(event, events.DigestSent)
    assert event.digest == "learned_t"
    assert [(f.name, f.value, f.width) for f in event.fields] == [("todo", 4, 8), ("port", 1, 9)]
    assert switch.digests() == [("learned_t", {"todo": 4, "port": 1})]
    assert switch.digests() == []


def test_meters_and_counters(switch: p4cc.Switch) -> None:
    switch.set_meter("rate", 3, cir=1, cburst=1, pir=1, pburst=2)
    assert switch.meter("rate", [3]) == [{"cir": 1, "cburst": 1, "pir": 1, "pburst": 2}]
    told = [send(switch, 5) for _ in range(3)]
    event = only(told[0], events.Metered, "execute_meter")
    assert isinstance(event, events.Metered)
    assert (event.meter, event.index) == ("I.rate", 3)
    colors = [packets.trace.of(events.Metered)[0].color for packets in told]
    assert colors == ["green", "yellow", "red"]
    assert [packets[0].frame[1] for packets in told] == [0, 1, 2]  # what the program was told
    counted = only(told[2], events.Counted, "seen.count")
    assert isinstance(counted, events.Counted)
    assert (counted.counter, counted.index, counted.packets, counted.bytes) == ("I.seen", 2, 3, 96)
    switch.set_meter("rate", 3)
    assert send(switch, 5).trace.of(events.Metered)[0].color == "green"


def test_a_dropped_packet(switch: p4cc.Switch) -> None:
    sent = send(switch, 6)
    event = only(sent, events.Dropped, "mark_to_drop(s)")
    assert isinstance(event, events.Dropped)
    assert event.reason == "the program drops it in ingress"
    assert sent == []


def test_a_recirculated_packet(switch: p4cc.Switch) -> None:
    sent = send(switch, 7)
    only(sent, events.Recirculated, "recirculate_preserving")
    assert [e.pipeline for e in sent.trace.of(events.PipelineEntered)] == ["ingress", "egress"] * 2
    assert sent[0].frame[:2] == bytes([7, 1])


def test_an_updated_checksum(switch: p4cc.Switch) -> None:
    sent = send(switch, 9)
    event = only(sent, events.ChecksumUpdated, "update_checksum")
    assert isinstance(event, events.ChecksumUpdated)
    assert (event.field, [change.now for change in event.changes]) == ("hdr.h.sum", [0xF6FF])
    assert "Updating checksum: hdr.h.sum = f6ff" in sent.trace.log()
    assert send(switch, 6).trace.of(events.ChecksumUpdated) == []


def test_every_event_is_written_in_each_form(switch: p4cc.Switch) -> None:
    for todo in range(1, 10):
        trace = send(switch, todo).trace
        assert len(trace.text().splitlines()) == len(trace)
        lines = [json.loads(line) for line in trace.json_lines().splitlines()]
        assert [line["packet"] for line in lines] == [event.packet for event in trace]
        assert trace.log()
        again = list(map(from_json_line, trace.json_lines().splitlines()))
        assert [replace(event, place=None) for event in again] == [replace(event, place=None) for event in trace]
        assert [str(event.place) for event in again] == [str(event.place) for event in trace]


@pytest.mark.parametrize(
    ("name", "index", "rates", "words"),
    [
        ("rat", 3, {}, "did you mean 'rate'"),
        ("rate", 4, {}, "meter 'rate', cell 4"),
        ("rate", 0, {"cir": 2, "pir": 1, "cburst": 1, "pburst": 1}, "cir 2 is above pir 1"),
        ("rate", 0, {"cir": 2}, "expected cir, cburst, pir and pburst, or none of them"),
    ],
)
def test_mistakes_with_meters(
    switch: p4cc.Switch, name: str, index: int, rates: dict[str, int], words: str
) -> None:
    with pytest.raises(p4cc.UserError, match=words) as error:
        switch.set_meter(name, index, **rates)
    assert "\n" not in str(error.value)
