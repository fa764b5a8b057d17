"""Dart's hosts: the senders counted, notices and their states, and senders' reactions. Times and rates are exact."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from host_agents import wire
from host_agents.cc.base import Host, NotificationOutlet, Path, ReactionOutlet, Traffic
from host_agents.cc.dart import (
    ACK,
    LOOK_AHEAD,
    NO_CONGESTION,
    NON_RECEIVER_CONGESTION,
    NOTICE,
    RECEIVER_CONGESTION,
    SHARE_HEADER,
    SHARE_HEADER_BYTES,
    ActiveSenders,
    Dart,
    DartParameters,
    DartReceiver,
    SourceQueue,
)
from host_agents.errors import ParameterError
from host_agents.headers import AETH
from host_agents.messages import IncastGroup
from host_agents.packets import Packet
from host_agents.registry import resolve
from host_agents.timers import TimerQueue
from host_agents.wire import parse_address
from p4cc._link import Wire, connect, pair

RATE_BPS = 10e9
RTT_NS = 20_000
WIRE_BYTES = 1518
PACKET_NS = round(WIRE_BYTES * 8e9 / RATE_BPS)
PATH = Path(RATE_BPS, RTT_NS, 1460, WIRE_BYTES, 80)
GBPS = 1e9
BDP_BYTES = RATE_BPS * RTT_NS / 8e9
ADDRESSES = tuple(parse_address(f"10.0.0.{i + 1}") for i in range(40))


class Recorder(NotificationOutlet):
    """Outlet of a receiver to the NIC at `address`, which records the packets sent."""

    def __init__(self, host: Host, address: int, partition: int = 0xFFFF) -> None:
        super().__init__(host)
        self.address = address
        self.partition = partition
        self.cnps = 0
        self.malformed = 0
        self.notices: list[dict[str, int]] = []

    def peer_address(self) -> int:
        return self.address

    def partition_key(self) -> int:
        return self.partition

    def send_cnp(self) -> None:
        self.cnps += 1

    def count_malformed(self) -> None:
        self.malformed += 1

    def send_control(self, packet: Packet, body: bytes, *, psn: int = 0, entropy: int = -1, priority: int = -1) -> None:
        assert packet is NOTICE
        self.notices.append(SHARE_HEADER.decode(body))


class Receiver:
    """A NIC that receives, with one queue pair for each sender, numbered from 1 like the end of its address."""

    def __init__(self, parameters: DartParameters | None = None) -> None:
        self.parameters = parameters or DartParameters()
        self.host = Host(timers=TimerQueue(), nics=ADDRESSES)
        self.points: dict[tuple[int, int], DartReceiver] = {}
        self.outlets: dict[tuple[int, int], Recorder] = {}
        self.now_ns = 0

    def point(self, sender: int, qp: int = 0, partition: int = 0xFFFF) -> DartReceiver:
        found = self.points.get((sender, qp))
        if found is None:
            found = DartReceiver(self.parameters, PATH)
            self.outlets[sender, qp] = Recorder(self.host, ADDRESSES[sender - 1], partition=partition)
            found.bind(self.outlets[sender, qp])
            self.points[sender, qp] = found
        return found

    def told(self, sender: int, qp: int = 0) -> dict[str, int]:
        return SHARE_HEADER.decode(self.point(sender, qp).ack_body())

    def packet(
        self, sender: int, *, first: bool = False, last: bool = False, marked: bool = False, qp: int = 0, gap: int = 0
    ) -> int:
        """Deliver a data packet `gap` ns after the previous one, and return the n of its ACK."""
        self.pass_to(self.now_ns + gap)
        point = self.point(sender, qp)
        if first:
            point.on_message_start(self.now_ns)
        if last:
            point.on_message_end(self.now_ns, 1)
        header = wire.header(1, 2, 3, wire.SEND_MIDDLE, 4, after_bth_bytes=WIRE_BYTES - 58)
        point.echo(self.now_ns, marked, header)
        return self.told(sender, qp)["n"]

    def pass_to(self, now_ns: int) -> None:
        self.now_ns = now_ns
        while self.host.timers.first_ns <= now_ns:
            self.host.timers.serve_first()

    def look_ahead(self, sender: int, group: int, members: tuple[int, ...], sequence: int = 0, qp: int = 0) -> None:
        """Deliver an announcement of an incast. Members are numbered like senders, ids from 0."""
        body = LOOK_AHEAD.encode([{"nic": member - 1} for member in members], group=group)
        start = wire.header(1, 2, 3, LOOK_AHEAD.opcode, 4, after_bth_bytes=len(body)) + sequence.to_bytes(4, "big")
        self.point(sender, qp).on_control(self.now_ns, LOOK_AHEAD.opcode, start + body, len(start))

    @property
    def senders(self) -> ActiveSenders:
        return next(iter(self.points.values())).senders


# Worked example 1: figure 4.


def test_figure_4_senders_are_counted_not_messages() -> None:
    receiver = Receiver()
    told = [
        receiver.packet(1, first=True, qp=0),  # A
        receiver.packet(1, first=True, qp=1),  # B
        receiver.packet(2, first=True),  # C
        receiver.packet(1, last=True, qp=0),
        receiver.packet(1, last=True, qp=1),
    ]
    assert told == [1, 1, 2, 2, 1]


def test_a_message_of_one_packet_never_raises_n() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    assert receiver.packet(2, first=True, last=True) == 1


def test_when_nobody_is_active_one_is_told() -> None:
    assert Receiver().packet(1, first=True, last=True) == 1


def test_who_is_silent_for_two_seconds_is_not_counted_and_what_it_ends_takes_nothing_off() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    receiver.packet(2, first=True, gap=1_000_000_000)
    receiver.pass_to(1_999_999_999)
    assert receiver.senders.n == 2
    receiver.pass_to(2_000_000_000)
    assert receiver.senders.n == 1
    receiver.packet(1, first=True, qp=1)
    receiver.packet(1, last=True)  # of before
    assert receiver.senders.n == 2


# Worked example 3: figure 5.


def at_rate(receiver: Receiver, share: float, packets: int = 12) -> None:
    for _ in range(packets):
        receiver.packet(1, gap=round(PACKET_NS / share))


def test_figure_5() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    receiver.packet(2, first=True)
    at_rate(receiver, 1.0)
    assert receiver.packet(1, marked=True, gap=PACKET_NS) == 2
    assert receiver.told(1)["state"] == RECEIVER_CONGESTION
    assert receiver.outlets[1, 0].cnps == 0
    at_rate(receiver, 0.8)
    assert receiver.packet(1, marked=True, gap=PACKET_NS) == 1
    assert receiver.told(1)["state"] == NON_RECEIVER_CONGESTION
    assert receiver.outlets[1, 0].cnps == 1
    at_rate(receiver, 1.0)
    receiver.packet(2, last=True, gap=PACKET_NS)
    receiver.now_ns += 50_000
    at_rate(receiver, 1.0)
    assert receiver.packet(1, marked=True, gap=PACKET_NS) == 1  # one sender
    assert receiver.outlets[1, 0].cnps == 2
    receiver.packet(2, first=True, gap=RTT_NS - 1)
    assert receiver.told(2) == {**receiver.told(2), "state": NON_RECEIVER_CONGESTION, "n": 1}
    assert receiver.packet(2, gap=1) == 2
    assert receiver.told(2)["state"] == NO_CONGESTION


@pytest.mark.parametrize(("share", "at_line_rate"), [(0.955, True), (0.945, False)])
def test_the_last_eight_packets_are_measured_against_95_percent(share: float, at_line_rate: bool) -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    receiver.packet(2, first=True)
    at_rate(receiver, 0.5, 3)
    at_rate(receiver, share, 8)
    assert receiver.senders.at_line_rate(receiver.now_ns) == at_line_rate


@pytest.mark.parametrize(("share", "at_line_rate"), [(0.98, True), (0.92, False)])
def test_short_frames_are_measured_with_what_their_link_takes_for_each(share: float, at_line_rate: bool) -> None:
    """Preamble, gap and FCS take a quarter of the time of a frame of 100 bytes."""
    framed = Path(RATE_BPS, RTT_NS, 1460, WIRE_BYTES, 80, frame_overhead_bytes=24)
    point = DartReceiver(DartParameters(), framed)
    point.bind(Recorder(Host(timers=TimerQueue(), nics=ADDRESSES), ADDRESSES[0]))
    header = wire.header(1, 2, 3, wire.SEND_MIDDLE, 4, after_bth_bytes=100 - 58)
    gap_ns = round((100 + 24) * 8e9 / RATE_BPS / share)
    for i in range(12):
        point.echo(i * gap_ns, False, header)
    assert point.senders.at_line_rate(11 * gap_ns) == at_line_rate


def test_a_mark_that_is_passed_on_is_echoed_and_one_that_is_not_is_not() -> None:
    receiver = Receiver()
    point = receiver.point(1)
    header = wire.header(1, 2, 3, wire.SEND_MIDDLE, 4, after_bth_bytes=WIRE_BYTES - 58)
    for sender in (1, 2):
        receiver.point(sender).on_message_start(0)
    for i in range(10):
        assert not point.echo(i * PACKET_NS, False, header)
    assert not point.echo(10 * PACKET_NS, True, header)
    assert point.echo(20 * PACKET_NS, True, header)


def test_cnps_go_out_once_in_50_us_to_each_sender() -> None:
    receiver = Receiver()
    for sender in (1, 2):
        receiver.packet(sender, first=True)
    for _ in range(100):
        for sender in (1, 2):
            receiver.packet(sender, marked=True, gap=2_000)
    assert [receiver.outlets[sender, 0].cnps for sender in (1, 2)] == [8, 8]


def test_without_apportioning_every_mark_is_passed_on() -> None:
    receiver = Receiver(DartParameters(apportion=False))
    for sender in (1, 2):
        receiver.packet(sender, first=True)
    at_rate(receiver, 1.0)
    assert receiver.packet(1, marked=True, gap=PACKET_NS) == 1
    assert receiver.outlets[1, 0].cnps == 1


def test_the_version_counts_changes_for_one_sender() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    versions = [receiver.told(1)["version"]]
    receiver.packet(1)
    versions.append(receiver.told(1)["version"])
    receiver.packet(2, first=True)
    versions.append(receiver.told(1)["version"])
    assert versions == [1, 1, 2]
    assert receiver.told(2)["version"] == 1


def test_tenants_are_counted_apart() -> None:
    receiver = Receiver()
    receiver.point(1, partition=0x8001)
    receiver.point(2, partition=0x8002)
    receiver.packet(1, first=True)
    receiver.packet(2, first=True)
    receiver.look_ahead(2, 7, (2, 3, 4))
    assert receiver.told(1)["n"] == 1
    assert receiver.told(2)["n"] == 3


# Look-ahead (III-D).


def test_the_first_announcement_enters_all_and_each_members_message_is_counted_once() -> None:
    receiver = Receiver()
    receiver.packet(9, first=True)
    members = (1, 2, 3)
    for sender in members:
        receiver.look_ahead(sender, 5, members)
        assert receiver.senders.n == 4
    for left, sender in enumerate(members):
        assert receiver.packet(sender, first=True) == 4 - left
        assert receiver.packet(sender, last=True) == 3 - left
    assert receiver.senders.n == 1
    assert receiver.senders.sender(ADDRESSES[0]).announced == 0


def test_all_that_are_counted_and_have_a_queue_pair_are_told_once() -> None:
    receiver = Receiver()
    receiver.packet(9, first=True)
    receiver.point(2)
    receiver.look_ahead(1, 5, (1, 2, 3))
    receiver.look_ahead(2, 5, (1, 2, 3))
    told = {sender: [notice["n"] for notice in outlet.notices] for (sender, _), outlet in receiver.outlets.items()}
    assert told == {9: [4], 2: [4], 1: [4]}


def test_advert_to_active_tells_only_those_that_send_something_else() -> None:
    receiver = Receiver(DartParameters(advert_to="active"))
    receiver.packet(9, first=True)
    receiver.packet(2, first=True, qp=1)
    receiver.look_ahead(1, 5, (1, 2, 3))
    assert [len(receiver.outlets[key].notices) for key in ((9, 0), (2, 1), (1, 0))] == [1, 1, 0]


def test_a_sender_of_two_incasts_is_counted_until_both_are_over() -> None:
    receiver = Receiver()
    receiver.look_ahead(1, 5, (1, 2))
    receiver.look_ahead(1, 6, (1, 3), qp=1)
    assert receiver.senders.n == 3
    receiver.packet(1, first=True, last=True)
    assert receiver.senders.n == 3
    receiver.packet(1, first=True, last=True, qp=1)
    assert receiver.senders.n == 2


def test_a_message_that_began_before_its_announcement_is_counted_once() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    receiver.look_ahead(1, 5, (1, 2))
    assert receiver.senders.n == 2
    receiver.look_ahead(2, 5, (1, 2))
    receiver.packet(1, last=True)
    assert receiver.senders.n == 1
    receiver.packet(2, first=True, last=True)
    assert receiver.senders.n == 0


def test_a_message_that_began_before_its_announcement_and_after_another_members_is_counted_once() -> None:
    receiver = Receiver()
    receiver.look_ahead(2, 5, (1, 2))
    receiver.packet(1, first=True)
    receiver.look_ahead(1, 5, (1, 2))
    assert receiver.senders.n == 2
    receiver.packet(1, last=True)
    assert receiver.senders.n == 1


def test_an_announcement_that_comes_before_other_messages_of_its_queue_pair_waits_for_its_own() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True)
    receiver.look_ahead(1, 5, (1, 2), sequence=2)
    receiver.packet(1, last=True)
    assert receiver.senders.n == 2
    receiver.packet(1, first=True, last=True)
    assert receiver.senders.n == 2
    receiver.packet(1, first=True, last=True)
    assert receiver.senders.n == 1


def test_what_was_announced_and_never_came_leaves_after_the_idle_timeout() -> None:
    receiver = Receiver(DartParameters(idle_timeout_ns=100_000))
    receiver.look_ahead(1, 5, (1, 2, 3))
    receiver.packet(1, first=True, last=True)
    assert receiver.senders.n == 2
    receiver.pass_to(100_000)
    assert receiver.senders.n == 0
    receiver.look_ahead(2, 5, (2, 3))  # another incast of that number
    assert receiver.senders.n == 2


def test_who_announces_after_the_idle_timeout_announces_no_other_incast() -> None:
    receiver = Receiver(DartParameters(idle_timeout_ns=100_000))
    receiver.look_ahead(1, 7, (1, 2))
    receiver.packet(1, first=True, last=True)
    assert receiver.senders.n == 1  # the second, which says nothing
    receiver.pass_to(150_000)
    assert receiver.senders.n == 0
    receiver.look_ahead(2, 7, (1, 2))
    assert receiver.senders.n == 0
    receiver.packet(2, first=True)
    assert receiver.senders.n == 1
    receiver.packet(2, last=True)
    assert receiver.senders.n == 0


def test_an_incast_of_which_a_member_announces_nothing_is_forgotten_after_two_seconds() -> None:
    receiver = Receiver()
    receiver.look_ahead(1, 7, (1, 2))
    receiver.packet(1, first=True, last=True)
    receiver.pass_to(2_000_000_000)
    receiver.look_ahead(1, 7, (1, 2), sequence=1)
    assert receiver.senders.n == 2


def test_whose_announcement_is_lost_is_counted_by_its_message_alone_after_the_idle_timeout() -> None:
    """Check a sender that is never idle, because it sends other messages all the time."""
    receiver = Receiver(DartParameters(idle_timeout_ns=100_000))
    receiver.look_ahead(1, 7, (1, 2))
    receiver.packet(1, first=True, last=True)
    for _ in range(5):
        receiver.packet(2, first=True, gap=30_000)
        receiver.packet(2, last=True)
    assert receiver.senders.n == 0
    assert receiver.senders.sender(ADDRESSES[1]).announced == 0
    receiver.look_ahead(2, 7, (1, 2), sequence=5)  # late after all
    receiver.packet(2, first=True)
    assert receiver.senders.n == 1
    receiver.packet(2, last=True)
    assert receiver.senders.n == 0


def test_who_never_announces_leaves_after_the_incasts_time_out_if_that_is_the_shorter_one() -> None:
    receiver = Receiver(DartParameters(incast_timeout_ns=100_000))
    receiver.packet(9, first=True)
    receiver.look_ahead(1, 7, (1, 2, 3))
    receiver.packet(1, first=True)
    receiver.pass_to(99_999)
    assert receiver.senders.n == 4
    receiver.pass_to(100_000)
    assert receiver.senders.n == 2
    receiver.pass_to(1_999_999_999)
    assert receiver.senders.n == 2  # those with messages under way leave after the idle time-out
    receiver.pass_to(2_000_000_000)
    assert receiver.senders.n == 0


def test_an_incast_that_takes_the_number_of_another_takes_its_place() -> None:
    receiver = Receiver()
    receiver.look_ahead(1, 7, (1, 2))
    receiver.look_ahead(3, 7, (3, 4))
    assert receiver.senders.n == 3  # 2 has announced nothing, and is expected no more
    assert receiver.senders.sender(ADDRESSES[1]).announced == 0


def test_a_message_that_was_announced_on_a_queue_pair_that_closes_does_not_come() -> None:
    receiver = Receiver()
    receiver.packet(1, first=True, qp=1)
    receiver.look_ahead(1, 7, (1,))
    receiver.point(1).close()
    receiver.packet(1, last=True, qp=1)
    assert receiver.senders.n == 0


def test_a_queue_pair_that_closes_after_a_silence_takes_off_nothing_that_was_announced_before() -> None:
    receiver = Receiver(DartParameters(idle_timeout_ns=100_000))
    receiver.look_ahead(1, 7, (1, 2))
    receiver.pass_to(100_000)
    assert receiver.senders.n == 0
    receiver.point(1).close()
    assert receiver.senders.sender(ADDRESSES[0]).announced == 0


@pytest.mark.parametrize("members", [(2, 3), (1, 41)])
def test_announcements_without_the_sender_or_with_unknown_ids_are_counted_and_change_nothing(
    members: tuple[int, ...],
) -> None:
    receiver = Receiver()
    receiver.packet(9, first=True)
    receiver.look_ahead(1, 5, members)
    assert receiver.outlets[1, 0].malformed == 1
    assert receiver.senders.n == 1
    assert receiver.outlets[9, 0].notices == []


def test_advert_on_change_tells_who_is_wrong_by_more_than_a_factor_of_two_a_base_rtt_after_the_last() -> None:
    receiver = Receiver(DartParameters(advert_on_change=True))
    receiver.packet(1, first=True)
    receiver.packet(2, first=True, gap=RTT_NS)
    receiver.packet(3, first=True)
    assert [notice["n"] for notice in receiver.outlets[1, 0].notices] == [3]
    for sender in range(4, 10):
        receiver.packet(sender, first=True)
    assert len(receiver.outlets[1, 0].notices) == 1
    receiver.packet(10, first=True, gap=RTT_NS)
    assert [notice["n"] for notice in receiver.outlets[1, 0].notices] == [3, 10]


# Property n.


class Model:
    """List of what counts: messages in progress, announced messages, members of an incast without an announcement."""

    def __init__(self, timeout_ns: int) -> None:
        self.timeout_ns = timeout_ns
        self.now_ns = 0
        self.last_ns: dict[int, int] = {}
        self.under_way: dict[tuple[int, int], bool] = {}  # by sender and queue pair: whether it still counts
        self.awaited: dict[int, tuple[int, set[int], set[int]]] = {}  # by group: since, members, of these those counted

    @property
    def n(self) -> int:
        counted = {sender for (sender, _), counts in self.under_way.items() if counts}
        return len(counted.union(*(members for _, _, members in self.awaited.values())))

    def pass_to(self, now_ns: int) -> None:
        """Advance the time. Remove senders that have been idle too long with their counts, and old announcements."""
        self.now_ns = now_ns
        silent = {sender for sender, last_ns in self.last_ns.items() if last_ns + self.timeout_ns <= now_ns}
        for key in self.under_way:
            self.under_way[key] &= key[0] not in silent
        for since_ns, _, counted in self.awaited.values():
            counted -= counted if since_ns + self.timeout_ns <= now_ns else silent


@pytest.mark.parametrize("seed", range(20))
def test_n_is_that_of_a_model_after_every_packet(seed: int) -> None:
    """Check random sequences, with four queue pairs for each sender.

    They include joins, leaves, overlapping incasts, messages of one packet, announcements that are
    lost or late, senders that fail, and queue pairs that close.
    """
    rng = random.Random(seed)
    timeout_ns = 40 * PACKET_NS
    receiver, model = Receiver(DartParameters(idle_timeout_ns=timeout_ns, incast_timeout_ns=10**9)), Model(timeout_ns)
    senders = receiver.point(12, 9).senders
    begun: Counter[tuple[int, int]] = Counter()
    failed: set[int] = set()
    seen: set[str] = set()
    most = 0

    def packet(key: tuple[int, int], *, first: bool = False, last: bool = False) -> None:
        receiver.packet(key[0], first=first, last=last, qp=key[1])
        begun[key] += first
        model.last_ns[key[0]] = model.now_ns
        if first:
            model.under_way[key] = True
        if last:
            del model.under_way[key]
        assert senders.n == model.n
        assert receiver.told(*key)["n"] == max(1, model.n)

    def announced(key: tuple[int, int], group: int, members: set[int]) -> None:
        """Begin a message whose announcement arrives before its first packet, or after it on another path."""
        late = rng.random() < 0.2
        if late:
            packet(key, first=True)
            seen.add("late")
        receiver.look_ahead(key[0], group, tuple(members), sequence=begun[key] - late, qp=key[1])
        if group not in model.awaited:
            model.awaited[group] = model.now_ns, members, set(members)
            model.last_ns.update(dict.fromkeys(members, model.now_ns))
        model.awaited[group][2].discard(key[0])
        if not late:
            packet(key, first=True)
        assert senders.n == model.n

    groups: dict[int, set[int]] = {}  # members that are to announce it
    for step in range(600):
        receiver.pass_to(receiver.now_ns + rng.randrange(2 * PACKET_NS))
        model.pass_to(receiver.now_ns)
        assert senders.n == model.n
        most = max(most, model.n)
        key = rng.randint(1, 12), rng.randrange(4)
        sender = key[0]
        action = rng.random()
        expected = [group for group, members in groups.items() if sender in members]
        if rng.random() < 0.01:
            failed ^= {sender}
            seen.add("failure")
        if sender in failed:
            continue
        if key in model.under_way:
            if action < 0.05:
                receiver.points.pop(key).close()
                begun[key] = 0
                del model.under_way[key]
                seen.add("closed")
            else:
                packet(key, last=action < 0.4)
        elif action < 0.2:
            members = {sender, *(rng.randint(1, 12) for _ in range(rng.randrange(6)))}
            groups[step] = members - {sender}
            announced(key, step, members)
        elif action < 0.5 and expected:
            groups[expected[0]].discard(sender)
            if rng.random() < 0.7:
                announced(key, expected[0], model.awaited[expected[0]][1])
            else:
                seen.add("lost")
                packet(key, first=True)
        else:
            packet(key, first=True, last=action < 0.6)
    assert seen == {"failure", "lost", "late", "closed"}
    assert most > 6


# The sender


def sender(parameters: DartParameters | None = None, host: Host | None = None) -> tuple[Dart, TimerQueue]:
    point = Dart(parameters or DartParameters(fall_back=False), PATH, [])
    host = host or Host(timers=TimerQueue())
    point.bind(ReactionOutlet(host, Traffic()))
    return point, host.timers


def tell(point: Dart, packet: Packet, now_ns: int = 0, **values: int) -> None:
    share = SHARE_HEADER.encode({"receiver_rate_code": 4, **values})
    body = AETH.encode({"syndrome": 0x1F}) + share if packet is ACK else share
    frame = bytes(wire.AFTER_BTH) + body
    point.on_control(now_ns, packet.opcode, frame, wire.AFTER_BTH)


def test_the_rate_is_the_lesser_line_rate_over_n_less_what_drains_the_queue() -> None:
    point, _ = sender()
    tell(point, ACK, version=1, n=4)
    assert point.rate_bps == 2.5 * GBPS
    tell(point, ACK, version=2, n=4, state=RECEIVER_CONGESTION)
    assert point.rate_bps == pytest.approx(2.375 * GBPS)
    tell(point, ACK, version=3, n=1, receiver_rate_code=1)
    assert point.rate_bps == 1 * GBPS
    tell(point, ACK, version=4, n=1, receiver_rate_code=10)
    assert point.rate_bps == 10 * GBPS


def test_a_share_that_is_in_force_is_obeyed_again_after_idleness_and_after_a_notice() -> None:
    assert SHARE_HEADER.size_bytes == SHARE_HEADER_BYTES
    point, _ = sender()
    share = {"version": 3, "n": 4}
    tell(point, ACK, **share)
    point.on_start(0)
    assert (point.rate_bps, point.window_bytes) == (RATE_BPS, BDP_BYTES)
    tell(point, ACK, **share)
    assert point.rate_bps == 2.5 * GBPS
    assert point.window_bytes > 1e15
    tell(point, NOTICE, version=4, n=10)
    assert point.rate_bps == 1 * GBPS
    tell(point, ACK, **share)  # older than the notice
    assert point.rate_bps == 1 * GBPS
    tell(point, ACK, version=4, n=10)
    point.own_rate_bps = RATE_BPS
    tell(point, NOTICE, version=4, n=10)
    assert point.rate_bps == 1 * GBPS


def test_an_older_version_is_ignored() -> None:
    point, _ = sender()
    tell(point, ACK, version=1, n=2)
    tell(point, ACK, version=4095, n=5)
    assert point.rate_bps == 5 * GBPS
    tell(point, ACK, version=1 + 2047, n=5)
    assert point.rate_bps == 2 * GBPS


def test_a_message_starts_at_line_rate_with_one_bdp_before_the_first_ack() -> None:
    point, _ = sender()
    point.on_start(0)
    assert (point.rate_bps, point.window_bytes) == (RATE_BPS, BDP_BYTES)
    tell(point, ACK, version=1, n=5)
    assert point.rate_bps == 2 * GBPS
    assert point.window_bytes > 1e15
    point.on_start(1)  # another queue pair: no idleness
    assert point.rate_bps == 2 * GBPS
    point.on_idle(2)
    point.on_idle(3)
    point.on_start(4)
    assert (point.rate_bps, point.window_bytes) == (RATE_BPS, BDP_BYTES)


def test_a_notice_binds_who_has_not_started_and_lapses_unless_an_ack_confirms_it() -> None:
    point, timers = sender()
    tell(point, NOTICE, version=1, n=10)
    point.on_start(0)
    assert point.rate_bps == 1 * GBPS
    assert timers.first_ns == 100_000
    timers.serve_first()
    assert point.rate_bps == RATE_BPS
    tell(point, NOTICE, 200_000, version=2, n=10)
    tell(point, ACK, 210_000, version=2, n=10)
    assert timers.first_ns > 1 << 60
    assert point.rate_bps == 1 * GBPS


def test_a_share_as_a_window() -> None:
    point, _ = sender(DartParameters(share_as="window", fall_back=False))
    tell(point, ACK, version=1, n=4)
    assert (point.rate_bps, point.window_bytes) == (RATE_BPS, BDP_BYTES / 4)
    tell(point, ACK, version=2, n=100)
    assert point.window_bytes == WIRE_BYTES


def test_a_window_of_a_share_holds_what_links_charge_in_a_base_rtt() -> None:
    """Windows count frames only; shares also count the preamble and gap that links charge."""
    path = Path(RATE_BPS, PATH.base_rtt_ns, PATH.mtu_bytes, WIRE_BYTES, PATH.cell_bytes, frame_overhead_bytes=24)
    point = Dart(DartParameters(share_as="window", fall_back=False), path, [])
    point.bind(ReactionOutlet(Host(timers=TimerQueue()), Traffic()))
    tell(point, ACK, version=1, n=4)
    packets = point.window_bytes / WIRE_BYTES
    assert packets * path.link_bytes(WIRE_BYTES) == pytest.approx(BDP_BYTES / 4)


def test_the_fall_backs_rate_counts_where_it_is_the_lesser() -> None:
    point = resolve("dart").reaction_point(PATH)
    assert isinstance(point, Dart)
    point.bind(ReactionOutlet(Host(timers=TimerQueue()), Traffic()))
    point.on_cnp(0)
    assert point.rate_bps == 5 * GBPS
    tell(point, ACK, version=1, n=1, state=NON_RECEIVER_CONGESTION)
    assert point.rate_bps == 5 * GBPS
    tell(point, ACK, version=2, n=4)
    assert point.rate_bps == 2.5 * GBPS


def test_as_printed_no_window_no_drain_no_waiting() -> None:
    point = resolve("dart-paper").reaction_point(PATH)
    point.bind(ReactionOutlet(Host(timers=TimerQueue()), Traffic()))
    point.on_start(0)
    assert point.window_bytes > 1e15
    assert point.alone_bytes == -1
    assert isinstance(point, Dart)
    tell(point, ACK, version=1, n=4, state=RECEIVER_CONGESTION)
    assert point.rate_bps == 2.5 * GBPS


HEADER = wire.header(ADDRESSES[0], ADDRESSES[1], 50_000, wire.SEND_FIRST, 7, after_bth_bytes=1460, ecn=2) + bytes(4)


def tokens_of(header: bytes) -> int:
    return header[wire.BECN] >> 3 & 7


@pytest.mark.parametrize(
    ("message_bytes", "alone", "again", "tokens"),
    [(8_192, True, False, 4), (8_193, True, False, 0), (1, True, True, 0), (1, False, False, 0)],
)
def test_tokens_are_for_short_messages_that_travel_alone(
    message_bytes: int, alone: bool, again: bool, tokens: int
) -> None:
    point, _ = sender()
    header = point.data_headers(0, HEADER, 0, message_bytes, alone, again)
    assert tokens_of(header) == tokens
    assert wire.checksum_holds(header)


def made_queue(host: Host) -> SourceQueue:
    """Return the queue that this host's reaction points have built up."""
    queue = host.part("Dart's source queue", lambda: None)
    assert isinstance(queue, SourceQueue)
    return queue


