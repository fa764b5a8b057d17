"""The host side of p4cc: RoCEv2 frames, the sans-I/O NIC, congestion-control protocols and load balancers.

Nothing here does I/O, reads a clock or starts a thread. `docs/host-api.md` shows how a driver uses it.
"""

from __future__ import annotations


def use_native() -> bool:
    """Run the hosts as compiled code. Call it before any submodule is imported; the first call compiles.

    Returns False, and leaves plain Python in place, when the environment says `P4CC_NATIVE=0`.
    Raises `host_agents.errors.NativeBuildError` when there is no C compiler or no Python headers.
    """
    from host_agents.native import activate

    return activate()
