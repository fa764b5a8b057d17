"""Notifications of the kernel about interfaces that go up or down (rtnetlink)."""
from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK = 16, 17
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_HEAD = struct.Struct("=LHHLL")  # nlmsghdr: length, type, flags, sequence, port
_INFO = struct.Struct("=BxHiII")  # ifinfomsg: family, type, index, flags, change


class LinkWatcher:
    """Watcher of interface changes in this process's network namespace since its creation."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))

    def changes(self, timeout_s: float) -> list[tuple[int, bool]]:
        """Return (interface index, whether it is up and has a carrier), in order; empty after the time-out."""
        self._socket.settimeout(timeout_s)
        try:
            return list(_parse(self._socket.recv(65536)))
        except (TimeoutError, OSError):
            return []  # there are none, or the kernel dropped some; later messages give the state

    def close(self) -> None:
        self._socket.close()


def _parse(data: bytes) -> Iterator[tuple[int, bool]]:
    while len(data) >= _HEAD.size:
        length, kind, *_ = _HEAD.unpack_from(data)
        if length < _HEAD.size:
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and length >= _HEAD.size + _INFO.size:
            _, _, index, flags, _ = _INFO.unpack_from(data, _HEAD.size)
            yield index, kind == _RTM_NEWLINK and flags & (_IFF_UP | _IFF_RUNNING) == _IFF_UP | _IFF_RUNNING
        data = data[(length + 3) & ~3:]
