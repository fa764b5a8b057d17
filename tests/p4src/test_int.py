"""Telemetry: the record that a hop appends, its place, and the packets that get one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from ipaddress import IPv4Network

import pytest
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet

import topologies
from control_plane import programs
from control_plane.programs.base import SwitchView
from host_agents.wire import WITH_INT
from p4switch.compiler import compile_program
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import (
    ACKNOWLEDGE,
    BTH,
    WRITE_ONLY,
    Flow,
    IntShim,
    dissect,
    ip_checksum_ok,
    psn_of,
)
from tests.p4src.queues import QUEUE_VIEW, QueueRig
from tests.p4src.rigs import BuiltinRig, Sent
from topologies.path_ids import path_ids
from topologies.routing import Route

FLOW = Flow()
MAX_HOPS = 8
RATE_CODE_100G = 10
SHIM = 54  # position of the shim in a frame


def records(frame: bytes) -> list[Packet]:
    return list(dissect(frame)[IntShim].records)


def test_a_hop_appends_its_record_and_nothing_else_changes(make_rig: MakeRig) -> None:
    sent = FLOW.telemetry(psn=3)
    received = make_rig("int").run([Sent(1, sent, now=5_000)])[2]
    assert len(received) == 1
    after = received[0]
    assert len(after) == len(sent) + 8
    packet = dissect(after)
    assert packet[IP].len == len(sent) + 8 - 14
    assert packet[UDP].len == len(sent) + 8 - 34
    assert packet[UDP].chksum == 0
    assert ip_checksum_ok(after)
    assert packet[IntShim].hop_count == 1
    assert packet[IntShim].path_id == 0x5A5
    record = records(after)[0]
    assert (record.link_rate_code, record.tx_units, record.queue_cells) == (RATE_CODE_100G, 0, 0)
    assert after[34:38] == sent[34:38]  # UDP ports
    assert after[42:SHIM] == sent[42:SHIM]  # BTH
    assert after[SHIM + 10 :] == sent[SHIM + 2 :]


def test_records_are_in_the_order_of_the_hops(make_rig: MakeRig) -> None:
    frame = FLOW.telemetry()
    for hop in range(1, 5):
        view = replace(VIEW, port_rates_bps=dict.fromkeys(range(1, 9), hop * 100_000_000_000))
        if hop == 3:
            view = replace(view, port_rates_bps=dict.fromkeys(range(1, 9), 25_000_000_000))
        frame = make_rig("int", view=view).run([Sent(1, frame)])[2][0]
        assert dissect(frame)[IntShim].hop_count == hop
        assert ip_checksum_ok(frame)
    assert [record.link_rate_code for record in records(frame)] == [10, 11, 6, 12]
    assert dissect(frame)[IP].ttl == 60


@pytest.mark.parametrize("known", range(MAX_HOPS + 4))
def test_a_full_stack_is_left_as_it_is(make_rig: MakeRig, known: int) -> None:
    sent = FLOW.telemetry(records=known)
    after = make_rig("int").run([Sent(1, sent)])[2][0]
    if known < MAX_HOPS:
        assert [r.link_rate_code for r in records(after)] == [*range(1, known + 1), RATE_CODE_100G]
        assert records(after)[:known] == records(sent)
    else:
        assert after[SHIM:] == sent[SHIM:]
        assert dissect(after)[IP].len == dissect(sent)[IP].len


def test_every_data_opcode_and_no_acknowledgement(make_rig: MakeRig) -> None:
    sent = [FLOW.telemetry(psn=n, opcode=WITH_INT + n) for n in range(0x20)]
    sent += [FLOW.data(psn=0x20 + i, opcode=opcode) for i, opcode in enumerate((WRITE_ONLY, ACKNOWLEDGE, 0x81, 0xE8))]
    received = make_rig("int").run([Sent(1, frame) for frame in sent])[2]
    grown = {psn_of(frame) for frame in received if len(frame) == len(sent[psn_of(frame)]) + 8}
    same = {psn_of(frame) for frame in received if frame[34:] == sent[psn_of(frame)][34:]}
    assert grown == set(range(0x20)) - {ACKNOWLEDGE}
    assert same == {ACKNOWLEDGE, 0x20, 0x21, 0x22, 0x23}


def test_bytes_before_the_packet_are_counted_for_each_port(make_rig: MakeRig) -> None:
    """Every packet counts with the length with which it leaves, plus an overhead for each frame."""
    view = replace(VIEW, frame_overhead_bytes=24)
    there, back = FLOW, Flow("10.0.0.3", "10.0.0.2")
    sent = [
        Sent(1, there.telemetry(psn=0, wire_bytes=1000)),  # leaves with 1008 bytes and costs 1032
        Sent(1, there.data(psn=1, wire_bytes=1000)),  # 1024
        Sent(2, back.telemetry(psn=2, wire_bytes=500)),  # leaves by another port
        Sent(1, there.telemetry(psn=3, opcode=WITH_INT + ACKNOWLEDGE, wire_bytes=100)),  # 124
        Sent(1, there.telemetry(psn=4, wire_bytes=1000)),
        Sent(1, there.telemetry(psn=5, wire_bytes=1000)),
    ]
    received = make_rig("int", view=view).run(sent)
    units = {psn_of(f): records(f)[-1].tx_units for port in (1, 2) for f in received[port] if len(f) % 100 == 8}
    before = {0: 0, 2: 0, 4: 1032 + 1024 + 124, 5: 1032 + 1024 + 124 + 1032}
    assert units == {psn: count // 128 for psn, count in before.items()}


def test_headers_that_links_do_not_charge_are_not_counted() -> None:
    rig = BuiltinRig("int", programs.parameters("int", {}).entries(replace(VIEW, frame_overhead_bytes=-58)))
    frames = [FLOW.telemetry(psn=psn, wire_bytes=1050) for psn in range(3)]  # each leaves with 1058
    received = rig.run([Sent(1, frame) for frame in frames])
    assert [records(f)[-1].tx_units for f in received[2]] == [psn * 1000 // 128 for psn in range(3)]
    # Six of 64 bytes would remain, but a frame is charged at least a flit.
    answers = [FLOW.telemetry(psn=psn, opcode=WITH_INT + ACKNOWLEDGE, wire_bytes=64) for psn in range(70)]
    last = rig.run([*(Sent(1, answer) for answer in answers), Sent(1, frames[0])])[2][-1]
    assert records(last)[-1].tx_units == (3 * 1000 + 70 * 16) // 128


def test_the_time_is_that_of_the_model(make_rig: MakeRig) -> None:
    """The time is the clock's ticks times the length of a tick, in 24 bits."""
    cases = [(Fraction(1), 1_234, 1_234), (Fraction(1), (1 << 24) + 5, 5), (Fraction(5, 2), 1_000, 2_500)]
    for tick_ns, now, expected in cases:
        rig = make_rig("int", view=replace(VIEW, tick_ns=tick_ns))
        if not rig.sets_clock:
            pytest.skip("BMv2's clock cannot be set")
        if rig.architecture is not None:  # a chip's clock ticks in nanoseconds
            expected = now % (1 << 24)
        assert records(rig.run([Sent(1, FLOW.telemetry(), now=now)])[2][0])[0].timestamp_ns == expected


