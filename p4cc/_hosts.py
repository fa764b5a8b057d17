"""Installation of the compiled hosts for import.

Nothing happens if plain Python is already in use or requested (`P4CC_NATIVE=0`). Every module that
imports the hosts imports this one first.
"""

from harness.worlds.native_hosts import prefer_native_hosts

prefer_native_hosts()
