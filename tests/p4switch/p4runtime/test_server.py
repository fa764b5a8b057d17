"""The gRPC server: arbitration, streams and error details, with gRPC clients on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from p4switch.errors import UserError
from p4switch.p4runtime import P4RuntimeError
from p4switch.p4runtime.arbitration import Arbitration, Controller
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2
from p4switch.p4runtime.server import MAX_OUTGOING, Outgoing, P4RuntimeServer
from tests.p4switch.p4runtime import everything
from tests.p4switch.p4runtime.conftest import Bench
from tests.p4switch.p4runtime.controller import DELETE, INSERT, wrap
from tests.p4switch.p4runtime.test_streams import packet_out

Update = p4runtime_pb2.Update


class Served:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.frames: list[bytes] = []
        self.server = P4RuntimeServer(bench.device, "127.0.0.1:0", self.frames.append)
        self.server.start()
        self.address = f"127.0.0.1:{self.server.port}"
        self.clients: list[GrpcClient] = []
        self.stopped = False

    def client(self, election_id: int, device_id: int = 1) -> GrpcClient:
        self.clients.append(GrpcClient(self.address, device_id, election_id=election_id, timeout_s=5))
        return self.clients[-1]

    def close(self) -> None:
        for client in self.clients:
            client.close()
        if not self.stopped:
            self.server.stop()


@pytest.fixture
def served(blank: Bench) -> Iterator[Served]:
    served = Served(blank)
    yield served
    served.close()


@pytest.fixture
def primary(served: Served) -> GrpcClient:
    client = served.client(10)
    client.open()
    client.set_pipeline(everything.p4info(), everything.device_config())
    return client


def entry(served: Served, prefix: int, action: str = "drop") -> Message:
    return served.bench.controller.entry("lpm_one", {"l": (prefix << 24, 8)}, (action,))


def code(error: P4RuntimeError) -> str:
    return str(code_pb2.Code.Name(error.code))


def test_write_and_read(served: Served, primary: GrpcClient) -> None:
    primary.write([Update(type=INSERT, entity=wrap(entry(served, 10)))])
    found = list(primary.read([wrap(served.bench.controller.entry("lpm_one"))]))
    assert found == [wrap(entry(served, 10))]


def test_each_update_has_its_error(served: Served, primary: GrpcClient) -> None:
    updates = [
        Update(type=INSERT, entity=wrap(entry(served, 10))),
        Update(type=DELETE, entity=wrap(entry(served, 11))),
        Update(type=INSERT, entity=wrap(entry(served, 12, "NoAction"))),
    ]
    with pytest.raises(P4RuntimeError) as caught:
        primary.write(updates)
    assert caught.value.code == code_pb2.UNKNOWN
    codes = [code_pb2.Code.Name(e.canonical_code) for e in caught.value.errors]
    assert codes == ["OK", "NOT_FOUND", "INVALID_ARGUMENT"]
    assert "does not exist" in caught.value.errors[1].message


def test_reads_need_no_session_and_give_what_they_can(served: Served, primary: GrpcClient) -> None:
    reader = served.client(99)
    preset = served.bench.controller.entry("preset")
    assert len(list(reader.read([wrap(preset)]))) == 2
    found: list[Message] = []
    with pytest.raises(P4RuntimeError) as caught:
        found.extend(reader.read([wrap(preset), wrap(p4runtime_pb2.TableEntry(table_id=4))]))
    assert len(found) == 2
    assert [e.canonical_code for e in caught.value.errors] == [code_pb2.OK, code_pb2.INVALID_ARGUMENT]


def heard(client: GrpcClient) -> Message:
    """Return the next message of a client's stream, which comes within 5 s."""
    news = client.receive(5)
    assert news is not None
    return news


def raw_stream(channel: grpc.Channel, requests: Iterator[bytes]) -> grpc._CallIterator[bytes]:
    """Open a stream whose messages are arbitrary bytes."""
    opened: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")
    return opened(requests)


