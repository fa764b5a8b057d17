"""Port numbers of a switch: their width, and the number that stands for no port."""

from __future__ import annotations

WIDTH_BITS = 9  # default width of a port number, for programs that declare no other
DROP_PORT = (1 << WIDTH_BITS) - 1  # packets sent to this port are dropped, as in BMv2
MAX_PORT = DROP_PORT - 1  # largest port of a link; the smallest is 1, since P4Runtime reserves 0
