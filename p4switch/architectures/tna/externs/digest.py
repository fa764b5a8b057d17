"""`Digest`: values of the packet for the control plane."""

from __future__ import annotations

from p4switch.architectures.psa.externs import digest
from p4switch.architectures.tna import EXTERNS

EXTERNS.add("Digest", digest.Digest)  # as PSA's; it is sent where the program has written `digest_type`