def test_silent_streams_keep_nobody_out(served: Served, primary: GrpcClient) -> None:
    silent = threading.Event()
    hello = p4runtime_pb2.StreamMessageRequest(arbitration={"device_id": 1}).SerializeToString()

    def introduce(role: int) -> Iterator[bytes]:
        if role:
            message = p4runtime_pb2.StreamMessageRequest.FromString(hello)
            message.arbitration.role.name = f"role {role}"
            yield message.SerializeToString()
        silent.wait()

    with grpc.insecure_channel(served.address) as channel:
        streams = [raw_stream(channel, introduce(i % 2 * i)) for i in range(120)]
        for stream in streams[1::2]:
            next(stream)  # the answer to its introduction
        primary.write([Update(type=INSERT, entity=wrap(entry(served, 10)))])
        late = served.client(20)
        late.open()
        late.write([Update(type=DELETE, entity=wrap(entry(served, 10)))])
        silent.set()
        for stream in streams:
            stream.cancel()


def test_it_stops_after_malformed_stream_messages(served: Served) -> None:
    silent = threading.Event()

    def garbage() -> Iterator[bytes]:
        yield b"\xff\xff\xff"
        silent.wait()

    with grpc.insecure_channel(served.address) as channel:
        streams = [raw_stream(channel, garbage()) for _ in range(40)]
        codes = []
        for stream in streams:
            with pytest.raises(grpc.RpcError) as caught:
                next(stream)
            codes.append(caught.value.code())
        assert set(codes) <= {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL}
        stopper = threading.Thread(target=served.server.stop)
        stopper.start()
        stopper.join(20)
        silent.set()
        assert not stopper.is_alive()
        served.stopped = True


def test_what_serves_a_call_ends_with_the_server(served: Served) -> None:
    """GRPC ends a call before the task that serves it. A remaining task would report itself on stderr."""
    ended = []

    async def serves(end_s: float) -> None:
        try:
            await asyncio.sleep(end_s)
        finally:
            ended.append(end_s)

    for end_s in (0.01, 1e6):
        asyncio.run_coroutine_threadsafe(serves(end_s), served.server._host._loop)
    served.server.stop()
    served.stopped = True
    assert ended == [0.01, 1e6]


def test_what_waits_for_a_controller_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    packet, arbitration = (p4runtime_pb2.StreamMessageResponse(**{kind: {}}) for kind in ("packet", "arbitration"))

    async def taken() -> list[Message]:
        outgoing = Outgoing()
        for _ in range(MAX_OUTGOING + 3):
            outgoing.put(packet)
        outgoing.put(arbitration)  # reports the primary
        outgoing.end()
        return [message async for message in outgoing]

    assert asyncio.run(taken()) == [packet] * MAX_OUTGOING + [arbitration]
    assert caplog.messages == [
        "4096 messages wait for a controller that takes none; more are lost",
        "3 messages for a controller were lost",
    ]


def test_roles_are_bounded_and_forgotten() -> None:
    arbitration = Arbitration(1)
    sent: list[Message] = []

    def introduce(name: str) -> Controller:
        controller = Controller(sent.append)
        arbitration.update(controller, p4runtime_pb2.MasterArbitrationUpdate(device_id=1, role={"name": name}))
        return controller

    for i in range(3000):
        arbitration.leave(introduce(f"role {i}"))
    for i in range(1023):
        introduce(f"role {i}")
    for name in ("one more", "x" * 257):
        with pytest.raises(P4RuntimeError):
            introduce(name)
    introduce("")  # the default role always exists


def test_a_controller_without_an_election_id_may_have_the_id_zero() -> None:
    update = p4runtime_pb2.MasterArbitrationUpdate(device_id=1)
    unset = p4runtime_pb2.Uint128()
    strict, lenient = Arbitration(1), Arbitration(1, zero_election_id=True)
    for arbitration in (strict, lenient):
        arbitration.update(Controller(lambda _: None), update)
    with pytest.raises(P4RuntimeError):
        strict.check("", unset)
    lenient.check("", unset)
    with pytest.raises(P4RuntimeError, match="election id 0 is in use"):
        lenient.update(Controller(lambda _: None), update)
    later = Controller(lambda _: None)
    lenient.update(later, p4runtime_pb2.MasterArbitrationUpdate(device_id=1, election_id={"low": 1}))
    with pytest.raises(P4RuntimeError):
        lenient.check("", unset)
    lenient.check("", p4runtime_pb2.Uint128(low=1))


