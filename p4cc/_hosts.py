"""Puts the compiled hosts in place, unless plain Python is in use already, or wanted (`P4CC_NATIVE=0`).

Every module that imports something of the hosts imports this one first.
"""

from harness.worlds.native_hosts import prefer_native_hosts

prefer_native_hosts()
