"""The P4Runtime gRPC service around a `Device`."""
from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
import grpc.aio

from p4switch.p4runtime.arbitration import Arbitration, Controller
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.grpc_host import GrpcHost
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2
from p4switch.p4runtime.padded import Padder

_LOG = logging.getLogger(__name__)
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_MAX_STREAMS = 4096
MAX_OUTGOING = 4096  # maximum number of messages that wait for a controller; further ones are lost
_Response = p4runtime_pb2.StreamMessageResponse


@dataclass(frozen=True)
class _Served:
    """Device of the server, with its controllers."""

    device: Device
    arbitration: Arbitration


class P4RuntimeServer:
    """P4Runtime server for `device`. `packet_out` is called with the frames of controllers for the CPU port.

    A server may have more devices (`add`), each with its own id and controllers.

    `address` is HOST:PORT (port 0: any free port, see `port`). There is no TLS: every client that
    reaches the address is served. With `early`, it supports controllers of early versions of P4Runtime:
    they need no election id to be primary, and reads return byte strings as wide as their fields.
    """

    def __init__(
        self,
        device: Device,
        address: str,
        packet_out: Callable[[bytes], None] | None = None,
        *,
        early: bool = False,
    ) -> None:
        self._served: dict[int, _Served] = {}  # devices by id
        self._packet_out = packet_out
        # Held while a primary writes, so that a write of a replaced primary ends before the new one writes.
        self._lock = threading.RLock()
        self._host = GrpcHost(address, "p4runtime", "--grpc-server-addr", self._handlers)
        self._streams = 0
        self._early = early
        self.add(device)

    def add(self, device: Device) -> None:
        """Add a device to the server."""
        arbitration = Arbitration(device.device_id, zero_election_id=self._early)
        self._served[device.device_id] = _Served(device, arbitration)

    @property
    def port(self) -> int:
        """Port on which the server listens once it is started."""
        return self._host.port

    def start(self) -> None:
        """Start the server.

        Raises UserError if the server cannot listen on the address.
        """
        self._host.start()

    def stop(self, grace_s: float = 0.5) -> None:
        """Stop the server.

        Parameters
        ----------
        grace_s
            Seconds after which unfinished calls are cancelled.
        """
        self._host.stop(grace_s)

    def publish(self, device_id: int, message: Message) -> None:
        """Send a StreamMessageResponse (packet-in, digest list or idle time-out) to a device's primaries."""
        with self._lock:
            for controller in self._served[device_id].arbitration.primaries():
                controller.send(message)

    # -- calls ------------------------------------------------------------------------------------------------------

    def _handlers(self) -> grpc.GenericRpcHandler:
        pb = p4runtime_pb2

        def unary(method: Callable[[Message], Message], request: Any, response: Any) -> Any:
            return self._host.unary(lambda message, _: method(message), request, response, abort)

        return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", {
            "Write": unary(self._write, pb.WriteRequest, pb.WriteResponse),
            "Read": grpc.unary_stream_rpc_method_handler(
                self._read, pb.ReadRequest.FromString, pb.ReadResponse.SerializeToString),
            "SetForwardingPipelineConfig": unary(
                self._set_config, pb.SetForwardingPipelineConfigRequest, pb.SetForwardingPipelineConfigResponse),
            "GetForwardingPipelineConfig": unary(
                self._get_config, pb.GetForwardingPipelineConfigRequest,
                pb.GetForwardingPipelineConfigResponse),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                self._stream, pb.StreamMessageRequest.FromString, _Response.SerializeToString),
            "Capabilities": unary(self._capabilities, pb.CapabilitiesRequest, pb.CapabilitiesResponse),
        })

    def _of(self, device_id: int) -> _Served:
        """Return the device with an id.

        Raises P4RuntimeError (NOT_FOUND) if the server has no such device.
        """
        served = self._served.get(device_id)
        if served is None:
            first, *others = self._served
            here = f"these are devices {first} to {others[-1]}" if others else f"this is device {first}"
            raise P4RuntimeError(code_pb2.NOT_FOUND, f"device {device_id} is not here; {here}")
        return served

    def _led(self, device_id: int, controller: Controller) -> Device | None:
        """Return a device if `controller` is its primary, else None."""
        served = self._of(device_id)
        return served.device if served.arbitration.is_primary(controller) else None

    def _checked(self, request: Message) -> Device:
        """Check that a primary sent a request, and return the request's device."""
        served = self._of(request.device_id)
        served.arbitration.check(request.role, request.election_id)
        return served.device

    def _write(self, request: Message) -> Message:
        with self._lock:
            return self._checked(request).write(request)

    def _set_config(self, request: Message) -> Message:
        with self._lock:
            return self._checked(request).set_forwarding_pipeline_config(request)

    def _get_config(self, request: Message) -> Message:
        return self._of(request.device_id).device.get_forwarding_pipeline_config(request)

    def _capabilities(self, request: Message) -> Message:
        return next(iter(self._served.values())).device.capabilities(request)

    async def _read(self, request: Message, context: Any) -> AsyncIterator[Message]:
        try:
            device = self._of(request.device_id).device
            responses = device.read(request)
            while (response := await self._host.work(self._next, device, responses)) is not None:
                yield response
        except P4RuntimeError as error:
            await abort(context, error)

    def _next(self, device: Device, responses: Iterator[Message]) -> Message | None:
        """Return the next response to a read, or None after the last one."""
        response = next(responses, None)
        if self._early and response is not None:
            padder = Padder(device.look(lambda state: state.pipeline.p4info))
            for entity in response.entities:
                padder.pad(entity)
        return response

    # -- streams ----------------------------------------------------------------------------------------------------

    async def _stream(self, requests: AsyncIterator[Message], context: Any) -> AsyncIterator[Message]:
        if self._streams >= _MAX_STREAMS:
            await abort(context, P4RuntimeError(code_pb2.RESOURCE_EXHAUSTED, f"{_MAX_STREAMS} streams are open"))
        outgoing = Outgoing()

        def send(message: Message) -> None:
            self._host.call_soon(outgoing.put, message)

        controller = Controller(send)

        async def receive() -> None:
            async for request in requests:
                await self._host.work(self._stream_request, controller, request)

        self._streams += 1
        receiver = asyncio.create_task(receive())
        receiver.add_done_callback(lambda _: outgoing.end())
        try:
            async for message in outgoing:
                yield message
            error = receiver.exception()
            if error is not None and not isinstance(error, P4RuntimeError):
                _LOG.debug("stream ended: %s", error)
                error = P4RuntimeError(code_pb2.INVALID_ARGUMENT, "expected messages of type StreamMessageRequest")
            if error is not None:
                await abort(context, error)
        finally:
            self._streams -= 1
            receiver.cancel()
            self._host.submit(self._leave, controller)

    def _leave(self, controller: Controller) -> None:
        with self._lock:
            if controller.device_id is not None:
                self._of(controller.device_id).arbitration.leave(controller)

    def _stream_request(self, controller: Controller, request: Message) -> None:
        """Process a request.

        Raises P4RuntimeError for a bad arbitration update, which ends the stream.
        """
        kind = request.WhichOneof("update")
        with self._lock:
            device_id = controller.device_id
            if kind == "arbitration":
                served = self._of(request.arbitration.device_id if device_id is None else device_id)
                served.arbitration.update(controller, request.arbitration)
                return
            device = None if device_id is None else self._led(device_id, controller)
        try:
            if device is None:
                raise P4RuntimeError(code_pb2.PERMISSION_DENIED, "only the primary controller may send this")
            if kind == "packet":
                if self._packet_out is None:
                    raise P4RuntimeError(code_pb2.FAILED_PRECONDITION, "there is no CPU port; see --cpu-port")
                self._packet_out(device.packet_out(request.packet))
            elif kind == "digest_ack":
                device.acknowledge(request.digest_ack)
            else:
                raise P4RuntimeError(code_pb2.UNIMPLEMENTED, f"stream message {kind}: this switch has none")
        except P4RuntimeError as error:
            controller.send(_stream_error(request, kind, error))


