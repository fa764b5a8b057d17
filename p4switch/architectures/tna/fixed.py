"""Tables of BfRuntime that every program has; they configure the built-in switch as a device."""

from __future__ import annotations

from p4switch.architectures.front_panel import MAX_PIPES, PortGroups
from p4switch.architectures.tna.state import BUFFER_CELLS, PORT_MASKS
from p4switch.bfrt.fields import Json, Table, data_field, in_bytes, parameter, value_type

_DEVICE_CONFIGURATION = 0xFF060001
_MIRROR = 0xFF040001
_PRE = 0xFF020001
_PORT, _PORT_STATISTICS = 0xFF010001, 0xFF010002
_PKTGEN = 0xFF030001
_TM_PORT, _TM_PORT_SCHEDULING, _TM_PORT_SHAPING, _TM_PORT_COUNTS = 0xFF050010, 0xFF050016, 0xFF050017, 0xFF050042
_TM_MAP, _TM_SCHEDULING, _TM_SHAPING, _TM_QUEUE_COUNTS = 0xFF050022, 0xFF050025, 0xFF050026, 0xFF050043
_PORTS = 288
_MTU_BYTES = 10240


def fixed_tables(chip: str, sessions: int, groups: PortGroups) -> list[Json]:
    """Return the fixed tables of `bf-rt.json` for a chip (`tf1`, `tf2`) with this number of mirror sessions.

    The built-in switch runs the ports of all pipes in one pipeline.
    """
    table = Table(f"{chip}.dev.device_configuration", _DEVICE_CONFIGURATION, "DevConfigure", 1, [])
    for number, name, t in (
        (1, "sku", value_type("string", "UNKNOWN")),
        (2, "num_pipes", value_type("uint32", 1)),
        (4, "num_max_ports", value_type("uint32", _PORTS)),
    ):
        table.singleton(data_field(number, name, t), read_only=True)
    table.singleton(data_field(16, "selector_member_order", value_type("bool", False)))
    tables = (
        table, _ports(), _statistics(), _mirror(sessions), *_replication(), *_generator(chip),
        *_traffic_manager(chip, groups),
    )  # fmt: skip
    return [each.as_json() for each in tables]


def _ports() -> Table:
    """Return the table of ports, with the fields that make sense for a software switch."""
    table = Table("$PORT", _PORT, "PortConfigure", _PORTS, [], attributes=["port_status_notif_cb"])
    table.key(1, "$DEV_PORT", value_type("uint32"))
    speeds = [f"BF_SPEED_{name}" for name in (
        "NONE", "1G", "10G", "25G", "40G", "40G_NB", "40G_NON_BREAKABLE", "50G", "100G", "200G", "400G")]  # fmt: skip
    corrections = [f"BF_FEC_TYP_{name}" for name in ("NONE", "FIRECODE", "REED_SOLOMON", "FC", "RS")]
    negotiations = [f"PM_AN_{name}" for name in ("DEFAULT", "FORCE_ENABLE", "FORCE_DISABLE")]
    loops = [f"BF_LPBK_{name}" for name in (
        "NONE", "MAC_NEAR", "MAC_FAR", "PCS_NEAR", "SERDES_NEAR", "SERDES_FAR")]  # fmt: skip
    directions = [f"PM_PORT_DIR_{name}" for name in ("DEFAULT", "TX_ONLY", "RX_ONLY")]
    for ident, name, t, read_only in (
        (1, "SPEED", value_type("string", choices=speeds), False),
        (2, "FEC", value_type("string", choices=corrections), False),
        (3, "N_LANES", value_type("uint32", 1), False),
        (4, "PORT_ENABLE", value_type("bool", False), False),
        (5, "AUTO_NEGOTIATION", value_type("string", choices=negotiations), False),
        (6, "LOOPBACK_MODE", value_type("string", choices=loops), False),
        (7, "TX_MTU", value_type("uint32", _MTU_BYTES), False),
        (8, "RX_MTU", value_type("uint32", _MTU_BYTES), False),
        (9, "TX_PFC_EN_MAP", value_type("uint32", 0), False),
        (10, "RX_PFC_EN_MAP", value_type("uint32", 0), False),
        (11, "TX_PAUSE_FRAME_EN", value_type("bool", False), False),
        (12, "RX_PAUSE_FRAME_EN", value_type("bool", False), False),
        (13, "CUT_THROUGH_EN", value_type("bool", False), False),
        (14, "PORT_DIR", value_type("string", choices=directions), False),
        (21, "IS_VALID", value_type("bool"), True),
        (25, "PORT_UP", value_type("bool"), True),
    ):
        table.singleton(data_field(ident, f"${name}", t), read_only=read_only)
    return table


