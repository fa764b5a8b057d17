"""RCP's rate of a link, compared with its equation in floating point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import exp, log, log1p
from typing import Any

import pytest

from control_plane import programs
from control_plane.pipelines import LOSS
from control_plane.programs.entries import TableEntry
from host_agents.cc.rcp import RATE
from p4switch.errors import UserError
from tests.p4src.conftest import VIEW, MakeRig, params_of
from tests.p4src.packets import BTH, NOT_ECT, Flow
from tests.p4src.queues import OUT, QUEUE_VIEW, QueueRig
from tests.p4src.rigs import Rig, Sent, TnaRig

FLOW = Flow()
RTT_NS = VIEW.base_rtt_ns
CAPACITY_BPS = 8e9  # one byte per nanosecond
CAPACITY_KBPS = 8_000_000
BODY = 54  # position of the body in a frame
CHIPS = ("tna", "t2na")
GENERATOR = {"tna": 68, "t2na": 6}
UPDATE = bytes.fromhex("88b5") + bytes(52)  # follows six bytes and an address


def rate_packet(wished: int = 0xFFFFFFFF, response: int = 0, psn: int = 0) -> bytes:
    above = BTH(opcode=RATE.opcode, psn=psn, dest_qp=7)
    return FLOW.frame(above, RATE.encode(response=response, rate=wished) + bytes(4), psn=psn, ecn=NOT_ECT, dscp=48)


def told(frame: bytes) -> int:
    return RATE.get("rate", frame, BODY)


@dataclass
class Model:
    """Model of the equation in the header of rcp.p4.

    It has R in kb/s, and the bytes that have arrived since `updated_ns`.
    """

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


def needs_updates(rig: Rig) -> None:
    """Skip a test whose packets update the rate, if their time cannot be set or only a timer updates it."""
    if not rig.sets_clock:
        pytest.skip("BMv2's clock cannot be set")
    if rig.architecture is not None:
        pytest.skip("timers do not run in packet tests")


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 1.0), (0.4, 0.4)])
def test_the_rate_follows_what_arrives(make_rig: MakeRig, alpha: float, beta: float) -> None:
    """Queues are empty. Twice the capacity arrives for 30 RTTs, half of it for 30 RTTs, and then nothing."""
    rig = make_rig("rcp", {"alpha": alpha, "beta": beta}, view=QUEUE_VIEW)
    needs_updates(rig)
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
    """Frames of 100 bytes arrive at 110% of the link's rate. A frame is charged at least a flit of 16 bytes."""
    view = replace(QUEUE_VIEW, frame_overhead_bytes=overhead_bytes)
    rig = make_rig("rcp", {"alpha": 0.4, "beta": 0.4}, view=view)
    needs_updates(rig)
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
    """Ten packets arrive at once. After 3.5 packet times, six of them are in the queue."""
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


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 1.0), (0.4, 0.4), (0.4, 0.0)])
def test_a_chip_updates_the_rate_by_the_equation(chip: str, alpha: float, beta: float) -> None:
    """Twice the capacity arrives for 8 RTTs, half of it for 30 RTTs, and then nothing.

    Factors have 7 significant bits.
    """
    rig = QueueRig("rcp", {"alpha": alpha, "beta": beta}, architecture=chip)
    data = FLOW.data(wire_bytes=1058)
    times = [i * len(data) // 2 for i in range(16 * RTT_NS // len(data))]
    times += [times[-1] + (i + 1) * 2 * len(data) for i in range(15 * RTT_NS // len(data))]
    rig.inject((now_ns, data) for now_ns in times)
    interval_ns, before, rates = RTT_NS // 4, 0.0, []
    for now_ns in range(interval_ns, 60 * RTT_NS, interval_ns):
        rig.run(now_ns - 1)
        arrived, waiting = rig.register("arrived_of", OUT), rig.register("queued_of", OUT) * VIEW.cell_bytes
        sent = [1 for time_ns in times if now_ns - interval_ns <= time_ns < now_ns]
        assert arrived == len(sent) * len(data)
        excess, queue = alpha * (arrived - interval_ns), beta * waiting / 4
        rig.run(now_ns + len(data))
        reduction = rig.register("reduction_of", OUT) / 0xFFFFFFFF * log(1000)
        change = log1p(min(max(-(excess + queue) / RTT_NS, -0.5), 1.0))
        expected = min(max(before - change, 0.0), log(1000))
        assert reduction == pytest.approx(expected, abs=1.6 / 128 * (abs(excess) + queue) / RTT_NS + 1e-7)
        before = reduction
        rates.append(exp(-reduction))
    assert min(rates) < 0.2
    assert rates[-1] > 1.5 * min(rates)


def test_a_long_queue_halves_the_rate_even_if_nothing_arrives() -> None:
    """The rate is halved if BDP / (2 alpha) more bytes have arrived than the link can send in an interval."""
    view = TnaRig.device_view(VIEW)
    entries = programs.parameters("rcp", {"alpha": 4.0, "interval_base_rtts": 1.0}).entries(view)
    params = [params_of(entry) for entry in entries if isinstance(entry, TableEntry)]
    queued = max(each["excess_bytes"] for each in params if "excess_bytes" in each)
    carried = max(each["capacity_bytes"] for each in params if "capacity_bytes" in each)
    assert queued - carried >= 0.99 * max(map(view.bdp_bytes, view.port_rates_bps)) / 8


@pytest.mark.parametrize(("base_rtt_ns", "alpha"), [(8_000, 0.1), (8_000, 1e-4), (1_000_000, 0.1), (1_000_000, 0.0125)])
@pytest.mark.parametrize("chip", CHIPS)
def test_tables_of_a_chip_hold_the_entries_of_all_its_links(chip: str, base_rtt_ns: int, alpha: float) -> None:
    """Four classes of links with 400 Gb/s and more. With the smaller `alpha` the excess reaches 2.0e9 of 2.1e9."""
    rates_bps = {port: (400 + port) * 10**9 for port in range(1, 5)}
    rig = QueueRig("rcp", {"alpha": alpha}, view=replace(QUEUE_VIEW, port_rates_bps=rates_bps, base_rtt_ns=base_rtt_ns),
                   architecture=chip)
    rig.inject([(0, rate_packet())])
    assert [told(frame) for _, frame in rig.run(RTT_NS)] == [rates_bps[OUT] // 1000]


@pytest.mark.parametrize(("base_rtt_ns", "alpha"), [(8_000, 9e-5), (1_000_000, 0.0115)])
def test_excess_bytes_that_would_wrap_are_refused(base_rtt_ns: int, alpha: float) -> None:
    """They reach BDP / (2 alpha) and what all links bring in an interval."""
    rates_bps = {port: (400 + port) * 10**9 for port in range(1, 5)}
    view = replace(TnaRig.device_view(VIEW), port_rates_bps=rates_bps, base_rtt_ns=base_rtt_ns)
    with pytest.raises(UserError, match=r"rcp: excess bytes .* alpha is .*; expected at most 2147483647"):
        list(programs.parameters("rcp", {"alpha": alpha}).entries(view))


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chip_tells_the_rate_that_it_holds(chip: str) -> None:
    """A step of the register is a factor of 1000^(1/4096) in the rate. Packets get the middle of the step."""
    rig = QueueRig("rcp", {}, architecture=chip)
    values = [0, 1 << 19, 1 << 20, 123_456_789, 0x80000000, 0xFFFFFFFF]

    def write(value: int, time_ns: int) -> None:
        rig.switch.register_write("reduction_of", OUT, value.to_bytes(4, "big"))

    for number, value in enumerate(values):
        rig.fabric.at(number * 100, partial(write, value))
    rig.inject((number * 100, rate_packet()) for number in range(len(values)))
    for (_, frame), value in zip(rig.run(3 * RTT_NS // 16), values, strict=True):
        exact_kbps = CAPACITY_KBPS * 1000 ** (-value / 0xFFFFFFFF)
        assert abs(told(frame) - exact_kbps) <= (1000 ** (0.5 / 4096) - 1) * exact_kbps + 0.5
        assert value or told(frame) == CAPACITY_KBPS


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("overhead_bytes", "charged_bytes"), [(24, 124), (-58, 42), (-90, 16)])
def test_a_chip_counts_what_a_link_charges(chip: str, overhead_bytes: int, charged_bytes: int) -> None:
    rig = QueueRig("rcp", {}, view=replace(QUEUE_VIEW, frame_overhead_bytes=overhead_bytes), architecture=chip)
    rig.inject([(0, FLOW.data(wire_bytes=100))] * 3)
    rig.run(1000)
    assert rig.register("arrived_of", OUT) == 3 * charged_bytes


@pytest.mark.parametrize("chip", CHIPS)
def test_only_the_packet_generator_updates_rates(chip: str) -> None:
    """The third packet of a batch belongs to port 3; packet 400 belongs to no port."""
    rig = QueueRig("rcp", {}, architecture=chip)

    def update(number: int, port: int) -> int:
        rig.switch.register_write("arrived_of", 3, (1 << 20).to_bytes(4, "big"))
        assert rig.switch.process(port, bytes(4) + number.to_bytes(2, "big") + bytes(6) + UPDATE, 0) == []
        return rig.register("reduction_of", 3)

    assert [update(2, 1), update(400, GENERATOR[chip]), update(1, GENERATOR[chip])] == [0, 0, 0]
    assert update(2, GENERATOR[chip]) > 0
    assert rig.counter("ingress_drops", 1) == 1


@pytest.mark.parametrize("chip", CHIPS)
def test_a_port_without_a_link_has_no_rate(chip: str) -> None:
    """The controller gives each link a class. Packets to any other port pass with the rate that they ask for."""
    rates_bps = {port: rate for port, rate in QUEUE_VIEW.port_rates_bps.items() if port != OUT}
    rig = QueueRig("rcp", {}, view=replace(QUEUE_VIEW, port_rates_bps=rates_bps), architecture=chip)
    rig.inject([(0, rate_packet(CAPACITY_KBPS * 2))])
    assert [told(frame) for _, frame in rig.run(RTT_NS // 8)] == [CAPACITY_KBPS * 2]


@pytest.mark.parametrize("chip", CHIPS)
def test_without_the_entries_of_its_class_a_link_has_no_rate(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update changes nothing, and a rate packet keeps its rate, until the controller has written the entries."""
    kind = type(programs.parameters("rcp", {}))
    entries = kind.entries

    def withheld(self: Any, view: Any) -> list[Any]:
        return [one for one in entries(self, view) if getattr(one, "table", "") not in ("log_change", "link_rate")]

    monkeypatch.setattr(kind, "entries", withheld)
    rig = QueueRig("rcp", {}, architecture=chip)
    rig.inject([(0, FLOW.data()), (RTT_NS // 2, rate_packet(CAPACITY_KBPS * 2))])
    rig.switch.register_write("reduction_of", OUT, (1 << 24).to_bytes(4, "big"))
    rig.switch.register_write("arrived_of", OUT, (1 << 20).to_bytes(4, "big"))
    assert [told(frame) for _, frame in rig.run(RTT_NS) if frame[42] == RATE.opcode] == [CAPACITY_KBPS * 2]
    assert (rig.register("arrived_of", OUT), rig.register("reduction_of", OUT)) == (0, 1 << 24)


@pytest.mark.parametrize("chip", CHIPS)
def test_an_update_is_not_lost(chip: str) -> None:
    """A switch that loses all packets still processes the bytes that arrived."""
    rig = QueueRig("rcp", {}, architecture=chip, defines={LOSS: "1000000"})
    rig.inject([(0, FLOW.data())])
    rig.switch.register_write("arrived_of", OUT, (1 << 20).to_bytes(4, "big"))
    assert rig.run(RTT_NS // 2) == []
    assert (rig.register("arrived_of", OUT), rig.counter("lost_in", 0)) == (0, 1)
    assert rig.register("reduction_of", OUT) > 0


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"program_pipes": (0, 1)}, "rcp: bytes are counted in each pipe by itself; expected a switch of one pipe"),
        ({"name": "s0", "port_extra_bytes": {2: 8}}, "rcp: links of switch s0 charge .0, 8. bytes beyond a frame's"),
        (
            {"name": "s0", "port_rates_bps": {port: port * 10**10 for port in range(1, 6)}},
            "rcp: links of switch s0 have 5 different pairs of a rate and a base RTT; expected at most 4",
        ),
    ],
)
def test_what_a_chip_does_not_do_is_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(UserError, match=error):
        programs.parameters("rcp", {}).entries(replace(TnaRig.device_view(VIEW), **settings))


@pytest.mark.parametrize(
    ("program", "parameter"),
    [("rcp", "overhead_bytes"), ("expresspass", "overhead_bytes"), ("int", "frame_overhead_bytes")],
)
def test_a_link_that_charges_less_than_a_frame_has_its_overhead_in_twos_complement(
    program: str, parameter: str
) -> None:
    view = replace(VIEW, frame_overhead_bytes=-46, port_extra_bytes={2: 50})
    entries = programs.parameters(program, {}).entries(view)
    params = [params_of(entry) for entry in entries if isinstance(entry, TableEntry)]
    words = [of_port[parameter] for of_port in params if parameter in of_port]
    assert words == [2**32 - 46, 4, *[2**32 - 46] * 6]
