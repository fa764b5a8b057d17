"""Raw socket (AF_PACKET) on a host's interface."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23
_SO_TIMESTAMPNS, _SO_RCVBUFFORCE, _SO_SNDBUFFORCE = 35, 33, 32
_BUFFER_BYTES = 16 << 20
_MAX_FRAME_BYTES = 16384
_TIMESPEC = struct.Struct("=qq")
_STATISTICS = struct.Struct("=II")
_PAUSE_TYPE = b"\x88\x08"


class RawPort:
    """Port for whole frames, without FCS.

    Times are CLOCK_MONOTONIC, in ns.
    """

    def __init__(self, interface: str) -> None:
        """Open the interface.

        Raises OSError if the interface does not exist or may not be opened.
        """
        self.frames_sent = 0
        self.send_failed = 0
        self.frames_received = 0  # without PFC frames
        self.pauses_received = 0
        self._dropped = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setblocking(False)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        for option in (_SO_RCVBUFFORCE, _SO_SNDBUFFORCE):
            self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self._socket.bind((interface, _ETH_P_ALL))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        """Send a frame; if the kernel has no room for it, it is lost and counted."""
        self.frames_sent += 1
        try:
            self._socket.send(frame)
        except OSError:
            self.send_failed += 1

    def receive(self) -> Iterator[tuple[int, bytes]]:
        """Yield (arrival, frame) of all frames that have arrived."""
        # The kernel's timestamps are from CLOCK_REALTIME, which can be set, so they are converted.
        offset = time.time_ns() - time.monotonic_ns()
        while True:
            try:
                frame, extra, _, _ = self._socket.recvmsg(_MAX_FRAME_BYTES, 64)
            except BlockingIOError:
                return
            if frame[12:14] == _PAUSE_TYPE:
                self.pauses_received += 1
            else:
                self.frames_received += 1
            seconds, ns = _TIMESPEC.unpack(extra[0][2])
            yield seconds * 1_000_000_000 + ns - offset, frame

    def dropped(self) -> int:
        """Return the number of frames so far that were dropped at a full socket buffer."""
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        self._dropped += _STATISTICS.unpack(statistics)[1]  # the kernel resets it at each reading
        return self._dropped
