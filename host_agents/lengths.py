"""Lengths of frames on the wire, from Ethernet's header to the ICRC, by transport.

All frames begin with RoCEv2's headers, so that switches and captures know them. A frame of another
transport, such as TCP, has the length of that transport's frame. If the other transport's headers
are longer, zeros after the BTH replace them. If they are shorter, BTH and ICRC take the place of
some payload.

This module is not compiled, because plans are made before the compiled hosts may be imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Lengths:
    """Lengths of data and answers, without INT shims."""

    header_bytes: int  # bytes of a data packet besides its payload
    align_bytes: int  # payload is padded to a multiple of it
    least_bytes: int  # shortest data packet
    ack_bytes: int  # answer without information on early packets
    block_bytes: int = 0  # added to a SACK for each run of early packets; 0: it has a map of 64 packets

    def data_bytes(self, payload_bytes: int) -> int:
        """Return the length of a data packet.

        Parameters
        ----------
        payload_bytes
            Its payload.

        Returns
        -------
        int
            Length on the link without framing.
        """
        return max(self.least_bytes, self.header_bytes + payload_bytes + -payload_bytes % self.align_bytes)


INT_SHIM_BYTES: Final = 2  # size without records, behind the BTH of data
INT_RECORD_BYTES: Final = 8  # bytes that each switch adds
ROCE: Final = Lengths(58, 4, 58, 62)
# 14 bytes of Ethernet, 20 of IPv4, 32 of TCP with time stamps (RFC 9293, 7323), and 4 + 8 for each
# SACK block (RFC 2018), with room for three.
TCP: Final = Lengths(66, 1, 66, 66, 8)
SACK_OPTION_BYTES: Final = 4  # size with padding
MOST_BLOCKS: Final = 3
# 14 bytes of Ethernet, 20 of IPv4, 8 of UDP; Ethernet's shortest frame without FCS; 20 bytes of answer.
UDP: Final = Lengths(42, 1, 60, 62)
