"""A queue pair to a multicast group: a packet is complete when every member has it, and no member gets data twice."""

from collections.abc import Sequence
from typing import Any

import pytest

from host_agents import wire
from host_agents.config import NicConfig
from host_agents.errors import HostError
from host_agents.messages import Delivery, Message
from host_agents.nic import Nic
from host_agents.registry import resolve, resolve_load_balancer
from tests.host_agents.narrow import due_frame

GROUP = "239.0.0.1"
MEMBERS = ("10.0.0.3", "10.0.0.4", "10.0.0.5")
RELIABILITIES = ("go-back-n", "selective-repeat")


def nic_of(address: str, **config: Any) -> Nic:
    configured = NicConfig(address, 100_000_000_000, 8_000, rto_ns=50_000, **config)
    return Nic(configured, resolve("none", None), resolve_load_balancer("ecmp"))


class Net:
    """One sender, its group, and their reports. Frames arrive on request, at every member or at some."""

    def __init__(self, **config: Any) -> None:
        self.now_ns = 0
        self.completed: list[Message] = []
        self.sender = nic_of("10.0.0.2", **config)
        self.sender.on_complete = self.completed.append
        self.qp = self.sender.open_qp(GROUP, 2, 2, members=MEMBERS)
        self.members = {address: nic_of(address, **config) for address in MEMBERS}
        self.delivered: dict[str, list[Delivery]] = {address: [] for address in MEMBERS}
        for address, nic in self.members.items():
            nic.on_delivered = self.delivered[address].append
            nic.open_qp("10.0.0.2", 2, 2)
            nic.join(GROUP)

    def sent(self, nic: Nic, count: int | None = None) -> list[bytes]:
        """Return the frames of a NIC until it has no more, or `count` of them."""
        frames: list[bytes] = []
        while len(frames) != count:
            frame = nic.next_frame(self.now_ns)
            if frame is None:
                if nic.next_wakeup_ns() > self.now_ns + 1_000:
                    break
                self.now_ns += 100
            else:
                frames.append(frame)
        return frames

    def carry(self, frames: list[bytes], to: Sequence[str] = MEMBERS) -> None:
        self.now_ns += 1_000
        for address in to:
            for frame in frames:
                self.members[address].receive(self.now_ns, frame)

    def answer(self, of: Sequence[str] = MEMBERS) -> None:
        for address in of:
            for frame in self.sent(self.members[address]):
                self.sender.receive(self.now_ns, frame)

    def bytes_at_members(self) -> list[int]:
        return [nic.queue_pairs[2].stats.bytes_delivered for nic in self.members.values()]


@pytest.mark.parametrize("reliability", RELIABILITIES)
def test_a_message_is_complete_when_the_last_member_has_acknowledged(reliability: str) -> None:
    net = Net(reliability=reliability)
    net.qp.post(2500)
    frames = net.sent(net.sender)
    assert [frame[wire.DESTINATION : wire.DESTINATION + 4] for frame in frames] == [bytes((239, 0, 0, 1))] * 3
    net.carry(frames)
    assert net.bytes_at_members() == [2500] * 3
    for number, member in enumerate(MEMBERS):
        assert (len(net.completed), net.qp.stats.bytes_acked) == (0, 0)
        net.answer([member])
        assert len(net.completed) == (number == 2)
    assert net.qp.stats.bytes_acked == 2500
    assert net.qp.inflight_bytes == 0
    assert net.qp.stats.acks_received == 9


@pytest.mark.parametrize("reliability", RELIABILITIES)
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_what_one_member_misses_is_sent_again_and_delivered_once(reliability: str, lost: int) -> None:
    net = Net(reliability=reliability)
    net.qp.post(3000)
    frames = net.sent(net.sender)
    net.carry(frames, MEMBERS[:2])
    net.carry([frame for i, frame in enumerate(frames) if i != lost], MEMBERS[2:])
    net.answer()
    rounds = 0
    while not net.completed:
        rounds += 1
        assert rounds < 5
        net.now_ns += 100_000
        net.carry(net.sent(net.sender))
        net.answer()
    assert net.qp.stats.packets_retransmitted >= 1
    assert net.bytes_at_members() == [3000] * 3
    assert [len(deliveries) for deliveries in net.delivered.values()] == [1, 1, 1]


