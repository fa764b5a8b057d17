"""The BfRuntime gRPC service around a `Device`, beside P4Runtime's on the same state.

Errors are as the published server gives them: UNKNOWN, with one `bfrt_proto.Error` an update in
`grpc-status-details-bin`, or in the response for clients that ask for it (metadata `error_in_resp`). Without TLS, and
without elections: whoever reaches the address is obeyed, also while a P4Runtime controller is primary.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import grpc

from p4switch.bfrt.fields import Json
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables import Tables
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.errors import P4RuntimeError, invalid, not_found, unimplemented
from p4switch.p4runtime.grpc_host import GrpcHost
from p4switch.p4runtime.messages import code_pb2, status_pb2

_LOG = logging.getLogger(__name__)
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_ALL_PIPES = 0xFFFF
_ENTITIES_A_RESPONSE = 500
_Write = bfruntime_pb2.WriteRequest
_Set = bfruntime_pb2.SetForwardingPipelineConfigRequest
_NO_TABLES = {"schema_version": "1.0.0", "tables": [], "learn_filters": []}


class BfRuntimeServer:
    """Serves `device`, which runs the program called `name`, at `address`, HOST:PORT (port 0: any free one)."""

    def __init__(self, device: Device, address: str, name: str, bf_rt: Json, p4info: Any) -> None:
        self._device = device
        self._name = name
        self._bf_rt = json.dumps(bf_rt).encode()
        self._tables = Tables(bf_rt, p4info)
        self._host = GrpcHost(address, "bfruntime", "--bfrt", self._handlers)

    @property
    def port(self) -> int:
        """The port that the server listens at, once it is started."""
        return self._host.port

    def start(self) -> None:
        """Start the server.

        Raises UserError if the address cannot be listened at.
        """
        self._host.start()

    def stop(self, grace_s: float = 0.5) -> None:
        """End all calls, also those that are not done after `grace_s`."""
        self._host.stop(grace_s)

    def _handlers(self) -> grpc.GenericRpcHandler:
        pb = bfruntime_pb2

        def unary(method: Callable[[Message, Any], Message], request: Any, response: Any) -> Any:
            async def call(message: Message, context: Any) -> Message:
                try:
                    return await self._host.work(method, message, context)
                except P4RuntimeError as error:
                    await _abort(context, error)
                except Exception as error:
                    _LOG.exception("an error of the server's own")
                    await _abort(context, P4RuntimeError(code_pb2.INTERNAL, f"{type(error).__name__}: {error}"))

            return grpc.unary_unary_rpc_method_handler(call, request.FromString, response.SerializeToString)

        return grpc.method_handlers_generic_handler("bfrt_proto.BfRuntime", {
            "Write": unary(self._write, pb.WriteRequest, pb.WriteResponse),
            "Read": grpc.unary_stream_rpc_method_handler(
                self._read, pb.ReadRequest.FromString, pb.ReadResponse.SerializeToString),
            "SetForwardingPipelineConfig": unary(
                self._set_config, pb.SetForwardingPipelineConfigRequest, pb.SetForwardingPipelineConfigResponse),
            "GetForwardingPipelineConfig": unary(
                self._get_config, pb.GetForwardingPipelineConfigRequest, pb.GetForwardingPipelineConfigResponse),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                self._stream, pb.StreamMessageRequest.FromString, pb.StreamMessageResponse.SerializeToString),
        })  # fmt: skip

    # Pipeline

    def _check_device(self, device_id: int) -> None:
        if device_id != self._device.device_id:
            not_found(f"device {device_id} is not here; this is device {self._device.device_id}")

    def _check_name(self, name: str) -> None:
        if name != self._name:
            not_found(f"no program is called {name!r}; expected {self._name!r}")

    def _set_config(self, request: Message, _: Any) -> Message:
        self._check_device(request.device_id)
        if request.action != _Set.BIND:
            unimplemented(
                f"SetForwardingPipelineConfig: {_Set.Action.Name(request.action)} is not supported, only BIND"
            )
        if len(request.config) != 1:
            invalid(f"BIND: {len(request.config)} configs; expected one, with the name of the program")
        self._check_name(request.config[0].p4_name)
        return bfruntime_pb2.SetForwardingPipelineConfigResponse()

    def _get_config(self, request: Message, _: Any) -> Message:
        self._check_device(request.device_id)
        response = bfruntime_pb2.GetForwardingPipelineConfigResponse()
        response.config.add(p4_name=self._name, bfruntime_info=self._bf_rt)
        response.non_p4_config.bfruntime_info = json.dumps(_NO_TABLES).encode()
        return response

    # Entries

    def _check_target(self, target: Message) -> None:
        self._check_device(target.device_id)
        if target.pipe_id != _ALL_PIPES:
            unimplemented(
                f"target: pipe {target.pipe_id}; expected {_ALL_PIPES:#x}, as all pipes have the same entries"
            )

    def _check_request(self, request: Message, entries: Sequence[Message]) -> None:
        self._check_target(request.target)
        if request.p4_name:
            self._check_name(request.p4_name)
        for entry in entries:
            if entry.table_entry.HasField("entry_tgt"):
                self._check_target(entry.table_entry.entry_tgt)

    def _write(self, request: Message, context: Any) -> Message:
        self._check_request(request, [update.entity for update in request.updates])
        if request.atomicity == _Write.DATAPLANE_ATOMIC:
            unimplemented("DATAPLANE_ATOMIC is not supported")
        response = bfruntime_pb2.WriteResponse()
        asked = dict(context.invocation_metadata() or ())
        ignores, tells = asked.get("ignore_not_found") == "1", asked.get("error_in_resp") == "1"
        steps = [partial(self._tables.write, update) for update in request.updates]
        absent: list[int] = []
        if ignores:
            steps = [
                partial(_unless_absent, step, place, absent) if update.type == bfruntime_pb2.Update.DELETE else step
                for place, (step, update) in enumerate(zip(steps, request.updates, strict=True))
            ]
        errors = [bfruntime_pb2.Error() for _ in steps]
        try:
            self._device.apply(steps, all_or_none=request.atomicity == _Write.ROLLBACK_ON_ERROR, at_once=False)
        except P4RuntimeError as error:
            if not error.errors:
                raise
            errors = [bfruntime_pb2.Error(canonical_code=e.canonical_code, message=e.message) for e in error.errors]
            if not tells:
                raise P4RuntimeError(code_pb2.UNKNOWN, error.message, errors) from error
        for place in absent:
            errors[place].code = code_pb2.NOT_FOUND
        if tells or ignores:
            response.status.extend(errors)
        return response

    async def _read(self, request: Message, context: Any) -> AsyncIterator[Message]:
        tells = dict(context.invocation_metadata() or ()).get("error_in_resp") == "1"
        found: list[Message] = []
        errors: list[Message] = []
        try:
            self._check_request(request, request.entities)
            for entity in request.entities:
                entities, error = await self._host.work(self._look, entity)
                found += entities
                errors.append(error)
        except P4RuntimeError as error:
            await _abort(context, error)
        for start in range(0, len(found), _ENTITIES_A_RESPONSE):
            yield bfruntime_pb2.ReadResponse(entities=found[start : start + _ENTITIES_A_RESPONSE])
        failed = sum(error.canonical_code != code_pb2.OK for error in errors)
        if tells:
            yield bfruntime_pb2.ReadResponse(status=errors)
        elif failed:
            message = f"read failed for {failed} of {len(errors)}"
            await _abort(context, P4RuntimeError(code_pb2.UNKNOWN, message, errors))

    def _look(self, entity: Message) -> tuple[list[Message], Message]:
        """Return the entities that a query means, and its error."""
        try:
            return self._device.look(partial(self._tables.read, entity)), bfruntime_pb2.Error()
        except P4RuntimeError as error:
            return [], bfruntime_pb2.Error(canonical_code=error.code, message=error.message)

    # Streams

    async def _stream(self, requests: AsyncIterator[Message], context: Any) -> AsyncIterator[Message]:
        """Answer subscriptions. A client stays subscribed as long as its stream is open; nothing is notified."""
        async for request in requests:
            kind = request.WhichOneof("update")
            if kind == "digest_ack":
                await _abort(context, P4RuntimeError(code_pb2.UNIMPLEMENTED, "digest_ack is not supported"))
            if kind == "subscribe":
                if request.subscribe.device_id != self._device.device_id:
                    message = f"device {request.subscribe.device_id} is not here"
                    await _abort(context, P4RuntimeError(code_pb2.NOT_FOUND, message))
                response = bfruntime_pb2.StreamMessageResponse()
                response.subscribe.CopyFrom(request.subscribe)
                response.subscribe.status.code = code_pb2.OK
                yield response


def _unless_absent(step: Callable[[Any], Any], place: int, absent: list[int], state: Any) -> Any:
    """Take a step, and note its place if it deletes what does not exist."""
    try:
        return step(state)
    except P4RuntimeError as error:
        if error.code != code_pb2.NOT_FOUND:
            raise
        absent.append(place)
        return lambda: None


async def _abort(context: Any, error: P4RuntimeError) -> NoReturn:
    if error.errors:
        status = status_pb2.Status(code=error.code, message=error.message)
        for each in error.errors:
            status.details.add(type_url="type.googleapis.com/bfrt_proto.Error", value=each.SerializeToString())
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    await context.abort(_CODES[error.code], error.message)
    raise AssertionError("abort does not return")
