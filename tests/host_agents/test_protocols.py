"""Properties of every registered protocol, with and without its mechanisms."""

import itertools
from collections.abc import Iterator

import pytest

from host_agents.registry import mechanisms, protocols
from p4cc._link import Trouble, Wire, connect, pair


def all_names() -> Iterator[str]:
    known = mechanisms()
    for name, info in protocols().items():
        for count in range(len(info.mechanisms) + 1):
            for added in itertools.combinations(info.mechanisms, count):
                needed = {need for each in added if each in known for need in known[each].needs}
                if needed <= set(added):
                    yield "+".join((name, *added))


NAMES = list(all_names())


@pytest.mark.parametrize(
    ("name", "reliability"),
    # Datagrams that are lost stay lost.
    [(name, way) for name in NAMES if name != "udp" for way in protocols()[name.split("+")[0]].reliabilities],
)
def test_moves_every_byte_over_a_bad_link(name: str, reliability: str) -> None:
    a, b = pair(name, reliability=reliability, rto_ns=100_000)
    qa, qb = connect(a, b)
    qa.post(200_000)
    qb.post(30_000)
    Wire(a, b, trouble=Trouble(loss=0.02, reorder=0.02, duplicate=0.02)).run(1_000_000_000)
    assert qb.stats.bytes_delivered == 200_000
    assert qa.stats.bytes_delivered == 30_000
    assert qa.inflight_bytes == qb.inflight_bytes == 0


@pytest.mark.parametrize(
    ("name", "scope"), [(name, scope) for name in NAMES for scope in protocols()[name.split("+")[0]].scopes]
)
def test_fills_an_empty_link_in_every_scope_that_it_has(name: str, scope: str) -> None:
    a, b = pair(name, cc_scope=scope)
    pairs = [connect(a, b, n) for n in (1, 2, 3, 4)]
    for qa, _ in pairs:
        qa.post(100_000)
    Wire(a, b).run(10_000_000)
    assert all(qb.stats.bytes_delivered == 100_000 for _, qb in pairs)
    finished = max(qa.stats.packets_sent for qa, _ in pairs)
    assert finished == 100


# ExpressPass begins with a sixteenth of the credits, and those have a part of the link.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "expresspass"])
def test_one_flow_alone_has_the_link_to_itself(name: str) -> None:
    a, b = pair(name)
    qa, _ = connect(a, b)
    message = qa.post(1_000_000)
    Wire(a, b).run(10_000_000)
    assert message.completed_ns < 1_000 * 1060 * 8 / 100 * 1.02 + 8_000
