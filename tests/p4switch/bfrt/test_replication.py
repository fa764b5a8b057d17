"""Mirror sessions and multicast groups over BfRuntime: effects on packets, reads, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.compiler import Compiled
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import p4runtime_pb2
from p4switch.p4runtime.trees import Node, Tree, Trees
from tests.p4switch.architectures.test_tna import MIRROR, MIRRORED
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Bench, errors

INGRESS = f"""apply {{
    if (hdr.h.kind == 1) {{ tm.ucast_egress_port = 2; {MIRRORED} }}
    else if (hdr.h.kind == 3) {{ tm.copy_to_cpu = 1; }}
    else {{
        tm.mcast_grp_a = 10;
        tm.rid = 5;
        tm.level1_exclusion_id = 6;
        tm.level2_exclusion_id = 8;
        tm.level1_mcast_hash = (bit<13>) hdr.h.value;
        tm.level2_mcast_hash = (bit<13>) hdr.h.value;
    }}
}}"""
EGRESS = "apply { hdr.note.setValid(); hdr.note.note = intrinsic.egress_rid[7:0]; hdr.note.more = 0; }"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder: Path = tmp_path_factory.mktemp("replication")
    return compiled(folder, INGRESS=INGRESS, INGRESS_DEPARSER=MIRROR, EGRESS=EGRESS)


@pytest.fixture
def bench(program: Compiled) -> Iterator[Bench]:
    made = Bench(program)
    yield made
    made.close()


def copies(bench: Bench, kind: int, value: int = 0) -> list[tuple[int, int]]:
    """Return the port and the replication id of each copy of a packet."""
    return sorted((port, frame[0]) for port, frame in bench.switch.process(1, bytes([kind, value])))


def session(bench: Bench, sid: int = 5, **data: Any) -> Any:
    return bench.client.entry("$mirror.cfg", {"$sid": sid}, action="$normal", **data)


def node(bench: Bench, ident: int, **data: Any) -> Any:
    return bench.client.entry("$pre.node", {"$MULTICAST_NODE_ID": ident}, **data)


def group(bench: Bench, *nodes: tuple[int, int | None], **data: Any) -> Any:
    return bench.client.entry(
        "$pre.mgid", {"$MGID": 10},
        _MULTICAST_NODE_ID=[n for n, _ in nodes],
        _MULTICAST_NODE_L1_XID_VALID=[xid is not None for _, xid in nodes],
        _MULTICAST_NODE_L1_XID=[xid or 0 for _, xid in nodes],
        **data,
    )  # fmt: skip


def refused(bench: Bench, how: str, *entries: Any) -> str:
    """Write entries that are refused, and return the code and the message of the error."""
    with pytest.raises(grpc.RpcError) as caught:
        bench.client.write(how, *entries)
    ((_, message),) = [each for each in errors(caught.value) if each[0]]
    return message


def test_a_session_has_the_whole_destination(bench: Bench) -> None:
    assert copies(bench, 1) == [(2, 0)]
    enabled: dict[str, Any] = {"_session_enable": True, "_direction": "INGRESS"}
    made = session(bench, **enabled, _ucast_egress_port=4, _ucast_egress_port_valid=True, _max_pkt_len=3)
    bench.client.write("INSERT", made)
    assert copies(bench, 1) == [(2, 0), (4, 0)]
    (found,) = bench.client.read(bench.client.entry("$mirror.cfg", {"$sid": 5}))
    assert (found["$direction"], found["$ucast_egress_port"], found["$max_pkt_len"]) == ("INGRESS", 4, 3)
    assert found["action"] == "$normal"
    bench.client.write("MODIFY", session(bench, _session_enable=False))
    assert copies(bench, 1) == [(2, 0)]
    bench.client.write("DELETE", bench.client.entry("$mirror.cfg", {"$sid": 5}))
    assert bench.client.read(bench.client.entry("$mirror.cfg")) == []


def test_a_session_may_lead_to_a_group(bench: Bench) -> None:
    bench.client.write("INSERT", node(bench, 1, _MULTICAST_RID=9, _MULTICAST_LAG_ID=[], _DEV_PORT=[6, 7]))
    bench.client.write("INSERT", group(bench, (1, None)))
    made = session(bench, _session_enable=True, _direction="BOTH", _mcast_grp_a=10, _mcast_grp_a_valid=True)
    bench.client.write("INSERT", made)
    assert copies(bench, 1) == [(2, 0), (6, 9), (7, 9)]


def test_mistakes_with_sessions_are_told(bench: Bench) -> None:
    assert "$direction is missing" in refused(bench, "INSERT", session(bench, _session_enable=True))
    assert "the entry does not exist" in refused(bench, "MODIFY", session(bench, _session_enable=True))
    assert "expected one of INGRESS" in refused(bench, "INSERT", session(bench, _direction="UP"))
    assert "expected at most 511" in refused(
        bench, "INSERT", session(bench, _direction="BOTH", _ucast_egress_port=512)
    )
    assert "less than 1024" in refused(bench, "INSERT", session(bench, 1024, _direction="BOTH"))
    no_action = bench.client.entry("$mirror.cfg", {"$sid": 5}, _direction="BOTH")
    assert "'$normal'" in refused(bench, "INSERT", no_action)


def test_a_group_is_a_tree_of_nodes_ecmps_and_lags(bench: Bench) -> None:
    client = bench.client
    client.write("INSERT", client.entry("$pre.lag", {"$MULTICAST_LAG_ID": 1}, _DEV_PORT=[20, 21]))
    client.write(
        "INSERT",
        node(bench, 1, _MULTICAST_RID=1, _MULTICAST_LAG_ID=[1], _DEV_PORT=[3]),
        node(bench, 2, _MULTICAST_RID=2, _MULTICAST_LAG_ID=[], _DEV_PORT=[4]),
        node(bench, 3, _MULTICAST_RID=3, _MULTICAST_LAG_ID=[], _DEV_PORT=[11]),
        node(bench, 4, _MULTICAST_RID=4, _MULTICAST_LAG_ID=[], _DEV_PORT=[12]),
    )
    client.write("INSERT", client.entry("$pre.ecmp", {"$MULTICAST_ECMP_ID": 1}, _MULTICAST_NODE_ID=[3, 4]))
    client.write("INSERT", group(bench, (1, None), (2, 6)))
    assert copies(bench, 2, 0) == [(3, 1), (20, 1)]
    assert copies(bench, 2, 1) == [(3, 1), (21, 1)]
    ecmps: dict[str, Any] = {
        "_MULTICAST_ECMP_ID": [1], "_MULTICAST_ECMP_L1_XID_VALID": [False], "_MULTICAST_ECMP_L1_XID": [0]
    }
    client.write("MODIFY_INC", client.entry("$pre.mgid", {"$MGID": 10}, **ecmps))
    assert copies(bench, 2, 0) == [(3, 1), (11, 3), (20, 1)]
    assert copies(bench, 2, 1) == [(3, 1), (12, 4), (21, 1)]
    (found,) = client.read(client.entry("$pre.mgid", {"$MGID": 10}))
    assert found["$MULTICAST_NODE_ID"] == [1, 2]
    assert found["$MULTICAST_NODE_L1_XID_VALID"] == [False, True]
    assert found["$MULTICAST_NODE_L1_XID"] == [0, 6]
    assert found["$MULTICAST_ECMP_ID"] == [1]
    less = group(bench, (1, None))
    less.table_flags.mod_del = True
    client.write("MODIFY_INC", less)
    assert copies(bench, 2, 0) == [(11, 3)]
    client.write("MODIFY", node(bench, 3, _MULTICAST_RID=7, _MULTICAST_LAG_ID=[], _DEV_PORT=[13]))
    assert copies(bench, 2, 0) == [(13, 7)]
    assert [each["$MULTICAST_RID"] for each in client.read(client.entry("$pre.node"))] == [1, 2, 7, 4]
    client.write("DELETE", client.entry("$pre.mgid", {"$MGID": 10}))
    assert copies(bench, 2) == []


def test_another_device_has_members_of_a_lag(bench: Bench) -> None:
    lag = bench.client.entry(
        "$pre.lag", {"$MULTICAST_LAG_ID": 1},
        _DEV_PORT=[20], _MULTICAST_LAG_REMOTE_MSB_COUNT=1, _MULTICAST_LAG_REMOTE_LSB_COUNT=1,
    )  # fmt: skip
    bench.client.write("INSERT", lag)
    bench.client.write("INSERT", node(bench, 1, _MULTICAST_RID=1, _MULTICAST_LAG_ID=[1], _DEV_PORT=[]))
    bench.client.write("INSERT", group(bench, (1, None)))
    assert [copies(bench, 2, value) for value in range(4)] == [[], [(20, 1)], [], []]


def test_ports_are_pruned_and_one_is_the_cpus(bench: Bench) -> None:
    client = bench.client
    client.write("INSERT", node(bench, 1, _MULTICAST_RID=5, _MULTICAST_LAG_ID=[], _DEV_PORT=[3, 4]))
    client.write("INSERT", group(bench, (1, None)))
    assert copies(bench, 2) == [(3, 5), (4, 5)]
    prune = client.entry("$pre.prune", {"$MULTICAST_L2_XID": 8}, _DEV_PORT=[4])
    client.write("INSERT", prune)
    assert copies(bench, 2) == [(3, 5)]
    pruned = client.read(client.entry("$pre.prune"))
    assert len(pruned) == 288
    assert [each for each in pruned if each["$DEV_PORT"]] == [{"$MULTICAST_L2_XID": (8,), "$DEV_PORT": [4]}]
    assert copies(bench, 3) == []
    cpu = client.entry("$pre.port", {"$DEV_PORT": 64}, _COPY_TO_CPU_PORT_ENABLE=True)
    client.write("MODIFY", cpu)
    assert copies(bench, 3) == [(64, 0)]
    (found,) = client.read(client.entry("$pre.port"))
    assert found == {
        "$DEV_PORT": (64,), "$COPY_TO_CPU_PORT_ENABLE": True, "$MULTICAST_BACKUP_PORT": 64,
        "$MULTICAST_FORWARD_STATE": True, "$MULTICAST_CLEAR_FAST_FAILOVER": False,
    }  # fmt: skip
    client.write("MODIFY", client.entry("$pre.port", {"$DEV_PORT": 64}, _COPY_TO_CPU_PORT_ENABLE=False))
    assert copies(bench, 3) == []


def test_a_backup_port_takes_copies_for_a_port_that_is_stopped_or_has_failed(bench: Bench) -> None:
    client = bench.client

    def write(**fields: Any) -> None:
        client.write("MODIFY", client.entry("$pre.port", {"$DEV_PORT": 3}, **fields))

    client.write("INSERT", node(bench, 1, _MULTICAST_RID=5, _MULTICAST_LAG_ID=[], _DEV_PORT=[3, 4]))
    client.write("INSERT", group(bench, (1, None)))
    write(_MULTICAST_BACKUP_PORT=6)
    assert copies(bench, 2) == [(3, 5), (4, 5)]
    write(_MULTICAST_FORWARD_STATE=False)
    assert copies(bench, 2) == [(4, 5)]
    configure(bench, pre_port_protection={"enable": True})
    assert copies(bench, 2) == [(4, 5), (6, 5)]
    write(_MULTICAST_FORWARD_STATE=True)
    bench.device.set_port_up(3, False)
    assert copies(bench, 2) == [(3, 5), (4, 5)]
    configure(bench, pre_fast_failover={"enable": True})
    assert copies(bench, 2) == [(4, 5), (6, 5)]
    bench.device.set_port_up(3, True)
    assert copies(bench, 2) == [(4, 5), (6, 5)]
    write(_MULTICAST_CLEAR_FAST_FAILOVER=True)
    assert copies(bench, 2) == [(3, 5), (4, 5)]
    write(_MULTICAST_BACKUP_PORT=3)
    assert client.read(client.entry("$pre.port")) == []


def test_the_port_of_the_cpu_leaves_what_else_the_device_has(bench: Bench) -> None:
    """The port for deflected packets does not change."""
    client, state = bench.client, bench.device.look(lambda state: state.path)
    deflection = {"deflect_port": 7, "deflect_qid": 2, "deflect_enabled": 1, "global_rid": 3}
    state.write(p4runtime_pb2.Update.MODIFY, state.entry("$device", 0, deflection))
    for enabled in (True, False):
        client.write("MODIFY", client.entry("$pre.port", {"$DEV_PORT": 64}, _COPY_TO_CPU_PORT_ENABLE=enabled))
        cpu = {"cpu_port": 64, "cpu_enabled": 1} if enabled else {"cpu_port": 0, "cpu_enabled": 0}
        assert state.members("$device", 0) == {**cpu, **deflection, "protects": 0, "fails_over": 0}


def test_mistakes_with_groups_are_told(bench: Bench) -> None:
    client = bench.client
    assert "node 1 does not exist" in refused(bench, "INSERT", group(bench, (1, None)))
    one = node(bench, 1, _MULTICAST_RID=1, _MULTICAST_LAG_ID=[], _DEV_PORT=[3])
    client.write("INSERT", one)
    client.write("INSERT", group(bench, (1, None)))
    ecmp = client.entry("$pre.ecmp", {"$MULTICAST_ECMP_ID": 1}, _MULTICAST_NODE_ID=[1])
    assert "node 1 is in group 10" in refused(bench, "INSERT", ecmp)
    assert "as group 0 sends nothing" in refused(bench, "INSERT", client.entry("$pre.mgid", {"$MGID": 0}))
    huge = client.entry("$pre.lag", {"$MULTICAST_LAG_ID": 1}, _MULTICAST_LAG_REMOTE_MSB_COUNT=256)
    assert "expected at most 255" in refused(bench, "INSERT", huge)
    assert "65536 does not fit in 16 bits" in refused(bench, "MODIFY", group(bench, (1, 1 << 16)))
    assert "LAG 3 does not exist" in refused(bench, "MODIFY", node(bench, 1, _MULTICAST_LAG_ID=[3]))
    uneven = client.entry("$pre.mgid", {"$MGID": 10}, _MULTICAST_NODE_ID=[1])
    assert "1, 0 and 0 in the lists" in refused(bench, "MODIFY", uneven)
    assert "expected a list of numbers" in refused(bench, "MODIFY", node(bench, 1, _DEV_PORT=3))
    gone = group(bench, (2, None))
    gone.table_flags.mod_del = True
    assert "2 is not in the entry" in refused(bench, "MODIFY_INC", gone)
    assert copies(bench, 2) == [(3, 1)]


def test_a_lag_is_added_and_changed_alike(bench: Bench) -> None:
    client = bench.client
    lag = {"$MULTICAST_LAG_ID": 3}
    client.write("MODIFY", client.entry("$pre.lag", lag, _DEV_PORT=[1]))
    client.write("INSERT", client.entry("$pre.lag", lag, _DEV_PORT=[2]))
    (found,) = client.read(client.entry("$pre.lag", lag))
    assert found["$DEV_PORT"] == [2]
    gone = client.entry("$pre.lag", lag)
    assert "does not exist" in refused(bench, "DELETE", gone, gone)


def configure(bench: Bench, **config: Any) -> Any:
    request = bfruntime_pb2.WriteRequest()
    request.target.pipe_id = 0xFFFF
    attribute = request.updates.add(type="INSERT").entity.table_attribute
    attribute.table_id = bench.client.tables["$pre.mgid"]["id"]
    attribute.pre_device_config.CopyFrom(bfruntime_pb2.PreDeviceConfig(**config))
    return bench.client.call("Write", request, bfruntime_pb2.WriteResponse)


def test_packets_with_the_global_replication_id_are_pruned_at_every_node(bench: Bench) -> None:
    client = bench.client
    client.write("INSERT", node(bench, 1, _MULTICAST_RID=6, _MULTICAST_LAG_ID=[], _DEV_PORT=[3, 4]))
    client.write("INSERT", group(bench, (1, None)))
    client.write("INSERT", client.entry("$pre.prune", {"$MULTICAST_L2_XID": 8}, _DEV_PORT=[4]))
    assert copies(bench, 2) == [(3, 6), (4, 6)]
    configure(bench, pre_global_rid={"global_rid": 5})
    assert copies(bench, 2) == [(3, 6)]
    configure(bench, pre_max_nodes_before_yield={"count": 2})
    found = client.attribute("$pre.mgid", "pre_device_config")
    assert (found.pre_global_rid.global_rid, found.pre_max_nodes_before_yield.count) == (5, 2)
    with pytest.raises(grpc.RpcError):
        configure(bench, pre_global_rid={"global_rid": 1 << 16})
    configure(bench, pre_global_rid={"global_rid": 0})
    assert copies(bench, 2) == [(3, 6), (4, 6)]


def test_a_node_that_is_deleted_leaves_its_group_or_ecmp(bench: Bench) -> None:
    client = bench.client
    for number in (1, 2):
        client.write("INSERT", node(bench, number, _MULTICAST_RID=number, _MULTICAST_LAG_ID=[], _DEV_PORT=[number]))
    client.write("INSERT", group(bench, (1, None), (2, None)))
    first = client.entry("$pre.node", {"$MULTICAST_NODE_ID": 1})
    refused(bench, "DELETE", first, first)  # the second entry no longer exists
    assert copies(bench, 2) == [(2, 2)]
    client.write("DELETE", client.entry("$pre.mgid", {"$MGID": 10}))
    client.write("INSERT", client.entry("$pre.ecmp", {"$MULTICAST_ECMP_ID": 1}, _MULTICAST_NODE_ID=[2]))
    last = client.entry("$pre.node", {"$MULTICAST_NODE_ID": 2})
    with pytest.raises(grpc.RpcError):
        client.write("DELETE", last, last, atomicity="ROLLBACK_ON_ERROR")
    (found,) = client.read(client.entry("$pre.ecmp"))
    assert found["$MULTICAST_NODE_ID"] == [2]
    client.write("DELETE", last)
    (found,) = client.read(client.entry("$pre.ecmp"))
    assert found["$MULTICAST_NODE_ID"] == []


def test_a_batch_is_undone(bench: Bench) -> None:
    first, wrong = node(bench, 1, _DEV_PORT=[3]), node(bench, 1, _DEV_PORT=[4])
    with pytest.raises(grpc.RpcError):
        bench.client.write("INSERT", first, wrong, atomicity="ROLLBACK_ON_ERROR")
    assert bench.client.read(bench.client.entry("$pre.node")) == []


def test_p4runtime_has_groups_of_its_own(bench: Bench) -> None:
    bench.client.write("INSERT", node(bench, 1, _MULTICAST_RID=1, _DEV_PORT=[3]))
    bench.client.write("INSERT", group(bench, (1, None)))
    entity = p4runtime_pb2.Entity()
    theirs = entity.packet_replication_engine_entry.multicast_group_entry
    theirs.multicast_group_id = 10
    theirs.replicas.add(port=b"\x04", instance=2)
    insert = p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT, entity=entity)
    with pytest.raises(P4RuntimeError) as caught:
        bench.p4runtime.write([insert])
    assert "a tree of nodes" in caught.value.errors[0].message
    bench.client.write("DELETE", bench.client.entry("$pre.mgid", {"$MGID": 10}))
    bench.p4runtime.write([insert])
    assert copies(bench, 2) == [(4, 2)]
    assert "group 10 is P4Runtime's" in refused(bench, "INSERT", group(bench, (1, None)))


def test_trees_are_taken_over_to_another_switch() -> None:
    there: dict[int, Any] = {}
    old, new = Trees(lambda ident, replicas: None), Trees(there.__setitem__)
    old.set_node(1, Node(5, (3,)))
    old.set_tree(10, Tree(((1, None),)))
    new.carry_over(old)
    assert there == {10: [(3, 5, 0, 0, 0, 0, 0)]}
