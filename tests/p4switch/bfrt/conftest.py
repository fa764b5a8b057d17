"""A BfRuntime server around the built-in switch, and a small client."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from p4switch import ir
from p4switch.architectures.tna import TNA
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.compiler import Compiled
from p4switch.engine import build, load
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.messages import status_pb2
from p4switch.p4runtime.ports import PortCounts
from tests.p4switch.architectures.tofino import compiled

SERVICE = "/bfrt_proto.BfRuntime/"
INGRESS = """
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits;
    Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS) seen;
    Meter<bit<8>>(8, MeterType_t.BYTES) rate;
    Register<pair_t, bit<8>>(4, {3, 9}) pairs;
    Register<bit<8>, bit<8>>(4) bytes_;
    RegisterParam<bit<32>>(7) least;
    RegisterAction<pair_t, bit<8>, bit<32>>(pairs) more = {
        void apply(inout pair_t value, out bit<32> found) { found = max(value.lo, least.read()); value.hi = 5; }
    };
    ActionProfile(16) members;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) pick;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) mix;
    ActionSelector(members, mix, SelectorMode_t.FAIR, 8, 4) groups;
    action send(bit<9> port) { hits.count(); tm.ucast_egress_port = port; }
    action drop() { hits.count(); deparsed.drop_ctl = 1; }
    action go(bit<9> port) { tm.ucast_egress_port = port; }
    table route {
        key = { hdr.h.kind : ternary; hdr.h.value : range; intrinsic.ingress_port : exact; }
        actions = { send; drop; @defaultonly NoAction; }
        default_action = NoAction();
        counters = hits;
        size = 4;
    }
    table spread {
        key = { hdr.h.kind : lpm; hdr.h.value : selector; }
        actions = { go; }
        implementation = groups;
    }
    apply {
        if (!route.apply().hit) { spread.apply(); }
        seen.count(hdr.h.kind); meta.seen = (bit<8>) rate.execute(hdr.h.kind);
        meta.residual = pick.get({ hdr.h.kind });
        if (hdr.h.kind == 99) { deparsed.digest_type = 1; }
        hdr.h.value = (bit<8>) more.execute(1); bytes_.write(0, hdr.h.kind);
    }
"""
DEPARSER = """
    Digest<port_t>() told; Digest<note_t>() header_told;
    apply {
        if (deparsed.digest_type == 1) { told.pack({ hdr.h.kind, (bit<16>) hdr.h.value }); }
        if (deparsed.digest_type == 2) { header_told.pack(hdr.note); }
        packet.emit(hdr);
    }