def _statistics() -> Table:
    """Return the table of port counters: those that the switch keeps, and those of frames with errors."""
    table = Table("$PORT_STAT", _PORT_STATISTICS, "PortStat", _PORTS, [])
    table.key(1, "$DEV_PORT", value_type("uint32"))
    for ident, name in (
        (1, "FramesReceivedOK"), (2, "FramesReceivedAll"), (3, "FramesReceivedwithFCSError"), (4, "FrameswithanyError"),
        (5, "OctetsReceivedinGoodFrames"), (6, "OctetsReceived"), (16, "PriorityPauseFrames"),
        (33, "FramesTransmittedOK"), (34, "FramesTransmittedAll"), (35, "FramesTransmittedwithError"),
        (36, "OctetsTransmittedwithouterror"), (37, "OctetsTransmittedTotal"), (42, "FramesTransmittedPriPause"),
    ):  # fmt: skip
        table.singleton(data_field(ident, f"${name}", value_type("uint64")), read_only=True)
    return table


def _mirror(sessions: int) -> Table:
    """Return the table of mirror sessions, without sessions that coalesce packets."""
    table = Table("$mirror.cfg", _MIRROR, "MirrorCfg", sessions, [])
    table.key(1, "$sid", value_type("uint16"))
    table.actions = [{"id": 2, "name": "$normal", "action_scope": "TableAndDefault", "annotations": [], "data": []}]
    number, short, flag = value_type("uint32"), value_type("uint16"), value_type("bool")
    fields = (
        ("session_enable", flag), ("direction", value_type("string", choices=["INGRESS", "EGRESS", "BOTH"])),
        ("ucast_egress_port", number), ("ucast_egress_port_valid", flag), ("egress_port_queue", number),
        ("ingress_cos", number), ("packet_color", value_type("string", choices=["GREEN", "YELLOW", "RED"])),
        ("level1_mcast_hash", number), ("level2_mcast_hash", number), ("mcast_grp_a", short),
        ("mcast_grp_a_valid", flag), ("mcast_grp_b", short), ("mcast_grp_b_valid", flag), ("mcast_l1_xid", short),
        ("mcast_l2_xid", short), ("mcast_rid", short), ("icos_for_copy_to_cpu", number), ("copy_to_cpu", flag),
        ("max_pkt_len", short),
    )  # fmt: skip
    for ident, (name, t) in enumerate(fields, start=5):
        table.singleton(data_field(ident, f"${name}", t))
    return table


