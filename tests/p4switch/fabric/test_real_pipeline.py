"""The fabric with compiled pipelines conserves packets: clones, multicast, recirculation, digests, traces."""

from pathlib import Path
from typing import Any

import pytest

from harness.measure.tracing import hops
from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.compiler import compile_program
from p4switch.engine import Switch, build, build_traced, objects
from p4switch.fabric import Fabric
from p4switch.trace import Decoder, plain
from tests.p4switch.architectures import tofino
from tests.p4switch.architectures.test_tna import MIRROR, MIRRORED
from tests.p4switch.fabric.stub import GBPS, Host, balance, columns, frame, ip

PROGRAM = Path(__file__).parent / "everything.p4"
UNICAST, MULTICAST, CLONE, RECIRCULATE, RESUBMIT, DROP, DIGEST, CLONE_EGRESS, DROP_EGRESS = range(1, 10)


def star(sent: dict[int, int], trace: bool = False, **config: Any) -> tuple[Fabric, list[Host], Switch]:
    """Return a star: host 0 sends this number of each kind, most packets go to host 1, and hosts 2 and 3 get copies."""
    network = Fabric()
    hosts = [Host([(0, frame(0, what, 500, mark=i)) for what, count in sent.items() for i in range(count)])]
    hosts += [Host() for _ in range(3)]
    for host in hosts:
        network.add_host(host)
    compiled = compile_program(PROGRAM).program
    switch = Switch(str(build_traced(compiled).library if trace else build(compiled)))
    switch.multicast_set(1, [(1, 0), (2, 0), (3, 0), (3, 1)])
    switch.clone_session_set(1, [(2, 0), (3, 0)])
    node = network.add_switch(switch, **config)
    for i in range(4):
        network.connect(i, 0, node, i, rate_bps=100 * GBPS, delay_ns=500)
    return network, hosts, switch


@pytest.mark.parametrize(
    ("what", "received", "copied", "lost"),
    [
        (UNICAST, (10, 0, 0), 0, None),
        (MULTICAST, (10, 10, 20), 30, None),
        (CLONE, (10, 10, 10), 20, None),
        (RECIRCULATE, (10, 0, 0), 0, None),
        (RESUBMIT, (10, 0, 0), 0, None),
        (DROP, (0, 0, 0), 0, "drop_program_ingress"),
        (DIGEST, (10, 0, 0), 0, None),
        (CLONE_EGRESS, (10, 10, 10), 20, None),
        (DROP_EGRESS, (0, 0, 0), 0, "drop_program_egress"),
    ],
)
def test_each_kind(what: int, received: tuple[int, ...], copied: int, lost: str | None) -> None:
    network, hosts, switch = star({what: 10})
    assert network.run() == "idle"
    terms = balance(network)
    assert tuple(len(host.got) for host in hosts[1:]) == received
    assert terms["copied"] == copied
    assert terms["cloned" if what in (CLONE, CLONE_EGRESS) else "multicast"] == copied
    if lost:
        assert terms[lost] == 10
    digests = switch.digests()
    assert len(digests) == (10 if what == DIGEST else 0), "they go where they went before"
    if digests:
        assert ip(0).to_bytes(4, "big") in digests[0][1]


def test_all_at_once_through_small_buffers() -> None:
    network, hosts, _ = star(dict.fromkeys(range(1, 10), 200), buffer_bytes=5000, alpha=0.5, scheduler="round_robin")
    assert network.run() == "idle"
    terms = balance(network)
    assert terms["drop_buffer"] > 0
    assert terms["delivered"] == sum(len(host.got) for host in hosts)


def test_what_is_recirculated_counts_in_the_class_that_it_came_with() -> None:
    """Check two hosts that send at the same time, each in its own class."""
    network, hosts, _ = star({RECIRCULATE: 100}, dscp_classes=[3 if dscp == 0 else 5 for dscp in range(64)])
    hosts[2].frames = [(0, frame(2, UNICAST, 500, priority=6)) for _ in range(100)]
    network.set_pfc(4, priorities=[3, 5], xoff_bytes=2_000)
    assert network.run() == "idle"
    balance(network)
    held = columns(network.pfc_stats())
    assert set(zip(held["port"], held["priority"], strict=True)) == {(0, 3), (2, 5)}


def test_a_fabric_that_goes_away_leaves_the_switch_usable() -> None:
    network, _, switch = star({UNICAST: 100})
    network.run(3000)
    del network
    assert [port for port, _ in switch.process(0, frame(0, MULTICAST))] == [1, 2, 3, 3]


