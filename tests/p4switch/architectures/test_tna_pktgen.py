"""The packet generator of TNA and T2NA: packets that trigger it, and packets that it sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import build_traced, load, objects
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev
from tests.p4switch.architectures.tofino import compiled, switch

SENT = bytes([0xA1, 0xB2, 0xC3, 0xD4, 0xE5])
BUFFER = bytes(range(0x40, 0x60))
BY_RECIRCULATION, BY_DEPARSER = 1, 2
GENERATED = 7  # local port at which generated packets arrive
EMITS = {
    "INGRESS": f"""apply {{
        if (intrinsic.ingress_port[6:0] == {GENERATED}) {{ tm.ucast_egress_port = 5; }}
        else {{ tm.ucast_egress_port = 2; deparsed.pktgen = 1; }}
    }}""",
    "INGRESS_DEPARSER":
        "Pktgen() generator; apply { if (deparsed.pktgen == 1) { generator.emit(hdr.h); } packet.emit(hdr); }",
}


def recirculating(arch: str) -> dict[str, str]:
    """Return the blocks of a program whose packets pass ingress twice, and whose generated packets pass it once."""
    port = {"tna": 68, "t2na": 6}[arch]
    return {
        "INGRESS": f"""apply {{
            if (intrinsic.ingress_port[6:0] == {GENERATED}) {{ tm.ucast_egress_port = 5; }}
            else if (intrinsic.ingress_port[6:0] == {port}) {{ tm.ucast_egress_port = 3; }}
            else {{ tm.ucast_egress_port = intrinsic.ingress_port[8:7] ++ 7w{port}; }}
        }}"""
    }


def configure(made: Any, arch: str, application: int, **members: int) -> None:
    states = PACKET_PATHS.find(f"{arch}.Switch").states
    for i in range(0, len(BUFFER), 16):
        cell = objects.packed(states["pktgen_buffer"].kind, {"bytes": int.from_bytes(BUFFER[i : i + 16], "big")})
        made.object_write("$pktgen_buffer", 2 + i // 16, cell)
    given = {"enabled": 1, "port": GENERATED, "batches": 1, "packets": 1, "offset": 32, "length": 4} | members
    made.object_write("$pktgen", application, objects.packed(states["pktgen"].kind, given))


def test_a_deparser_has_packets_generated(tmp_path: Path) -> None:
    made = switch(tmp_path, "t2na", **EMITS)
    assert made.process(1, SENT) == [(2, SENT)]
    configure(made, "t2na", 11, trigger=BY_DEPARSER, batches=2, packets=3, offset=34, length=20)
    context = SENT[:2] + bytes(14)
    expected = [
        (5, bytes([pipe << 4 | 11, 0, 0, batch, 0, packet]) + context + BUFFER[2:22])
        for pipe in (0, 2)
        for batch in range(2)
        for packet in range(3)
    ]
    assert made.process(1, SENT) == [(2, SENT), *expected[:6]]
    assert made.process(0x101, SENT) == [(2, SENT), *expected[6:]]


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_a_pattern_in_what_is_recirculated_has_packets_generated(tmp_path: Path, arch: str) -> None:
    made = switch(tmp_path, arch, **recirculating(arch))
    bits = 32 if arch == "tna" else 128
    pattern, mask = (value << (bits - 32) for value in (0xA1000000, 0xFF0000FF))
    configure(made, arch, 3, trigger=BY_RECIRCULATION, batches=2, value=pattern, mask=mask)
    sent = bytes([0xA1, 0xB2, 0xFF, 0x00, 0xE5])
    if arch == "tna":
        generated = [bytes([1 << 3 | 3, 0xB2, 0xFF, batch, 0, 0]) + BUFFER[:4] for batch in range(2)]
    else:
        generated = [bytes([1 << 4 | 3, 0, 0, batch, 0, 0]) + sent.ljust(16, b"\0") + BUFFER[:4] for batch in range(2)]
    assert made.process(0x81, sent) == [(3, sent), *((5, each) for each in generated)]
    for other in (bytes([0xA2, 0xB2, 0xFF, 0]), bytes([0xA1, 0xB2, 0xFF, 1])):
        assert made.process(0x81, other) == [(3, other)]


def test_what_an_application_needs(tmp_path: Path) -> None:
    """An application generates packets if it is enabled, has the trigger, and has batches of packets."""
    made = switch(tmp_path, "t2na", **EMITS)
    for without in ({"enabled": 0}, {"trigger": BY_RECIRCULATION}, {"batches": 0}, {"packets": 0}):
        configure(made, "t2na", 0, **({"trigger": BY_DEPARSER} | without))
        assert made.process(1, SENT) == [(2, SENT)]
    for application in (0, 15):
        configure(made, "t2na", application, trigger=BY_DEPARSER)
    assert [packet[0] for port, packet in made.process(1, SENT) if port == 5] == [0, 15]
    made.reset()
    assert made.process(1, SENT) == [(2, SENT)]


def test_behind_the_end_of_the_buffer_there_are_zeros(tmp_path: Path) -> None:
    made = switch(tmp_path, "t2na", **EMITS)
    configure(made, "t2na", 0, trigger=BY_DEPARSER, offset=16 * 1024 - 1, length=4)
    last = objects.packed(PACKET_PATHS.find("t2na.Switch").states["pktgen_buffer"].kind, {"bytes": 0x77})
    made.object_write("$pktgen_buffer", 1023, last)
    assert made.process(1, SENT)[1][1][22:] == b"\x77\0\0\0"


def test_packets_that_have_others_generated_come_to_an_end(tmp_path: Path) -> None:
    always = {**EMITS, "INGRESS": "apply { tm.ucast_egress_port = 2; deparsed.pktgen = 1; }"}
    made = switch(tmp_path, "t2na", **always)
    configure(made, "t2na", 0, trigger=BY_DEPARSER)
    assert len(made.process(1, SENT, 0, 5000)) == 1 + 1024


def test_a_packet_that_is_dropped_triggers_too_and_a_resubmitted_one_once(tmp_path: Path) -> None:
    dropping = EMITS["INGRESS"].replace("= 2;", "= 2; deparsed.drop_ctl = 1;")
    made = switch(tmp_path, "t2na", **EMITS | {"INGRESS": dropping})
    configure(made, "t2na", 0, trigger=BY_DEPARSER)
    assert [port for port, _ in made.process(1, SENT)] == [5]
    again = EMITS["INGRESS"].replace(
        "deparsed.pktgen = 1;", "deparsed.pktgen = 1; if (intrinsic.resubmit_flag == 0) { deparsed.resubmit_type = 0; }"
    )
    deparser = EMITS["INGRESS_DEPARSER"].replace("Pktgen()", "Resubmit() resubmit; Pktgen()").replace(
        "apply {", "apply { if (deparsed.resubmit_type == 0 && intrinsic.resubmit_flag == 0) { resubmit.emit(); }"
    )
    made = switch(tmp_path, "t2na", INGRESS=again, INGRESS_DEPARSER=deparser)
    configure(made, "t2na", 0, trigger=BY_DEPARSER)
    assert [port for port, _ in made.process(1, SENT)] == [2, 5]


def test_a_trace_tells_of_it(tmp_path: Path) -> None:
    traced = build_traced(compiled(tmp_path, "t2na", **EMITS).program)
    made = load().Switch(str(traced.library))
    made.set_tracing(True)
    configure(made, "t2na", 4, trigger=BY_DEPARSER, packets=2)
    made.process(1, SENT)
    trace = Trace(Decoder(traced)(made.traced()[0]))
    assert [(e.application, e.made) for e in trace.of(ev.Generated)] == [(4, 1), (4, 2)]
    assert "application 4 generates a packet, as copy 2" in trace.text()
    assert "Application 4 generates a packet" in trace.log()


def test_a_packet_sends_16_bytes_at_most(tmp_path: Path) -> None:
    longer = EMITS["INGRESS_DEPARSER"].replace("emit(hdr.h)", "emit({ hdr.wide, hdr.wide, hdr.h })")
    with pytest.raises(CompileError, match="what is sent with a copy has 18 bytes, at most 16"):
        compiled(tmp_path, "t2na", **EMITS | {"INGRESS_DEPARSER": longer})


def test_what_is_generated_is_counted(tmp_path: Path) -> None:
    made = switch(tmp_path, "t2na", **EMITS)
    configure(made, "t2na", 11, trigger=BY_DEPARSER, batches=2, packets=3)
    for _ in range(2):
        made.process(1, SENT)
    cell = objects.values(PACKET_PATHS.find("t2na.Switch").states["pktgen"].kind, made.object_read("$pktgen", 11))
    assert (cell["triggers"], cell["batches_made"], cell["packets_made"]) == (2, 4, 12)
