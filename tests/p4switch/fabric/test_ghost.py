"""The ghost thread of T2NA: it runs when a queue changes, and shares its registers with ingress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure.tracing import hops
from p4switch.bmv2 import read
from p4switch.compiler import Compiled, compile_program
from p4switch.engine import Switch, build, build_traced
from p4switch.fabric import Fabric
from p4switch.ir.errors import ProgramError
from p4switch.trace import Decoder
from p4switch.trace import events as ev
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance, frame, ip

PORTS = (8, 9, 130)


def compiled(folder: Path, **blocks: str) -> Compiled:
    path = tofino.write_with_ghost(folder, tofino.GHOST, **{**tofino.WITH_DEPTHS, **blocks})
    return compile_program(path, arch="t2na")


def packet(port: int, queue: int, size: int = 160) -> bytes:
    return bytes([queue, port & 0xFF]).ljust(size, b"\0")


def network(switch: Switch, frames: list[tuple[int, bytes]], **config: Any) -> tuple[Fabric, list[Host]]:
    """Return a network with a sender at port 0, and hosts with slow links."""
    made, hosts = Fabric(), [Host(frames), *(Host() for _ in PORTS)]
    for host in hosts:
        made.add_host(host)
    node = made.add_switch(switch, cell_bytes=80, **config)
    made.connect(0, 0, node, 0, rate_bps=100 * GBPS, delay_ns=500)
    for number, port in enumerate(PORTS, start=1):
        made.connect(number, 0, node, port, rate_bps=10 * GBPS, delay_ns=500)
    return made, hosts


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(compiled(tmp_path_factory.mktemp("ghost")).program))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from([8, 9]), st.integers(0, 15), st.integers(64, 600)),
        min_size=1, max_size=100,
    ),
    st.booleans(),
)  # fmt: skip
def test_ingress_reads_the_depth_that_the_packet_will_find(
    program: str, sent: list[tuple[int, int, int, int]], limited: bool
) -> None:
    time_ns, frames = 0, []
    for gap_ns, port, queue, size in sent:
        time_ns += gap_ns
        frames.append((time_ns, packet(port, queue, size)))
    switch = Switch(program)
    made, hosts = network(switch, frames, **({"queue_bytes": 1000} if limited else {}))
    assert made.run() == "idle"
    balance(made)
    for host in hosts[1:]:
        for _, data in host.got:
            assert data[2:6] == data[6:10]
    assert not any(int.from_bytes(switch.register_read("lengths", i), "big") for i in range(2048))


@pytest.mark.parametrize(("port", "queue", "number", "pipe"), [(8, 5, 133, 0), (9, 3, 147, 0), (130, 2, 34, 1)])
def test_a_queue_has_its_number_among_those_of_its_pipe(
    tmp_path: Path, port: int, queue: int, number: int, pipe: int
) -> None:
    ingress = tofino.WITH_DEPTHS["INGRESS"].replace("(bit<9>) hdr.h.value", str(port))
    switch = Switch(str(build(compiled(tmp_path, INGRESS=ingress).program)))
    made, _ = network(switch, [(0, packet(port, queue)) for _ in range(4)])
    made.run(600)
    depths = {i: int.from_bytes(switch.register_read("lengths", i), "big") for i in range(2048)}
    assert {i: depth for i, depth in depths.items() if depth} == {number: 6}
    assert int.from_bytes(switch.register_read("pipes", 0), "big") == pipe


def test_it_runs_once_for_each_copy_of_a_programs_registers(program: str) -> None:
    """The first packet leaves at once, so that no queue changes."""
    switch = Switch(program)
    made, _ = network(switch, [(0, packet(8, 1)) for _ in range(4)])
    made.run()
    assert [int.from_bytes(switch.register_read("updates", i), "big") for i in range(2)] == [6, 6]


def test_the_json_has_it(tmp_path: Path) -> None:
    made = compiled(tmp_path)
    assert [each["name"] for each in made.json["pipelines"]] == ["ingress", "egress", "ghost"]
    assert build(read(made.json)) == build(made.program)


def test_the_header_of_a_json_has_the_length_that_the_architecture_writes(tmp_path: Path) -> None:
    json = compiled(tmp_path).json
    (of,) = (each["header_type"] for each in json["headers"] if each["name"] == "gh_intr_md")
    (kind,) = (each for each in json["header_types"] if each["name"] == of)
    kind["fields"].append(["more", 8, False])
    with pytest.raises(ProgramError, match="header gh_intr_md has to be one of the packet, of 4 bytes"):
        build(read(json))


def test_a_trace_shows_it_with_the_packet_that_changed_the_queue(tmp_path: Path) -> None:
    traced = build_traced(compiled(tmp_path).program)
    data = [packet(8, 1)[:2] + frame(0, 1, 160, mark=i)[2:] for i in range(2)]
    made, _ = network(Switch(str(traced.library)), [(0, each) for each in data])
    made.trace(made.flow(ip(0), ip(1), 7))
    made.run()
    found = [event for *_, event in hops(made.trace_records(), lambda *_: Decoder(traced)) if event is not None]
    ghosts = [event for event in found if isinstance(event, ev.PipelineEntered) and event.pipeline == "ghost"]
    assert [event.packet for event in ghosts] == [1] * 4, "the first packet leaves at once"
    accessed = [event for event in found if isinstance(event, ev.RegisterAccessed) and event.written]
    values = [event.value for event in accessed if event.register.endswith("lengths")]
    assert values == [0, 0, 2, 2, 0, 0], "ingress reads first"
