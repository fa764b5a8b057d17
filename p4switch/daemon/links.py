"""Notifications from the kernel about interfaces that go up or down (rtnetlink)."""
from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator

_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK = 16, 17
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_HEAD = struct.Struct("=LHHLL")  # nlmsghdr: length, type, flags, sequence, port
_INFO = struct.Struct("=BxHiII")  # ifinfomsg: family, type, index, flags, change


class LinkWatcher:
    """Watcher of interface changes in this process's network namespace since the watcher was created."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))
        self._woken, self._waking = socket.socketpair()

    def changes(self, timeout_s: float) -> list[tuple[int, bool]]:
        """Return the next changes in order: interface index, and whether the interface is up and has a carrier.

        The list is empty after the time-out or a call of `wake`.
        """
        waiting = select.poll()
        for each in (self._socket, self._woken):
            waiting.register(each, select.POLLIN)
        ready = {number for number, _ in waiting.poll(timeout_s * 1000)}
        if self._woken.fileno() in ready:
            self._woken.recv(4096)
        if self._socket.fileno() not in ready:
            return []
        try:
            return list(_parse(self._socket.recv(65536)))
        except OSError:
            return []  # the kernel dropped messages; later ones give the state

    def wake(self) -> None:
        """Make `changes` return at once. Another thread may call this."""
        self._waking.send(b"\0")

    def close(self) -> None:
        for each in (self._socket, self._woken, self._waking):
            each.close()


def _parse(data: bytes) -> Iterator[tuple[int, bool]]:
    while len(data) >= _HEAD.size:
        length, kind, *_ = _HEAD.unpack_from(data)
        if length < _HEAD.size:
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and length >= _HEAD.size + _INFO.size:
            _, _, index, flags, _ = _INFO.unpack_from(data, _HEAD.size)
            yield index, kind == _RTM_NEWLINK and flags & (_IFF_UP | _IFF_RUNNING) == _IFF_UP | _IFF_RUNNING
        data = data[(length + 3) & ~3:]
