"""Sizes of frames that the plan counts with, Ethernet to ICRC.

`host_agents.wire` knows them too. The plan is made before compiled hosts may be imported, so they
stand here; `tests/harness/plan/test_scenario.py` compares both.
"""

HEADER_BYTES = 58
"""A data packet's bytes beyond its payload."""

ACK_BYTES = 62
"""A whole ACK without telemetry."""

COLLECTIVE_BYTES = 138
"""The mean packet of collectives: half have lanes (202 bytes), half have not (74)."""
