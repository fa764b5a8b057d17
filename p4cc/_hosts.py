"""Installation of the compiled hosts for import, and of the memory reserve.

The hosts are not installed if plain Python is already in use or requested (`P4CC_NATIVE=0`). Every module that
imports the hosts imports this one first.
"""

from harness.worlds.native_hosts import prefer_native_hosts
from p4switch.memory import keep_reserve

prefer_native_hosts()
keep_reserve()
