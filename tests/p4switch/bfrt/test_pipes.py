"""BfRuntime on a switch of several pipes: entries of all pipes or one, and different programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from p4switch.architectures.tna import TNA
from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.compiler import Compiled
from p4switch.engine import build, load
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from tests.p4switch.architectures.tofino import START, compiled
from tests.p4switch.bfrt.conftest import Client, errors

if TYPE_CHECKING:
    from p4switch.engine import Switch

INGRESS = """
    DirectCounter<bit<32>>(CounterType_t.PACKETS) hits;
    Register<bit<8>, bit<2>>(4) cells;
    action to(bit<9> port) { hits.count(); tm.ucast_egress_port = port; }
    action none() { hits.count(); deparsed.drop_ctl = 1; }
    table route {
        key = { hdr.h.kind : exact; }
        actions = { to; none; }
        const default_action = none();
        counters = hits;
    }
    apply { route.apply(); cells.write(1, hdr.h.kind); }
"""
OTHER = "apply { tm.ucast_egress_port = 9; if (hdr.h.kind == 1) { deparsed.drop_ctl = 1; } }"
ROUTE, CELLS = "In.route", "In.cells"
SINGLE = bfruntime_pb2.Mode(predef=bfruntime_pb2.Mode.SINGLE)


class Bench:
    """Switch whose pipes run these programs, by name, and a client of its BfRuntime server."""

    def __init__(self, programs: dict[str, Sequence[tuple[int, Compiled]]]) -> None:
        control = threading.RLock()
        self.switches: dict[int, Switch] = {}
        served = []
        for name, pipes in programs.items():
            made = []
            for number, program in pipes:
                self.switches[number] = load().Switch(str(build(program.program)))
                device = Device(self.builder(number), 0, control=control)
                LocalClient(device).set_pipeline(program.p4info, program.json_bytes)
                made.append(Pipe(number, device, program))
            served.append(Program(name, made))
        self.first, *others = (self.switches[number] for number in sorted(self.switches))
        self.first.join(tuple(others), 7)
        self.server = BfRuntimeServer(served, "127.0.0.1:0", TNA.fixed_tables)
        self.server.start()
        tables = [*served[0].bf_rt["tables"], *TNA.fixed_tables]
        self.client = Client(f"127.0.0.1:{self.server.port}", {"tables": tables})

    def builder(self, number: int) -> Callable[[object], Switch]:
        """Return a function that returns the switch of a pipe, whatever the program."""
        return lambda _: self.switches[number]

    def close(self) -> None:
        self.client.close()
        self.server.stop()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("pipes"), INGRESS=INGRESS)


@pytest.fixture
def bench(program: Compiled) -> Iterator[Bench]:
    made = Bench({"program": [(0, program), (1, program)]})
    yield made
    made.close()


def refused(call: Any) -> Any:
    with pytest.raises(grpc.RpcError) as raised:
        call()
    if raised.value.code() == grpc.StatusCode.UNKNOWN:
        return errors(raised.value)[0][1]
    return raised.value.details()


def route(bench: Bench, kind: int, port: int | None = None) -> Any:
    data: dict[str, Any] = {} if port is None else {"action": "to", "port": port}
    return bench.client.entry(ROUTE, {"hdr.h.kind": kind}, **data)


def single(bench: Bench, mode: Any = SINGLE) -> None:
    """Give each pipe its own entries."""
    request = bfruntime_pb2.WriteRequest()
    request.target.pipe_id = 0xFFFF
    attribute = request.updates.add(type="INSERT").entity.table_attribute
    attribute.table_id = bench.client.tables[ROUTE]["id"]
    attribute.entry_scope.pipe_scope.CopyFrom(mode)
    bench.client.call("Write", request, bfruntime_pb2.WriteResponse)


def read(bench: Bench, entry: Any, pipe: int = 0xFFFF) -> list[Any]:
    entry.table_flags.from_hw = True
    return [bench.client._told(e.table_entry) for e in bench.client.entities(pipe, table_entry=entry)]


def test_entries_are_those_of_all_pipes_and_counts_their_sum(bench: Bench) -> None:
    bench.client.write("INSERT", route(bench, 1, 3))
    for port in (1, 129, 130):
        assert bench.first.process(port, bytes([1, 0])) == [(3, bytes([1, 0]))]
    assert [each["$COUNTER_SPEC_PKTS"] for each in read(bench, route(bench, 1))] == [3]
    assert [each["$COUNTER_SPEC_PKTS"] for each in read(bench, route(bench, 1), 1)] == [2]
    assert "expected 0xffff, as entries are those of all pipes" in refused(
        lambda: bench.client.write("DELETE", route(bench, 1), pipe=1)
    )
    bench.client.write("DELETE", route(bench, 1))
    assert bench.first.process(129, bytes([1, 0])) == []


def test_what_fails_in_one_pipe_is_done_in_none(bench: Bench) -> None:
    single(bench)
    bench.client.write("INSERT", route(bench, 1, 3), pipe=1)
    assert "exists" in refused(lambda: bench.client.write("INSERT", route(bench, 1, 4), pipe=0xFFFF))
    assert bench.first.process(1, bytes([1, 0])) == []


def test_a_pipe_may_have_entries_of_its_own(bench: Bench) -> None:
    single(bench)
    bench.client.write("INSERT", route(bench, 1, 3), pipe=0)
    bench.client.write("INSERT", route(bench, 1, 4), pipe=1)
    assert [bench.first.process(port, bytes([1, 0]))[0][0] for port in (1, 129)] == [3, 4]
    assert [each["port"] for each in read(bench, route(bench, 1), 1)] == [4]
    every = bench.client.entry(ROUTE)
    assert [each["port"] for each in read(bench, every)] == [3, 4]
    assert "target: pipe 2; expected 0 to 1, or 0xffff for all" in refused(lambda: read(bench, every, 2))


def test_pipes_may_share_entries_in_sets(bench: Bench) -> None:
    single(bench, bfruntime_pb2.Mode(user_defined=0b11))
    bench.client.write("INSERT", route(bench, 1, 3), pipe=1)
    assert [bench.first.process(port, bytes([1, 0]))[0][0] for port in (1, 129)] == [3, 3]
    told = refused(lambda: single(bench, bfruntime_pb2.Mode(user_defined=0b01)))
    assert "expected each of pipes [0, 1] in one scope" in told


def test_entries_of_parsers_may_be_those_of_one_direction_pipe_and_parser(tmp_path: Path) -> None:
    """A write then has to name the direction, the pipe and the parser."""
    select = "transition select(hdr.h.kind) { kinds : more; default : accept; } } state more { transition accept; }"
    parser = f"value_set<bit<8>>(4) kinds; {START} packet.extract(hdr.h); {select}"
    program = compiled(tmp_path, INGRESS_PARSER=parser, INGRESS="apply { tm.ucast_egress_port = 2; }")
    bench, table = Bench({"program": [(0, program), (1, program)]}), "IngressParse.kinds"
    one, every = bfruntime_pb2.TargetDevice(), bfruntime_pb2.TargetDevice(pipe_id=0xFFFF, direction=0xFF, prsr_id=0xFF)

    def scope(**modes: Any) -> Any:
        request = bfruntime_pb2.WriteRequest(target=every)
        attribute = request.updates.add(type="INSERT").entity.table_attribute
        attribute.table_id = bench.client.tables[table]["id"]
        for name, mode in {"gress_scope": SINGLE, "pipe_scope": SINGLE, "prsr_scope": SINGLE, **modes}.items():
            getattr(attribute.entry_scope, name).CopyFrom(mode)
        return bench.client.call("Write", request, bfruntime_pb2.WriteResponse)

    def insert(kind: int, target: Any) -> Any:
        (key,) = (field["name"] for field in bench.client.tables[table]["key"])
        request = bfruntime_pb2.WriteRequest(target=target)
        entry = bench.client.entry(table, {key: (kind, 0xFF)})
        request.updates.add(type="INSERT").entity.table_entry.CopyFrom(entry)
        return bench.client.call("Write", request, bfruntime_pb2.WriteResponse)

    try:
        scope()
        kept = bench.client.attribute(table, "entry_scope")
        assert [kept.gress_scope, kept.pipe_scope, kept.prsr_scope] == [SINGLE] * 3
        for what, value in (("direction", 0xFF), ("pipe", 0xFFFF), ("parser", 0xFF)):
            field = {"direction": "direction", "pipe": "pipe_id", "parser": "prsr_id"}[what]
            told = refused(lambda: insert(7, bfruntime_pb2.TargetDevice(**{field: value})))  # noqa: B023 - called here
            assert told == f"pipe.{table}: {what} {value:#x}; expected one, as each has entries of its own"
        insert(7, one)
        found = [bench.client.entities(pipe, table_entry=bench.client.entry(table)) for pipe in (0, 1)]
        assert [len(entries) for entries in found] == [1, 0]
        told = refused(lambda: scope(gress_scope=bfruntime_pb2.Mode(user_defined=1)))
        assert told == f"pipe.{table}: gress_scope: only ALL and SINGLE are supported"
    finally:
        bench.close()


def test_a_register_has_a_value_for_each_pipe(bench: Bench) -> None:
    bench.first.process(1, bytes([5, 0]))
    bench.first.process(129, bytes([6, 0]))
    query = bench.client.entry(CELLS, {"$REGISTER_INDEX": 1})
    query.table_flags.from_hw = True
    (found,) = bench.client.entities(table_entry=query)
    assert [field.stream for field in found.table_entry.data.fields] == [b"\5", b"\6"]


def test_the_device_tells_how_many_pipes_it_has(bench: Bench) -> None:
    (found,) = read(bench, bench.client.entry("tf1.dev.device_configuration", default=True))
    assert found["num_pipes"] == 2


def test_programs_have_tables_of_their_own_and_share_the_fixed_ones(program: Compiled, tmp_path: Path) -> None:
    other = compiled(tmp_path, INGRESS=OTHER)
    bench = Bench({"one": [(0, program)], "two": [(1, other)]})
    try:
        bench.client.write("INSERT", route(bench, 1, 3), p4_name="one")
        assert "no table has the id" in refused(lambda: bench.client.write("INSERT", route(bench, 2, 3), p4_name="two"))
        assert refused(lambda: bench.client.write("INSERT", route(bench, 2, 3), p4_name="three")) == (
            "no program is called 'three'; expected 'one' or 'two'"
        )
        assert "pipe 1 runs another pipeline" in refused(
            lambda: bench.client.write("INSERT", route(bench, 2, 3), pipe=1, p4_name="one")
        )
        assert [bench.first.process(port, bytes([1, 0])) for port in (1, 129)] == [[(3, bytes([1, 0]))], []]
        node = bench.client.entry("$pre.node", {"$MULTICAST_NODE_ID": 1}, _MULTICAST_RID=2, _DEV_PORT=[5])
        bench.client.write("INSERT", node, p4_name="two")
        (found,) = read(bench, bench.client.entry("$pre.node", {"$MULTICAST_NODE_ID": 1}))
        assert found["$DEV_PORT"] == [5]
    finally:
        bench.close()
