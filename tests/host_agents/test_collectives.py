"""The engine for collectives and its programs, with a stand-in for the switch."""

import itertools
import random
from typing import Any

import numpy as np
import pytest

from host_agents import wire
from host_agents.assignments import (
    ALL_GATHER,
    ALL_REDUCE,
    BARRIER,
    BROADCAST,
    PUSHED_ALL_REDUCE,
    RANDOM,
    REDUCE,
    UNICAST_READ,
    UNICAST_WRITE,
    CollectiveConfig,
    Joining,
    Step,
)  # fmt: skip
from host_agents.collective.frames import CollectiveFrames
from host_agents.collective.injection import WRITE as WRITE_KIND
from host_agents.collective.injection import Injection, Throttle
from host_agents.collective.memory import Memory
from host_agents.collective.operations import Seen
from host_agents.collective.packets import (
    ACKNOWLEDGEMENT,
    HEADER,
    OPERATORS,
    PAYLOAD_BYTES,
    PUSH,
    QPN,
    READ,
    RESULT,
    WRITE,
    XOR,
)
from host_agents.collective.program import Program
from host_agents.errors import HostError, ParameterError
from host_agents.lb.base import FIRST_ENTROPY
from tests.host_agents.collective_star import GROUP, Star, Trouble, nics, programs
from tests.host_agents.narrow import of_kind
from tests.host_agents.pause import pause_frame

HOSTS = 5
PACKET = 128
VECTOR = 9 * PACKET + 20  # the last packet is short


def memories(seed: int = 1, size_bytes: int = VECTOR) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-(2**31), 2**31, size_bytes // 4).astype(">i4") for _ in range(HOSTS)]


def run(step: Step, contents: list[np.ndarray], trouble: Trouble | None = None, **options: Any) -> list[Program]:
    hosts = nics(HOSTS, rto_ns=20_000)
    made = programs(hosts, [step], contents=[memory.tobytes() for memory in contents], **options)
    Star(hosts, trouble).run()
    assert all(program.ended_ns >= 0 for program in made)
    return made


def left(made: list[Program]) -> list[np.ndarray]:
    return [np.frombuffer(bytes(of_kind(program.engine.memory, Memory).contents), ">i4") for program in made]


def total_of(contents: list[np.ndarray]) -> np.ndarray:
    """Return the sum of memories, whose lanes wrap."""
    total: np.ndarray = np.add.reduce([memory.astype(np.int32) for memory in contents], dtype=np.int32)
    return total


BAD = Trouble(loss=0.2, duplicate=0.2, late=0.3)


