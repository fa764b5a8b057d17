"""Reports of hosts as bytes, for the sessions of other workers.

For a flow with one sender and one receiver the others only need the times of delivery and
completion. Other details stay at the worker of the host until the end of the run
(`Session.details`). All other reports are passed completely.
"""

from __future__ import annotations

import pickle
from struct import Struct

from harness.measure.flow_record import Sent
from harness.worlds.host_session import Completed, Delivered, Event

_HEAD = Struct("<qiqqB")  # time, host, two numbers of the event, and its type
_DELIVERED, _COMPLETED, _WHOLE = range(3)
_NOTHING: dict[str, int] = {}


def packed(time_ns: int, host: int, event: Event, whole: bool) -> bytes:
    """Return a host's report at a time as bytes.

    `whole` is for a flow with several ends.
    """
    if not whole and isinstance(event, Delivered):
        return _HEAD.pack(time_ns, host, event.number, event.sequence, _DELIVERED)
    if not whole and isinstance(event, Completed):
        return _HEAD.pack(time_ns, host, event.flow, event.sent.size_bytes, _COMPLETED)
    return _HEAD.pack(time_ns, host, 0, 0, _WHOLE) + pickle.dumps(event, pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> tuple[int, int, Event]:
    """Return time, host and event.

    `counts` and `columns` are empty if they were not passed.
    """
    time_ns, host, first, second, kind = _HEAD.unpack_from(data)
    if kind == _DELIVERED:
        return time_ns, host, Delivered(first, second, time_ns, _NOTHING)
    if kind == _COMPLETED:
        return time_ns, host, Completed(first, Sent(second, -1, time_ns, _NOTHING))
    event: Event = pickle.loads(data[_HEAD.size :])
    return time_ns, host, event
