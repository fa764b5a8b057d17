"""RCP's rate of a link, against its equation worked out in floating point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from control_plane import programs
from host_agents.cc.rcp import RATE
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig
from tests.p4src.packets import BTH, NOT_ECT, Flow
from tests.p4src.queues import OUT, QUEUE_VIEW, QueueRig
from tests.p4src.rigs import Sent

FLOW = Flow()
RTT_NS = VIEW.base_rtt_ns
CAPACITY_BPS = 8e9  # a byte a nanosecond
CAPACITY_KBPS = 8_000_000
BODY = 54  # where the body starts


def rate_packet(wished: int = 0xFFFFFFFF, response: int = 0, psn: int = 0) -> bytes:
    above = BTH(opcode=RATE.opcode, psn=psn, dest_qp=7)
    return FLOW.frame(above, RATE.encode(response=response, rate=wished) + bytes(4), psn=psn, ecn=NOT_ECT, dscp=48)


def told(frame: bytes) -> int:
    return RATE.get("rate", frame, BODY)


@dataclass
class Model:
    """R in kb/s, by the equation of rcp.p4's header. What came since `updated_ns`."""

    alpha: float
    beta: float
    rate: float = CAPACITY_KBPS
    arrived: float = 0.0
    updated_ns: int = 0

    def packet(self, now_ns: int, size_bytes: int, waiting: int = 0) -> float:
        passed = now_ns - self.updated_ns
        if passed >= RTT_NS / 4:
            bdp = CAPACITY_BPS * RTT_NS / 8e9
            spare = self.alpha * (passed - self.arrived) - self.beta * waiting * passed / RTT_NS
            self.rate *= 1 + min(max(spare / bdp, -0.5), 1.0)
            self.rate = min(max(self.rate, CAPACITY_KBPS / 1000), CAPACITY_KBPS)
            self.arrived, self.updated_ns = 0.0, now_ns
        self.arrived += size_bytes
        return self.rate


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 1.0), (0.4, 0.4)])
def test_the_rate_follows_what_arrives(make_rig: MakeRig, alpha: float, beta: float) -> None:
    """Nothing waits: twice the capacity for 30 RTTs, a half for 30, silence."""
    rig = make_rig("rcp", {"alpha": alpha, "beta": beta}, view=QUEUE_VIEW)
    if not rig.sets_clock:
        pytest.skip("BMv2's clock cannot be set")
    data = FLOW.data(wire_bytes=1058)
    times = [i * len(data) // 2 for i in range(60 * RTT_NS // len(data))]
    times += [times[-1] + (i + 1) * 2 * len(data) for i in range(30 * RTT_NS // (2 * len(data)))]
    times += [times[-1] + 40 * RTT_NS]
    model, expected, sent = Model(alpha, beta), [], []
    for now_ns in times:
        expected.append(model.packet(now_ns, len(data)))
        model.packet(now_ns, len(rate_packet()))
        sent += [Sent(1, data, now_ns), Sent(1, rate_packet(), now_ns)]
    rates = [told(frame) for frame in rig.run(sent)[OUT][1::2]]
    assert min(expected) < 0.8 * CAPACITY_KBPS
    assert rates == pytest.approx(expected, rel=0.002)


@pytest.mark.parametrize("overhead_bytes", [24, -58])
def test_what_arrives_counts_as_its_link_charges_it(make_rig: MakeRig, overhead_bytes: int) -> None:
    """Frames of 100 bytes, a tenth more than the link carries of them. A flit of 16 bytes is charged at least."""
    view = replace(QUEUE_VIEW, frame_overhead_bytes=overhead_bytes)
    rig = make_rig("rcp", {"alpha": 0.4, "beta": 0.4}, view=view)
    if not rig.sets_clock:
        pytest.skip("BMv2's clock cannot be set")
    data = FLOW.data(wire_bytes=100)
    charged, charged_for_rate = (max(len(frame) + overhead_bytes, 16) for frame in (data, rate_packet()))
    model, expected, sent = Model(0.4, 0.4), [], []
    for i in range(30 * RTT_NS // charged):
        now_ns = i * charged * 10 // 11
        sent.append(Sent(1, data, now_ns))
        told_rate = model.packet(now_ns, charged)
        if i % 50 == 0:
            sent.append(Sent(1, rate_packet(), now_ns))
            expected.append(told_rate)
            model.packet(now_ns, charged_for_rate)
    rates = [told(frame) for frame in rig.run(sent)[OUT] if frame[42] == RATE.opcode]
    assert min(expected) < 0.8 * CAPACITY_KBPS
    assert rates == pytest.approx(expected, rel=0.002)


def test_what_waits_lowers_the_rate() -> None:
    """Ten packets at once; 3.5 packets' time later six of them wait."""
    data = FLOW.data(wire_bytes=1058)
    now_ns = 7 * len(data) // 2
    rig = QueueRig("rcp", {})
    rig.inject([(0, data)] * 10 + [(now_ns, rate_packet())])
    rates = [told(frame) for _, frame in rig.run() if frame[42] == RATE.opcode]
    model = Model(0.1, 1.0)
    for _ in range(10):
        model.packet(0, len(data))
    assert rates == pytest.approx([model.packet(now_ns, 0, waiting=6 * len(data))], rel=0.002)


def test_a_rate_packet_is_lowered_and_never_raised_and_a_response_passes(make_rig: MakeRig) -> None:
    rig = make_rig("rcp", {}, view=QUEUE_VIEW)
    wished = [(CAPACITY_KBPS * 2, 0), (CAPACITY_KBPS // 2, 0), (CAPACITY_KBPS * 2, 1)]
    received = rig.run([Sent(1, rate_packet(rate, response)) for rate, response in wished])[OUT]
    assert sorted(map(told, received)) == [CAPACITY_KBPS // 2, CAPACITY_KBPS, CAPACITY_KBPS * 2]


def test_an_interval_is_at_least_a_tick() -> None:
    with pytest.raises(UserError, match="interval_base_rtts: should make at least a tick"):
        programs.parameters("rcp", {"interval_base_rtts": 0.01}).entries(replace(VIEW, base_rtt_ns=40))
