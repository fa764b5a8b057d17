"""`p4cc switch` on veth pairs: packets, P4Runtime, the traffic manager in real time, and the end."""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from p4switch import native
from p4switch.compiler import compile_program
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.messages import p4runtime_pb2
from tests.p4switch.daemon.conftest import Namespace, quiet, senders, wait_until
from tests.p4switch.p4runtime.controller import INSERT, MODIFY, Controller, wrap
from tests.p4switch.p4runtime.test_replication import group as multicast
from tests.p4switch.p4runtime.test_streams import digest

PROGRAM = Path(__file__).parent.parent / "p4runtime" / "everything.p4"
CPU = ("--cpu-port", "510")
Update = p4runtime_pb2.Update


@pytest.fixture(scope="module")
def compiled() -> Any:
    return compile_program(PROGRAM)


class Remote(Controller):
    """The test's controller, over gRPC."""

    def __init__(self, client: GrpcClient, compiled: Any) -> None:
        super().__init__(None, compiled.p4info)
        self.client = client
        client.set_pipeline(compiled.p4info, json.dumps(compiled.json).encode())

    def write(self, *updates: Any, atomicity: int = 0) -> None:
        self.client.write([Update(type=kind, entity=wrap(message)) for kind, message in updates])

    def read(self, *queries: Any) -> list[Any]:
        entities = self.client.read([wrap(query) for query in queries])
        return [getattr(entity, entity.WhichOneof("entity")) for entity in entities]

    def forward(self, destination: int, port: int) -> None:
        self.insert(self.entry("lpm_one", {"l": (destination, 32)}, ("send", {"port": port})))


def frame(destination: int, e: int = 0, o: int = 0, length: int = 100) -> bytes:
    head = e.to_bytes(2, "big") + destination.to_bytes(4, "big") + b"\xff\xff\x00" + bytes([o]) + b"\x12\x34"
    return head + bytes(i % 251 for i in range(length - len(head)))


