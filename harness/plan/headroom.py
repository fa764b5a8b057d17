"""The part of a switch's buffer that PFC keeps free, and the threshold of pauses."""

from __future__ import annotations

from harness.plan.run import Run
from topologies.model import Neighbour


def headroom_bytes(run: Run, switch: str, there: Neighbour) -> int:
    """Return the bytes that a switch keeps free for each lossless priority of a port.

    The headroom holds the frames that the port may still receive after it has sent a pause. A frame
    counts once for each copy that the switch may make, with its bytes in the buffer instead of
    those that a link charges. It counts from its enqueueing, one switch latency after its arrival.
    """
    settings = run.scenario.switch
    pfc = settings.pfc
    flight_ns = pfc.headroom_delays * there.delay_ns + settings.latency_ns + pfc.reaction_ns
    flight_bytes = int(flight_ns * there.rate_bps / 8e9 * run.scenario.largest_expansion)
    return (flight_bytes + pfc.headroom_frames * run.data_bytes) * run.most_copies.get(switch, 1)


def xoff_bytes(run: Run, switch: str, there: Neighbour) -> int | None:
    """Return the bytes of a lossless priority at which a port sends a pause.

    None: the threshold is a share of the free buffer.
    """
    settings = run.scenario.switch
    if settings.ingress_bytes is None:
        return settings.pfc.xoff_bytes if settings.pfc.enabled else None
    return settings.ingress_bytes - (headroom_bytes(run, switch, there) if settings.pfc.enabled else 0)