def test_a_trace_tells_what_the_pipeline_did() -> None:
    network, _, _ = star({CLONE: 1}, trace=True)
    network.trace(network.flow(ip(0), ip(CLONE), 7))
    network.run()
    found = [
        plain(event).split(maxsplit=2)[-1] if event is not None else str(record[2])
        for record, *_, event in hops(
            network.trace_records(), lambda *_: Decoder(build_traced(compile_program(PROGRAM).program))
        )
    ]
    assert found[0] == "send"
    assert {"state start", "state ipv4", "cloned to session 1, as copy 1"} <= set(found)
    assert found.count("transmit") == 3
    order = [found.index(event) for event in ("receive", "state ipv4", "enqueue", "transmit")]
    assert order == sorted(order)


def test_a_frame_that_a_chip_drops_has_the_length_that_it_came_with(tmp_path: Path) -> None:
    network = Fabric()
    network.add_host(Host([(0, frame(0, 1, 500))]))
    switch = tofino.switch(tmp_path, INGRESS="apply {}")
    network.connect(0, 0, network.add_switch(switch), 1, rate_bps=100 * GBPS, delay_ns=0)
    assert network.run() == "idle"
    ports = columns(network.port_stats())
    assert (sum(ports["drop_program_ingress"]), sum(ports["drop_bytes"])) == (1, 500)


@pytest.mark.parametrize(("asks", "enabled", "deflected"), [(1, 1, True), (0, 1, False), (1, 0, False)])
def test_a_chip_deflects_once_what_a_queue_has_no_room_for(
    tmp_path: Path, asks: int, enabled: int, deflected: bool
) -> None:
    network = Fabric()
    hosts = [Host([(0, frame(0, 1, 500, mark=i)) for i in range(40)]), Host(), Host()]
    for host in hosts:
        network.add_host(host)
    switch = tofino.switch(
        tmp_path,
        INGRESS=f"apply {{ tm.ucast_egress_port = 1; tm.deflect_on_drop = {asks}; }}",
        EGRESS_PARSER="state start { packet.extract(intrinsic); packet.extract(hdr.h); transition accept; }",
        EGRESS="apply { hdr.h.value = 7w0 ++ intrinsic.deflection_flag; }",
    )
    device = PACKET_PATHS.find("tna.Switch").states["device"].kind
    members = {"deflect_port": 2, "deflect_qid": 3, "deflect_enabled": enabled}
    switch.object_write("$device", 0, objects.packed(device, members))
    node = network.add_switch(switch, buffer_bytes=8000, alpha=0.5)
    for i in range(3):
        network.connect(i, 0, node, i, rate_bps=(100, 10, 10)[i] * GBPS, delay_ns=500)
    assert network.run() == "idle"
    terms = balance(network)
    _, straight, aside = hosts
    assert {each[1] for _, each in straight.got} == {0}
    assert {each[1] for _, each in aside.got} == ({1} if deflected else set())
    assert len(straight.got) + len(aside.got) + terms["drop_buffer"] == 40
    assert terms["drop_buffer"], "the other queue may have no room, either"


@pytest.mark.parametrize(("side", "asks"), [("ingress", 0), ("ingress", 1), ("egress", 0), ("egress", 1)])
def test_t2na_deflects_a_mirrored_packet_if_it_asks_for_it(tmp_path: Path, side: str, asks: int) -> None:
    """Packets go to port 2, and a mirror of each to port 1, which has little room."""
    network = Fabric()
    hosts = [Host([(0, frame(0, 1, 500, mark=i)) for i in range(40)]), Host(), Host(), Host()]
    for host in hosts:
        network.add_host(host)
    mirrored = f"{MIRRORED} deparsed.mirror_deflect_on_drop = {asks};"
    blocks = {
        "ingress": {"INGRESS": f"apply {{ tm.ucast_egress_port = 2; {mirrored} }}", "INGRESS_DEPARSER": MIRROR},
        "egress": {
            "INGRESS": "apply { tm.ucast_egress_port = 2; }",
            "EGRESS": f"apply {{ if (intrinsic.egress_port == 2) {{ {mirrored} }} }}",
            "EGRESS_DEPARSER": MIRROR,
        },
    }
    switch = tofino.switch(tmp_path, "t2na", **blocks[side])
    states = PACKET_PATHS.find("t2na.Switch").states
    session = objects.packed(states["mirror"].kind, {"enabled": 1, "unicast": 1, "port": 1})
    switch.object_write("$mirror", 5, session)
    members = {"deflect_port": 3, "deflect_enabled": 1}
    switch.object_write("$device", 0, objects.packed(states["device"].kind, members))
    node = network.add_switch(switch, queue_bytes=2000)
    for i in range(4):
        network.connect(i, 0, node, i, rate_bps=(100, 10, 400, 400)[i] * GBPS, delay_ns=500)
    assert network.run() == "idle"
    terms = balance(network)
    _, mirrors, straight, aside = hosts
    assert len(straight.got) == 40
    assert 0 < len(mirrors.got) < 40
    assert bool(aside.got) == bool(asks)
    assert len(mirrors.got) + len(aside.got) + terms["drop_buffer"] == 40
