"""Metadata of PSA that accompanies a packet from a deparser to the next parser."""

from __future__ import annotations

import enum


class Carried(enum.Enum):
    RESUBMIT = "resubmit metadata"
    RECIRCULATE = "recirculate metadata"
    NORMAL = "normal metadata"
    CLONE_I2E = "clone_i2e metadata"
    CLONE_E2E = "clone_e2e metadata"


CARRIED = dict(enumerate(Carried, start=1))
"""Carried metadata by the number of its field list in BMv2 JSON; `c/packet_path.h` defines the same numbers."""
