"""Probes: a scenario's measurements beyond flows, queues and rates, with a file for each kind.

[[record.probes]]
kind = "register"
reads = "fsr_of"
name = "fair_shares" # of the table
switches = "tor*"
interval_ns = 10_000
"""

from harness.plan.probes.base import REGISTRY, HostProbe, Probe, SwitchProbe, parse, probes_of
from harness.plan.probes.cells import CounterProbe
from harness.plan.probes.program import ProgramProbe
from harness.plan.probes.queue import QueueProbe

__all__ = [
    "REGISTRY", "CounterProbe", "HostProbe", "Probe", "ProgramProbe", "QueueProbe", "SwitchProbe", "parse", "probes_of",
]
