"""Output generated from the declarations of headers and packets (`host_agents/packets.py`).

The outputs are P4 includes (`p4`), tables in Markdown (`docs`), scapy layers (`scapy_layers`) and the Wireshark
dissector (`wireshark`).
"""

from __future__ import annotations

from collections.abc import Sequence

from host_agents import registry
from host_agents.collective import packets as collective
from host_agents.headers import THE_TRANSPORT, TRANSPORT
from host_agents.packets import Opcodes


def opcodes(protocols: Sequence[str] = ()) -> Opcodes:
    """Return the packets of the transport and these protocols; by default those of all protocols.

    Raises UnknownNameError, and PacketError when two packets of the protocols named have the same opcode.
    """
    packets = {THE_TRANSPORT: TRANSPORT} | ({} if protocols else {collective.NAME: collective.PACKETS})
    joined = Opcodes(packets, catalog=not protocols)
    for name in protocols or registry.protocols():
        joined = joined.joined(registry.resolve(name).opcodes)
    return joined
