"""Modules that each `p4cc run` loads, imported once by the process that runs are forked from."""

from harness.worlds.native_hosts import use_native_hosts

use_native_hosts()

from harness.execution import execute as execute  # noqa: E402
