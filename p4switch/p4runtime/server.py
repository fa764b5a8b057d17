"""The P4Runtime gRPC service around a `Device`."""
from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc

from p4switch.errors import UserError
from p4switch.p4runtime.arbitration import Arbitration, Controller
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2

_LOG = logging.getLogger(__name__)
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_MAX_STREAMS = 64
_MAX_OUTGOING = 4096  # messages that wait for one controller; packet-ins beyond them are dropped
_Response = p4runtime_pb2.StreamMessageResponse


class P4RuntimeServer:
    """Serves `device` at `address`. `packet_out` takes the frames that controllers want put into the CPU port.

    `address` is HOST:PORT (port 0: any free one, see `port`). Without TLS: whoever reaches the address is obeyed.
    """

    def __init__(self, device: Device, address: str, packet_out: Callable[[bytes], None] | None = None) -> None:
        self._device = device
        self._address = address
        self._packet_out = packet_out
        self._arbitration = Arbitration(device.device_id)
        # Held while a primary writes, so that a primary whose time is over finishes before the next one begins.
        self._lock = threading.RLock()
        self._server = grpc.server(
            ThreadPoolExecutor(_MAX_STREAMS + 16, "p4runtime"),
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
                     ("grpc.so_reuseport", 0)],
        )
        self._server.add_generic_rpc_handlers((self._handlers(),))
        self.port = 0

    def start(self) -> None:
        """Raises UserError if the address cannot be listened at."""
        try:
            self.port = self._server.add_insecure_port(self._address)
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise UserError(f"--grpc-server-addr {self._address}: cannot listen there; expected a free HOST:PORT")
        self._server.start()

    def stop(self, grace_s: float = 0.5) -> None:
        self._server.stop(grace_s).wait()

    def publish(self, message: Message) -> None:
        """A StreamMessageResponse for the primary controllers: packet-in, digest list, idle time-out."""
        with self._lock:
            for controller in self._arbitration.primaries():
                controller.send(message)

    def _handlers(self) -> grpc.GenericRpcHandler:
        pb = p4runtime_pb2

        def unary(method: Callable[[Message], Message], request: Any, response: Any) -> Any:
            def call(message: Message, context: grpc.ServicerContext) -> Message:
                try:
                    return method(message)
                except P4RuntimeError as error:
                    _abort(context, error)
                except Exception as error:
                    _LOG.exception("an error of the server's own")
                    _abort(context, P4RuntimeError(code_pb2.INTERNAL, f"{type(error).__name__}: {error}"))

            return grpc.unary_unary_rpc_method_handler(call, request.FromString, response.SerializeToString)

        return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", {
            "Write": unary(self._write, pb.WriteRequest, pb.WriteResponse),
            "Read": grpc.unary_stream_rpc_method_handler(
                self._read, pb.ReadRequest.FromString, pb.ReadResponse.SerializeToString),
            "SetForwardingPipelineConfig": unary(
                self._set_config, pb.SetForwardingPipelineConfigRequest, pb.SetForwardingPipelineConfigResponse),
            "GetForwardingPipelineConfig": unary(
                self._device.get_forwarding_pipeline_config, pb.GetForwardingPipelineConfigRequest,
                pb.GetForwardingPipelineConfigResponse),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                self._stream, pb.StreamMessageRequest.FromString, _Response.SerializeToString),
            "Capabilities": unary(self._device.capabilities, pb.CapabilitiesRequest, pb.CapabilitiesResponse),
        })

    def _check(self, request: Message) -> None:
        if request.device_id != self._device.device_id:
            raise P4RuntimeError(code_pb2.NOT_FOUND, f"device {request.device_id} is not here; "
                                 f"this is device {self._device.device_id}")
        self._arbitration.check(request.role, request.election_id)

    def _write(self, request: Message) -> Message:
        with self._lock:
            self._check(request)
            return self._device.write(request)

    def _set_config(self, request: Message) -> Message:
        with self._lock:
            self._check(request)
            return self._device.set_forwarding_pipeline_config(request)

    def _read(self, request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
        try:
            yield from self._device.read(request)
        except P4RuntimeError as error:
            _abort(context, error)

    # -- streams ----------------------------------------------------------------------------------------------------

    def _stream(self, requests: Iterator[Message], context: grpc.ServicerContext) -> Iterator[Message]:
        outgoing: queue.Queue[Message | P4RuntimeError | None] = queue.Queue()

        def send(message: Message) -> None:
            if outgoing.qsize() < _MAX_OUTGOING or message.WhichOneof("update") == "arbitration":
                outgoing.put(message)

        controller = Controller(send)

        def receive() -> None:
            end: P4RuntimeError | None = None
            try:
                for request in requests:
                    self._stream_request(controller, request)
            except P4RuntimeError as error:
                end = error
            except Exception as error:  # the stream was cancelled, or gRPC gave up on it
                _LOG.debug("stream ended: %s", error)
            outgoing.put(end)

        # gRPC may end a call while nothing is there to send: this wakes the loop below.
        if not context.add_callback(lambda: outgoing.put(None)):
            return
        thread = threading.Thread(target=receive, name="p4runtime stream", daemon=True)
        thread.start()
        try:
            while (message := outgoing.get()) is not None:
                if isinstance(message, P4RuntimeError):
                    _abort(context, message)
                yield message
        finally:
            with self._lock:
                self._arbitration.leave(controller)

    def _stream_request(self, controller: Controller, request: Message) -> None:
        """Raises P4RuntimeError for what ends the stream: a bad arbitration update."""
        kind = request.WhichOneof("update")
        with self._lock:
            if kind == "arbitration":
                self._arbitration.update(controller, request.arbitration)
                return
            primary = self._arbitration.is_primary(controller)
        try:
            if not primary:
                raise P4RuntimeError(code_pb2.PERMISSION_DENIED, "only the primary controller may send this")
            if kind == "packet":
                if self._packet_out is None:
                    raise P4RuntimeError(code_pb2.FAILED_PRECONDITION, "there is no CPU port; see --cpu-port")
                self._packet_out(self._device.packet_out(request.packet))
            elif kind == "digest_ack":
                self._device.acknowledge(request.digest_ack)
            else:
                raise P4RuntimeError(code_pb2.UNIMPLEMENTED, f"stream message {kind}: not one of v1model's")
        except P4RuntimeError as error:
            controller.send(_stream_error(request, kind, error))


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


def _abort(context: grpc.ServicerContext, error: P4RuntimeError) -> NoReturn:
    if error.errors:
        context.set_trailing_metadata((("grpc-status-details-bin", error.status().SerializeToString()),))
    context.abort(_CODES[error.code], error.message)
    raise AssertionError("abort does not return")
