"""The set of a NIC's further addresses, in comparison with Python's set."""

import random

from host_agents.address_set import AddressSet


def test_it_has_what_was_added() -> None:
    draw = random.Random(1)
    found, known = AddressSet(), set[int]()
    for _ in range(2000):
        # Some lie beside each other, and 0 and the last one are addresses like any other.
        address = draw.choice([draw.getrandbits(32), 239 << 24 | draw.getrandbits(9), 0, 2**32 - 1])
        assert found.has(address) == (address in known)
        if draw.random() < 0.5:
            found.add(address)
            known.add(address)
    assert all(found.has(address) for address in known)
    assert not any(found.has(address) for address in range(1, 10_000) if address not in known)