@pytest.mark.parametrize("trouble", [Trouble(), BAD], ids=["good", "bad"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_all_reduce_gives_every_member_what_numpy_has(operator: str, trouble: Trouble) -> None:
    contents = memories()
    with np.errstate(over="ignore"):
        combine = {"sum": np.add, "min": np.minimum, "max": np.maximum}.get(operator) or getattr(
            np, f"bitwise_{operator}"
        )
        expected = combine.reduce([memory.astype(np.int32) for memory in contents], dtype=np.int32)
    made = run(Step(ALL_REDUCE, GROUP, VECTOR, operator=operator), contents, trouble)
    for memory in left(made):
        np.testing.assert_array_equal(memory, expected)
    repeats = sum(program.engine.stats.repeats for program in made)
    assert (repeats > 0) == (trouble is BAD)


@pytest.mark.parametrize("trouble", [Trouble(), BAD], ids=["good", "bad"])
def test_every_write_is_delivered_once_to_every_member(trouble: Trouble) -> None:
    made = run(Step(ALL_GATHER, GROUP, VECTOR), memories(), trouble)
    assert [program.engine.stats.writes_delivered for program in made] == [10] * HOSTS
    assert (sum(program.engine.stats.duplicates for program in made) > 0) == (trouble is BAD)


def test_reduce_broadcast_and_all_gather_move_what_they_say() -> None:
    contents = memories()
    total = total_of(contents)
    reduced = left(run(Step(REDUCE, GROUP, VECTOR, initiators=(3,)), contents))
    np.testing.assert_array_equal(reduced[3], total)
    np.testing.assert_array_equal(reduced[0], contents[0])
    for memory in left(run(Step(BROADCAST, GROUP, VECTOR, initiators=(2,)), contents)):
        np.testing.assert_array_equal(memory, contents[2])
    gathered = left(run(Step(ALL_GATHER, GROUP, VECTOR), contents))
    slices = [slice(2 * 32 * rank, min(2 * 32 * (rank + 1), VECTOR // 4)) for rank in range(HOSTS)]
    for memory in gathered:
        for rank, part in enumerate(slices):
            np.testing.assert_array_equal(memory[part], contents[rank][part])


@pytest.mark.parametrize("trouble", [Trouble(), BAD], ids=["good", "bad"])
def test_a_pushed_all_reduce(trouble: Trouble) -> None:
    contents = memories()
    made = run(Step(PUSHED_ALL_REDUCE, GROUP, VECTOR), contents, trouble, push=True, window=4)
    expected = total_of(contents)
    for memory in left(made):
        np.testing.assert_array_equal(memory, expected)


def test_nobody_leaves_a_barrier_before_the_last_has_come() -> None:
    hosts = nics(HOSTS)
    made = []
    for rank, nic in enumerate(hosts):
        program = Program(nic.open_collectives(CollectiveConfig()), lambda _: None)
        program.join(Joining(GROUP, HOSTS, rank, 1))
        program.start([Step(BARRIER, GROUP)], rank * 10_000)
        made.append(program)
    Star(hosts).run()
    assert all(program.ended_ns > 40_000 for program in made)


def test_unicast_reads_and_writes_with_a_bad_network() -> None:
    for kind in (UNICAST_READ, UNICAST_WRITE):
        hosts = nics(2, rto_ns=20_000)
        contents = memories()[:2]
        made = programs(hosts, [], contents=[memory.tobytes() for memory in contents])
        made[0].start([Step(kind, 0, VECTOR, peer="10.0.0.3")], 0)
        Star(hosts, BAD).run()
        found = left(made)
        wanted = contents[1 if kind == UNICAST_READ else 0]
        np.testing.assert_array_equal(found[0], wanted)
        np.testing.assert_array_equal(found[1], wanted if kind == UNICAST_WRITE else contents[1])


def test_float32_travels_as_fixed_point_rounded_to_even() -> None:
    bits = 8
    values = np.array([0.5 / 256, 1.5 / 256, -2.5 / 256, 3.0, 1e9, -1e9, np.nan, 100.25], ">f4")
    memory = Memory(values.tobytes(), bits)
    lanes = np.frombuffer(memory.lanes(0, 32, OPERATORS["sum"]), ">i4")
    assert lanes[:8].tolist() == [0, 2, -2, 768, 2**31 - 1, -(2**31), 0, 25664]
    assert lanes[8:].tolist() == [0] * 24
    assert memory.clipped == 3


@pytest.mark.parametrize(("least", "most"), [(-100, 100), (1.0e6, 1.6e6)], ids=["small", "large"])
def test_sums_of_float32_are_as_near_as_they_say(least: float, most: float) -> None:
    bits = 8
    rng = np.random.default_rng(1)
    contents = [rng.uniform(least, most, VECTOR // 4).astype(">f4") for _ in range(HOSTS)]
    made = run(Step(ALL_REDUCE, GROUP, VECTOR), contents, config=CollectiveConfig(fraction_bits=bits))
    exact = np.add.reduce([memory.astype(np.float64) for memory in contents])
    fixed_point = HOSTS * 2.0 ** -(bits + 1)
    for program in made:
        found = np.frombuffer(bytes(of_kind(program.engine.memory, Memory).contents), ">f4").astype(np.float32)
        assert (np.abs(found - exact) <= fixed_point + np.spacing(np.abs(found)).astype(np.float64) / 2).all()
        assert of_kind(program.engine.memory, Memory).clipped == 0


def test_unused_lanes_have_what_changes_nothing() -> None:
    memory = Memory(bytes(range(16)))
    for operator, identity in (("min", 2**31 - 1), ("max", -(2**31)), ("and", -1), ("xor", 0)):
        lanes = np.frombuffer(memory.lanes(0, 4, OPERATORS[operator]), ">i4")
        assert lanes[0] == 0x00010203
        assert set(lanes[1:].tolist()) == {identity}


def test_zeros_cost_what_data_costs() -> None:
    frames = []
    for contents in ([], [memory.tobytes() for memory in memories()]):
        hosts = nics(HOSTS)
        programs(hosts, [Step(ALL_REDUCE, GROUP, VECTOR)], contents=contents)
        star = Star(hosts)
        star.run()
        frames.append([(time_ns, host, wire.wire_bytes(frame)) for time_ns, host, frame in star.seen])
    assert frames[0] == frames[1]


def test_a_sequence_stays_below_the_oldest_unanswered_one_and_the_window() -> None:
    hosts = nics(2, rto_ns=10_000_000)
    programs(hosts, [Step(REDUCE, GROUP, 40 * PACKET, initiators=(0,))], window=8)
    lost = []
    sent = []
    now_ns = 0
    while now_ns < 5_000:  # the first request is lost, all others are answered at once
        frame = hosts[0].next_frame(now_ns)
        now_ns += 10
        if frame is None or frame[wire.BTH] != READ:
            continue
        header = HEADER.decode(frame, wire.AFTER_BTH)
        sent.append(header["sequence"])
        if header["sequence"] == 1:
            lost.append(frame)
        else:
            hosts[0].receive(now_ns, answer(frame))
    assert sent == list(range(1, 9))
    hosts[0].receive(now_ns, answer(lost[0]))
    frame = hosts[0].next_frame(now_ns)
    assert frame is not None
    assert HEADER.get("sequence", frame, wire.AFTER_BTH) == 9


def answer(request: bytes) -> bytes:
    """Return the group's answer to a read."""
    header = request[wire.AFTER_BTH : wire.AFTER_BTH + 16]
    return frame_to("10.0.0.2", 0xFB, header, source="239.1.0.1", payload=128)


def frame_to(address: str, opcode: int, header: bytes, source: str = "10.0.0.9", payload: int = 0) -> bytes:
    return (
        wire.header(
            wire.parse_address(source),
            wire.parse_address(address),
            0xC000,
            opcode,
            QPN,
            after_bth_bytes=len(header) + payload,
        )
        + bytes(4)
        + header
    )


def test_what_cannot_be_is_counted() -> None:
    nic = nics(1)[0]
    (program,) = programs([nic], [], contents=[bytes(256)], window=8)
    stats = program.engine.stats

    def hear(
        opcode: int, payload: int = 0, lanes: bytes = b"", to: str = "10.0.0.2", place: int = 0, **fields: int
    ) -> None:
        header = HEADER.encode({"tree": 1, "group": GROUP, "sequence": 1, "address": place, **fields})
        nic.receive(0, frame_to(to, opcode, header, payload=payload) + lanes)

    hear(READ, group=9)
    assert stats.not_joined == 1
    hear(READ, rank=1)
    assert stats.not_joined == 2
    hear(READ, sequence=9)
    hear(READ, sequence=2**32 - 1)
    assert stats.outside_window == 2
    hear(0xF9)
    hear(0xFB, payload=128, lanes=bytes(128))
    hear(0xFD, payload=128, lanes=bytes(128))
    assert stats.unasked == 3
    hear(WRITE, payload=128)
    assert stats.short_lanes == 1
    hear(WRITE, payload=128, lanes=bytes(128), valid_bytes=16, place=16)
    assert stats.no_memory == 1
    hear(READ, to="239.1.0.2")
    assert nic.stats.misdelivered == 1
    hear(0xFE)
    hear(READ, payload=4)
    assert nic.stats.malformed == 2
    assert of_kind(program.engine.memory, Memory).contents == bytes(256)


@pytest.mark.parametrize("fraction_bits", [-1, 8])
def test_no_frame_ends_a_host(fraction_bits: int) -> None:
    rng = random.Random(1)
    hosts = nics(2)
    made = programs(
        hosts,
        [Step(ALL_REDUCE, GROUP, VECTOR)],
        contents=[memory.tobytes() for memory in memories()[:2]],
        config=CollectiveConfig(fraction_bits=fraction_bits),
    )
    for now_ns in range(0, 400_000, 100):
        hosts[0].next_frame(now_ns)
        opcode = rng.randrange(0xF7, 0xFF)
        lanes = rng.randbytes(0 if opcode in (READ, ACKNOWLEDGEMENT) else 128)
        body = HEADER.encode(
            {
                "operator": rng.randrange(16),
                "retry": rng.randrange(2),
                "overflow": rng.randrange(2),
                "tree": rng.randrange(4),
                "group": rng.choice((0, GROUP)),
                "rank": rng.randrange(2),
                "sequence": rng.randint(1, 8),
                "valid_bytes": rng.randint(0, 130),
                "address": rng.randint(0, 80),
            }
        )
        hosts[0].receive(now_ns, frame_to("10.0.0.2", opcode, body, "10.0.0.3", payload=len(lanes)) + lanes)
    stats = made[0].engine.stats
    assert min(stats.writes_delivered, stats.no_memory, stats.duplicates, stats.unasked) > 0
    assert hosts[0].stats.malformed > 0
    assert len(of_kind(made[0].engine.memory, Memory).contents) == VECTOR


def test_operators_that_are_none_and_parts_of_numbers_are_refused() -> None:
    nic = nics(1)[0]
    (program,) = programs([nic], [], contents=[bytes(256)], config=CollectiveConfig(fraction_bits=8))
    for operator in (6, 8, 15):
        header = HEADER.encode({"operator": operator, "sequence": 1, "valid_bytes": 4})
        nic.receive(0, frame_to("10.0.0.2", READ, header))
    assert nic.stats.malformed == 3
    header = HEADER.encode({"tree": 1, "group": GROUP, "sequence": 1, "valid_bytes": 5})
    nic.receive(0, frame_to("10.0.0.2", READ, header))
    assert program.engine.stats.no_memory == 1
    assert nic.next_frame(1_000) is None


def test_made_up_sources_take_no_memory() -> None:
    nic = nics(1)[0]
    (program,) = programs([nic], [], window=2)
    engine = program.engine
    strangers = [f"10.{i >> 8}.{i & 255}.9" for i in range(5000)]
    for stranger in strangers:
        unicast = HEADER.encode({"sequence": 1})
        nic.receive(0, frame_to("10.0.0.2", READ, unicast, stranger))
    assert engine.stats.no_peer == 5000
    assert nic.next_frame(1_000) is None
    # In a group they may call themselves member 0: as many are answered as one member may wait for.
    for stranger in strangers:
        header = HEADER.encode({"tree": 1, "group": GROUP, "sequence": 1})
        nic.receive(1_000, frame_to("10.0.0.2", READ, header, stranger))
    assert engine.stats.too_many == 5000 - (4 * 2 + 4 * 128)  # and the one peer, itself
    answers = 0
    while nic.next_frame(1_000_000) is not None:
        answers += 1
    assert answers == 4 * 2 + 4 * 128


def test_frames_have_the_headers_of_all_others() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        source, destination, sequence, address = (draw.getrandbits(32) for _ in range(4))
        opcode, is_request = draw.randrange(WRITE, RESULT + 1), draw.random() < 0.5
        tree, group, rank, size_bytes = (draw.getrandbits(bits) for bits in (8, 16, 16, 7))
        lanes = b"" if opcode in (ACKNOWLEDGEMENT, READ) else draw.randbytes(PAYLOAD_BYTES)
        start = wire.header(
            source,
            destination,
            FIRST_ENTROPY,
            opcode,
            QPN,
            after_bth_bytes=HEADER.size_bytes + len(lanes),
            dscp=8 * (3 if is_request else 4),
        )
        header = HEADER.encode(
            {
                "operator": XOR, "retry": 1, "tree": tree, "group": group, "rank": rank, "valid_bytes": size_bytes,
                "sequence": sequence, "address": address,
            }
        )  # fmt: skip
        frames = CollectiveFrames(source, 3, 4)
        place_bits = tree << 32 | group << 16 | rank
        frame = frames.frame(
            opcode, destination, is_request, XOR << 4 | 8, place_bits, size_bytes, sequence, address, lanes
        )
        assert frame == start + (sequence & wire.PSN_MASK).to_bytes(4, "big") + header + lanes


def test_a_write_is_answered_by_acknowledgements_only() -> None:
    for step in (Step(BROADCAST, GROUP, PACKET, initiators=(0,)), Step(UNICAST_WRITE, 0, PACKET, peer="10.0.0.3")):
        nic = nics(1)[0]
        (program,) = programs([nic], [step])
        frame = nic.next_frame(0)
        assert frame is not None
        header = frame[wire.AFTER_BTH : wire.AFTER_BTH + HEADER.size_bytes]
        for opcode in (PUSH, RESULT):
            nic.receive(0, frame_to("10.0.0.2", opcode, header, "10.0.0.3", payload=128))
        assert (nic.stats.malformed, program.engine.stats.unasked) == (1, 1)
        assert [row[4] for row in program.engine.record()] == [-1]


def order_of(arbiter: str, queues: str) -> list[str]:
    """Return the kinds of requests, in order, of a host that may always send and has reads and writes."""
    nic = nics(1)[0]
    config = CollectiveConfig(arbiter=arbiter, injection_queues=queues)
    programs([nic], [Step(RANDOM, GROUP, 40 * PACKET)], config=config, window=128)
    found = []
    for now_ns in range(0, 1_000, 10):
        frame = nic.next_frame(now_ns)
        if frame is not None:
            found.append({READ: "read", WRITE: "write"}[frame[wire.BTH]])
    reads = found.count("read")
    assert len(found) == 40
    assert 5 < reads < 35
    return found


def test_reads_and_writes_take_turns_from_queues_of_their_own() -> None:
    for arbiter in ("least_recent", "round_robin"):
        order = order_of(arbiter, "separate")
        both = 2 * min(order.count("read"), order.count("write"))
        assert all(one != other for one, other in itertools.pairwise(order[:both]))
    assert any(one == other for one, other in itertools.pairwise(order_of("least_recent", "shared")[:20]))


@pytest.mark.parametrize(("arbiter", "expected"), [("least_recent", WRITE), ("round_robin", READ)])
def test_a_queue_that_was_skipped_is_served_first_unless_turns_go_round(arbiter: str, expected: int) -> None:
    (nic,) = nics(1, "3cpo", parameters={"needs": "large"})
    (program,) = programs([nic], [], config=CollectiveConfig(arbiter=arbiter))
    engine = program.engine
    streams = program.memberships[GROUP].streams
    for kind in (0, 0, 1):
        engine.post(engine.operation(streams[kind], 0, PACKET, 0, program, 0))
    of_kind(engine.injection, Throttle).requests.take(0.0, 40.0)  # no write for 40 cycles
    nic.receive(0, frame_to("10.0.0.2", WRITE, HEADER.encode({"tree": 1, "group": GROUP, "sequence": 1}), payload=128))
    sent = [nic.next_frame(now_ns) for now_ns in (0, 1, 60)]  # a read, an answer; then both may be sent
    assert [frame[wire.BTH] for frame in sent if frame is not None] == [READ, 0xF9, expected]


def test_memory_takes_its_time_and_a_write_is_answered_at_once() -> None:
    nic = nics(1)[0]
    programs([nic], [])
    header = HEADER.encode({"tree": 1, "group": GROUP, "sequence": 1})
    nic.receive(0, frame_to("10.0.0.2", READ, header))
    assert nic.next_frame(0) is None
    assert nic.next_wakeup_ns() == 116  # 180 cycles of 0.64 ns
    nic.receive(50, frame_to("10.0.0.2", WRITE, header, payload=128))
    first, second, third = nic.next_frame(50), nic.next_frame(115), nic.next_frame(116)
    assert first is not None
    assert third is not None
    assert (first[wire.BTH], second, third[wire.BTH]) == (0xF9, None, 0xFB)


def test_responses_wait_in_order_or_are_taken_at_random() -> None:
    orders = []
    for response_order in ("fifo", "random"):
        nic = nics(1)[0]
        programs([nic], [], config=CollectiveConfig(response_order=response_order, memory_cycles=0), window=128)
        for sequence in range(1, 41):
            nic.receive(0, frame_to("10.0.0.2", READ, HEADER.encode({"tree": 1, "group": GROUP, "sequence": sequence})))
        frames = [nic.next_frame(0) for _ in range(40)]
        orders.append([HEADER.get("sequence", frame, wire.AFTER_BTH) for frame in frames if frame is not None])
    assert orders[0] == list(range(1, 41))
    assert orders[1] != orders[0]
    assert sorted(orders[1]) == orders[0]


class Told(Injection):
    """Protocol that keeps the events that an engine reports. Each operation is a probe."""

    def __init__(self) -> None:
        super().__init__(128)
        self.calls: list[tuple[object, ...]] = []

    def on_sent(self, now: float, group: int, kind: int) -> bool:
        self.calls.append(("sent", now, group, kind))
        return True

    def on_repeated(self, now: float, kind: int, probe: bool) -> None:
        self.calls.append(("repeated", now, kind, probe))

    def on_heard(self, now: float, group: int, source: int, kind: int) -> None:
        self.calls.append(("heard", now, group, source, kind))

    def on_answered(self, now: float, group: int, kind: int, latency: float, probe: bool) -> None:
        self.calls.append(("answered", now, group, kind, latency, probe))


def test_what_a_protocol_is_told() -> None:
    """Times are cycles. Latency counts from injection and is unknown after a retry; own requests are not reported."""
    nic, _ = hosts = nics(2, rto_ns=64_000)
    program, _ = programs(hosts, [])
    told = Told()
    program.engine.injection = told
    program.start([Step(BROADCAST, GROUP, 2 * PACKET, initiators=(0,))], 0)
    assert nic.next_wakeup_ns() == 0

    def acknowledge(now_ns: int, request: bytes | None) -> None:
        assert request is not None
        header = request[wire.AFTER_BTH : wire.AFTER_BTH + HEADER.size_bytes]
        nic.receive(now_ns, frame_to("10.0.0.2", ACKNOWLEDGEMENT, header, "239.1.0.1"))

    first, _ = nic.next_frame(640), nic.next_frame(640)
    for rank in (0, 1, 1):
        header = HEADER.encode({"tree": 1, "group": GROUP, "rank": rank, "sequence": 1})
        nic.receive(1_280, frame_to("10.0.0.2", WRITE, header, payload=128))
    acknowledge(1_920, first)
    while nic.next_frame(1_920) is not None:
        pass  # its own acknowledgements
    nic.next_frame(64_640)
    acknowledge(192_000, nic.next_frame(128_640))
    assert told.calls == [
        ("sent", 1_000, GROUP, WRITE_KIND),
        ("sent", 1_000, GROUP, WRITE_KIND),
        ("heard", 2_000, GROUP, 1, WRITE_KIND),
        ("answered", 3_000, GROUP, WRITE_KIND, 2_000, True),
        ("repeated", 101_000, WRITE_KIND, True),
        ("repeated", 201_000, WRITE_KIND, False),
        ("answered", 300_000, GROUP, WRITE_KIND, -1, False),
    ]
    assert program.engine.record() == [("write", GROUP, 0, 640, 1_920, 0), ("write", GROUP, 0, 640, 192_000, 2)]


def test_a_paused_class_sends_nothing() -> None:
    nic = nics(1)[0]
    programs([nic], [Step(RANDOM, GROUP, PACKET)])
    nic.receive(0, pause_frame(wire.mac_of(1), {3: 100}))
    assert nic.next_frame(0) is None
    assert nic.next_wakeup_ns() == 256
    assert nic.next_frame(256) is not None


def test_sequences_that_were_seen() -> None:
    seen = Seen(1, 8)
    assert [seen.note(sequence) for sequence in (2, 1, 2, 5, 3, 1)] == [True, True, False, True, True, False]
    assert seen.before == 4
    assert (seen.within(3), seen.within(11), seen.within(12)) == (True, True, False)


def test_deadlines_of_answered_operations_are_not_kept() -> None:
    hosts = nics(HOSTS, rto_ns=10_000_000)
    made = programs(hosts, [Step(ALL_REDUCE, GROUP, 400 * PACKET)])
    Star(hosts).run()
    engine = made[0].engine
    assert engine.stats.requests_sent == 160
    assert engine.sizes()["deadline_entries"] <= 2 * 8  # reads and writes that a window lets be unanswered


def test_queues_and_arrays_tell_how_large_they_were() -> None:
    hosts = nics(HOSTS, "3cpo")
    made = programs(hosts, [Step(ALL_REDUCE, GROUP, VECTOR)])
    Star(hosts).run()
    sizes = made[0].engine.sizes()
    assert sizes["read_queue_entries"] == 2
    assert sizes["array_entries"] == 4 * HOSTS
    assert 0 < sizes["remote_queue_entries"] <= 4 * 2 * 2


def test_mistakes() -> None:
    nic = nics(1)[0]
    (program,) = programs([nic], [])
    for step, message in (
        (Step("scan", GROUP, 1), "collective step 'scan': expected one of: all_reduce"),
        (Step(ALL_REDUCE, 7, 1), "this host is not in group 7"),
        (Step(ALL_REDUCE, GROUP, 1, operator="mul"), "operator 'mul': expected one of: sum"),
        (Step(ALL_REDUCE, GROUP, 1, initiators=(1,)), "an initiator that is not a member of group 1"),
        (Step(PUSHED_ALL_REDUCE, GROUP, 1), "group 1 is for pushes"),
        (Step(UNICAST_READ, 0, 1), "expected a group or a peer"),
    ):
        with pytest.raises(HostError, match=message.replace("(", r"\(")):
            program.start([step], 0)
    with pytest.raises(HostError, match="has an engine for collectives already"):
        nic.open_collectives(CollectiveConfig())
    with pytest.raises(HostError, match="protocol 'dcqcn' is not for collectives"):
        nics(1, "dcqcn")[0].open_collectives(CollectiveConfig())
    with pytest.raises(ParameterError, match="window 12; expected a power of two"):
        Joining(1, 2, 0, 1, window=12)
    with pytest.raises(ParameterError, match="rank 2; expected 0 to 1"):
        Joining(1, 2, 2, 1)
    with pytest.raises(ParameterError, match="arbiter 'lru': expected one of"):
        CollectiveConfig(arbiter="lru")
