"""The Mininet world: one process a switch and one a host, raw frames on veth pairs, the kernel's clock.

`world.MininetWorld` carries out a run. Time is dilated: a factor D of wall-clock nanoseconds is one of model time.
"""
