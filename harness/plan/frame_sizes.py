"""Sizes of frames for the plan besides those of `host_agents.lengths`, Ethernet to ICRC."""

COLLECTIVE_BYTES = 138
"""The mean packet of collectives: half have lanes (202 bytes), half have not (74)."""
