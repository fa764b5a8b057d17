"""Probes: what a scenario wants measured beyond flows, queues and rates, one file a kind.

[[record.probes]]
kind = "register"
reads = "fsr_of"
name = "fair_shares" # of the table
switches = "tor*"
interval_ns = 10_000
"""

import importlib
import pkgutil

from harness.measure.probes.base import HostProbe, Probe, SwitchProbe, kinds, parse
from harness.measure.probes.queue import QueueProbe

__all__ = ["HostProbe", "Probe", "QueueProbe", "SwitchProbe", "kinds", "parse"]

for _found in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_found.name)