def test_truncated_shims_and_records_are_malformed(make_rig: MakeRig) -> None:
    whole = FLOW.telemetry(records=3)
    cut = [bytearray(whole[:length]) for length in (SHIM, SHIM + 1, SHIM + 2 + 8, SHIM + 2 + 23)]
    rig = make_rig("int")
    assert not any(rig.run([Sent(1, bytes(frame)) for frame in cut]).values())
    assert rig.counter("ingress_drops", 0) == len(cut)


def test_queue_and_time_are_those_of_the_departure() -> None:
    """In a burst, packet i leaves after the packets before it, while the rest is in the queue.

    A byte takes a nanosecond.
    """
    view: SwitchView = replace(QUEUE_VIEW, port_rates_bps=dict.fromkeys(range(1, 9), 10_000_000_000))
    rig = QueueRig("int", {}, view)
    size, count = 792, 10  # 800 bytes, or ten cells, with the record
    rig.inject((100, FLOW.telemetry(psn=i, wire_bytes=size)) for i in range(count))
    for i, (arrived_ns, frame) in enumerate(rig.run()):
        record = records(frame)[0]
        assert record.timestamp_ns == 100 + 800 * i
        assert arrived_ns == record.timestamp_ns + 800
        # Packets in the queue have no record yet, and have 792 bytes each.
        behind = 0 if i == 0 else count - 1 - i
        assert record.queue_cells in (behind * size // 80, -(-behind * size // 80))
        assert record.tx_units == i * 800 // 128


def test_a_queue_too_deep_to_say_is_the_largest_number() -> None:
    view = replace(QUEUE_VIEW, port_rates_bps=dict.fromkeys(range(1, 9), 10_000_000_000), cell_bytes=1)
    rig = QueueRig("int", {}, view)
    rig.inject((0, FLOW.telemetry(psn=i, wire_bytes=1000)) for i in range(100))
    cells = [records(frame)[0].queue_cells for _, frame in rig.run()]
    assert cells[1] == 65535
    assert cells[40] == 59 * 1000
    assert cells[-1] == 0


def test_a_rate_without_a_code_is_named() -> None:
    view = replace(VIEW, port_rates_bps={1: 30_000_000_000})
    with pytest.raises(
        UserError, match=r"link rate 30 Gb/s has no code in the INT record; expected one of 1, 2\.5, 5, 10"
    ):
        programs.parameters("int", {}).entries(view)


@pytest.mark.parametrize(("arch", "most"), [("v1model", 15), ("tna", 8), ("t2na", 8)])
def test_the_number_of_hops_has_a_limit(arch: str, most: int) -> None:
    """A shim counts at most 15 hops, and a chip parses at most seven records."""
    source = programs.program("int").source
    compile_program(source, (), {"INT_MAX_HOPS": str(most)}, arch)
    with pytest.raises(UserError, match="INT_MAX_HOPS: expected at most 8 for TNA and T2NA, and 15 for v1model"):
        compile_program(source, (), {"INT_MAX_HOPS": str(most + 1)}, arch)


def test_the_overhead_of_a_frame_has_the_width_of_the_sum() -> None:
    """A chip's compiler does not extend a sign."""
    actions = compile_program(programs.program("int").source, (), {}, "tna").p4info.actions
    widths = {param.name: param.bitwidth for action in actions for param in action.params}
    assert widths["frame_overhead_bytes"] == 32


def test_dissection_agrees_with_the_layout() -> None:
    """Compare the tests' own reader with bytes written by hand."""
    frame = bytearray(FLOW.telemetry(records=0))
    shim = bytes.fromhex("15a5" + "a" + "123456" + "abcde" + "0102")
    packet = dissect(bytes(frame[:SHIM]) + shim)
    record = packet[IntShim].records[0]
    assert packet[BTH].opcode == WITH_INT + WRITE_ONLY
    assert (record.link_rate_code, record.timestamp_ns, record.tx_units, record.queue_cells) == (
        0xA,
        0x123456,
        0xABCDE,
        0x0102,
    )


def test_a_path_has_the_id_of_its_links(make_rig: MakeRig) -> None:
    """Also check parallel links. A reaction point with several paths compares only records with the same id."""
    network = topologies.build("leaf-spine", {"spines": 1, "links_per_spine": 4, "hosts_per_leaf": 2})
    links = path_ids(network).links["leaf0"]
    assert sorted(links) == [3, 4, 5, 6]
    assert len(set(links.values())) == 4
    rates_bps = {port: there.rate_bps for port, there in network.ports["leaf0"].items()}
    for port, link in links.items():
        route = Route(IPv4Network("10.0.0.0/8"), (port,))
        view = replace(VIEW, name="leaf0", network=network, port_rates_bps=rates_bps, routes=[route])
        (frame,) = make_rig("int", view=view).run([Sent(1, FLOW.telemetry())])[port]
        assert dissect(frame)[IntShim].path_id == 0x5A5 ^ link
