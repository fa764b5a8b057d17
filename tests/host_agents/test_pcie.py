"""The path from a NIC to its host's memory: waiting and lost packets, and how pulls slow down."""

import pytest

from host_agents.config import PcieConfig
from host_agents.pcie import Pcie
from p4cc._link import connect, pair
from p4switch.errors import UserError, validate
from tests.host_agents.narrow import due_frame

LINE_RATE_BPS = 100_000_000_000


def test_what_arrives_faster_than_the_memory_takes_it_waits_and_is_lost_beyond_the_buffer() -> None:
    pcie = Pcie(PcieConfig(rate=0.5, buffer_bytes=10_000, slow_from_bytes=2_000), LINE_RATE_BPS)
    taken = [pcie.take(80 * number, 1_000) for number in range(30)]  # 1,000 bytes in 80 ns: the rate of the link
    assert taken.index(False) == 19  # half of 19,000 bytes have left, and another 1,000 exceed the buffer
    assert sum(taken[19:]) in (5, 6)  # then each second one


def test_with_the_rate_of_the_link_nothing_waits() -> None:
    pcie = Pcie(PcieConfig(rate=1.1), LINE_RATE_BPS)
    assert all(pcie.take(80 * number, 1_000) for number in range(10_000))
    assert pcie.pull_rate(800_000) == 1.0


@pytest.mark.parametrize(
    ("waiting_bytes", "rate"),
    [(999_999, 1.0), (1_000_000, 1.0), (3_000_000, 0.25), (4_750_000, 0.00390625), (4_750_001, 0.001)],
)
def test_the_pull_rate_is_the_square_of_what_is_free(waiting_bytes: int, rate: float) -> None:
    pcie = Pcie(PcieConfig(rate=0.5), LINE_RATE_BPS)
    assert pcie.take(0, waiting_bytes)
    assert pcie.pull_rate(0) == rate
    assert pcie.pull_rate(1_000_000) == 1.0  # 6.25 MB have left


def test_pulls_never_stop() -> None:
    pcie = Pcie(PcieConfig(rate=0.5, almost_full=1.0), LINE_RATE_BPS)
    assert pcie.take(0, 5_000_000)
    assert pcie.pull_rate(0) == 0.001


def test_a_packet_without_room_is_asked_for_again() -> None:
    pcie = PcieConfig(rate=0.1, buffer_bytes=5_000, slow_from_bytes=1_000)
    a, b = pair("nscc", reliability="selective-repeat", loss_packets=0, pcie=pcie)
    qa, qb = connect(a, b)
    qa.post(10_000)
    for number in range(10):
        b.receive(100 * number, due_frame(a, 100 * number))
    while (frame := b.next_frame(1_000)) is not None:
        a.receive(1_000, frame)
    assert qb.stats.nacks_sent == qa.stats.nacks_received == 5
    assert (qb.stats.packets_received, qb.stats.trimmed_received) == (5, 5)
    assert qa.stats.bytes_acked == 5_000


@pytest.mark.parametrize(
    "mistake", [{"rate": -1.0}, {"buffer_bytes": 0}, {"slow_from_bytes": 5_000_000}, {"least_pull_rate": 0.0}]
)
def test_a_mistake_is_named(mistake: dict[str, float]) -> None:
    (name,) = mistake
    with pytest.raises(UserError, match=rf"nic\.pcie.*{name}"):
        validate(PcieConfig, mistake, "nic.pcie")