def test_a_nic_marks_while_its_limiters_have_released_more_than_22500_bytes() -> None:
    """Two pairs at line rate release more bytes than the link takes: one packet's worth in each packet time.

    Then one pair continues at half the rate, and the other half of the link takes the rest.
    """
    host = Host(timers=TimerQueue())
    points = [sender(host=host)[0] for _ in range(2)]
    for point in points:
        point.traffic.waiting_bytes = 1_000_000
        point.on_start(0)
        point.on_post(0)
        point.own_window_bytes = 1e18
        point.follow()
    marked = []
    for i in range(40):
        point = points[i % 2]
        header = point.data_headers(i * PACKET_NS, HEADER, i, 1_000_000, True, False)
        point.traffic.waiting_bytes -= WIRE_BYTES
        point.on_sent(i * PACKET_NS, WIRE_BYTES)
        assert wire.checksum_holds(header)
        marked.append(header[wire.TOS] & 3 == wire.CE)
    # In the time of i packets 2 i are released, and i are taken.
    assert marked.index(True) == 15
    assert all(marked[15:])
    queue = made_queue(host)
    assert queue.held_bytes(39 * PACKET_NS) == pytest.approx(39 * WIRE_BYTES, rel=0.001)
    points[0].traffic.waiting_bytes = 0
    points[0].on_sent(39 * PACKET_NS, WIRE_BYTES)
    points[1].set_rate(RATE_BPS / 2)
    assert queue.held_bytes(59 * PACKET_NS) == pytest.approx(29 * WIRE_BYTES, rel=0.001)
    assert queue.held_bytes(119 * PACKET_NS) == 0
    points[1].traffic.waiting_bytes = 0
    points[1].on_sent(120 * PACKET_NS, WIRE_BYTES)
    assert queue.points == []


