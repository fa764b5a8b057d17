"""Sizes of frames that the plan counts with besides those of `host_agents.lengths`, Ethernet to ICRC.

`host_agents.wire` knows the shim's too, but the plan is made before compiled hosts may be imported;
`tests/host_agents/test_wire.py` compares both.
"""

INT_SHIM_BYTES = 2
"""What an INT shim without records adds to a data packet."""

COLLECTIVE_BYTES = 138
"""The mean packet of collectives: half have lanes (202 bytes), half have not (74)."""
