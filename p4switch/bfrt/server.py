"""The BfRuntime gRPC service for the pipes of a switch. Each pipe is a `Device`, whose state P4Runtime shares.

Errors have the form of the published server: UNKNOWN, with one `bfrt_proto.Error` per update in
`grpc-status-details-bin`. A batch that is rolled back has no errors after that of the update that failed. If a client
sets the metadata `error_in_resp`, a response contains the status of each part of a read or of a successful write.

There is no TLS and no election: every client that reaches the address may write, even while a P4Runtime controller is
primary.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, overload

import grpc

from p4switch.bfrt.attributes import Client
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.pipes import Part, Parts, Program
from p4switch.bfrt.schema import VERSION
from p4switch.p4runtime.device import State
from p4switch.p4runtime.errors import P4RuntimeError, invalid, not_found, precondition, unimplemented
from p4switch.p4runtime.grpc_host import GrpcHost
from p4switch.p4runtime.messages import code_pb2, p4runtime_pb2, status_pb2
from p4switch.p4runtime.profiles import Undo
from p4switch.p4runtime.server import Outgoing

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_ENTITIES_A_RESPONSE = 500
_QUERIES_AT_ONCE = 500  # queries that are answered before the next request
_Write = bfruntime_pb2.WriteRequest
_Set = bfruntime_pb2.SetForwardingPipelineConfigRequest
_BEGIN_AND_END = _Set.VERIFY_AND_WARM_INIT_BEGIN_AND_END
_INSERT_OR_MODIFY = bfruntime_pb2.Update.INSERT_OR_MODIFY
_STARTED, _FINISHED = (
    bfruntime_pb2.SetForwardingPipelineConfigResponseType.Value(f"WARM_INIT_{name}") for name in ("STARTED", "FINISHED")
)
_Response = bfruntime_pb2.StreamMessageResponse
_Wants = bfruntime_pb2.Subscribe.Notifications


class BfRuntimeServer:
    """BfRuntime server of a switch that runs `programs`.

    `address` is HOST:PORT; port 0 stands for any free port. `fixed` are the tables that the switch
    has for every program of its architecture.
    """

    def __init__(self, programs: Sequence[Program], address: str, fixed: Sequence[Mapping[str, Any]] = ()) -> None:
        self._programs = {program.name: program for program in programs}
        self._fixed = json.dumps({"schema_version": VERSION, "tables": [*fixed], "learn_filters": []}).encode()
        self._parts = Parts(programs, fixed)
        self._device = self._parts.first.device
        self._bound: dict[int, str] = {}  # name of the program to which each client is bound
        self._restarts = False  # True between BEGIN and END, while a client restarts the program
        self._streams: dict[int, tuple[Outgoing, Message]] = {}  # stream and subscriptions of each client
        self._host = GrpcHost(address, "bfruntime", "--bfrt", self._handlers)

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
        """Stop the server. Calls that have not finished after `grace_s` seconds are cancelled."""
        self._host.stop(grace_s)

    def _handlers(self) -> grpc.GenericRpcHandler:
        pb = bfruntime_pb2

        def unary(method: Callable[[Message, Any], Message], request: Any, response: Any) -> Any:
            return self._host.unary(method, request, response, _abort)

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

    def _set_config(self, request: Message, _: Any) -> Message:
        self._check_device(request.device_id)
        action = next((name for name, value in _Set.Action.items() if value == request.action), str(request.action))
        response = bfruntime_pb2.SetForwardingPipelineConfigResponse()
        if request.action == _Set.WARM_INIT_END:
            if not self._restarts:
                precondition(f"{action}: no client has begun to restart the program")
            self._restarts = False
            outcome = _FINISHED
        else:
            if request.action not in (_Set.BIND, _Set.VERIFY_AND_WARM_INIT_BEGIN, _BEGIN_AND_END):
                unimplemented(f"SetForwardingPipelineConfig: {action} is not supported")
            if len(request.config) != 1:
                invalid(f"{action}: {len(request.config)} configs; expected one, with the name of the program")
            parts = self._parts.of(request.config[0].p4_name)
            if request.action == _Set.BIND:
                self._bound[request.client_id] = request.config[0].p4_name
                return response
            if not self._is_own(request.config[0]):
                unimplemented(f"{action}: expected the config of the program that runs, which begins anew")
            for part in parts:
                self._begin_anew(part)
            self._restarts = request.action == _Set.VERIFY_AND_WARM_INIT_BEGIN
            outcome = _STARTED if self._restarts else _FINISHED
        response.set_forwarding_pipeline_config_response_type = outcome
        self._send(request.client_id, _Response(set_forwarding_pipeline_config_response=response))
        return response

    def _is_own(self, config: Message) -> bool:
        """Return whether a config has the `bf-rt.json` of the program that it names."""
        program = self._programs.get(config.p4_name)
        try:
            return program is not None and bool(json.loads(config.bfruntime_info) == program.bf_rt)
        except ValueError:
            return False

    def _begin_anew(self, part: Part) -> None:
        """Set the running pipeline of a pipe once more, without entries."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=part.device.device_id)
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        pipeline = part.look(lambda state: state.pipeline)
        request.config.p4info.CopyFrom(pipeline.p4info)
        request.config.p4_device_config = pipeline.device_config
        part.device.set_forwarding_pipeline_config(request)
        if any(wants.enable_learn_notifications for _, wants in self._streams.values()):
            part.listen()

    def _get_config(self, request: Message, _: Any) -> Message:
        self._check_device(request.device_id)
        response = bfruntime_pb2.GetForwardingPipelineConfigResponse()
        for name, program in self._programs.items():
            response.config.add(p4_name=name, bfruntime_info=json.dumps(program.bf_rt).encode())
        response.non_p4_config.bfruntime_info = self._fixed
        return response

    # Entries

    def _check_target(self, target: Message) -> None:
        self._check_device(target.device_id)
        self._parts.check_target(target)

    def _check_request(self, request: Message, entries: Iterable[Message]) -> list[Part]:
        """Check the targets of a request and return the pipes of its program."""
        self._check_target(request.target)
        parts = self._parts.of(request.p4_name)
        for entry in entries:
            if entry.table_entry.HasField("entry_tgt"):
                self._check_target(entry.table_entry.entry_tgt)
        return parts

    def _write(self, request: Message, context: Any) -> Message:
        asked = dict(context.invocation_metadata() or ())
        ignores, tells = asked.get("ignore_not_found") == "1", asked.get("error_in_resp") == "1"
        until = None
        if "deadline_sec" in asked or "deadline_nsec" in asked:
            until = time.monotonic() + _seconds(asked, "deadline_sec") + _seconds(asked, "deadline_nsec") / 1e9
        parts = self._check_request(request, (update.entity for update in request.updates))
        if request.atomicity == _Write.DATAPLANE_ATOMIC:
            unimplemented("DATAPLANE_ATOMIC is not supported")
        _, wants = self._streams.get(request.client_id, (None, _Wants()))
        client = Client(request.client_id, wants)
        codes: dict[int, int] = {}  # status by position of the updates that did not simply succeed

        def step(place: int, _: State) -> Undo:
            if until is not None and time.monotonic() > until:
                raise TimeoutError
            update = request.updates[place]
            modifies = tells and update.type == _INSERT_OR_MODIFY
            modifies = modifies and self._parts.has(parts, update.entity, request.target)
            try:
                undo = self._parts.write(parts, update, client, request.target)
            except P4RuntimeError as error:
                if not ignores or update.type != bfruntime_pb2.Update.DELETE or error.code != code_pb2.NOT_FOUND:
                    raise
                codes[place] = code_pb2.NOT_FOUND
                return lambda: None
            if modifies:
                codes[place] = code_pb2.ALREADY_EXISTS
            return undo

        steps = _Steps(len(request.updates), step)
        try:
            self._device.apply(steps, all_or_none=request.atomicity == _Write.ROLLBACK_ON_ERROR, at_once=False)
        except TimeoutError:
            raise P4RuntimeError(code_pb2.DEADLINE_EXCEEDED, "the time that the client gave is over") from None
        except P4RuntimeError as error:
            if not error.errors:
                raise
            errors = [bfruntime_pb2.Error(canonical_code=e.canonical_code, message=e.message) for e in error.errors]
            if request.atomicity == _Write.ROLLBACK_ON_ERROR:
                failed = next(place for place, e in enumerate(errors) if e.canonical_code != code_pb2.ABORTED)
                errors = [*(bfruntime_pb2.Error() for _ in range(failed)), errors[failed]]
            raise P4RuntimeError(code_pb2.UNKNOWN, error.message, errors) from error
        response = bfruntime_pb2.WriteResponse()
        if tells or ignores:
            statuses = (codes.get(place, code_pb2.OK) for place in range(len(steps)))
            response.status.extend(bfruntime_pb2.Error(code=code) for code in statuses)
        return response

    async def _read(self, request: Message, context: Any) -> AsyncIterator[Message]:
        tells = dict(context.invocation_metadata() or ()).get("error_in_resp") == "1"
        found: list[Message] = []
        errors: list[Message] = []
        try:
            parts = self._check_request(request, request.entities)
            for start in range(0, len(request.entities), _QUERIES_AT_ONCE):
                queries = request.entities[start : start + _QUERIES_AT_ONCE]
                for entities, error in await self._host.work(self._look, parts, queries, request.target):
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

    def _look(
        self, parts: Sequence[Part], queries: Sequence[Message], target: Message
    ) -> list[tuple[list[Message], Message]]:
        """Return the entities that each query selects, and its error."""
        return self._device.look(lambda _: [self._answer(parts, query, target) for query in queries])

    def _answer(self, parts: Sequence[Part], query: Message, target: Message) -> tuple[list[Message], Message]:
        try:
            return self._parts.read(parts, query, target), bfruntime_pb2.Error()
        except P4RuntimeError as error:
            return [], bfruntime_pb2.Error(canonical_code=error.code, message=error.message)

    # Streams

    async def _stream(self, requests: AsyncIterator[Message], context: Any) -> AsyncIterator[Message]:
        """Answer a client's subscription and send it digests as long as its stream is open."""
        outgoing, clients = Outgoing(), set[int]()

        async def receive() -> None:
            async for request in requests:
                if request.WhichOneof("update") == "digest_ack":
                    unimplemented("digest_ack is not supported")
                if request.WhichOneof("update") == "subscribe":
                    self._check_device(request.subscribe.device_id)
                    taken = self._streams.get(request.client_id)
                    if taken is not None and taken[0] is not outgoing:
                        invalid(f"client {request.client_id} is subscribed already; expected another client id")
                    clients.add(request.client_id)
                    wants = request.subscribe.notifications
                    self._streams[request.client_id] = outgoing, wants
                    if wants.enable_learn_notifications:
                        await self._host.work(self._listen)
                    response = _Response(subscribe=request.subscribe)
                    response.subscribe.status.code = code_pb2.OK
                    outgoing.put(response)

        receiver = asyncio.create_task(receive())
        receiver.add_done_callback(lambda _: outgoing.end())
        try:
            async for message in outgoing:
                yield message
            error = receiver.exception()
            if isinstance(error, P4RuntimeError):
                await _abort(context, error)
        finally:
            receiver.cancel()
            for client in clients:
                self._streams.pop(client, None)
                self._bound.pop(client, None)

    def _listen(self) -> None:
        """Have all pipes send digests."""
        for part in self._parts:
            part.listen()

    def _send(self, client: int, message: Message) -> None:
        stream = self._streams.get(client)
        if stream is not None:
            self._host.call_soon(stream[0].put, message)

    def publish(self, pipe: int, message: Message) -> None:
        """Send clients a digest of a pipe; `message` is a StreamMessageResponse of P4Runtime.

        Messages other than digests are ignored.
        """
        if message.WhichOneof("update") != "digest":
            return
        part = next(part for part in self._parts if part.number == pipe)
        digest = part.tables.digest(message.digest)
        if digest is not None:
            digest.target.device_id, digest.target.pipe_id = self._device.device_id, pipe
            for client, (_, wants) in list(self._streams.items()):
                if wants.enable_learn_notifications and self._bound.get(client, part.program) == part.program:
                    self._send(client, _Response(digest=digest))

    def poll(self) -> None:
        """Send clients the notifications that have become due, such as idle entries."""
        told: set[tuple[int, bytes]] = set()  # a port's change yields one notice for each pipe
        for part in self._parts:
            try:
                notices = part.look(part.tables.notices)
            except P4RuntimeError:  # there is no pipeline
                continue
            for notice in notices:
                _, wants = self._streams.get(notice.client_id, (None, _Wants()))
                if getattr(wants, notice.flag):
                    if notice.message.WhichOneof("update") == "idle_timeout_notification":
                        target = notice.message.idle_timeout_notification.target
                        target.device_id, target.pipe_id = self._device.device_id, part.number
                    which = notice.client_id, notice.message.SerializeToString()
                    if which not in told:
                        told.add(which)
                        self._send(notice.client_id, notice.message)


def _seconds(asked: Mapping[str, Any], name: str) -> int:
    text = str(asked.get(name, "0"))
    if not text.isdecimal():
        invalid(f"{name}: {text!r}; expected a number")
    return int(text)


class _Steps(Sequence[Callable[[State], Undo]]):
    """Steps of a batch, created one at a time, because there may be very many."""

    def __init__(self, count: int, step: Callable[[int, State], Undo]) -> None:
        self._places = range(count)
        self._step = step

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Callable[[State], Undo]: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Callable[[State], Undo]]: ...

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in self._places[at]]
        return partial(self._step, self._places[at])


async def _abort(context: Any, error: P4RuntimeError) -> NoReturn:
    if error.errors:
        status = status_pb2.Status(code=error.code, message=error.message)
        for each in error.errors:
            status.details.add(type_url="type.googleapis.com/bfrt_proto.Error", value=each.SerializeToString())
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    await context.abort(_CODES[error.code], error.message)
    raise AssertionError("abort does not return")
