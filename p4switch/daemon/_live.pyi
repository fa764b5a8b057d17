"""The daemon's extension module: the engine's `Switch`, and `Live`, a switch in real time."""
from types import TracebackType
from typing import Any

from p4switch.engine._engine import Switch as Switch

class Live:
    """Ports on network interfaces, the traffic manager, one pipeline, and a thread that moves packets between them.

    As a context manager it is a lock: no packet moves inside `with live:`. The lock may be nested. Times are in ns
    since the origin of its clock. A port that does not exist raises ValueError; a failure of the system raises OSError.
    """

    def __init__(
        self, tick_ns: int = 1000, cell_bytes: int = 80, framing_bytes: int = 0, origin_ns: int = 0
    ) -> None:
        """Create a switch without ports.

        tick_ns: length of a tick of the pipeline's clock. cell_bytes: unit of queue depths; 0: packets.
        origin_ns: CLOCK_MONOTONIC of time 0, which is not in the future; 0: now.
        """
    def add_port(
        self, number: int, interface: str | None, ring_slots: int = 512, send: str = "auto", loops: bool = False
    ) -> str | None:
        """Add a port, and return how its frames are sent.

        The interface None stands for the CPU port, or for a port whose frames come back to it if it `loops`. If any
        does, frames that leave other ports that the pipeline has as loopback ports do not come back.
        """
    def set_port(self, number: int, rate_bps: int, delay_ns: int) -> None:
        """Set a port's link; rate 0 means no limit."""
    def change_link(
        self, number: int, time_ns: int, up: bool, rate_bps: int, delay_ns: int, loss: float, seed: int
    ) -> None:
        """Change a link from time_ns on, or now if that is past: whether it is up, and its rate (0: no limit)."""
    def set_traffic(self, **settings: Any) -> None:
        """Set the traffic manager, with the keywords of `Fabric.add_switch`."""
    def set_trimming(self, number: int, **settings: Any) -> None:
        """Set trimming at a port, with the keywords of `Fabric.set_trimming`."""
    def set_pfc(self, number: int, **settings: Any) -> None:
        """Set the lossless priorities of an ingress port, with the keywords of `Fabric.set_pfc`."""
    def log_depths(self, interval_ns: int) -> None:
        """Record changes of all ports' queue depths for `stats`, at most once per interval in ns; 0: do not."""
    def set_switch(self, switch: Switch | None) -> None:
        """Set the pipeline from now on; packets queued in the old one are lost.

        With None, all frames are dropped.
        """
    def inject(self, number: int, frame: bytes) -> None:
        """Let a frame arrive at a port now."""
    def start(self) -> None: ...
    def hold(self) -> None:
        """Let nothing leave by links that have a rate or a delay any more: it stays on them. Frames still arrive."""
    def stop(self) -> None: ...
    def take(self, timeout_s: float) -> list[bytes]:
        """Return frames that left by the CPU port.

        The call returns early if there are frames, digests or messages of the program.
        """
    def now_ns(self) -> int: ...
    def port_counts(self) -> dict[int, dict[str, Any]]:
        """Return the counts of the ports, as arguments of `p4runtime.ports.port_counts`."""
    def stats(self) -> dict[str, Any]:
        """Return counters, and in "ports" those of each port.

        Each port has "pfc", rows by priority, and "depths", ([time], [bytes]). failed_asserts is the number of failed
        asserts, failed_assert the first of them or None. lag_log2_ns counts, by powers of 2, how late frames left by
        links with a rate or a delay; lag_sum_ns is the total lag.
        """
    def __enter__(self) -> Live: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...
