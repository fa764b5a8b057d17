"""Mininet world: a process for each switch and host, raw frames on veth pairs, the kernel's clock.

`world.MininetWorld` carries out a run. Time is dilated: D nanoseconds of wall-clock time are one of
model time.
"""
