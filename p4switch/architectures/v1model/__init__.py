"""The architecture v1model, as BMv2's simple_switch implements it."""

from __future__ import annotations

from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture, TableProperties
from p4switch.architectures.extern import Extern
from p4switch.architectures.package import Package
from p4switch.architectures.packet_path import PACKET_PATHS, Intrinsic, PacketPath
from p4switch.architectures.ports import DROP_PORT
from p4switch.architectures.v1model.superseded import SUPERSEDED
from p4switch.registry import Registry

EXTERNS: Registry[type[Extern]] = Registry(
    "extern", group="p4cc.externs", package="p4switch.architectures.v1model.externs", base=Extern
)
PACKAGES: Registry[type[Package]] = Registry(
    "package", group="p4cc.packages", package="p4switch.architectures.v1model.package", base=Package
)

PROPERTIES = TableProperties(
    profile="implementation",
    profiles=("action_profile", "action_selector"),
    counter="counters",
    counters=("direct_counter",),
    meter="meters",
    meters=("direct_meter",),
    idle_timeout="support_timeout",
)

V1MODEL = Architecture(
    "v1model", Path(__file__).parent, ("v1model.p4",), PACKAGES, (EXTERNS,), PROPERTIES, superseded=SUPERSEDED
)
ARCHITECTURES.add(V1MODEL.name, V1MODEL)

PACKET_PATHS.add(
    "V1Switch",
    PacketPath(
        Path(__file__).parent / "c",
        parsers=("parser",),
        controls=("ingress", "egress"),
        deparsers=("deparser",),
        intrinsic={
            "ingress_port": Intrinsic("standard_metadata.ingress_port", required=True),
            "packet_length": Intrinsic("standard_metadata.packet_length", required=True),
            "instance_type": Intrinsic("standard_metadata.instance_type", required=True),
            "egress_spec": Intrinsic("standard_metadata.egress_spec", required=True),
            "egress_port": Intrinsic("standard_metadata.egress_port", required=True),
            "parser_error": Intrinsic("standard_metadata.parser_error"),
            "checksum_error": Intrinsic("standard_metadata.checksum_error"),
            "ingress_timestamp": Intrinsic("intrinsic_metadata.ingress_global_timestamp"),
            "egress_timestamp": Intrinsic("intrinsic_metadata.egress_global_timestamp"),
            "mcast_grp": Intrinsic("intrinsic_metadata.mcast_grp"),
            "egress_rid": Intrinsic("intrinsic_metadata.egress_rid"),
            "priority": Intrinsic("intrinsic_metadata.priority"),
            "enq_timestamp": Intrinsic("queueing_metadata.enq_timestamp"),
            "enq_qdepth": Intrinsic("queueing_metadata.enq_qdepth", saturates=True),
            "deq_timedelta": Intrinsic("queueing_metadata.deq_timedelta"),
            "deq_qdepth": Intrinsic("queueing_metadata.deq_qdepth", saturates=True),
            "qid": Intrinsic("queueing_metadata.qid"),
        },
        externs=(EXTERNS,),
        drop_port=DROP_PORT,
        destinations=("egress_spec", "mcast_grp"),
        port="standard_metadata.egress_port",
    ),
)