def test_only_the_primary_writes(served: Served, primary: GrpcClient) -> None:
    stranger = served.client(11)
    calls: tuple[Callable[[], object], ...] = (
        lambda: stranger.write([]),
        lambda: stranger.set_pipeline(everything.p4info(), everything.device_config()),
    )
    for call in calls:
        with pytest.raises(P4RuntimeError) as caught:
            call()
        assert code(caught.value) == "PERMISSION_DENIED"
    other_device = served.client(10, device_id=7)
    with pytest.raises(P4RuntimeError) as caught:
        other_device.write([])
    assert code(caught.value) == "NOT_FOUND"


def test_the_highest_election_id_is_primary(served: Served, primary: GrpcClient) -> None:
    backup = served.client(5)
    with pytest.raises(P4RuntimeError) as caught:
        backup.open()
    assert code(caught.value) == "PERMISSION_DENIED"
    higher = served.client(1 << 100)
    higher.open()
    news = primary.receive(5)
    assert news is not None
    assert news.arbitration.status.code == code_pb2.ALREADY_EXISTS
    assert news.arbitration.election_id.high == 1 << 36
    with pytest.raises(P4RuntimeError) as caught:
        primary.write([])
    assert code(caught.value) == "PERMISSION_DENIED"
    higher.write([])
    higher.close()
    news = primary.receive(5)
    assert news is not None
    assert news.arbitration.status.code == code_pb2.NOT_FOUND  # there is no primary
    # The highest id that ever was still counts.
    late = served.client(11)
    with pytest.raises(P4RuntimeError):
        late.open()
    again = served.client(1 << 100)
    again.open()
    again.write([])


def arbitration(device_id: int = 1, election_id: int | None = None, role: str = "") -> Message:
    request = p4runtime_pb2.StreamMessageRequest()
    request.arbitration.device_id = device_id
    if election_id is not None:
        request.arbitration.election_id.low = election_id
    if role:
        request.arbitration.role.name = role
    return request


def test_a_primary_may_step_down_and_come_back(served: Served, primary: GrpcClient) -> None:
    primary.send(arbitration(election_id=3))
    news = primary.receive(5)
    assert news is not None
    assert news.arbitration.status.code == code_pb2.NOT_FOUND
    assert news.arbitration.election_id.low == 10
    primary.send(arbitration())  # without an id: never primary
    assert heard(primary).arbitration.status.code == code_pb2.NOT_FOUND
    primary.send(arbitration(election_id=11))
    assert heard(primary).arbitration.status.code == code_pb2.OK


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (arbitration(device_id=2, election_id=10), "FAILED_PRECONDITION"),
        (arbitration(election_id=10, role="other"), "FAILED_PRECONDITION"),
    ],
)
def test_a_stream_keeps_device_and_role(primary: GrpcClient, request_: Message, expected: str) -> None:
    primary.send(request_)
    with pytest.raises(P4RuntimeError) as caught:
        primary.receive(5)
    assert code(caught.value) == expected


def test_streams_that_begin_wrong(served: Served, primary: GrpcClient) -> None:
    with pytest.raises(P4RuntimeError) as caught:
        served.client(20, device_id=2).open()
    assert code(caught.value) == "NOT_FOUND"
    with pytest.raises(P4RuntimeError) as caught:
        served.client(10).open()  # in use
    assert code(caught.value) == "INVALID_ARGUMENT"


def test_roles_have_primaries_of_their_own(served: Served, primary: GrpcClient) -> None:
    primary_of_role = served.client(1)
    primary_of_role.open("acl")
    request = p4runtime_pb2.WriteRequest(device_id=1, role="acl", election_id={"low": 1})
    primary_of_role.call("Write", request, p4runtime_pb2.WriteResponse)
    request.role = "unheard of"
    with pytest.raises(P4RuntimeError) as caught:
        primary_of_role.call("Write", request, p4runtime_pb2.WriteResponse)
    assert code(caught.value) == "NOT_FOUND"