def test_one_pair_at_line_rate_is_no_congestion() -> None:
    point, _ = sender()
    point.traffic.waiting_bytes = 1_000_000
    point.on_start(0)
    point.on_post(0)
    for i in range(400):
        assert point.data_headers(i * PACKET_NS, HEADER, i, 1_000_000, True, False) == HEADER
        point.traffic.waiting_bytes -= WIRE_BYTES
        point.on_sent(i * PACKET_NS, WIRE_BYTES)


def test_tokens_over_seven_are_a_mistake() -> None:
    with pytest.raises(ParameterError, match=r"dart: parameter tokens: .*less than or equal to 7"):
        resolve("dart", {"tokens": 8})


# Over a link


def nics(protocol: str = "dart", **parameters: object) -> tuple[Wire, list[tuple[int, int, bytes]]]:
    known = (parse_address("10.0.0.2"), parse_address("10.0.0.3"))
    a, b = pair(protocol, parameters, line_rate_bps=10_000_000_000, base_rtt_ns=6_000, mtu_bytes=1460, nics=known)
    link = Wire(a, b)
    return link, link.sent


def opcodes(sent: list[tuple[int, int, bytes]], side: int) -> list[int]:
    return [frame[wire.BTH] for _, who, frame in sent if who == side]


def test_data_with_tokens_there_shares_back() -> None:
    link, sent = nics()
    a, b = link.nics
    qa, _ = connect(a, b)
    message = qa.post(8_192)
    link.run(200_000)
    assert message.completed_ns > 0
    assert [tokens_of(frame) for _, side, frame in sent if side == 0] == [4] * 6
    assert opcodes(sent, 1) == [ACK.opcode] * 6
    assert a.stats.malformed == b.stats.malformed == 0