class Outgoing:
    """Queue of messages to one controller. Lost messages are logged."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Message | None] = asyncio.Queue()
        self._lost = 0

    def put(self, message: Message) -> None:
        """Queue a message for the controller."""
        if self._waiting.qsize() < MAX_OUTGOING or message.WhichOneof("update") == "arbitration":
            self._waiting.put_nowait(message)
            return
        if not self._lost:
            _LOG.warning("%d messages wait for a controller that takes none; more are lost", MAX_OUTGOING)
        self._lost += 1

    def end(self) -> None:
        """End the stream after the waiting messages."""
        self._waiting.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self._waiting.get()) is not None:
            yield message
            if self._lost and self._waiting.qsize() < MAX_OUTGOING:
                _LOG.warning("%d messages for a controller were lost", self._lost)
                self._lost = 0


def _stream_error(request: Message, kind: str | None, error: P4RuntimeError) -> Message:
    response = _Response()
    response.error.canonical_code = error.code
    response.error.message = error.message
    if kind == "packet":
        response.error.packet_out.packet_out.CopyFrom(request.packet)
    elif kind == "digest_ack":
        response.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        response.error.other.SetInParent()
    return response


async def abort(context: Any, error: P4RuntimeError) -> NoReturn:
    """End a call with an error."""
    if error.errors:
        context.set_trailing_metadata((("grpc-status-details-bin", error.status().SerializeToString()),))
    await context.abort(_CODES[error.code], error.message)
    raise AssertionError("abort does not return")