def test_packets(served: Served, primary: GrpcClient) -> None:
    primary.send(p4runtime_pb2.StreamMessageRequest(packet=packet_out((1, b"\x02"), (2, b"\x03"))))
    primary.send(p4runtime_pb2.StreamMessageRequest(packet=packet_out((1, b"\x02"))))
    error = primary.receive(5)
    assert error is not None
    assert error.error.canonical_code == code_pb2.INVALID_ARGUMENT
    assert error.error.packet_out.packet_out == packet_out((1, b"\x02"))
    assert served.frames == [b"\x01\x03hello"]
    served.server.publish(1, served.bench.device.packet_in(b"\x01\x03hello"))
    news = primary.receive(5)
    assert news is not None
    assert news.packet.payload == b"hello"
    ack = p4runtime_pb2.StreamMessageRequest(digest_ack={"digest_id": 5, "list_id": 1})
    primary.send(ack)
    news = primary.receive(5)
    assert news is not None
    assert news.error.digest_list_ack.digest_list_ack == ack.digest_ack
    primary.send(p4runtime_pb2.StreamMessageRequest(other={}))
    assert heard(primary).error.canonical_code == code_pb2.UNIMPLEMENTED


def test_backups_may_not_send_packets(served: Served, primary: GrpcClient) -> None:
    higher = served.client(20)
    higher.open()
    assert primary.receive(5) is not None
    primary.send(p4runtime_pb2.StreamMessageRequest(packet=packet_out((1, b"\x02"), (2, b"\x03"))))
    news = primary.receive(5)
    assert news is not None
    assert news.error.canonical_code == code_pb2.PERMISSION_DENIED
    assert not served.frames
    served.server.publish(1, served.bench.device.packet_in(b"\x01\x03hello"))
    assert heard(higher).packet.payload == b"hello"
    assert primary.receive(0.1) is None


def test_capabilities_and_config(served: Served, primary: GrpcClient) -> None:
    pb = p4runtime_pb2
    response = primary.call("Capabilities", pb.CapabilitiesRequest(), pb.CapabilitiesResponse)
    assert response.p4runtime_api_version
    request = pb.GetForwardingPipelineConfigRequest(device_id=1)
    response = primary.call("GetForwardingPipelineConfig", request, pb.GetForwardingPipelineConfigResponse)
    assert response.config.p4info == everything.p4info()


def test_an_address_in_use(served: Served) -> None:
    other = P4RuntimeServer(served.bench.device, served.address)
    with pytest.raises(UserError, match="expected a free HOST:PORT"):
        other.start()


@pytest.fixture(params=["nobody listens", "nothing comes"])
def silent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield an address at which no server answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        if request.param == "nothing comes":
            listener.bind(str(tmp_path / "p4rt"))
            listener.listen()
        yield f"unix:{tmp_path}/p4rt"


def test_nobody_answers(silent: str) -> None:
    before = set(threading.enumerate())
    with pytest.raises(P4RuntimeError, match="no P4Runtime server answers") as caught:
        GrpcClient(silent, timeout_s=0.2).open()
    assert code(caught.value) == "UNAVAILABLE"
    _ended(before)


def test_closing_a_client_ends_what_another_thread_waits_for(silent: str) -> None:
    before = set(threading.enumerate())
    client = GrpcClient(silent, timeout_s=600)
    told: list[str] = []

    def opens() -> None:
        with pytest.raises(P4RuntimeError, match="the client was closed") as caught:
            client.open()
        told.append(code(caught.value))

    waiting = threading.Thread(target=opens, daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    client.close()
    waiting.join(30)
    opens()
    assert told == ["CANCELLED", "CANCELLED"]
    with pytest.raises(P4RuntimeError, match="the client was closed"):
        list(client.read([]))
    _ended(before)


def _ended(before: set[threading.Thread]) -> None:
    """Check that all threads have ended: one that remains may abort Python at its end."""
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive(), thread.name


def test_early_controllers_read_byte_strings_as_wide_as_fields(blank: Bench) -> None:
    server = P4RuntimeServer(blank.device, "127.0.0.1:0", early=True)
    server.start()
    client = GrpcClient(f"127.0.0.1:{server.port}", 1, election_id=0, timeout_s=5)
    try:
        client.open()
        client.set_pipeline(everything.p4info(), everything.device_config())
        given = blank.controller.entry("lpm_one", {"l": (10, 32)}, ("drop",))
        client.write([Update(type=INSERT, entity=wrap(given))])
        (found,) = client.read([wrap(blank.controller.entry("lpm_one"))])
        assert found.table_entry.match[0].lpm.value == bytes([0, 0, 0, 10])
    finally:
        client.close()
        server.stop()
