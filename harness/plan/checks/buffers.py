"""Checks of buffers: the space that PFC's headroom leaves."""

from __future__ import annotations

from harness.plan.headroom import headroom_bytes
from harness.plan.run import Run
from harness.plan.traffic_summary import TrafficSummary
from p4switch.errors import UserError


def headroom(run: Run, traffic: TrafficSummary) -> None:
    """Check that PFC's headroom leaves some of the shared buffer.

    Raises UserError if nothing is left, and for settings that contradict each other.
    """
    settings = run.scenario.switch
    if settings.pfc.xoff_bytes is not None and settings.ingress_bytes is not None:
        raise UserError("switch.pfc.xoff_bytes: given beside switch.ingress_bytes; expected one of them")
    if not settings.pfc.enabled:
        return
    if settings.buffer_bytes is None:
        raise UserError("switch.buffer_bytes: missing; PFC needs a shared buffer (or switch.pfc.enabled = false)")
    for switch in run.topology.switches:
        headrooms = [headroom_bytes(run, switch.name, there) for there in run.topology.ports[switch.name].values()]
        reserved_bytes = sum(headrooms) * len(set(run.lossless_priorities))
        if reserved_bytes >= settings.buffer_bytes:
            raise UserError(
                f"switch.buffer_bytes: should exceed the {reserved_bytes} bytes of headroom that PFC keeps in "
                f"{switch.name}, got {settings.buffer_bytes}"
            )
        if settings.ingress_bytes is not None and max(headrooms) >= settings.ingress_bytes:
            raise UserError(
                f"switch.ingress_bytes: should exceed the {max(headrooms)} bytes of headroom that PFC keeps for a port "
                f"of {switch.name}, got {settings.ingress_bytes}"
            )
