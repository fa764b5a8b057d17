"""p4cc as a library: runs and their results, the P4 compiler, one switch for packet tests, whole networks.

    import p4cc

    results = p4cc.run("incast", cc=["hpcc", "./aimd.py:aimd"])
    results.table()                     # a DataFrame, one row a run

The names in `__all__` of this package and its modules are public and stable. Everything else in the
distribution is internal and may change: the other packages, and the command line (`p4cc.cli`,
`commands`, `execution`, `bench` and `reference`).
Extensions import their base classes from `p4cc.cc`, `p4cc.lb`, `p4cc.workloads`, `p4cc.topologies`
and `p4cc.programs`. See docs/python-api.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p4cc.network import Network, Transfer
    from p4cc.results import CheckError, Result, Results
    from p4cc.runs import Tracing, load, run, sweep
    from p4cc.switch import Output, Packets, Program, Switch, UserError, compile
    from p4cc.topologies import Topology, topology

__all__ = [
    "CheckError",
    "Network",
    "Output",
    "Packets",
    "Program",
    "Result",
    "Results",
    "Switch",
    "Topology",
    "Tracing",
    "Transfer",
    "UserError",
    "compile",
    "load",
    "run",
    "sweep",
    "topology",
]

# Each name is imported on its first use, so that a packet test does not wait for the compilation of
# hosts.
_PLACES = {
    "p4cc.network": ("Network", "Transfer"),
    "p4cc.results": ("CheckError", "Result", "Results"),
    "p4cc.runs": ("Tracing", "load", "run", "sweep"),
    "p4cc.switch": ("Output", "Packets", "Program", "Switch", "UserError", "compile"),
    "p4cc.topologies": ("Topology", "topology"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
