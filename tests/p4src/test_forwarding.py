"""Forwarding, which all programs share: routes, TTL, checksum, drops and ECMP."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether

from control_plane.programs.base import SwitchView, names
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import CE, ECT0, Flow, dissect, ip_checksum_ok, mac, psn_of
from tests.p4src.rigs import Sent

MALFORMED, NOT_IPV4, CHECKSUM, TTL, NO_ROUTE = range(5)

FLOW = Flow()
PROGRAMS = names()


def to(destination: str, entropy: int = 49152) -> Flow:
    return Flow("10.0.0.2", destination, entropy)


@pytest.mark.parametrize("program", PROGRAMS)
def test_longest_prefix_decides_and_only_ttl_and_checksum_change(make_rig: MakeRig, program: str) -> None:
    sent = [FLOW.data(1), to("10.0.9.9").data(2), to("10.0.0.2").data(3)]
    received = make_rig(program).run([Sent(1, frame) for frame in sent])
    assert {port: [psn_of(frame) for frame in frames] for port, frames in received.items()} == {2: [1], 3: [2], 1: [3]}
    for before, after in zip(sent, [received[2][0], received[3][0], received[1][0]], strict=True):
        assert ip_checksum_ok(after)
        assert after[22] == before[22] - 1
        changed = {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
        assert changed <= {22, 24, 25}


def test_what_is_dropped_is_counted_by_reason(make_rig: MakeRig) -> None:
    good = bytearray(FLOW.data())
    bad_checksum = bytes(good[:24]) + bytes([good[24] ^ 1]) + bytes(good[25:])
    with_options = bytes(Ether(dst=mac("10.0.0.3")) / IP(dst="10.0.0.3", options=[("NOP"), ("NOP")]) / UDP(dport=4791))
    version_6 = bytearray(FLOW.data())
    version_6[14] = 0x65
    rig = make_rig("ecn")
    cases = [
        (MALFORMED, FLOW.data()[:10]),  # not even an Ethernet header
        (MALFORMED, FLOW.data()[:30]),  # cut in the IPv4 header
        (MALFORMED, FLOW.data()[:50]),  # cut in the BTH
        (MALFORMED, with_options),
        (MALFORMED, bytes(version_6)),
        (NOT_IPV4, bytes(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(pdst="10.0.0.3"))),
        (CHECKSUM, bad_checksum),
        (TTL, FLOW.data(ttl=0)),
        (TTL, FLOW.data(ttl=1)),
        (NO_ROUTE, to("192.168.0.1").data()),
    ]
    if rig.architecture is None:  # a chip's ingress does not know how long a packet is
        cases.append((MALFORMED, FLOW.data()[:-1]))  # shorter than IPv4's total length says
    received = rig.run([Sent(1, frame) for _, frame in cases] + [Sent(1, FLOW.data(psn=99, ttl=2))])
    assert {port: [psn_of(frame) for frame in frames] for port, frames in received.items() if frames} == {2: [99]}
    expected = Counter(reason for reason, _ in cases)
    assert {reason: rig.counter("ingress_drops", reason) for reason in range(5)} == expected


@pytest.mark.parametrize("program", ["ecn", "int"])
def test_other_versions_and_options_are_malformed_whatever_parser_the_program_has(
    make_rig: MakeRig, program: str
) -> None:
    rig = make_rig(program)
    version_6 = bytearray(FLOW.data())
    version_6[14] = 0x65
    assert not any(rig.run([Sent(1, bytes(version_6))]).values())
    assert rig.counter("ingress_drops", MALFORMED) == 1


def test_what_is_not_rocev2_is_forwarded_too(make_rig: MakeRig) -> None:
    head = Ether(src=mac("10.0.0.2"), dst=mac("10.0.0.3")) / IP(src="10.0.0.2", dst="10.0.0.3", ttl=9)
    others = [bytes(head / UDP(sport=53, dport=53) / b"abc"), bytes(head / TCP(sport=1, dport=80) / b"hello")]
    fragment = head.copy()
    fragment.frag = 100
    others.append(bytes(fragment / (b"x" * 4)))  # a fragment without a UDP header
    others.append(bytes(head / TCP()) + bytes(20))  # with an Ethernet trailer
    received = make_rig("ecn").run([Sent(1, frame) for frame in others])
    assert [len(frame) for frame in received[2]] == [len(frame) for frame in others]
    assert all(frame[34:] == other[34:] and frame[22] == 8 for frame, other in zip(received[2], others, strict=True))


def test_a_flow_keeps_its_path_and_flows_spread(make_rig: MakeRig) -> None:
    flows = [to("10.1.2.3", entropy) for entropy in range(49152, 49152 + 256)]
    sent = [Sent(1, flow.data(psn=i)) for _ in range(2) for i, flow in enumerate(flows)]
    received = make_rig("ecn").run(sent)
    port_of: dict[int, set[int]] = {}
    for port, frames in received.items():
        for frame in frames:
            port_of.setdefault(psn_of(frame), set()).add(port)
    assert sorted(port_of) == list(range(256))
    assert all(len(ports) == 1 for ports in port_of.values())
    load = Counter(port for ports in port_of.values() for port in ports)
    assert set(load) == {5, 6, 7, 8}
    # Binomial(256, 1/4) has mean 64 and standard deviation 6.9. The tolerance is four standard deviations.
    assert all(36 <= count <= 92 for count in load.values())


def test_ports_are_equally_likely_whatever_the_tuple_differs_in(make_rig: MakeRig) -> None:
    """All hosts of a rack send to one pod, so sources and destinations differ, and the entropy is the same."""
    flows = [Flow(f"10.0.0.{s}", f"10.1.{r}.{d}", 49152) for s in (2, 3) for r in range(16) for d in range(2, 10)]
    received = make_rig("ecn").run([Sent(1, flow.data(psn=i)) for i, flow in enumerate(flows)])
    load = [len(received[port]) for port in (5, 6, 7, 8)]
    assert sum(load) == 256
    assert all(36 <= count <= 92 for count in load)


def test_switches_one_behind_the_other_split_their_flows_independently(make_rig: MakeRig) -> None:
    """A second switch gets only the packets of one port of the first switch, and still uses all of its ports."""
    flows = [to("10.1.2.3", entropy) for entropy in range(49152, 49152 + 1024)]
    first = make_rig("ecn").run([Sent(1, flow.data(psn=i)) for i, flow in enumerate(flows)])
    other: SwitchView = replace(VIEW, device_id=6)
    second = make_rig("ecn", view=other).run([Sent(1, frame) for frame in first[5]])
    total = len(first[5])
    # Binomial(about 256, 1/4) again.
    assert all(0.14 * total <= len(second[port]) <= 0.36 * total for port in (5, 6, 7, 8))


def test_another_seed_is_another_choice_of_paths(make_rig: MakeRig) -> None:
    flows = [to("10.1.2.3", entropy) for entropy in range(49152, 49152 + 64)]
    sent = [Sent(1, flow.data(psn=i)) for i, flow in enumerate(flows)]
    one = {psn_of(f): port for port, frames in make_rig("ecn").run(sent).items() for f in frames}
    two = {
        psn_of(f): port
        for port, frames in make_rig("ecn", view=replace(VIEW, seed=2)).run(sent).items()
        for f in frames
    }
    assert sum(one[psn] != two[psn] for psn in one) >= 32


def test_priority_is_that_of_the_dscp(make_rig: MakeRig) -> None:
    """Check in which queue `trim` counts a packet. The queues of priorities 3 and 6 have no room."""
    rig = make_rig("trim", {"queue_bytes": 50, "header_queue_bytes": 50, "trimming": False})
    received = rig.run([Sent(1, FLOW.data(psn=dscp, dscp=dscp)) for dscp in range(64)])
    # BMv2 serves its queues by priority, so it sends the packets in another order.
    assert sorted(psn_of(frame) for frame in received[2]) == [dscp for dscp in range(64) if dscp not in (24, 48)]
    assert rig.counter("queue_dropped", 2) == 2


def test_congestion_experienced_stays(make_rig: MakeRig) -> None:
    received = make_rig("ecn").run([Sent(1, FLOW.data(ecn=ecn)) for ecn in (0, 1, ECT0, CE)])
    assert [dissect(frame)[IP].tos & 3 for frame in received[2]] == [0, 1, ECT0, CE]
