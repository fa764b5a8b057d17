"""Reports of hosts as bytes: what one worker's session tells the others'.

Of a flow with one sender and one receiver the others need to know that it was delivered or is done, and when; what else
is known of it stays at the worker that has the host until the run is over (`Session.details`). All else is told whole.
"""

from __future__ import annotations

import pickle
from struct import Struct

from harness.measure.flow_record import Sent
from harness.worlds.host_session import Completed, Delivered, Event

_HEAD = Struct("<qiqqB")  # time, host, two numbers of the event, and what it is
_DELIVERED, _COMPLETED, _WHOLE = range(3)
_NOTHING: dict[str, int] = {}


def packed(time_ns: int, host: int, event: Event, whole: bool) -> bytes:
    """Return the bytes of a host's report at a time. `whole`: of a flow that has several ends."""
    if not whole and isinstance(event, Delivered):
        return _HEAD.pack(time_ns, host, event.number, event.sequence, _DELIVERED)
    if not whole and isinstance(event, Completed):
        return _HEAD.pack(time_ns, host, event.flow, event.sent.size_bytes, _COMPLETED)
    return _HEAD.pack(time_ns, host, 0, 0, _WHOLE) + pickle.dumps(event, pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> tuple[int, int, Event]:
    """Return time, host and event. `counts` and `columns` are empty where they were not told."""
    time_ns, host, first, second, kind = _HEAD.unpack_from(data)
    if kind == _DELIVERED:
        return time_ns, host, Delivered(first, second, time_ns, _NOTHING)
    if kind == _COMPLETED:
        return time_ns, host, Completed(first, Sent(second, -1, time_ns, _NOTHING))
    event: Event = pickle.loads(data[_HEAD.size :])
    return time_ns, host, event
