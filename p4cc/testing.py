"""Public interface for tests of a protocol: two NICs, and a link that delays, loses, reorders and duplicates.

    a, b = pair("dctcp")
    sender, receiver = connect(a, b)
    sender.post(100_000)
    Wire(a, b, delay_ns=1000).run(until_ns=1_000_000)
    assert receiver.stats.bytes_delivered == 100_000

Importing it puts the compiled hosts in place, unless `P4CC_NATIVE=0` or plain Python is in use already.
"""

import p4cc._hosts  # noqa: F401  # isort: split
from p4cc._link import Trouble, Wire, connect, pair, trimmed

__all__ = ["Trouble", "Wire", "connect", "pair", "trimmed"]