def _replication() -> list[Table]:
    """Return the tables of multicast groups and of their nodes."""
    number, short, flag, byte = (value_type(kind) for kind in ("uint32", "uint16", "bool", "uint8"))
    tables = []
    for at, (name, size, key, key_type, fields) in enumerate(
        (
            ("mgid", 1 << 16, "MGID", short, (
                ("*MULTICAST_NODE_ID", number), ("*MULTICAST_NODE_L1_XID_VALID", flag),
                ("*MULTICAST_NODE_L1_XID", short), ("*MULTICAST_ECMP_ID", number),
                ("*MULTICAST_ECMP_L1_XID_VALID", flag), ("*MULTICAST_ECMP_L1_XID", short),
            )),
            ("node", 1 << 24, "MULTICAST_NODE_ID", number, (
                ("MULTICAST_RID", short), ("*MULTICAST_LAG_ID", byte), ("*DEV_PORT", number),
            )),
            ("ecmp", 1 << 24, "MULTICAST_ECMP_ID", number, (("*MULTICAST_NODE_ID", number),)),
            ("lag", 255, "MULTICAST_LAG_ID", byte, (
                ("*DEV_PORT", number), ("MULTICAST_LAG_REMOTE_MSB_COUNT", number),
                ("MULTICAST_LAG_REMOTE_LSB_COUNT", number),
            )),
            ("prune", _PORTS, "MULTICAST_L2_XID", short, (("*DEV_PORT", number),)),
            ("port", _PORTS, "DEV_PORT", number, (
                ("MULTICAST_BACKUP_PORT", number), ("MULTICAST_FORWARD_STATE", flag),
                ("MULTICAST_CLEAR_FAST_FAILOVER", flag), ("COPY_TO_CPU_PORT_ENABLE", flag),
            )),
        )
    ):  # fmt: skip
        table = Table(f"$pre.{name}", _PRE + at, f"Pre{name.capitalize()}", size, [])
        if name == "mgid":
            table.attributes.append("pre_device_config")
        table.key(1, f"${key}", key_type)
        for ident, (field, t) in enumerate(fields, start=1):
            table.singleton(data_field(ident, f"${field.lstrip('*')}", t, repeated=field.startswith("*")))
        tables.append(table)
    return tables


def _generator(chip: str) -> list[Table]:
    """Return the tables of the packet generator."""
    number, flag, long = (value_type(kind) for kind in ("uint32", "bool", "uint64"))
    is_first = chip == "tf1"
    short = value_type("uint16") if is_first else in_bytes(16)
    pattern = number if is_first else in_bytes(128)
    ports = Table(f"{chip}.pktgen.port_cfg", _PKTGEN, "PktgenPortCfg", 256, [])
    ports.key(1, "dev_port", number)
    names = ("recirculation_enable", "pktgen_enable", "pattern_matching_enable", "clear_port_down_enable")
    for ident, name in enumerate(names, start=1):
        ports.singleton(data_field(ident, name, flag))
    applications = Table(f"{chip}.pktgen.app_cfg", _PKTGEN + 1, "PktgenAppCfg", 8 if is_first else 16, [])
    applications.key(1, "app_id", number)
    timer = [parameter(1, "timer_nanosec", number)]
    match = [parameter(4, "pattern_value", pattern), parameter(5, "pattern_mask", pattern)]
    masks = [] if is_first else [parameter(3, "port_mask_sel", number)]
    triggers = [
        (1, "trigger_timer_one_shot", timer), (2, "trigger_timer_periodic", timer), (3, "trigger_port_down", masks),
        (4, "trigger_recirc_pattern", match), *([] if is_first else [(5, "trigger_dprsr", match)]),
    ]  # fmt: skip
    applications.actions = [
        {"id": ident, "name": name, "action_scope": "TableAndDefault", "annotations": [], "data": data}
        for ident, name, data in triggers
    ]
    fields = [
        (12, "app_enable", flag), (13, "pkt_len", short), (14, "pkt_buffer_offset", short),
        (15, "pipe_local_source_port", number), (16, "increment_source_port", flag), (17, "batch_count_cfg", short),
        (18, "packets_per_batch_cfg", short), (19, "ibg", number), (20, "ibg_jitter", number), (21, "ipg", number),
        (22, "ipg_jitter", number), (23, "batch_counter", long), (24, "pkt_counter", long),
        (25, "trigger_counter", long), *([] if is_first else [(28, "assigned_chnl_id", in_bytes(8))]),
    ]  # fmt: skip
    for ident, name, t in fields:
        applications.singleton(data_field(ident, name, t))
    buffer = Table(f"{chip}.pktgen.pkt_buffer", _PKTGEN + 2, "PktgenPktBufferCfg", BUFFER_CELLS, [])
    buffer.key(1, "pkt_buffer_offset", number)
    buffer.key(2, "pkt_buffer_size", number)
    buffer.singleton(data_field(1, "buffer", in_bytes(8), repeated=True))
    if is_first:
        return [ports, applications, buffer]
    mask = Table(f"{chip}.pktgen.port_mask", _PKTGEN + 3, "PktgenPortMaskCfg", PORT_MASKS, [])
    mask.key(1, "port_mask_sel", number)
    mask.singleton(data_field(1, "mask", in_bytes(72)))
    return [ports, applications, buffer, mask]


