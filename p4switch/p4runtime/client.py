"""Clients of P4Runtime devices: in this process, or over gRPC. Both use the same messages."""
from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2, status_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import Device

_SERVICE = "/p4.v1.P4Runtime/"
_STATUS_DETAILS = "grpc-status-details-bin"


class Client(Protocol):
    """Session with one device as its primary controller. All methods may raise P4RuntimeError."""

    device_id: int

    def set_pipeline(self, p4info: Message, device_config: bytes) -> None:
        """Verify and commit a pipeline. All earlier entries are removed."""

    def write(self, updates: Sequence[Message]) -> None:
        """Write one batch of Update messages."""

    def read(self, entities: Sequence[Message]) -> Iterator[Message]:
        """Yield the entities that the queries select."""

    def close(self) -> None:
        """End the connection."""


def _pipeline_request(device_id: int, p4info: Message, device_config: bytes) -> Message:
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
        device_id=device_id, action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    )
    request.config.p4info.CopyFrom(p4info)
    request.config.p4_device_config = device_config
    return request


class LocalClient:
    """Client of a device in this process."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.device_id = device.device_id

    def set_pipeline(self, p4info: Message, device_config: bytes) -> None:
        """Verify and commit a pipeline."""
        self.device.set_forwarding_pipeline_config(_pipeline_request(self.device_id, p4info, device_config))

    def write(self, updates: Sequence[Message]) -> None:
        """Write one batch of Update messages."""
        self.device.write(p4runtime_pb2.WriteRequest(device_id=self.device_id, updates=updates))

    def read(self, entities: Sequence[Message]) -> Iterator[Message]:
        """Yield the entities that the queries select."""
        for response in self.device.read(p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=entities)):
            yield from response.entities

    def set_port_up(self, port: int, up: bool) -> None:
        """Report to the device that the link of a port has gone up or down."""
        self.device.set_port_up(port, up)

    def close(self) -> None:
        """Do nothing, because the client has no connection."""


class GrpcClient:
    """Client of a device at a gRPC address. It becomes primary on entry: `with GrpcClient(...) as client`.

    Each call raises P4RuntimeError (UNAVAILABLE) if there is no answer within `timeout_s`. A
    `close` in another thread ends all calls at once (CANCELLED).
    """

    def __init__(self, address: str, device_id: int = 1, *, election_id: int = 1, timeout_s: float = 10.0) -> None:
        import grpc  # imported here because only network clients need it

        self.device_id = device_id
        self._election_id = p4runtime_pb2.Uint128(high=election_id >> 64, low=election_id & (1 << 64) - 1)
        self._timeout_s = timeout_s
        self._grpc = grpc
        # No proxy, because the switch is on this machine, and no limit of the message size.
        self._channel = grpc.insecure_channel(address, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)
        ])
        self._address = address
        self._outgoing: queue.Queue[Message | None] = queue.Queue()
        self._incoming: queue.Queue[Message | P4RuntimeError] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._call: Any = None
        self._lock = threading.Lock()  # guards the calls that `close` ends, and the flag that it was called
        self._closed = False

    def __enter__(self) -> GrpcClient:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def open(self, role: str = "") -> None:
        """Connect and become primary.

        Parameters
        ----------
        role
            Role of the controller. "" is the default role.

        Raises
        ------
        P4RuntimeError
            PERMISSION_DENIED if another controller is primary.
        """
        with self._unless_closed():
            # The call itself waits for the server. A thread that watches the channel's state would outlive `close`,
            # and would abort Python if it still ran when Python ends.
            self._call = self._channel.stream_stream(
                _SERVICE + "StreamChannel",
                request_serializer=p4runtime_pb2.StreamMessageRequest.SerializeToString,
                response_deserializer=p4runtime_pb2.StreamMessageResponse.FromString,
            )(iter(self._outgoing.get, None), wait_for_ready=True)
            self._thread = threading.Thread(target=self._receive, name=f"p4runtime {self._address}", daemon=True)
            self._thread.start()
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.CopyFrom(self._election_id)
        if role:
            request.arbitration.role.name = role
        self.send(request)
        answer = self.receive(self._timeout_s)
        if answer is None:
            self.close()
            raise P4RuntimeError(code_pb2.UNAVAILABLE, f"{self._address}: no P4Runtime server answers")
        if answer.arbitration.status.code != code_pb2.OK:
            self.close()
            raise P4RuntimeError(code_pb2.PERMISSION_DENIED, f"{self._address}: another controller is primary")

    @contextlib.contextmanager
    def _unless_closed(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise self._cancelled()
            yield

    def _cancelled(self) -> P4RuntimeError:
        return P4RuntimeError(code_pb2.CANCELLED, f"{self._address}: the client was closed")

    def _receive(self) -> None:
        try:
            for message in self._call:
                self._incoming.put(message)
        except self._grpc.RpcError as error:
            self._incoming.put(self._cancelled() if self._closed else _error(error))

    def send(self, request: Message) -> None:
        """Send a StreamMessageRequest: packet-out, digest acknowledgement."""
        self._outgoing.put(request)

    def receive(self, timeout_s: float) -> Message | None:
        """Return the next message of the stream.

        Parameters
        ----------
        timeout_s
            Time to wait.

        Returns
        -------
        Message | None
            A StreamMessageResponse; None if none arrives in time.

        Raises
        ------
        P4RuntimeError
            If the stream ended.
        """
        try:
            message = self._incoming.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(message, P4RuntimeError):
            raise message
        return message

    def close(self) -> None:
        """End the stream and the channel."""
        with self._lock:
            self._closed = True
        self._outgoing.put(None)
        if self._call is not None:
            self._call.cancel()
        if self._thread is not None:
            self._thread.join(self._timeout_s)
        self._channel.close()

    def call(self, method: str, request: Message, response: Any) -> Message:
        """Call a unary RPC by name. `response` is the class of its response."""
        call = self._channel.unary_unary(
            _SERVICE + method, request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        with self._errors():
            return call(request, timeout=self._timeout_s)

    def set_pipeline(self, p4info: Message, device_config: bytes) -> None:
        """Verify and commit a pipeline."""
        request = _pipeline_request(self.device_id, p4info, device_config)
        request.election_id.CopyFrom(self._election_id)
        self.call("SetForwardingPipelineConfig", request, p4runtime_pb2.SetForwardingPipelineConfigResponse)

    def write(self, updates: Sequence[Message]) -> None:
        """Write one batch of Update messages."""
        request = p4runtime_pb2.WriteRequest(
            device_id=self.device_id, election_id=self._election_id, updates=updates
        )
        self.call("Write", request, p4runtime_pb2.WriteResponse)

    def read(self, entities: Sequence[Message]) -> Iterator[Message]:
        """Yield the entities that the queries select."""
        call = self._channel.unary_stream(
            _SERVICE + "Read", request_serializer=p4runtime_pb2.ReadRequest.SerializeToString,
            response_deserializer=p4runtime_pb2.ReadResponse.FromString,
        )
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=entities)
        with self._errors():
            for response in call(request, timeout=self._timeout_s):
                yield from response.entities

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._grpc.RpcError as error:
            raise _error(error) from error
        except ValueError:
            if self._closed:  # gRPC raises ValueError for a call that begins after `close`
                raise self._cancelled() from None
            raise


def _error(error: Any) -> P4RuntimeError:
    """Return the P4RuntimeError, with its details, for an error of gRPC."""
    for key, value in error.trailing_metadata() or ():
        if key == _STATUS_DETAILS:
            errors = []
            for detail in status_pb2.Status.FromString(value).details:
                errors.append(p4runtime_pb2.Error())
                detail.Unpack(errors[-1])
            return P4RuntimeError(error.code().value[0], error.details(), errors)
    return P4RuntimeError(error.code().value[0], error.details() or str(error.code()))