def test_a_nak_of_the_last_member_goes_back_at_once() -> None:
    net = Net()
    net.qp.post(2000)
    frames = net.sent(net.sender)
    net.carry(frames, MEMBERS[:2])
    net.carry(frames[1:], MEMBERS[2:])
    net.answer()
    assert net.qp.stats.naks_received == 1
    assert due_frame(net.sender, net.now_ns + 1_000)[51:54] == bytes(3)
    assert net.qp.stats.timeouts == 0


def test_a_nak_moves_what_all_have_up_to_the_slowest_member() -> None:
    net = Net()
    net.qp.post(4000)
    frames = net.sent(net.sender)
    slow, lossy, fast = MEMBERS
    net.carry(frames, [fast])
    net.carry(frames[:1], [slow])
    net.carry([frames[0], frames[1], frames[3]], [lossy])
    *_, nak = net.sent(net.members[lossy])  # wants packet 2; its ACKs before are lost
    net.answer([fast, slow])
    assert net.qp.stats.bytes_acked == 0
    net.sender.receive(net.now_ns, nak)
    assert net.qp.stats.bytes_acked == 1000
    for _ in range(3):
        net.now_ns += 100_000
        net.carry(net.sent(net.sender))
        net.answer()
    assert len(net.completed) == 1
    assert net.bytes_at_members() == [4000] * 3


def test_a_member_that_stays_silent_holds_up_the_message() -> None:
    net = Net()
    net.qp.post(1000)
    net.carry(net.sent(net.sender), MEMBERS[:2])
    net.answer()
    assert net.completed == []
    net.now_ns += 100_000
    assert len(net.sent(net.sender, 1)) == 1
    assert net.qp.stats.timeouts == 1


def test_acknowledgements_of_strangers_and_of_packets_never_sent_count_for_nothing() -> None:
    net = Net()
    net.qp.post(1000)
    (frame,) = net.sent(net.sender)
    stranger = nic_of("10.0.0.9")
    stranger.open_qp("10.0.0.2", 2, 2)
    stranger.join(GROUP)
    stranger.receive(net.now_ns, frame)
    (ack,) = net.sent(stranger)
    net.sender.receive(net.now_ns, ack)
    assert (net.sender.stats.unknown_qp, net.qp.stats.acks_received) == (1, 0)
    net.carry([frame])
    for member in MEMBERS:
        (ack,) = net.sent(net.members[member])
        net.sender.receive(net.now_ns, ack[:51] + (7).to_bytes(3, "big") + ack[54:])
    assert (net.completed, net.qp.stats.acks_received) == ([], 3)


def test_a_nic_takes_packets_of_the_groups_it_has_joined_only() -> None:
    net = Net()
    net.qp.post(1000)
    (frame,) = net.sent(net.sender)
    outside = nic_of("10.0.0.6")
    outside.open_qp("10.0.0.2", 2, 2)
    outside.receive(0, frame)
    assert outside.stats.misdelivered == 1
    outside.join(GROUP)
    outside.receive(0, frame)
    assert outside.stats.misdelivered == 1
    assert outside.queue_pairs[2].stats.bytes_delivered == 1000


def test_a_member_given_twice() -> None:
    with pytest.raises(HostError, match=r"queue pair 3 of 10\.0\.0\.2: a member of the group is given twice"):
        nic_of("10.0.0.2").open_qp(GROUP, 3, 3, members=("10.0.0.3", "10.0.0.3"))


def test_path_ids_are_of_the_paths_to_one_member() -> None:
    """Telemetry has ids for the paths between two hosts, so paths to two members may have the same id."""
    qp = Net().qp

    def path_of(address: str, path_id: int) -> int:
        frame = wire.header(wire.parse_address(address), wire.parse_address("10.0.0.2"), 0, 0xD1, 2, after_bth_bytes=0)
        return qp.path_of(path_id, frame)

    assert len({path_of(address, path_id) for address in MEMBERS for path_id in (0, 7, 4095)}) == 9