def _traffic_manager(chip: str, groups: PortGroups) -> list[Table]:
    """Return the tables of the traffic manager: the queues of each port, their scheduling, and counters."""
    number, byte, flag = (value_type(kind) for kind in ("uint32", "uint8", "bool"))
    ports = Table(f"{chip}.tm.port.cfg", _TM_PORT, "TmPortCfg", _PORTS, [])
    ports.key(1, "dev_port", number)
    for ident, name, repeated in (
        (1, "pg_id", False), (2, "pg_port_nr", False), (3, "port_queues_count", False), (5, "egress_qid_queues", True),
    ):  # fmt: skip
        ports.singleton(data_field(ident, name, byte, repeated=repeated), read_only=True)
    size = MAX_PIPES * groups.count * groups.group_queues
    places = Table(f"{chip}.tm.queue.map", _TM_MAP, "TmQueueMap", size, [])
    places.key(1, "pg_id", byte)
    places.key(2, "pg_queue", byte)
    places.singleton(data_field(1, "dev_port", number), read_only=True)
    places.singleton(data_field(2, "queue_nr", byte), read_only=True)
    queues = Table(f"{chip}.tm.queue.sched_cfg", _TM_SCHEDULING, "TmQueueSchedCfg", size, [])
    queues.keys = places.keys
    priority = value_type("string", choices=["LOW", *map(str, range(8)), "HIGH"])
    modes = [] if chip == "tf1" else [("advanced_flow_control", value_type("string", choices=["CREDIT", "XOFF"]))]
    for ident, (name, t) in enumerate(
        (
            ("min_priority", priority), ("min_rate_enable", flag), ("dwrr_weight", value_type("uint16")),
            ("max_priority", priority), ("max_rate_enable", flag), *modes, ("scheduling_enable", flag),
        ),
        start=1,
    ):  # fmt: skip
        queues.singleton(data_field(ident, name, t))
    queue_shaping = Table(f"{chip}.tm.queue.sched_shaping", _TM_SHAPING, "TmQueueSchedShaping", size, [])
    queue_shaping.keys = places.keys
    port_scheduling = Table(f"{chip}.tm.port.sched_cfg", _TM_PORT_SCHEDULING, "TmPortSchedCfg", _PORTS, [])
    port_scheduling.keys = ports.keys
    port_scheduling.singleton(data_field(1, "max_rate_enable", flag))
    port_shaping = Table(f"{chip}.tm.port.sched_shaping", _TM_PORT_SHAPING, "TmPortSchedShaping", _PORTS, [])
    port_shaping.keys = ports.keys
    names = value_type("string", choices=["BPS", "PPS"]), value_type("string", choices=["UPPER", "LOWER", "MIN_ERROR"])
    bucket = [(f"max_{name}", number) for name in ("rate", "burst_size")]
    guaranteed = [(f"min_{name}", number) for name in ("rate", "burst_size")]
    for table, rates in (queue_shaping, [*guaranteed, *bucket]), (port_shaping, bucket):
        fields = (("unit", names[0]), ("provisioning", names[1]), *rates)
        for ident, (name, t) in enumerate(fields, start=1):
            table.singleton(data_field(ident, name, t))
    of_port = Table(f"{chip}.tm.counter.eg_port", _TM_PORT_COUNTS, "TmCounterEgPort", _PORTS, [])
    of_port.key(1, "dev_port", number)
    of_queue = Table(f"{chip}.tm.counter.queue", _TM_QUEUE_COUNTS, "TmCounterQueue", size, [])
    of_queue.keys = places.keys
    for each in of_port, of_queue:
        for ident, name in enumerate(("drop_count_packets", "usage_cells", "watermark_cells"), start=1):
            each.singleton(data_field(ident, name, value_type("uint64")), read_only=True)
    return [ports, port_scheduling, port_shaping, places, queues, queue_shaping, of_port, of_queue]
