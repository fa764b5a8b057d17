"""The Tofino Native Architecture: its package and externs, and the parts of it that T2NA shares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture, TableProperties
from p4switch.architectures.extern import Extern
from p4switch.architectures.front_panel import MAX_PIPES, FrontPanel, PortGroups
from p4switch.architectures.package import Package
from p4switch.architectures.packet_path import PACKET_PATHS, Intrinsic, PacketPath, State
from p4switch.architectures.ports import DROP_PORT
from p4switch.architectures.tna.fixed import fixed_tables
from p4switch.architectures.tna.state import BUFFER_CELLS, PortState, states
from p4switch.registry import Registry

COMPILER = {"__p4c__": "1", "__p4c_major__": "9", "__p4c_minor__": "13", "__p4c_patchlevel__": "0"}
"""Macros by which programs test the version of the chip's compiler; it is as new as any that they test for."""

MIRROR_CHUNKS = 8
"""Number of 64-bit fields for the bytes in front of a mirrored packet."""

PKTGEN_CHUNKS = 2
"""Number of 64-bit fields for the bytes that a packet passes to the packet generator."""

_SESSIONS = 1024

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.tna_externs", package="p4switch.architectures.tna.externs", base=Extern
)
PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.tna_packages", package="p4switch.architectures.tna.package", base=Package
)
PROPERTIES = TableProperties(
    profile="implementation",
    profiles=("ActionProfile", "ActionSelector"),
    layouts=("Atcam", "Alpm"),
    counter="counters",
    counters=("DirectCounter",),
    meter="meters",
    meters=("DirectMeter",),
    direct={"registers": ("DirectRegister",), "filters": ("DirectLpf", "DirectWred", "Lpf", "Wred")},
    idle_timeout="idle_timeout",
)
MATCH_KINDS = {"atcam_partition_index": "exact", "dleft_hash": "exact"}

MOST_GENERATED = 1 << 16
"""Most packets that one trigger generates. They are generated at once, and more would not fit into memory."""

_PORT_GROUPS = PortGroups(count=18, ports=4, queues=8)

TNA = Architecture(
    "tna",
    Path(__file__).parent,
    ("tna.p4", "tofino.p4"),
    PACKAGES,
    (EXTERNS,),
    PROPERTIES,
    {"__TARGET_TOFINO__": "1", **COMPILER},
    MATCH_KINDS,
    tuple(fixed_tables("tf1", _SESSIONS, _PORT_GROUPS)),
    pads_headers=True,
    front_panel=FrontPanel(pipes=MAX_PIPES, first=0, count=64, reserved=1, recirculation=range(68, 72)),
    port_groups=_PORT_GROUPS,
    key_masks="KeyMasks",
    clock_hz=1_271_000_054,
)
ARCHITECTURES.add(TNA.name, TNA)


def packet_path(
    constants: Mapping[str, int], fronts: tuple[int, int], states: Mapping[str, State], ghost: str = ""
) -> PacketPath:
    """Return the packet path through a pipeline of a chip with these constants and states.

    `fronts` is the number of bytes in front of packets in ingress and in egress. `ghost` is the
    header that the ghost thread reads; it is empty for a chip without one.
    """
    return PacketPath(
        Path(__file__).parent / "c",
        parsers=("ingress_parser", "egress_parser"),
        controls=("ingress", "egress", *(["ghost"] if ghost else [])),
        deparsers=("ingress_deparser", "egress_deparser"),
        intrinsic=_INTRINSIC,
        externs=(EXTERNS,),
        drop_port=DROP_PORT,
        named=True,
        deflects=True,
        keeps_fields=True,
        has_timers=True,
        watcher="ghost" if ghost else "",
        watched=(ghost, 4),
        in_front=dict(zip(("ingress_parser", "egress_parser"), fronts, strict=True)),
        constants={**constants, "BUFFER_CELLS": BUFFER_CELLS, "MOST_GENERATED": MOST_GENERATED},
        states=states,
    )


def _fields(instance: str, /, **fields: str) -> Mapping[str, Intrinsic]:
    return {own: Intrinsic(f"{instance}.{name}") for own, name in fields.items()}


def _sent(own: str, instance: str, chunks: int) -> Mapping[str, Intrinsic]:
    """Return the intrinsic fields of the bytes that a deparser puts in front of a copy."""
    names = ["emitted", "session", "bytes", *(f"data{i}" for i in range(chunks))]
    return {f"{own}_{name}": Intrinsic(f"{instance}.{name}") for name in names}


_INTRINSIC = {
    **_fields(
        "ig_intr_md_from_prsr",
        ingress_global_tstamp="global_tstamp",
        ingress_global_ver="global_ver",
        ingress_parser_err="parser_err",
    ),
    **_fields(
        "ig_intr_md_for_tm",
        ucast_egress_port="ucast_egress_port",
        ucast_written="ucast_egress_port_written",
        bypass_egress="bypass_egress",
        deflect_on_drop="deflect_on_drop",
        ingress_cos="ingress_cos",
        qid="qid",
        icos_for_copy_to_cpu="icos_for_copy_to_cpu",
        copy_to_cpu="copy_to_cpu",
        packet_color="packet_color",
        mcast_grp_a="mcast_grp_a",
        mcast_a_written="mcast_grp_a_written",
        mcast_grp_b="mcast_grp_b",
        mcast_b_written="mcast_grp_b_written",
        level1_mcast_hash="level1_mcast_hash",
        level2_mcast_hash="level2_mcast_hash",
        level1_exclusion_id="level1_exclusion_id",
        level2_exclusion_id="level2_exclusion_id",
        rid="rid",
    ),
    **_sent("ig_mirror", "ig_mirror", MIRROR_CHUNKS),
    **_sent("eg_mirror", "eg_mirror", MIRROR_CHUNKS),
    **_sent("resubmit", "ig_resubmit", 2),
    **_sent("ig_pktgen", "ig_pktgen", PKTGEN_CHUNKS),
    **_fields(
        "ig_intr_md_for_dprsr",
        ingress_drop_ctl="drop_ctl",
        digest_written="digest_type_written",
        resubmit_written="resubmit_type_written",
        ingress_mirror_type="mirror_type",
        ingress_mtu_trunc_len="mtu_trunc_len",
        ingress_mirror_io_select="mirror_io_select",
        ingress_mirror_deflect="mirror_deflect_on_drop",
        ingress_adv_flow_ctl="adv_flow_ctl",
    ),
    **_fields(
        "eg_intr_md_from_prsr",
        egress_global_tstamp="global_tstamp",
        egress_global_ver="global_ver",
        egress_parser_err="parser_err",
    ),
    **_fields(
        "eg_intr_md_for_dprsr",
        egress_drop_ctl="drop_ctl",
        egress_mirror_written="mirror_type_written",
        egress_mirror_type="mirror_type",
        egress_mtu_trunc_len="mtu_trunc_len",
        egress_mirror_io_select="mirror_io_select",
        egress_mirror_deflect="mirror_deflect_on_drop",
        egress_adv_flow_ctl="adv_flow_ctl",
    ),
}
"""Part of the package's declaration that the program writes itself, because blocks choose their parameters."""

PACKET_PATHS.add(
    "tna.Switch",
    packet_path({"TOFINO": 1, "MIRROR_SESSIONS": _SESSIONS}, (8 + 8, 27), states(PortState, _SESSIONS)),
)
