"""Tables of settings that a NIC and the table `nic` of a scenario have in common.

The module imports no compiled one, because a scenario is read before the compiled hosts are in place.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from typing_extensions import Self

from p4switch.tables import Bytes, Table

BaseRtts = Annotated[float, Field(gt=0, le=1000)]


class SleekConfig(Table):
    """Configuration of SLEEK, Ultra Ethernet's loss recovery for selective repeat without trimming.

    It needs several paths and a protocol that sets a window. Defaults other than `windows` are the
    reference simulator's, with its target delay of one base RTT without trimming.
    """

    # Losses are suspected when the packets that arrived out of order amount to this many windows
    # (Ultra Ethernet has 1.5); 0: losses are found by time-out only.
    windows: Annotated[float, Field(ge=0, le=1000)] = 0.0
    least_packets: Annotated[int, Field(ge=1, le=1000)] = 5  # with fewer packets out of order no loss is suspected
    # Time without an acknowledgement after which a probe is sent, while data waits to be sent.
    probe_after_base_rtts: BaseRtts = 3.0
    probe_after_end_base_rtts: BaseRtts = 2.0  # the same time when no data waits
    probe_again_base_rtts: BaseRtts = 5.0  # time from an unanswered probe to the next one
    # If a probe's RTT is below this, the path has no congestion, and missing packets count as lost.
    probe_clear_base_rtts: BaseRtts = 2.0
    # Whether a recovery also resends missing packets that were sent after the acknowledged one, as
    # Ultra Ethernet's simulator does.
    as_simulated_resend: bool = False


class PcieConfig(Table):
    """Configuration of the path from a NIC to its host's memory, on which received data may wait.

    Defaults other than `rate` are those of Ultra Ethernet's reference simulator.
    """

    # Rate with which the memory takes data, as a share of the link's (Ultra Ethernet's simulator has
    # 1.1); 0: nothing ever waits.
    rate: Annotated[float, Field(ge=0, le=1000)] = 0.0
    # A data packet that would exceed it loses its payload, as if a switch trimmed it.
    buffer_bytes: Annotated[Bytes, Field(ge=1, le=1 << 40)] = 5_000_000
    # If this many bytes wait, receivers pull at a lower rate, which is proportional to the square
    # of the free bytes.
    slow_from_bytes: Bytes = 1_000_000
    # If more than this share of the buffer is full, they pull at the rate `least_pull_rate`.
    almost_full: Annotated[float, Field(ge=0, le=1)] = 0.95
    # Lowest rate of pulls, as a share of the link's.
    least_pull_rate: Annotated[float, Field(gt=0, le=1)] = 0.001

    @model_validator(mode="after")
    def _slows_down_before_it_is_full(self) -> Self:
        if self.slow_from_bytes >= self.buffer_bytes:
            raise ValueError(f"slow_from_bytes should be less than buffer_bytes, {self.buffer_bytes}")
        return self
