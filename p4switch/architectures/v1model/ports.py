"""The ports of a v1model switch: how wide their numbers are, and which one is none."""

from __future__ import annotations

WIDTH_BITS = 9  # of v1model's `PortId_t`
DROP_PORT = (1 << WIDTH_BITS) - 1  # what is sent there is dropped, on BMv2, too
MAX_PORT = DROP_PORT - 1  # of a link; the smallest is 1, since P4Runtime reserves 0