"""


class Client:
    """Client that uses names of tables, keys, data and actions instead of ids."""

    def __init__(self, address: str, bf_rt: dict[str, Any]) -> None:
        self._channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self.tables = {t["name"].removeprefix("pipe."): t for t in bf_rt["tables"]}

    def close(self) -> None:
        self._channel.close()

    def call(self, method: str, request: Message, response: Any, **more: Any) -> Message:
        made = self._channel.unary_unary(SERVICE + method, type(request).SerializeToString, response.FromString)
        return made(request, timeout=10, **more)

    def subscribe(self, device_id: int = 0, **wants: bool) -> Iterator[Message]:
        """Yield messages of the server's stream: digests, and the notifications in `wants`."""
        pb = bfruntime_pb2
        made = self._channel.stream_stream(
            SERVICE + "StreamChannel", pb.StreamMessageRequest.SerializeToString, pb.StreamMessageResponse.FromString
        )
        outgoing: queue.Queue[Message | None] = queue.Queue()
        request = pb.StreamMessageRequest(client_id=1)
        request.subscribe.device_id = device_id
        for name, wanted in {"learn": True, **wants}.items():
            setattr(request.subscribe.notifications, f"enable_{name}_notifications", wanted)
        outgoing.put(request)
        try:
            yield from made(iter(outgoing.get, None), timeout=10)
        finally:
            outgoing.put(None)

    def entry(
        self, table: str, keys: dict[str, Any] | None = None, action: str = "", default: bool = False, **data: Any
    ) -> Message:
        """Return an entry. `data` are numbers or lists of numbers.

        In names, `__` stands for a dot and a leading `_` for `$`.
        """
        info = self.tables[table]
        entry = bfruntime_pb2.TableEntry(table_id=info["id"], is_default_entry=default)
        for name, value in (keys or {}).items():
            field = next(f for f in info["key"] if f["name"] == name)
            self._key(entry.key.fields.add(field_id=field["id"]), field, value)
        specs = [a for a in info.get("action_specs", []) if action and a["name"].endswith(action)]
        spec: dict[str, Any] = specs[0] if specs else {}
        entry.data.action_id = spec.get("id", 0)
        fields = [f for d in info["data"] for f in d.get("oneof", [d.get("singleton")])] + spec.get("data", [])
        for name, value in data.items():
            named = f"${name[1:]}" if name.startswith("_") else name
            field = next(f for f in fields if f["name"].endswith(named))
            made = entry.data.fields.add(field_id=field["id"])
            if isinstance(value, list) and field["type"]["type"] == "bool":
                made.bool_arr_val.val.extend(value)
            elif isinstance(value, list):
                made.int_arr_val.val.extend(value)
            elif field["type"]["type"] == "bool":
                made.bool_val = value
            elif isinstance(value, str):
                made.str_val = value
            elif isinstance(value, float):
                made.float_val = value
            else:
                made.stream = value.to_bytes(_size(field), "big")
        return entry

    @staticmethod
    def _key(made: Message, field: dict[str, Any], value: Any) -> None:
        length = _size(field)
        numbers = [n.to_bytes(length, "big") for n in (value if isinstance(value, tuple) else (value,))]
        if field["match_type"] == "Exact":
            made.exact.value = numbers[0]
        elif field["match_type"] == "Ternary":
            made.ternary.value, made.ternary.mask = numbers
        elif field["match_type"] == "Range":
            made.range.low, made.range.high = numbers
        else:
            made.lpm.value, made.lpm.prefix_len = numbers[0], value[1]

    def write(
        self, how: str, *entries: Message, metadata: tuple[tuple[str, str], ...] = (), pipe: int = 0xFFFF, **more: Any
    ) -> Message:
        request = bfruntime_pb2.WriteRequest(**more)
        request.target.pipe_id = pipe
        for entry in entries:
            request.updates.add(type=how).entity.table_entry.CopyFrom(entry)
        return self.call("Write", request, bfruntime_pb2.WriteResponse, metadata=metadata)

    def read(self, entry: Message, *, from_hw: bool = True) -> list[dict[str, Any]]:
        """Return entries as dictionaries: numbers by the names of keys and data, and the name of the action."""
        query = bfruntime_pb2.TableEntry()
        query.CopyFrom(entry)
        query.table_flags.from_hw = from_hw
        return [self._told(e.table_entry) for e in self.entities(table_entry=query)]

    def entities(self, pipe: int = 0xFFFF, **query: Message) -> list[Message]:
        """Return the entities that a query selects."""
        request = bfruntime_pb2.ReadRequest(entities=[bfruntime_pb2.Entity(**query)])
        request.target.pipe_id = pipe
        made = self._channel.unary_stream(
            SERVICE + "Read", request.__class__.SerializeToString, bfruntime_pb2.ReadResponse.FromString
        )
        return [e for response in made(request, timeout=10) for e in response.entities]

    def attribute(self, table: str, kind: str) -> Message:
        """Return an attribute of a table."""
        query = bfruntime_pb2.TableAttribute(table_id=self.tables[table]["id"])
        getattr(query, kind).SetInParent()
        (found,) = self.entities(table_attribute=query)
        return getattr(found.table_attribute, kind)

    def _told(self, entry: Message) -> dict[str, Any]:
        info = next(t for t in self.tables.values() if t["id"] == entry.table_id)
        told: dict[str, Any] = {}
        for field in entry.key.fields:
            name = next(f["name"] for f in info["key"] if f["id"] == field.field_id)
            value = getattr(field, field.WhichOneof("match_type"))
            told[name] = tuple(int.from_bytes(v, "big") if isinstance(v, bytes) else v for _, v in value.ListFields())
        spec = next((a for a in info.get("action_specs", []) if a["id"] == entry.data.action_id), None)
        fields = [f for d in info["data"] for f in d.get("oneof", [d.get("singleton")])]
        if spec is not None:
            told["action"] = spec["name"]
            fields = spec["data"] + fields
        for field in entry.data.fields:
            name = next(f["name"] for f in fields if f["id"] == field.field_id)
            kind = field.WhichOneof("value")
            value = getattr(field, kind)
            if kind == "stream":
                told[name] = int.from_bytes(value, "big")
            else:
                told[name] = value if kind in ("str_val", "bool_val", "float_val") else list(value.val)
        return told


def _size(field: dict[str, Any]) -> int:
    t = field["type"]
    widths = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "bool": 8}
    return -(-(t["width"] if t["type"] == "bytes" else widths[t["type"]]) // 8)


def errors(error: grpc.RpcError) -> list[tuple[int, str]]:
    """Return the code and the message of each error in a refused batch."""
    details = next(each.value for each in error.trailing_metadata() if each.key == "grpc-status-details-bin")
    found = [bfruntime_pb2.Error.FromString(d.value) for d in status_pb2.Status.FromString(details).details]
    return [(e.canonical_code, e.message) for e in found]


class Bench:
    """Switch with a program, its BfRuntime server, and clients of P4Runtime and BfRuntime."""

    def __init__(self, program: Compiled, fixed: Sequence[Any] = TNA.fixed_tables) -> None:
        self.switch: Any = None
        self.counts: dict[int, PortCounts] = {}  # counters of ports
        self.device = Device(self._build, 0, port_counts=lambda: self.counts)
        LocalClient(self.device).set_pipeline(program.p4info, json.dumps(program.json).encode())
        self.p4runtime, self.p4info = LocalClient(self.device), program.p4info
        programs = [Program("program", [Pipe(0, self.device, program)])]
        self.server = BfRuntimeServer(programs, "127.0.0.1:0", fixed)
        self.server.start()
        tables = [*program.bf_rt["tables"], *fixed]
        self.client = Client(f"127.0.0.1:{self.server.port}", {"tables": tables})

    def _build(self, program: ir.Program) -> Any:
        self.switch = load().Switch(str(build(program)))
        return self.switch

    def close(self) -> None:
        self.client.close()
        self.server.stop()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder: Path = tmp_path_factory.mktemp("bfrt")
    return compiled(folder, INGRESS=INGRESS, INGRESS_DEPARSER=DEPARSER)


@pytest.fixture
def bench(program: Compiled) -> Iterator[Bench]:
    made = Bench(program)
    yield made
    made.close()


@pytest.fixture
def client(bench: Bench) -> Client:
    return bench.client
