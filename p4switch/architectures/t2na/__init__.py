"""The Tofino 2 Native Architecture: TNA with a ghost thread, wider fields and more bytes before packets."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.front_panel import MAX_PIPES, FrontPanel, PortGroups
from p4switch.architectures.package import Package
from p4switch.architectures.packet_path import PACKET_PATHS, State
from p4switch.architectures.tna import COMPILER, EXTERNS, MATCH_KINDS, PROPERTIES, packet_path
from p4switch.architectures.tna.fixed import fixed_tables
from p4switch.architectures.tna.state import PORT_MASKS, PortMaskState, WidePortState, states
from p4switch.registry import Registry

PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.t2na_packages", package="p4switch.architectures.t2na.package", base=Package
)

_SESSIONS = 256
_PORT_GROUPS = PortGroups(count=9, ports=8, queues=16)

T2NA = Architecture(
    "t2na",
    Path(__file__).parent,
    ("t2na.p4",),
    PACKAGES,
    (EXTERNS,),
    PROPERTIES,
    {"__TARGET_TOFINO__": "2", **COMPILER},
    MATCH_KINDS,
    tuple(fixed_tables("tf2", _SESSIONS, _PORT_GROUPS)),
    pads_headers=True,
    front_panel=FrontPanel(pipes=MAX_PIPES, first=8, count=64, recirculation=range(6, 8)),
    port_groups=_PORT_GROUPS,
    key_masks="KeyMasks",
    clock_hz=999_999_973,
)
ARCHITECTURES.add(T2NA.name, T2NA)
PACKET_PATHS.add(
    "t2na.Switch",
    packet_path(
        {"TOFINO": 2, "MIRROR_SESSIONS": _SESSIONS},
        (8 + 24, 28),
        {**states(WidePortState, _SESSIONS), "port_mask": State("$pktgen_port_mask", PortMaskState, PORT_MASKS)},
        ghost="gh_intr_md",
    ),
)