# The kernel's time stamps are an hour ahead of the process, as if its clock were set back after each frame.
SET_BACK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = next(clock, t);
    if (clock == CLOCK_REALTIME)
        t->tv_sec -= 3600;
    return status;
}
"""


def test_a_clock_that_is_set_back_blocks_no_port(
    start: Any, namespace: Namespace, compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(native.build_text("clock", SET_BACK)))
    daemon = start("--no-p4", anew=True)
    monkeypatch.delenv("LD_PRELOAD")
    Remote(daemon.client(), compiled).forward(0x0A000002, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    for length in (60, 61):
        h1.send(sent := frame(0x0A000002, length=length))
        assert h2.recv(10_000) == sent
    assert daemon.stop()["lag_max_ns"] < 60e9


def test_a_program_may_be_source_and_include_what_p4cc_has(start: Any, compiled: Any, tmp_path: Path) -> None:
    own = tmp_path / "own.p4"
    own.write_text('#include "include/prelude.p4"\n#ifdef WHOLE\n#include "everything.p4"\n#endif')
    controller = Controller(None, compiled.p4info)
    entry = controller.entry("lpm_one", {"l": (0x0A000002, 32)}, ("send", {"port": 2}))
    start(str(own), "-I", str(PROGRAM.parent), "-D", "WHOLE").client().write([Update(type=INSERT, entity=wrap(entry))])


def test_packets_between_ports(start: Any, namespace: Namespace, compiled: Any) -> None:
    daemon = start("--no-p4")
    c = Remote(daemon.client(), compiled)
    c.forward(0x0A000002, 2)
    c.insert(
        c.entry("lpm_one", {"l": (0x0A000003, 32)}, ("to_group", {"group": 1})),
        multicast(1, (b"\x01", 1), (b"\x03", 2)),
    )
    h1, h2, h3 = (namespace.raw_socket(f"h{i}") for i in (1, 2, 3))
    for length in (60, 1514, 9014):
        h1.send(frame(0x0A000002, length=length))
        assert h2.recv(10000) == frame(0x0A000002, length=length)
    h2.send(frame(0x0A000003))
    assert h1.recv(10000) == h3.recv(10000) == frame(0x0A000003)
    h1.send(frame(0x0B000000))  # no entry: dropped
    assert quiet(h2)
    (count,) = c.read(p4runtime_pb2.CounterEntry(counter_id=c.id("counters", "cells"), index={"index": 1}))
    assert count.data.packet_count == 4
    stats = daemon.stop()
    ports = {row["port"]: row for row in stats["ports"]}
    assert (ports[1]["rx_packets"], ports[2]["tx_packets"], ports[3]["tx_packets"]) == (4, 3, 1)
    assert sum(row["drop_program_ingress"] for row in stats["ports"]) + stats["drop_program_ingress"] == 1
    assert all(row["tx_failed"] == row["rx_truncated"] == row["rx_ring_full"] == 0 for row in stats["ports"])


def test_many_packets_in_order(start: Any, namespace: Namespace, compiled: Any) -> None:
    daemon = start("--no-p4")
    c = Remote(daemon.client(), compiled)
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    received = []
    for first in range(0, 5000, 100):  # as many as the interfaces' queues hold, however slow the switch is
        for i in range(first, first + 100):
            h1.send(frame(2, e=i))
        received += [int.from_bytes(h2.recv(10000)[:2], "big") for _ in range(100)]
    assert received == list(range(5000))


def test_packet_in_and_out(start: Any, namespace: Namespace, compiled: Any) -> None:
    daemon = start("--no-p4", *CPU)
    c = Remote(daemon.client(), compiled)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    out = p4runtime_pb2.PacketOut(payload=frame(5))
    out.metadata.add(metadata_id=1, value=b"\x02")
    out.metadata.add(metadata_id=2, value=b"\x00")
    c.client.send(p4runtime_pb2.StreamMessageRequest(packet=out))
    assert h2.recv(10000) == frame(5)
    c.insert(c.entry("lpm_one", {"l": (7, 32)}, ("send", {"port": 510})))
    h1.send(frame(7))
    news = c.client.receive(5)
    assert news is not None
    assert news.packet.payload == frame(7)
    assert [m.value for m in news.packet.metadata] == [b"\x01", b"\x03"]


def test_digests_and_idle_timeouts(start: Any, namespace: Namespace, compiled: Any) -> None:
    daemon = start("--no-p4")
    c = Remote(daemon.client(), compiled)
    h3 = namespace.raw_socket("h3")
    c.insert(c.entry("lpm_one", {"l": (7, 32)}, ("learn",)), digest(c, ack_timeout_ns=10**12))
    h3.send(frame(7, e=0xABCD))
    h3.send(frame(7, e=0xABCD))
    news = c.client.receive(5)
    assert news is not None
    assert [[m.bitstring for m in d.struct.members] for d in news.digest.data] == [[b"\xab\xcd", b"\x03"]]
    assert c.client.receive(0.3) is None  # it is known already, and not yet acknowledged
    ack = {"digest_id": news.digest.digest_id, "list_id": news.digest.list_id}
    c.client.send(p4runtime_pb2.StreamMessageRequest(digest_ack=ack))
    entry = c.entry("fading", {"e": 9}, ("NoAction",), idle_timeout_ns=200_000_000)
    c.insert(entry)
    news = c.client.receive(5)
    assert news is not None
    assert news.idle_timeout_notification.table_entry[0].match == entry.match


@senders
def test_rate_delay_and_queue_limit(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    # 1000-byte frames at 400 kb/s: 20 ms each; 20 ms on the way.
    traffic = {"queue_packets": 10, "log_depths_ns": 1, "ports": {"2": {"rate_bps": 400_000, "delay_ns": 20_000_000}}}
    daemon = start("--no-p4", "--send", send, traffic=traffic)
    c = Remote(daemon.client(), compiled)
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    begin = time.monotonic()
    for i in range(20):  # one is sent, ten are queued, and the rest is lost
        h1.send(frame(2, e=i, length=1000))
    times, order = [], []
    for _ in range(11):
        order.append(h2.recv(10000)[1])
        times.append(time.monotonic() - begin)
    assert quiet(h2)
    assert order == list(range(11))
    assert times[0] >= 0.040  # transmission time and delay
    # Frames leave every 20 ms, however late a busy machine looks at them: the last no sooner than the eleventh can.
    assert times[-1] >= 0.220 + 0.020
    stats = daemon.stop()
    port = next(row for row in stats["ports"] if row["port"] == 2)
    assert (port["tx_packets"], port["drop_buffer"], port["max_packets"]) == (11, 9, 10)
    assert port["busy_ns"] == 11 * 20_000_000
    # One frame leaves at once. Ten are queued, and then leave one by one.
    _, depths = port["depths"]
    assert depths == [1000 * depth for depth in (*range(1, 11), *range(9, -1, -1))]
    assert sum(stats["lag_log2_ns"]) == 11  # each frame left the link


@senders
def test_strict_priorities_and_pause(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    daemon = start("--no-p4", "--send", send, traffic={"all_ports": {"rate_bps": 1_000_000_000}})
    c = Remote(daemon.client(), compiled)
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    # The receiver pauses priority 0 of its link for 65535 x 512 bit times: 33 ms at 1 Gb/s; again and again.
    pause = bytes.fromhex("0180c2000001") + bytes(6) + bytes.fromhex("88080101") + b"\x00\x01" + b"\xff\xff" + bytes(42)
    for _ in range(3):
        h2.send(pause)
    h1.send(frame(2))
    begin = time.monotonic()
    assert h2.recv(10000) == frame(2)
    h2.send(pause[:18] + bytes(44))  # the end of the pause
    h1.send(frame(2, e=1))
    assert h2.recv(10000) == frame(2, e=1)
    assert time.monotonic() - begin < 5
    stats = daemon.stop()
    port = next(row for row in stats["ports"] if row["port"] == 2)
    assert port["pfc_received"] == 4


@senders
def test_switch_pauses_its_senders(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    traffic = {
        "all_ports": {"rate_bps": 10_000_000},
        "queue_packets": None,
        "pfc": {"priorities": [0], "xoff_bytes": 3000, "xon_gap_bytes": 1000, "headroom_bytes": 1_000_000},
        "buffer_bytes": 10_000_000,
    }
    daemon = start("--no-p4", "--send", send, traffic=traffic)
    c = Remote(daemon.client(), compiled)
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    for i in range(20):
        h1.send(frame(2, e=i, length=1000))
    for i in range(20):
        assert h2.recv(10000)[1] == i
    pauses: list[tuple[int, int]] = []
    while not pauses or pauses[-1][1]:  # until the pause ends
        message = h1.recv(10000)
        assert message[:6] == bytes.fromhex("0180c2000001")
        assert message[12:18] == bytes.fromhex("880801010001")
        pauses.append((len(message), int.from_bytes(message[18:20], "big")))
    assert pauses[0] == (60, 65535)
    assert pauses[-1] == (60, 0)
    stats = daemon.stop()
    h1.setblocking(False)
    with contextlib.suppress(BlockingIOError):  # on a busy machine the burst comes in pieces, and there are more
        while True:
            message = h1.recv(10000)
            pauses.append((len(message), int.from_bytes(message[18:20], "big")))
    assert next(row for row in stats["ports"] if row["port"] == 1)["pfc_sent"] == len(pauses)


def test_watched_ports_follow_the_interfaces(start: Any, namespace: Namespace, compiled: Any) -> None:
    daemon = start("--no-p4")
    c = Remote(daemon.client(), compiled)
    action = c.action_set(("send", {"port": 2}, 1, 2), ("send", {"port": 3}, 1, 3))
    c.insert(c.entry("selected", {"o": 1}, action))
    h1, h3 = namespace.raw_socket("h1"), namespace.raw_socket("h3")

    def all_by_port_3() -> bool:
        before = c.read(p4runtime_pb2.CounterEntry())
        for i in range(20):
            h1.send(frame(i, o=1))
        wait_until(
            lambda: c.read(p4runtime_pb2.CounterEntry())[1].data.packet_count >= before[1].data.packet_count + 20
        )
        count = 0
        while not quiet(h3, 0.1):
            count += 1
        return count == 20

    assert not all_by_port_3()
    namespace.run("ip", "link", "set", "s2", "down")
    wait_until(all_by_port_3)
    namespace.run("ip", "link", "set", "s2", "up")
    wait_until(lambda: not all_by_port_3())


def test_program_on_the_command_line(start: Any, namespace: Namespace, compiled: Any, tmp_path: Path) -> None:
    from google.protobuf import text_format

    program, p4info = tmp_path / "program.json", tmp_path / "p4info.txtpb"
    program.write_text(json.dumps(compiled.json))
    p4info.write_text(text_format.MessageToString(compiled.p4info))
    daemon = start(str(program), "--p4info", str(p4info), "--thrift-port", "9090", "--log-console")
    client = daemon.client()
    c = Controller(None, compiled.p4info)
    entity = wrap(c.entry("lpm_one", {"l": (2, 32)}, ("send", {"port": 2})))
    client.write([Update(type=INSERT, entity=entity)])
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    h1.send(frame(2))
    assert h2.recv(10000) == frame(2)
    client.write([Update(type=MODIFY, entity=wrap(c.entry("lpm_one", {"l": (2, 32)}, ("send", {"port": 1}))))])
    h1.send(frame(2))
    assert h1.recv(10000) == frame(2)


TALKING = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta {}
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers h, inout meta m) { apply {} }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    apply {
        log_msg("a is {}", { h.h.a });
        assert(h.h.a != 9);
        s.egress_spec = 2;
    }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply {} }
control C(inout headers h, inout meta m) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_the_log_has_what_the_program_says(start: Any, namespace: Namespace, tmp_path: Path) -> None:
    program = tmp_path / "talking.p4"
    program.write_text(TALKING)
    compiled = compile_program(program)
    daemon = start("--no-p4")
    daemon.client().set_pipeline(compiled.p4info, json.dumps(compiled.json).encode())
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    for value in (7, 9, 9):
        h1.send(bytes([value]) * 60)
        assert h2.recv(10000) == bytes([value]) * 60
    stats = daemon.stop()
    log = [line.partition(" ")[2].partition(" ")[2] for line in daemon.log.read_text().splitlines()]
    assert [line for line in log if "log_msg" in line] == [f"INFO log_msg: a is {value}" for value in (7, 9, 9)]
    place = f"{program}:14: assert(h.h.a != 9)"
    assert (stats["failed_asserts"], stats["failed_assert"]) == (2, place)
    failed = [line for line in log if "assertion" in line]
    assert set(failed) <= {f"ERROR an assertion of the program failed{times}: {place}" for times in ("", " 2 times")}
    assert failed


def test_the_log_has_what_happens_to_each_packet(start: Any, namespace: Namespace, tmp_path: Path) -> None:
    program, events = tmp_path / "talking.p4", tmp_path / "events.jsonl"
    program.write_text(TALKING)
    daemon = start(str(program), "-L", "trace", "--trace-file", str(events))
    daemon.client()  # waits until the server answers
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    h1.send(bytes([7]) * 60)
    assert h2.recv(10000) == bytes([7]) * 60
    daemon.stop()
    log = [line.split("] ", 2)[-1] for line in daemon.log.read_text().splitlines() if " TRACE " in line]
    wanted = ["Processing packet received on port 1", "Parser 'parser' entering state 'start'", "Extracting header 'h'",
              "Pipeline 'ingress': start", f"{program}(15) Primitive s.egress_spec = 2;",
              f"{program}(15) Egress port is 2",
              "Pipeline 'egress': end", "Transmitting packet of size 60 out of port 2"]  # fmt: skip
    assert [line for line in log if line in wanted] == wanted
    assert " DEBUG " not in daemon.log.read_text()  # no debug messages of libraries
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert [event["port"] for event in told if event["event"] == "Transmitted"] == [2]


@senders
def test_a_new_pipeline_under_traffic(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    daemon = start("--no-p4", "--send", send, traffic={"ports": {"2": {"rate_bps": 10_000_000}}})
    client = daemon.client()
    c = Remote(client, compiled)
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    for round_ in range(3):
        for _ in range(50):
            h1.send(frame(2, e=round_, length=1000))
        client.set_pipeline(compiled.p4info, json.dumps(compiled.json).encode())  # queued packets are lost
        c.forward(2, 2)
    h1.send(frame(2, e=9))
    while h2.recv(10000)[:2] != b"\x00\x09":
        pass
    stats = daemon.stop()
    assert stats["buffer_bytes"] == 0


def test_a_signal_may_come_to_any_of_its_threads(start: Any) -> None:
    """The kernel gives it to another thread if one is pending for the main thread."""
    daemon = start("--no-p4")
    daemon.client()
    process = daemon.process.pid
    others = [int(task.name) for task in Path(f"/proc/{process}/task").iterdir() if int(task.name) != process]
    assert ctypes.CDLL(None).tgkill(process, others[-1], signal.SIGTERM) == 0
    daemon.process.wait(timeout=60)
    daemon.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly(start: Any, number: int) -> None:
    daemon = start("--no-p4")
    daemon.client()
    daemon.stop(number)
    assert daemon.process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "expected either FILE.p4, FILE.json or --no-p4"),
        ((str(PROGRAM), "--p4info", "x"), "--p4info: expected FILE.json with it"),
        (("--no-p4", "-D", "WHOLE"), "-I, -D, --arch: expected FILE.p4 with them"),
        (("/nowhere.p4",), "/nowhere.p4: No such file"),
        (("--no-p4", "-i", "4@nothere"), "-i 4@nothere: no such interface; expected some of "),
        (("--no-p4", "-i", "1@s2"), "each port number once"),
        (("--no-p4", "-i", "600@s2"), "below 512"),
        (("--no-p4", "--cpu-port", "2"), "each of them once"),
        (("/nowhere.json",), "/nowhere.json: No such file"),
        ((str(Path(__file__)),), "expected BMv2 JSON"),
        (("--no-p4", "--log-level", "loud"), "expected one of trace"),
        (("--no-p4", "--stats", "/nowhere/s.json"), "--stats /nowhere/s.json: no folder '/nowhere'"),
    ],
)
def test_mistakes(start: Any, arguments: tuple[str, ...], says: str) -> None:
    daemon = start(*arguments)
    _, errors = daemon.process.communicate(timeout=60)
    assert daemon.process.returncode == 2
    assert says in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("address", ["localhost:99999", "9559", "localhost:", ":9559"])
def test_an_address_that_is_none(start: Any, address: str) -> None:
    daemon = start("--no-p4", address=address)
    _, errors = daemon.process.communicate(timeout=60)
    assert daemon.process.returncode == 2
    assert f"{address!r}; expected HOST:PORT with a port up to 65535" in errors


def test_an_address_in_use(start: Any) -> None:
    first = start("--no-p4", address="127.0.0.1:9559")
    wait_until(lambda: first.log.exists() and "P4Runtime server" in first.log.read_text(), 60)
    second = start("--no-p4", address="127.0.0.1:9559")
    _, errors = second.process.communicate(timeout=60)
    assert second.process.returncode == 2
    assert "--grpc-server-addr 127.0.0.1:9559" in errors.splitlines()[-1]


def test_statistics_while_it_runs_and_captures(
    start: Any, namespace: Namespace, compiled: Any, tmp_path: Path
) -> None:
    captures = tmp_path / "captures"
    daemon = start("--no-p4", "--pcap", str(captures))
    c = Remote(daemon.client(), compiled)
    c.forward(0x0A000002, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    sent = [frame(0x0A000002, length=length) for length in (60, 300)]
    for one in sent:
        h1.send(one)
        assert h2.recv(10000) == one
    asked_ns = time.monotonic_ns()
    daemon.process.send_signal(signal.SIGUSR1)
    wait_until(daemon.stats_file.exists, 60)
    asked = json.loads(daemon.stats_file.read_text())
    assert asked_ns <= asked["monotonic_ns"] <= time.monotonic_ns()
    assert next(row for row in asked["ports"] if row["port"] == 2)["tx_packets"] == 2
    assert daemon.process.poll() is None
    h1.send(sent[0])
    assert h2.recv(10000) == sent[0]
    assert next(row for row in daemon.stop()["ports"] if row["port"] == 2)["tx_packets"] == 3
    sent.append(sent[0])
    assert [data for data, _ in RawPcapReader(str(captures / "s1_in.pcap"))] == sent
    assert [data for data, _ in RawPcapReader(str(captures / "s2_out.pcap"))] == sent
    assert list(RawPcapReader(str(captures / "s2_in.pcap"))) == []