@pytest.mark.parametrize(("sizes", "lost"), [((3_000, 40_000), 1), ((20_000, 8_000), 13)])
def test_what_is_sent_again_has_the_tokens_of_its_own_message(sizes: tuple[int, ...], lost: int) -> None:
    """Check the printed form: a packet that was lost still counts as short or long, as before."""
    link, sent = nics("dart-paper")
    a, b = link.nics
    qa, _ = connect(a, b)
    dropped: list[int] = []

    def drop_once(now_ns: int, frame: bytes) -> bytes | None:
        if frame[wire.BTH] <= wire.SEND_ONLY and not dropped and number(frame) == lost:
            dropped.append(lost)
            return None
        return frame

    def number(frame: bytes) -> int:
        return (wire.psn(frame) - qa.sender.psn_base) & wire.PSN_MASK

    link.hook = drop_once
    messages = [qa.post(size) for size in sizes]
    link.run(10_000_000)
    assert all(message.completed_ns > 0 for message in messages)
    seen = [(number(frame), tokens_of(frame)) for _, side, frame in sent if side == 0]
    expected = [4 if size <= 8_192 else 0 for size in sizes for _ in range(-(-size // 1460))]
    assert all(tokens == expected[place] for place, tokens in seen)
    assert sum(place == lost for place, _ in seen) == 2


def test_a_short_message_behind_a_long_one_in_flight_has_no_tokens_and_holds_nobody_back() -> None:
    link, sent = nics()
    a, b = link.nics
    qa, _ = connect(a, b)
    for size in (8_760, 1_460, 1_460):  # 8 packets at 1.2 us, with an RTT of 6 us
        qa.post(size)
    link.run(60_000)
    packets = [(now_ns, tokens_of(frame)) for now_ns, side, frame in sent if side == 0]
    assert [tokens for _, tokens in packets] == [0] * 8
    qa.post(1_460)  # all is acknowledged: this one travels alone, and the next one after it
    qa.post(1_460)
    link.run(120_000)
    (first_ns, _), (second_ns, _) = alone = [(now, tokens_of(f)) for now, side, f in sent if side == 0][8:]
    assert [tokens for _, tokens in alone] == [4, 4]
    assert second_ns - first_ns > 2_000
    times_ns = [now_ns for now_ns, _ in packets]
    assert max(times_ns[i + 1] - times_ns[i] for i in range(7)) < 2_000


def test_the_class_of_data_is_not_that_of_speculation() -> None:
    link, _ = nics("none")
    qa, _ = connect(*link.nics)
    before = qa.reaction_point.outlet.data_priority()
    qa.reaction_point.outlet.set_priority(1)
    assert before != 1
    assert qa.reaction_point.outlet.data_priority() == before


def test_a_message_that_begins_with_an_empty_packet_starts_once() -> None:
    link, _ = nics()
    _, qb = connect(*link.nics)
    point = qb.notification_point
    assert isinstance(point, DartReceiver)
    qb.receiver.deliver(0, 0, False)
    qb.receiver.deliver(0, 100, False)
    assert point.senders.sender(qb.frames.peer_address).messages == 1
    qb.receiver.deliver(0, 100, True)
    assert point.senders.n == 0


def test_what_is_acknowledged_without_being_sent_again_leaves_the_source_queue() -> None:
    point, _ = sender()
    traffic = point.traffic
    traffic.waiting_bytes = WIRE_BYTES
    point.on_start(0)
    point.on_post(0)
    traffic.waiting_bytes = 0
    point.on_sent(0, WIRE_BYTES)
    traffic.waiting_bytes = WIRE_BYTES  # given up
    point.on_timeout(100_000)
    queue = made_queue(point.host)
    assert queue.points == [point]
    traffic.waiting_bytes = 0  # it had arrived
    point.on_idle(101_000)
    assert queue.points == []
    traffic.waiting_bytes = 1_000_000
    point.on_start(1_000_000)
    point.on_post(1_000_000)
    assert queue.held_bytes(1_000_000) == 0  # nothing was released meanwhile


def test_an_incast_is_announced_ahead_of_its_first_packet_in_the_class_of_data() -> None:
    link, sent = nics()
    a, b = link.nics
    qa, qb = connect(a, b)
    qa.post(3_000, group=IncastGroup(300, (0, 1)))
    link.run(100_000)
    kinds = opcodes(sent, 0)
    assert kinds[:2] == [LOOK_AHEAD.opcode, wire.SEND_FIRST]
    announced, first = (frame for _, side, frame in sent if side == 0 and frame[wire.BTH] in kinds[:2])
    assert announced[wire.TOS] >> 2 == first[wire.TOS] >> 2
    assert wire.wire_bytes(announced) == 62 + 2 * 2
    assert opcodes(sent, 1)[0] == NOTICE.opcode
    point = qb.notification_point
    assert isinstance(point, DartReceiver)
    assert point.senders.n == 1  # the receiver itself, which was named and never came
    quiet, frames = nics(look_ahead=False)
    connect(*quiet.nics)[0].post(3_000, group=IncastGroup(300, (0, 1)))
    quiet.run(100_000)
    assert LOOK_AHEAD.opcode not in opcodes(frames, 0)


@pytest.mark.parametrize(
    ("opcode", "body"),
    [
        (ACK.opcode, AETH.encode({"syndrome": 0x1F}) + bytes(4)),  # n = 0
        (ACK.opcode, AETH.encode({"syndrome": 0x1F}) + bytes(3)),  # cut off
        (NOTICE.opcode, bytes(4)),
        (NOTICE.opcode, b"\0\0"),
        (LOOK_AHEAD.opcode, bytes.fromhex("0007 0000")),  # nobody
        (LOOK_AHEAD.opcode, bytes.fromhex("0007 0003 0000 0001")),  # fewer than it says
        (LOOK_AHEAD.opcode, bytes.fromhex("0007 0100") + bytes(512)),  # too many
        (LOOK_AHEAD.opcode, bytes.fromhex("0007 0001 0009 0000")),  # an id that no NIC has
    ],
)
def test_malformed_packets_are_counted_and_change_nothing(opcode: int, body: bytes) -> None:
    link, _ = nics()
    a, b = link.nics
    qa, qb = connect(a, b)
    qa.post(100_000)
    link.run(4_000)
    before = qa.rate_bps, qa.window_bytes, qa.stats.bytes_acked
    frame = wire.header(a.address, b.address, 50_000, opcode, 1, after_bth_bytes=len(body)) + bytes(4) + body
    peer = wire.header(b.address, a.address, 50_000, opcode, 1, after_bth_bytes=len(body)) + bytes(4) + body
    if opcode == LOOK_AHEAD.opcode:
        b.receive(4_000, frame)
        assert b.stats.malformed == 1
    else:
        a.receive(4_000, peer)
        assert a.stats.malformed == 1
    assert (qa.rate_bps, qa.window_bytes, qa.stats.bytes_acked) == before
    point = qb.notification_point
    assert isinstance(point, DartReceiver)
    assert point.senders.n == 1
