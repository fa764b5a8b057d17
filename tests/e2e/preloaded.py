"""Modules that each `p4cc run` loads, imported once by the process from which runs are forked.

Planning a run loads topologies, workloads, protocols and programs, which are found by their files.
"""

import gc
from pathlib import Path

from harness.worlds.native_hosts import use_native_hosts

use_native_hosts()

from harness.plan.resolve import plan  # noqa: E402
from harness.plan.scenario import check  # noqa: E402
from p4cc.commands import run as run  # noqa: E402
from p4cc.execution import execute as execute  # noqa: E402
from p4cc.execution import reports as reports  # noqa: E402
from p4switch.engine import codegen as codegen  # noqa: E402

plan("preloaded", check({"topology": {"name": "single-switch", "hosts": 3}, "workload": {"name": "incast"}}), Path())
gc.collect()
gc.freeze()  # a run traverses all other objects before the next one, and so would copy their memory
