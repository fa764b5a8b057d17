"""The Portable Switch Architecture (PSA specification, version 1.2), as BMv2's psa_switch implements it."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture, TableProperties
from p4switch.architectures.extern import Extern
from p4switch.architectures.package import Package
from p4switch.architectures.packet_path import PACKET_PATHS, Intrinsic, PacketPath
from p4switch.registry import Registry

NO_PORT = 0xFFFFFFFF
"""Port to which no packet is sent. PSA marks packets to be dropped by a bit instead of a port."""

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.psa_externs", package="p4switch.architectures.psa.externs", base=Extern
)
PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.psa_packages", package="p4switch.architectures.psa.package", base=Package
)

PSA = Architecture(
    "psa",
    Path(__file__).parent,
    ("psa.p4",),
    PACKAGES,
    (EXTERNS,),
    TableProperties(
        profile="psa_implementation",
        profiles=("ActionProfile", "ActionSelector"),
        counter="psa_direct_counter",
        counters=("DirectCounter",),
        meter="psa_direct_meter",
        meters=("DirectMeter",),
        idle_timeout="psa_idle_timeout",
    ),
)
ARCHITECTURES.add(PSA.name, PSA)


def _metadata(instance: str, /, **fields: str) -> dict[str, Intrinsic]:
    return {own: Intrinsic(f"psa_{instance}_metadata.{name}", required=True) for own, name in fields.items()}


PACKET_PATHS.add(
    "PSA_Switch",
    PacketPath(
        Path(__file__).parent / "c",
        parsers=("ingress_parser", "egress_parser"),
        controls=("ingress", "egress"),
        deparsers=("ingress_deparser", "egress_deparser"),
        intrinsic={
            **_metadata("ingress_parser_input", parser_port="ingress_port", parser_path="packet_path"),
            **_metadata(
                "ingress_input",
                ingress_port="ingress_port",
                ingress_path="packet_path",
                ingress_timestamp="ingress_timestamp",
                ingress_error="parser_error",
            ),
            **_metadata(
                "ingress_output",
                class_of_service="class_of_service",
                clone="clone",
                clone_session_id="clone_session_id",
                drop="drop",
                resubmit="resubmit",
                multicast_group="multicast_group",
                egress_spec="egress_port",
            ),
            **_metadata("egress_parser_input", egress_parser_port="egress_port", egress_parser_path="packet_path"),
            **_metadata(
                "egress_input",
                egress_class_of_service="class_of_service",
                egress_port="egress_port",
                egress_path="packet_path",
                instance="instance",
                egress_timestamp="egress_timestamp",
                egress_error="parser_error",
            ),
            **_metadata(
                "egress_output", egress_clone="clone", egress_clone_session_id="clone_session_id", egress_drop="drop"
            ),
            **_metadata("egress_deparser_input", deparser_port="egress_port"),
        },
        externs=(EXTERNS,),
        drop_port=NO_PORT,
    ),
)
