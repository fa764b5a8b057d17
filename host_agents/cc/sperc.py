"""s-PERC (Jose et al., SIGMETRICS 2019; section 5.1.1 of the thesis that 1RC is from): the packet.

Frames: docs/wire-formats.md, "Control packet of s-PERC". Rates on the wire are in kb/s for each unit of weight.
"""

from __future__ import annotations

from typing import Final

from host_agents.cc.sperc_link import NEW_FLOW, B, E
from host_agents.packets import TO_NOTIFICATION_POINT, Field, Header, Packet, Records

RECORDS: Final = 8  # six switches, the NIC's own link, the demand

CONTROL_HEADER: Final = Header(
    "sperc",
    (
        Field("response", 1, "on its way back to the source"),
        Field("leaving", 1, "the flow has sent all"),
        Field("reserved", 6),
        Field("switches_passed", 8),
        Field("epoch", 16, "of the packet's sending: its source's clock, divided by the epoch's length"),
        Field("old_weight", 16, "n of the flow's control packet before; the flow's rate goes by 1/n", initial=1),
        Field("new_weight", 16, "n now", initial=1),
        Field("speculative_weight", 16, "n for speculative packets", initial=1),
        Field("let_through", 24, "the least number of speculative packets that a switch lets pass", initial=0xFFFFFF),
        Field("source_qp", 24, "the sender's own queue pair, to which a response goes"),
        Field("interval", 32, "the largest of the links' intervals between control packets of a flow", unit="ns"),
    ),
    "Control packet of s-PERC: what is the flow's own.",
)
RECORD_HEADER: Final = Header(
    "sperc_record",
    (
        Field("b", 32, "the link's bottleneck rate", unit="kb/s"),
        Field("x", 32, "the flow's allocation at the link", unit="kb/s"),
        Field("state", 2, "of the flow at the link", values={NEW_FLOW: "new_flow", E: "e", B: "b"}),
        Field("ignore", 1, "b says nothing", initial=1),
        Field("reserved", 13),
    ),
    "What a control packet of s-PERC knows of one link.",
)
CONTROL: Final = Packet(
    "SPERC",
    0xE5,
    (CONTROL_HEADER, Records(RECORD_HEADER, RECORDS)),
    to=TO_NOTIFICATION_POINT,
    reply="response",
    meaning="control packet of s-PERC: a flow's state at the links of its path",
)
