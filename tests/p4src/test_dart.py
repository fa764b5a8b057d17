"""In-order flow deflection: deflected packets and their ports, the contents of the table, and the lanes.

The reference model is a table in Python. It takes only the random choices from the program.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP

from control_plane import programs
from control_plane.programs import SwitchView
from control_plane.programs import entries as program_entries
from control_plane.programs.base import PortView
from host_agents.headers import BTH as BTH_LAYOUT
from p4switch.compiler import compile_program
from p4switch.engine import pipeline_cost
from p4switch.errors import UserError
from tests.p4src.conftest import MakeRig
from tests.p4src.packets import BTH, ECT0, Flow, dissect, ip_checksum_ok, psn_of
from tests.p4src.rigs import BuiltinRig, Rig, Sent
from topologies import Route

RATE_BPS = 10_000_000_000

FIRST, MIDDLE, LAST, ONLY = 0x00, 0x01, 0x02, 0x04
FIRSTS, LASTS, ONLYS = (0x00, 0x06, 0x0D), (0x02, 0x03, 0x08, 0x09, 0x0F), (0x04, 0x05, 0x0A, 0x0B, 0x10)
MIDDLES = (0x01, 0x07, 0x0C, 0x0E)
COUNTERS = ("deflected", "allocated", "freed", "expired", "table_full", "tokens_spent", "last_lane")

BTH_BYTE = 42

LANE_DSCP = (24, 32)  # DSCPs of priorities 3 and 4


def switch(name: str) -> PortView:
    tier = {"tor": 0, "agg": 1, "spine": 2}[name.rstrip("0123456789")]
    return PortView(name, RATE_BPS, 1000, tier=tier)


def host(address: str) -> PortView:
    return PortView(f"h{address}", RATE_BPS, 1000, address=IPv4Address(address))


def view(tier: int, neighbours: dict[int, PortView], routes: dict[str, tuple[int, ...]]) -> SwitchView:
    return SwitchView(
        device_id=5,
        port_rates_bps=dict.fromkeys(neighbours, RATE_BPS),
        routes=[Route(IPv4Network(prefix), ports) for prefix, ports in routes.items()],
        tier=tier,
        neighbours=neighbours,
    )


DOWN, UP = (1, 2, 3), (4, 5, 6)
AGG = view(
    1,
    {**{port: switch(f"tor{port}") for port in DOWN}, **{port: switch(f"spine{port}") for port in UP}},
    {"10.0.1.0/24": (1,), "10.0.2.0/24": (2,), "10.0.3.0/24": (3,), "10.1.0.0/16": UP},
)
TOR = view(
    0,
    {1: host("10.0.1.1"), 2: host("10.0.1.2"), 4: switch("agg4"), 5: switch("agg5"), 6: switch("agg6")},
    {"10.0.1.1/32": (1,), "10.0.1.2/32": (2,), "10.0.0.0/8": (4, 5, 6)},
)
TO_TOR1, TO_TOR2, TO_POD = (Flow("10.9.0.1", f"10.{where}.9") for where in ("0.1", "0.2", "1.0"))


@lru_cache(maxsize=1 << 12)
def data(
    opcode: int, tokens: int = 4, *, flow: Flow = TO_TOR1, qp: int = 0xBC, psn: int = 0, dscp: int = 24, ecn: int = ECT0
) -> bytes:
    return flow.frame(BTH(opcode=opcode, psn=psn, dest_qp=qp, tokens=tokens), psn=psn, dscp=dscp, ecn=ecn)


def tokens_of(frame: bytes) -> int:
    return frame[BTH_BYTE + 4] >> 3 & 7


def qp_of(frame: bytes) -> int:
    return int.from_bytes(frame[BTH_BYTE + 5 : BTH_BYTE + 8], "big")


def dscp_of(frame: bytes) -> int:
    return frame[15] >> 2


def out(rig: Rig, *packets: tuple[int, bytes], now: int = 0) -> list[tuple[int, bytes]]:
    """Send packets, given as (port, frame), and return (port, frame) of each packet that left."""
    sent = []
    for port, frame in packets:
        received = rig.run([Sent(port, frame, now)])
        assert sum(map(len, received.values())) == 1
        sent += [(port, frame) for port, frames in received.items() for frame in frames]
    return sent


def ports_of(rig: Rig, packets: Iterable[bytes], by: int = 4, now: int = 0) -> list[int]:
    return [port for port, _ in out(rig, *((by, frame) for frame in packets), now=now)]


def make(view: SwitchView = AGG, **parameters: object) -> BuiltinRig:
    """Return a rig that deflects every packet unless `threshold_bytes` is given."""
    given = {"threshold_bytes": 0, **parameters}
    return BuiltinRig("dart", programs.parameters("dart", given).entries(view))


def waiting(rig: BuiltinRig, port: int, bytes_of_priority: dict[int, int]) -> None:
    for priority in range(8):
        held = bytes_of_priority.get(priority, 0)
        rig.switch.register_write("queue_bytes", port * 8 + priority, held.to_bytes(4, "big"))


def keys(rig: BuiltinRig) -> list[int]:
    """Return the keys of the entries in use."""
    found = [int.from_bytes(rig.switch.register_read("dft_key", i), "big") for i in range(16)]
    return [key for key in found if key]


def counted(rig: Rig, port: int) -> dict[str, int]:
    return {name: count for name in COUNTERS if (count := rig.counter(name, port))}


def test_a_message_is_deflected_as_one_and_its_last_packet_frees_the_entry(make_rig: MakeRig) -> None:
    rig = make_rig("dart", {"threshold_bytes": 0}, AGG)
    message = [data(opcode, psn=psn) for psn, opcode in enumerate((FIRST, MIDDLE, MIDDLE, LAST))]
    received = rig.run([Sent(4, frame) for frame in message])
    (port,) = received
    assert port not in (1, 4)
    assert [psn_of(frame) for frame in received[port]] == [0, 1, 2, 3]
    assert {tokens_of(frame) for frame in received[port]} == {3}
    assert all(ip_checksum_ok(frame) for frame in received[port])
    assert counted(rig, 1) == {"deflected": 4, "allocated": 1, "freed": 1}


def test_tokens_lanes_and_a_full_table_on_any_switch(make_rig: MakeRig) -> None:
    """Messages, each with its destination QP, come from above to a ToR whose table has two entries."""
    rig = make_rig("dart", {"threshold_bytes": 0, "dft_entries": 2}, AGG)
    whole = (FIRST, MIDDLE, LAST)
    messages = {
        1: [data(part, psn=psn, qp=1) for psn, part in enumerate(whole)],
        2: [data(part, 1, psn=psn, qp=2) for psn, part in enumerate(whole)],
        3: [data(part, psn=psn, qp=3) for psn, part in enumerate(whole)],  # finds no free entry
        4: [data(ONLY, qp=4)],  # needs no entry
        5: [data(part, 0, psn=psn, qp=5) for psn, part in enumerate(whole)],  # without tokens
        6: [data(ONLY, qp=6, dscp=LANE_DSCP[1])],  # in the last lane
    }
    firsts = [packets[0] for packets in messages.values()]
    rest = [packet for packets in messages.values() for packet in packets[1:]]
    received = rig.run([Sent(4, frame) for frame in (*firsts, *rest)])
    assert counted(rig, 1) == {
        "deflected": 7, "allocated": 2, "freed": 2, "table_full": 1, "tokens_spent": 3, "last_lane": 1
    }  # fmt: skip
    found = {qp: [(port, f) for port, frames in received.items() for f in frames if qp_of(f) == qp] for qp in messages}
    for qp, sent in messages.items():
        (port,) = {port for port, _ in found[qp]}
        frames = [frame for _, frame in found[qp]]
        assert [psn_of(frame) for frame in frames] == list(range(len(sent)))
        deflected = qp in (1, 2, 4)
        assert (port not in (1, 4)) == deflected
        assert [tokens_of(frame) for frame in frames] == [tokens_of(frame) - deflected for frame in sent]
        lane = LANE_DSCP[1] if port in UP else dscp_of(sent[0])
        assert {dscp_of(frame) for frame in frames} == {lane}


def test_figure_7_the_threshold_is_for_the_first_packet_only() -> None:
    rig = make(threshold_bytes=15_000)
    waiting(rig, 1, {3: 9_000, 4: 7_000})
    (port,) = ports_of(rig, [data(FIRST)])
    assert port != 1
    assert keys(rig) == [int(IPv4Address("10.0.1.9")) << 32 | 0xBC << 8 | 4]
    waiting(rig, 1, {})
    assert ports_of(rig, [data(MIDDLE), data(MIDDLE), data(LAST)]) == [port] * 3
    assert keys(rig) == []
    assert ports_of(rig, [data(FIRST), data(MIDDLE), data(LAST)]) == [1, 1, 1]


@pytest.mark.parametrize(("held", "deflected"), [({3: 14_999}, 0), ({3: 15_000}, 1), ({3: 7_500, 4: 7_500}, 1)])
def test_the_position_is_what_waits_in_all_lanes(held: dict[int, int], deflected: int) -> None:
    rig = make(threshold_bytes=15_000)
    waiting(rig, 1, held)
    ports_of(rig, [data(ONLY)])
    assert rig.counter("deflected", 1) == deflected


def test_what_waits_in_other_classes_does_not_count() -> None:
    rig = make(threshold_bytes=15_000)
    waiting(rig, 1, {3: 10_000, 6: 100_000, 5: 100_000})
    assert ports_of(rig, [data(ONLY)]) == [1]


@pytest.mark.parametrize("opcode", range(0x20))
def test_only_the_start_of_a_message_is_chosen(opcode: int) -> None:
    rig = make()
    port, after = out(rig, (4, data(opcode)))[0]
    chosen = opcode in FIRSTS + ONLYS
    assert (port != 1, tokens_of(after)) == (chosen, 3 if chosen else 4)
    assert len(keys(rig)) == (opcode in FIRSTS)


@pytest.mark.parametrize("last", LASTS + ONLYS)
def test_what_ends_a_message_frees_its_entry(last: int) -> None:
    rig = make()
    first, middle, end = ports_of(rig, [data(FIRST), data(MIDDLE), data(last)])
    assert first == middle == end != 1
    assert keys(rig) == []


def test_control_packets_and_other_classes_keep_their_path() -> None:
    rig = make()
    assert ports_of(rig, [data(0x81), data(0xEC), data(FIRST, dscp=48), data(FIRST, dscp=8)]) == [1] * 4
    assert keys(rig) == []


def test_without_tokens_nothing_is_deflected_and_nothing_matches() -> None:
    """Check long messages and retransmissions."""
    rig = make()
    (deflected,) = ports_of(rig, [data(FIRST)])
    assert ports_of(rig, [data(opcode, tokens=0) for opcode in (FIRST, MIDDLE, LAST, ONLY)]) == [1] * 4
    assert ports_of(rig, [data(LAST)]) == [deflected]


def test_the_last_token_is_counted() -> None:
    rig = make()
    for tokens in (2, 1):
        _, after = out(rig, (4, data(ONLY, tokens)))[0]
        assert tokens_of(after) == tokens - 1
    assert counted(rig, 1) == {"deflected": 2, "tokens_spent": 1}


def test_a_message_of_one_packet_needs_no_entry() -> None:
    rig = make(dft_entries=1)
    ports_of(rig, [data(FIRST, qp=1), data(ONLY, qp=2)])
    assert counted(rig, 1) == {"deflected": 2, "allocated": 1}


@pytest.mark.parametrize("entries", [1, 8, 16])
def test_a_full_table_deflects_no_more(entries: int) -> None:
    rig = make(dft_entries=entries)
    ports = ports_of(rig, [data(FIRST, qp=qp) for qp in range(entries + 1)])
    assert [port != 1 for port in ports] == [True] * entries + [False]
    assert counted(rig, 1) == {"deflected": entries, "allocated": entries, "table_full": 1}
    assert ports_of(rig, [data(LAST, qp=entries // 2)]) == [ports[entries // 2]]
    assert ports_of(rig, [data(FIRST, qp=99)]) != [1]


@pytest.mark.parametrize(("silent_ns", "taken"), [(999, False), (1_000, True)])
def test_a_silent_entry_is_taken_after_the_timeout(silent_ns: int, taken: bool) -> None:
    rig = make(dft_entries=1, entry_timeout_ns=1_000)
    ports_of(rig, [data(FIRST, qp=1)], now=5_000)
    ports_of(rig, [data(MIDDLE, qp=1)], now=5_500)
    ports = ports_of(rig, [data(FIRST, qp=2)], now=5_500 + silent_ns)
    assert (ports != [1]) == taken
    assert rig.counter("expired", 1) == taken
    assert rig.counter("table_full", 1) == (not taken)
    assert [key >> 8 & 0xFFFFFF for key in keys(rig)] == [2 if taken else 1]


def test_a_silent_entry_is_kept_as_long_as_another_is_free() -> None:
    rig = make(dft_entries=2, entry_timeout_ns=1_000)
    for qp, now in ((1, 0), (2, 10_000)):
        ports_of(rig, [data(FIRST, qp=qp)], now=now)
    assert rig.counter("expired", 1) == 0
    assert len(keys(rig)) == 2


def test_as_printed_entries_never_expire() -> None:
    rig = make(dft_entries=1, entry_timeout_ns=0)
    ports_of(rig, [data(FIRST, qp=1)])
    assert ports_of(rig, [data(FIRST, qp=2)], now=1 << 45) == [1]


def test_visits_are_told_apart_by_tokens() -> None:
    """A message passes with 4 tokens, and again with 2 tokens. Each visit has its own entry."""
    rig = make()
    first_visit = ports_of(rig, [data(FIRST, 4)], by=4)
    second_visit = ports_of(rig, [data(FIRST, 2)], by=5)
    assert len(keys(rig)) == 2
    # The first visit of the last packet does not free the entry of the second visit.
    assert ports_of(rig, [data(MIDDLE, 4), data(LAST, 4)]) == first_visit * 2
    assert ports_of(rig, [data(MIDDLE, 2), data(LAST, 2)], by=5) == second_visit * 2
    assert keys(rig) == []


def test_as_printed_visits_are_not_told_apart() -> None:
    rig = make(match="message")
    (deflected,) = ports_of(rig, [data(FIRST, 4)])
    assert ports_of(rig, [data(MIDDLE, 2), data(LAST, 1)], by=5) == [deflected] * 2
    assert keys(rig) == []


@pytest.mark.parametrize(("match", "arrival"), [("message", [1, 0, 2]), ("exact", [0, 1, 2])])
def test_a_packet_sent_straight_back_is_caught_again_by_the_printed_key_only(match: str, arrival: list[int]) -> None:
    """Three packets, 1.5 link times apart, go to a switch that returns each of them at once.

    They come back two link times later, when the queue is empty. As printed, packet 0 matches a
    second time, packet 2 frees the entry, and packet 1 passes before packet 0.
    """
    rig = make(threshold_bytes=15_000, match=match)
    waiting(rig, 1, {3: 20_000})
    coming = [(1_500 * psn, 2, data(part, psn=psn)) for psn, part in enumerate((FIRST, MIDDLE, LAST))]
    passed = []
    while coming:
        now, by, frame = coming.pop(0)
        port, after = out(rig, (by, frame), now=now)[0]
        waiting(rig, 1, {})
        if port == 1:
            passed.append(psn_of(after))
        else:
            coming = sorted([*coming, (now + 2_000, port, after)])
    assert passed == arrival
    assert keys(rig) == []


@pytest.mark.parametrize(("flow", "by"), [(TO_TOR1, 2), (TO_TOR1, 4), (TO_POD, 1), (TO_POD, 5)])
def test_any_port_to_a_switch_but_the_normal_and_the_ingress_one_equally_likely(flow: Flow, by: int) -> None:
    count = 400
    rig = make()
    normal = ports_of(rig, [data(ONLY, 0, flow=flow)], by)[0]
    chosen = Counter(ports_of(rig, [data(ONLY, flow=flow)] * count, by))
    allowed = {*DOWN, *UP} - {normal, by}
    assert set(chosen) == allowed
    for port in allowed:
        # The tolerance is six standard deviations of the binomial distribution.
        share = 1 / len(allowed)
        assert abs(chosen[port] - count * share) < 6 * (count * share * (1 - share)) ** 0.5


def test_never_to_a_host_and_not_what_waits_for_its_own_host() -> None:
    rig = make(TOR)
    up = Flow("10.0.1.1", "10.0.7.7")
    normal = ports_of(rig, [data(ONLY, 0, flow=up)], by=1)[0]
    assert set(ports_of(rig, [data(ONLY, flow=up)] * 100, by=1)) == {4, 5, 6} - {normal}
    home = Flow("10.0.7.7", "10.0.1.2")
    assert ports_of(rig, [data(FIRST, flow=home), data(ONLY, flow=home)], by=4) == [2, 2]
    assert keys(rig) == []


def test_deflect_host_ports_sends_back_into_the_network() -> None:
    rig = make(TOR, deflect_host_ports=True)
    home = Flow("10.0.7.7", "10.0.1.2")
    assert set(ports_of(rig, [data(ONLY, flow=home)] * 100, by=4)) == {5, 6}
    assert set(ports_of(rig, [data(ONLY, flow=home)] * 100, by=1)) == {4, 5, 6}


def test_where_there_is_no_other_port_a_packet_goes_the_normal_way() -> None:
    single = view(0, {1: host("10.0.1.1"), 4: switch("agg4")}, {"10.0.1.1/32": (1,), "10.0.0.0/8": (4,)})
    rig = make(single)
    assert ports_of(rig, [data(FIRST, flow=Flow("10.0.1.1", "10.0.7.7"))], by=1) == [4]
    assert counted(rig, 4) == {}


def test_equal_cost_candidates_are_those_of_the_route_and_in_the_last_lane_too() -> None:
    rig = make(candidates="equal-cost")
    normal = ports_of(rig, [data(ONLY, 0, flow=TO_POD)], by=1)[0]
    for dscp in LANE_DSCP:
        assert set(ports_of(rig, [data(ONLY, flow=TO_POD, dscp=dscp)] * 100, by=1)) == set(UP) - {normal}
    assert ports_of(rig, [data(FIRST)], by=4) == [1]


def test_a_turn_from_down_to_up_changes_the_lane() -> None:
    """Check routing and deflection, with and without tokens, for data and other packets."""
    rig = make()
    for frame in (data(ONLY, 0, flow=TO_POD), data(MIDDLE, 4, flow=TO_POD), data(0xEC, 0, flow=TO_POD)):
        _, after = out(rig, (4, frame))[0]
        assert dscp_of(after) == LANE_DSCP[1]
        assert ip_checksum_ok(after)
    for port, after in out(rig, *[(4, data(ONLY))] * 50):
        assert dscp_of(after) == LANE_DSCP[port in UP]


def test_no_other_turn_changes_the_lane() -> None:
    rig = make()
    sent = [(1, TO_POD), (1, TO_TOR2), (4, TO_TOR1)]  # up, from up to down, down
    for by, flow in sent:
        assert dscp_of(out(rig, (by, data(ONLY, 0, flow=flow)))[0][1]) == LANE_DSCP[0]
    assert dscp_of(out(rig, (4, data(ONLY, 0, flow=TO_POD, dscp=48)))[0][1]) == 48


def test_the_last_lane_deflects_nothing_anew_and_is_the_last() -> None:
    rig = make()
    assert ports_of(rig, [data(FIRST, dscp=LANE_DSCP[1]), data(ONLY, dscp=LANE_DSCP[1])]) == [1, 1]
    assert counted(rig, 1) == {"last_lane": 2}
    assert dscp_of(out(rig, (4, data(ONLY, flow=TO_POD, dscp=LANE_DSCP[1])))[0][1]) == LANE_DSCP[1]


def test_what_a_lost_last_packet_left_in_the_table_deflects_nothing_in_the_last_lane() -> None:
    rig = make()
    (port,) = ports_of(rig, [data(FIRST)])
    assert port != 1
    assert ports_of(rig, [data(opcode, dscp=LANE_DSCP[1]) for opcode in (FIRST, MIDDLE, LAST)]) == [1, 1, 1]
    assert len(keys(rig)) == 1
    assert ports_of(rig, [data(LAST)]) == [port]


def test_more_lanes_are_passed_one_by_one() -> None:
    rig = make(lanes=3, lane_priorities=[3, 5, 1])
    dscp = 24
    for following in (40, 8, 8):
        dscp = dscp_of(out(rig, (4, data(MIDDLE, 0, flow=TO_POD, dscp=dscp)))[0][1])
        assert dscp == following
    deflected = [ports_of(rig, [data(ONLY, dscp=dscp)]) != [1] for dscp in (24, 40, 8)]
    assert deflected == [True, True, False]


def test_without_a_lane_rule_packets_keep_their_lane() -> None:
    rig = make(lane_rule="none")
    for dscp in LANE_DSCP:
        _, after = out(rig, (4, data(ONLY, flow=TO_POD, dscp=dscp)))[0]
        assert dscp_of(after) == dscp
        assert tokens_of(after) == 3


def test_the_tokens_are_three_bits_after_becn() -> None:
    assert int(dissect(data(ONLY, 5))[BTH].tokens) == BTH_LAYOUT.get("tokens", data(ONLY, 5), BTH_BYTE) == 5
    assert tokens_of(data(ONLY, 5)) == 5


def test_the_udp_checksum_is_taken_off_with_a_token() -> None:
    frame = bytearray(data(ONLY))
    frame[40:42] = b"\x12\x34"
    rig = make()
    assert dissect(out(rig, (4, bytes(frame)))[0][1])[UDP].chksum == 0
    frame[BTH_BYTE + 4] = 0  # no tokens
    assert dissect(out(rig, (4, bytes(frame)))[0][1])[UDP].chksum == 0x1234


def test_marks_follow_the_sum_of_the_lanes() -> None:
    for others, marked in (({4: 22_400, 6: 99_999}, False), ({4: 22_656}, True), ({3: 99_999, 4: 22_400}, False)):
        rig = make(threshold_bytes=1 << 31)
        waiting(rig, 1, others)  # the packet's own queue is empty after it has left
        _, after = out(rig, (4, data(MIDDLE)))[0]
        assert (dissect(after)[IP].tos & 3 == 3) == marked


@dataclass
class Entry:
    key: tuple[str, int, int]
    port: int
    used: int


@dataclass
class Table:
    """The deflected flow table of an aggregation switch, and its decisions. Times are in ns."""

    entries: int
    timeout_ns: int | None
    with_tokens: bool
    threshold_bytes: int
    lanes: int
    held: dict[int, Entry] = field(default_factory=dict)  # entries by place
    counts: Counter[str] = field(default_factory=Counter)

    def packet(
        self,
        now: int,
        by: int,
        normal: int,
        chosen: int,
        flow: str,
        qp: int,
        opcode: int,
        tokens: int,
        lane: int,
        position: int,
    ) -> tuple[int, int, int]:
        """Return port, tokens and lane of a packet that the program sends to `chosen`.

        Port -1 means that the packet must not go there.
        """
        port = normal
        key = (flow, qp, tokens if self.with_tokens else 0)
        matches = tokens > 0 and (lane < self.lanes - 1 or not self.with_tokens)
        at = next((place for place, entry in self.held.items() if matches and entry.key == key), None)
        starts = opcode in FIRSTS + ONLYS and tokens > 0 and position >= self.threshold_bytes
        if at is not None:
            port, self.held[at].used = self.held[at].port, now
            if opcode in LASTS + ONLYS:
                del self.held[at]
                self.counts["freed"] += 1
        elif starts and lane == self.lanes - 1:
            self.counts["last_lane"] += 1
        elif starts and opcode in ONLYS:
            port = chosen if chosen not in (normal, by) else -1
        elif starts and (place := self._place(now)) is not None:
            port = chosen if chosen not in (normal, by) else -1
            self.held[place] = Entry(key, port, now)
            self.counts["allocated"] += 1
        elif starts:
            self.counts["table_full"] += 1
        if at is not None or port != normal:
            tokens -= 1
            self.counts["deflected"] += 1
            self.counts["tokens_spent"] += tokens == 0
        if by in UP and port in UP:
            lane = min(lane + 1, self.lanes - 1)
        return port, tokens, lane

    def _place(self, now: int) -> int | None:
        """Return the first free place, or else the first expired one."""
        free = [place for place in range(self.entries) if place not in self.held]
        silent = [
            place
            for place, entry in sorted(self.held.items())
            if self.timeout_ns is not None and now - entry.used >= self.timeout_ns
        ]
        self.counts["expired"] += not free and bool(silent)
        return next(iter(free + silent), None)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_the_program_decides_like_the_model(seed: int) -> None:
    rng = random.Random(seed)
    lanes, entries = rng.randint(2, 5), rng.choice((1, 2, 3, 8, 16))
    timeout_ns, exact, threshold = rng.choice((None, 300, 3_000)), rng.random() < 0.7, rng.choice((0, 15_000))
    rig = make(
        lanes=lanes,
        dft_entries=entries,
        entry_timeout_ns=timeout_ns or 0,
        match="exact" if exact else "message",
        threshold_bytes=threshold,
    )
    model = Table(entries, timeout_ns, exact, threshold, lanes)
    dscps = [8 * priority for priority in (3, 4, 5, 2, 1)][:lanes]
    flows = (TO_TOR1, TO_TOR2, TO_POD)
    normals = [ports_of(rig, [data(MIDDLE, 0, flow=flow)], by=3)[0] for flow in flows]
    now = 0
    for _ in range(80):
        now += rng.choice((1, 10, 100, 1_000))
        which, qp, lane = rng.randrange(3), rng.randint(1, 6), rng.randrange(lanes)
        opcode = rng.choice(rng.choice((FIRSTS, MIDDLES, LASTS, ONLYS)))
        tokens, by, position = rng.choice((0, 1, 2, 4, 7)), rng.randint(1, 6), rng.choice((0, 14_999, 15_000, 40_000))
        waiting(rig, normals[which], {(3, 4, 5, 2, 1)[rng.randrange(lanes)]: position})
        frame = data(opcode, tokens, flow=flows[which], qp=qp, dscp=dscps[lane])
        port, after = out(rig, (by, frame), now=now)[0]
        expected = model.packet(
            now, by, normals[which], port, flows[which].destination, qp, opcode, tokens, lane, position
        )
        assert (port, tokens_of(after), dscps.index(dscp_of(after))) == expected
        assert len(keys(rig)) == len(model.held)
        waiting(rig, port, {})
    counts = {name: sum(rig.counter(name, port) for port in range(1, 7)) for name in COUNTERS}
    assert counts == {name: model.counts[name] for name in COUNTERS}


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"dft_entries": 17}, "program.dft_entries:"),
        ({"lanes": 6}, "lanes should not exceed the priorities that lane_priorities lists (5)"),
        ({"lane_priorities": [3, 3]}, "lane_priorities should differ"),
        ({"kmin_bytes": 30_000}, "kmin_bytes should not exceed kmax_bytes (22500)"),
        ({"deflect_host_ports": True, "candidates": "equal-cost"}, "deflect_host_ports goes with candidates"),
        ({"match": "flow"}, "program.match:"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, object], text: str) -> None:
    with pytest.raises(UserError) as raised:
        programs.parameters("dart", parameters)
    assert text in str(raised.value)


def test_a_lane_that_no_dscp_says_is_refused() -> None:
    without = replace(AGG, priority_of_dscp={24: 3})
    with pytest.raises(UserError, match="no DSCP has priority 4 in this network"):
        programs.parameters("dart", {}).entries(without)


@pytest.mark.parametrize(("timeout_ns", "ticks"), [(50_000, 50), (1, 1), (0, 2**48 - 1), (10**18, 2**48 - 1)])
def test_ticks_of_the_clock_count_the_timeout(timeout_ns: int, ticks: int) -> None:
    """Ticks have 48 bits. A longer time-out means that entries never expire."""
    coarse = replace(AGG, tick_ns=Fraction(1_000))
    parameters = programs.parameters("dart", {"entry_timeout_ns": timeout_ns})
    entries = parameters.entries(coarse)
    (found,) = (e.action for e in entries if isinstance(e, program_entries.DefaultAction) and e.table == "iofd")
    assert found.params["entry_timeout_ticks"] == ticks


@pytest.mark.parametrize("tokens", [0, 4])
def test_what_the_benchmark_measures_finds_the_table_full_if_it_has_tokens(tokens: int) -> None:
    """Run the benchmark's load, which raises an error if the table is not full."""
    (frame, *_) = pipeline_cost.frames(0, None, tokens << 3)
    assert dissect(frame)["BTH"].tokens == tokens
    load = pipeline_cost.deflecting(compile_program(programs.program("dart").source).program, tokens)
    assert pipeline_cost.measure({"dart": load}, turns=2)["dart"] > 0
    if tokens:
        with pytest.raises(RuntimeError, match="found the table full"):
            load.check(3)
