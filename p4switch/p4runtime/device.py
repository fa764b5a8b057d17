"""P4Runtime target, which executes P4Runtime messages on one `Switch`.

`Device` does not handle gRPC, streams or elections. A controller in the same process calls it directly, and
`p4switch.p4runtime.server` calls it for remote controllers. Several threads may call it. If packets are processed at
the same time, the device gets the data plane's `lock`, which has to be reentrant. A DATAPLANE_ATOMIC write holds the
lock throughout, so that no packet sees half of the write. Other writes and reads may take long, so they hold it only
for a few entities at a time.
"""
from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from p4switch import ir
from p4switch.errors import UserError
from p4switch.p4runtime import packet_io, pipeline
from p4switch.p4runtime.cells import CellStore
from p4switch.p4runtime.digests import DigestStore
from p4switch.p4runtime.errors import (
    P4RuntimeError,
    batch_error,
    invalid,
    not_found,
    precondition,
    unimplemented,
)
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2
from p4switch.p4runtime.path_states import PathStates
from p4switch.p4runtime.pipeline import Pipeline
from p4switch.p4runtime.ports import PortCounts, Ports
from p4switch.p4runtime.pre import ReplicationStore
from p4switch.p4runtime.profiles import ProfileStore, Undo
from p4switch.p4runtime.tables import TableStore
from p4switch.p4runtime.value_sets import ValueSetStore

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

API_VERSION = "1.5.0"  # version of the specification that this server follows
_ENTITIES_AT_ONCE = 64  # number of entities that are read before the data plane continues
_LOOKED_AT_ONCE = 512  # number of entries that are checked before the data plane continues
_UPDATES_AT_ONCE = 64  # number of updates that are applied before the data plane continues
_PAUSE_S = 1e-4  # lets the data plane get the lock; without a pause, this thread would get it again first
_ENTITIES_A_RESPONSE = 500  # keeps a response well below gRPC's default limit of 4 MiB

_WriteRequest = p4runtime_pb2.WriteRequest
_SetRequest = p4runtime_pb2.SetForwardingPipelineConfigRequest
_GetRequest = p4runtime_pb2.GetForwardingPipelineConfigRequest
_Update = p4runtime_pb2.Update
_T = TypeVar("_T")


class _Undisturbed(AbstractContextManager[None]):
    """The data plane's lock, with Python's garbage collector off while the lock is held.

    With 100,000 entries, a garbage collection takes longer than the lock is held at a time.
    """

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock = lock
        self._counting = threading.Lock()
        self._held = 0  # number of threads that hold the lock or wait for it
        self._collects = False

    def __enter__(self) -> None:
        with self._counting:
            if not self._held:
                self._collects = gc.isenabled()
                gc.disable()
            self._held += 1
        self._lock.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._lock.__exit__(*raised)
        with self._counting:
            self._held -= 1
            if not self._held and self._collects:
                gc.enable()


class State:
    """State that controllers have written to the pipeline of a switch."""

    def __init__(self, config: Message, pipe: Pipeline, switch: Switch, ports: Ports, clock_ns: Callable[[], int],
                 tick_ns: int, lock: AbstractContextManager[object], pause_s: float) -> None:
        self.config = config
        self.pipeline = pipe
        self.switch = switch
        self._lock, self._pause_s = lock, pause_s
        self.ports = ports
        self.profiles = ProfileStore(pipe, switch, self.ports)
        self.tables = TableStore(pipe, switch, self.profiles, clock_ns, tick_ns)
        self.cells = CellStore(pipe, switch, lock)
        self.replication = ReplicationStore(switch, self.ports)
        self.value_sets = ValueSetStore(pipe, switch)
        self.digests = DigestStore(pipe, switch, clock_ns)
        self.path = PathStates(pipe.program, switch)
        self.writers: dict[str, Callable[[int, Message], Undo]] = {
            "table_entry": self.tables.write,
            "direct_counter_entry": self.tables.write_direct_counter,
            "direct_meter_entry": self.tables.write_direct_meter,
            "action_profile_member": self.profiles.write_member,
            "action_profile_group": self.profiles.write_group,
            "counter_entry": self.cells.write_counter,
            "meter_entry": self.cells.write_meter,
            "register_entry": self.cells.write_register,
            "packet_replication_engine_entry": self.replication.write,
            "value_set_entry": self.value_sets.write,
            "digest_entry": self.digests.write,
        }
        self.cell_readers: dict[str, Callable[[Message], Iterator[Message]]] = {  # these take the lock themselves
            "counter_entry": self.cells.read_counters,
            "meter_entry": self.cells.read_meters,
            "register_entry": self.cells.read_registers,
        }
        self.readers: dict[str, Callable[[Message], Iterator[Message | None]]] = {
            "table_entry": self.tables.read,
            "direct_counter_entry": self.tables.read_direct_counters,
            "direct_meter_entry": self.tables.read_direct_meters,
            "action_profile_member": self.profiles.read_members,
            "action_profile_group": self.profiles.read_groups,
            "packet_replication_engine_entry": self.replication.read,
            "value_set_entry": self.value_sets.read,
            "digest_entry": self.digests.read,
        }
        if self.path:
            self.writers["extern_entry"] = self.path.write
            self.readers["extern_entry"] = self.path.read

    def write(self, update: Message) -> Undo:
        """Write an update and return how to undo it.

        Raises P4RuntimeError without changing anything.
        """
        kind = update.entity.WhichOneof("entity")
        if update.type == _Update.UNSPECIFIED:
            invalid("update: the type is missing")
        writer = self.writers.get(kind)
        if writer is None:
            if kind is None:
                invalid("update: the entity is missing")
            unimplemented(f"{kind}: this switch has none")
        try:
            return writer(update.type, getattr(update.entity, kind))
        except ValueError as error:
            raise P4RuntimeError(code_pb2.INVALID_ARGUMENT, str(error)) from error
        except OverflowError as error:
            raise P4RuntimeError(code_pb2.RESOURCE_EXHAUSTED, str(error)) from error

    def read(self, query: Message) -> Iterator[Message | None]:
        """Yield the entities that a query selects, and None for each entity that it does not select.

        Raises P4RuntimeError for an invalid or unsupported query.
        """
        kind = query.WhichOneof("entity")
        reader = self.cell_readers.get(kind) or self.readers.get(kind)
        if reader is None:
            if kind is None:
                invalid("read: the entity is missing")
            unimplemented(f"{kind}: this switch has none")
        for message in reader(getattr(query, kind)):
            yield None if message is None else p4runtime_pb2.Entity(**{kind: message})

    def collect(self, messages: Iterator[_T | None], into: list[_T]) -> None:
        """Append all messages other than None to `into`. The data plane runs between parts of them.

        Raises P4RuntimeError if the query that yields `messages` is invalid.
        """
        while True:
            looked, before = 0, len(into)
            with self._lock:
                for message in itertools.islice(messages, _LOOKED_AT_ONCE):
                    looked += 1
                    if message is not None:
                        into.append(message)
                        if len(into) - before == _ENTITIES_AT_ONCE:
                            break
            if looked < _LOOKED_AT_ONCE and len(into) - before < _ENTITIES_AT_ONCE:
                return
            _let_packets_through(self._pause_s)


def _let_packets_through(pause_s: float) -> None:
    if pause_s:
        time.sleep(pause_s)


class Device:
    """P4Runtime device.

    `build` returns a new engine `Switch` for a program, and `install` is called with the switch that
    processes packets from then on. If the switch with its program exists already, `build` returns it,
    and `install` is None; such a device gets its config only once. `clock_ns` is the switch's clock,
    which the switch counts in ticks of `tick_ns`; the device uses it only for time-outs. The devices
    of a switch's pipes share the data plane's `lock`, and `control`, which is held while a controller
    reads or writes. `port_counts` returns the counts of the switch's ports.
    """

    def __init__(
        self,
        build: Callable[[ir.Program], Switch],
        device_id: int = 1,
        *,
        install: Callable[[Switch], None] | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        tick_ns: int = 1,
        lock: AbstractContextManager[object] | None = None,
        control: AbstractContextManager[object] | None = None,
        port_counts: Callable[[], Mapping[int, PortCounts]] = dict,
    ) -> None:
        self.device_id = device_id
        self._build = build
        self._install = install
        self._clock_ns = clock_ns
        self._tick_ns = tick_ns
        self._pause_s = 0.0 if lock is None else _PAUSE_S
        self._lock = nullcontext() if lock is None else _Undisturbed(lock)
        # This lock is taken before the data plane's lock, so that nothing is written while entries are read.
        self._control: AbstractContextManager[object] = threading.RLock() if control is None else control
        self._down: set[int] = set()
        self._port_counts = port_counts
        self._running: State | None = None  # state of the switch that processes packets
        self._saved: State | None = None  # state after VERIFY_AND_SAVE; until COMMIT it is read and written

    # -- the pipeline -----------------------------------------------------------------------------------------------

    def set_forwarding_pipeline_config(self, request: Message) -> Message:
        """Set, verify or commit a pipeline.

        Parameters
        ----------
        request
            A SetForwardingPipelineConfigRequest.

        Returns
        -------
        Message
            A SetForwardingPipelineConfigResponse.

        Raises
        ------
        P4RuntimeError
            INVALID_ARGUMENT for a config that this device cannot run, NOT_FOUND for COMMIT without a saved config.
        """
        self._check_device(request.device_id)
        action = request.action
        if action == _SetRequest.COMMIT:
            if request.HasField("config"):
                invalid("COMMIT takes no config: it commits the one saved before")
            with self._control, self._lock:
                if self._saved is None:
                    not_found("COMMIT: no config was saved before")
                self._commit(self._saved)
            return p4runtime_pb2.SetForwardingPipelineConfigResponse()
        if action not in (_SetRequest.VERIFY, _SetRequest.VERIFY_AND_SAVE, _SetRequest.VERIFY_AND_COMMIT,
                          _SetRequest.RECONCILE_AND_COMMIT):
            invalid("the action is missing; expected VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT or "
                    "RECONCILE_AND_COMMIT")
        state = self._state(request)  # takes long, so no lock is held
        with self._control, self._lock:
            if action == _SetRequest.VERIFY_AND_SAVE:
                self._saved = state
            elif action != _SetRequest.VERIFY:
                if action == _SetRequest.RECONCILE_AND_COMMIT and self._running is not None:
                    _carry_over(self._running, state)
                self._commit(state)
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def _state(self, request: Message) -> State:
        if not request.HasField("config"):
            invalid("the config is missing")
        pipe = pipeline.load(request.config.p4info, request.config.p4_device_config)
        try:
            switch = self._build(pipe.program)
        except (ValueError, OverflowError, UserError) as error:
            raise P4RuntimeError(code_pb2.INVALID_ARGUMENT, f"p4_device_config: {error}") from error
        config = p4runtime_pb2.ForwardingPipelineConfig()
        if request.config.HasField("cookie"):
            config.cookie.CopyFrom(request.config.cookie)
        ports = Ports(pipe.port_width, self._down, self._port_counts)
        return State(config, pipe, switch, ports, self._clock_ns, self._tick_ns, self._lock, self._pause_s)

    def _commit(self, state: State) -> None:
        if self._install is not None:
            try:
                self._install(state.switch)
            except UserError as error:
                raise P4RuntimeError(code_pb2.INVALID_ARGUMENT, f"p4_device_config: {error}") from error
        self._running, self._saved = state, None

    def get_forwarding_pipeline_config(self, request: Message) -> Message:
        """Return the pipeline, or a response without a config if none was set.

        Raises P4RuntimeError (NOT_FOUND) if the request names another device.
        """
        self._check_device(request.device_id)
        response = p4runtime_pb2.GetForwardingPipelineConfigResponse()
        with self._control:
            state = self._saved or self._running
            if state is None:
                return response
            response.config.CopyFrom(state.config)
            kind = request.response_type
            if kind in (_GetRequest.ALL, _GetRequest.P4INFO_AND_COOKIE):
                response.config.p4info.CopyFrom(state.pipeline.p4info)
            if kind in (_GetRequest.ALL, _GetRequest.DEVICE_CONFIG_AND_COOKIE):
                response.config.p4_device_config = state.pipeline.device_config
        return response

    # -- entities ---------------------------------------------------------------------------------------------------

    def write(self, request: Message) -> Message:
        """Apply updates in their order.

        With CONTINUE_ON_ERROR, all updates are tried. With the other two atomicities, the first
        error undoes all updates. With DATAPLANE_ATOMIC, no packet sees half of a batch.

        Parameters
        ----------
        request
            A WriteRequest.

        Returns
        -------
        Message
            A WriteResponse.

        Raises
        ------
        P4RuntimeError
            With an error for each update.
        """
        self._check_device(request.device_id)
        if request.atomicity not in _WriteRequest.Atomicity.values():
            invalid(f"atomicity {request.atomicity} is not known")
        self.apply(
            [partial(State.write, update=update) for update in request.updates],
            all_or_none=request.atomicity != _WriteRequest.CONTINUE_ON_ERROR,
            at_once=request.atomicity == _WriteRequest.DATAPLANE_ATOMIC,
        )
        return p4runtime_pb2.WriteResponse()

    def apply(self, steps: Sequence[Callable[[State], Undo]], *, all_or_none: bool, at_once: bool) -> None:
        """Execute steps.

        A step changes the state and returns how to undo the change, or it raises an error and changes
        nothing. With `all_or_none`, the first error undoes the earlier steps. With `at_once`, no packet
        sees only some of the steps. A TimeoutError counts as an error; no further step is executed, and
        the TimeoutError is raised.

        Raises P4RuntimeError, with an error for each step.
        """
        part = None if at_once else _UPDATES_AT_ONCE
        with self._control, self._lock if at_once else nullcontext():
            state = self._current()
            undos: list[Undo] = []
            errors: list[tuple[int, P4RuntimeError]] = []
            late: TimeoutError | None = None
            try:
                with closing(self._in_parts(enumerate(steps), part)) as taken:
                    for position, step in taken:
                        try:
                            undos.append(step(state))
                        except P4RuntimeError as error:
                            errors.append((position, error))
                            if all_or_none:
                                break
            except TimeoutError as error:
                late = error
            if all_or_none and (errors or late is not None):
                for undo in self._in_parts(reversed(undos), part):
                    undo()
            if late is not None:
                raise late
        if errors:
            raise batch_error("write", _errors(len(steps), errors, all_or_none))

    def look(self, at: Callable[[State], _T]) -> _T:
        """Call a function with the state while no other thread changes it, and return its result.

        Raises P4RuntimeError if the switch has no pipeline.
        """
        with self._control:
            return at(self._current())

    def _in_parts(self, items: Iterable[_T], at_once: int | None) -> Generator[_T, None, None]:
        """Yield items in parts. The data plane's lock is held during a part, and packets are processed between parts.

        `at_once` is the number of items in a part; None stands for all items.
        """
        items = iter(items)
        while True:
            count = 0
            with self._lock:
                for item in itertools.islice(items, at_once):
                    count += 1
                    yield item
            if at_once is None or count < at_once:
                return
            _let_packets_through(self._pause_s)

    def read(self, request: Message) -> Iterator[Message]:
        """Yield the entities that queries select.

        Entries are not written while they are read. But packets may be processed during a read, so
        that counters in one response may be of different times. Cells (counters, meters, registers)
        may also be written during a read, because there may be more cells than fit into memory.

        Parameters
        ----------
        request
            A ReadRequest.

        Yields
        ------
        Message
            ReadResponse messages.

        Raises
        ------
        P4RuntimeError
            After the last response, with an error for each query.
        """
        self._check_device(request.device_id)
        answers: list[Iterable[Message]] = []
        errors: list[tuple[int, P4RuntimeError]] = []
        with self._control:
            state = self._current()
            for position, query in enumerate(request.entities):
                entities: list[Message] = []
                if query.WhichOneof("entity") in state.cell_readers:
                    answers.append(_until_error(state.read(query), position, errors))
                    continue
                answers.append(entities)
                try:
                    state.collect(state.read(query), entities)
                except P4RuntimeError as error:
                    errors.append((position, error))
        every = itertools.chain.from_iterable(answers)
        while part := list(itertools.islice(every, _ENTITIES_A_RESPONSE)):
            yield p4runtime_pb2.ReadResponse(entities=part)
        if errors:
            raise batch_error("read", _errors(len(request.entities), errors, False))

    def _check_device(self, device_id: int) -> None:
        if device_id != self.device_id:
            not_found(f"device {device_id} is not here; this is device {self.device_id}")

    def _current(self) -> State:
        state = self._saved or self._running
        if state is None:
            precondition("no forwarding pipeline config was set")
        return state

    def capabilities(self, request: Message) -> Message:
        """Return the API version.

        Raises P4RuntimeError (NOT_FOUND) if the request names another device.
        """
        if request.device_id:
            self._check_device(request.device_id)
        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    # -- streams ----------------------------------------------------------------------------------------------------

    def poll(self) -> list[Message]:
        """Return the StreamMessageResponse messages that are due: digest lists, idle time-outs."""
        idle: list[Message] = []
        with self._control:
            state = self._running
            if state is None:
                return []
            with self._lock:
                learnt = state.switch.digests()
                state.digests.note_lost(state.switch.lost_digests)
            messages = [p4runtime_pb2.StreamMessageResponse(digest=digest)
                        for digest in state.digests.poll(learnt, self._clock_ns())]
            state.collect(state.tables.idle_entries(), idle)
        if idle:
            message = p4runtime_pb2.StreamMessageResponse()
            message.idle_timeout_notification.table_entry.extend(idle)
            message.idle_timeout_notification.timestamp = time.time_ns()
            messages.append(message)
        return messages

    @property
    def has_timeouts(self) -> bool:
        """True if time alone may make messages due that `poll` returns."""
        state = self._running
        return state is not None and (state.digests.enabled or state.tables.has_idle_timeouts)

    def acknowledge(self, ack: Message) -> None:
        """Process a DigestListAck.

        Raises P4RuntimeError if there is no such digest (INVALID_ARGUMENT) or no pipeline (FAILED_PRECONDITION).
        """
        with self._control:
            self._packets().digests.acknowledge(ack)

    def packet_in(self, frame: bytes) -> Message:
        """Return the message for a frame that the switch sent to the CPU port.

        Parameters
        ----------
        frame
            The frame, with the packet-in header.

        Returns
        -------
        Message
            A StreamMessageResponse.

        Raises
        ------
        ValueError
            If the frame is too short.
        """
        return p4runtime_pb2.StreamMessageResponse(packet=packet_io.packet_in(self._packets().pipeline, frame))

    def packet_out(self, message: Message) -> bytes:
        """Return the frame that enters the switch by the CPU port.

        Parameters
        ----------
        message
            A PacketOut.

        Returns
        -------
        bytes
            The frame, with the packet-out header.

        Raises
        ------
        P4RuntimeError
            INVALID_ARGUMENT for wrong metadata, FAILED_PRECONDITION without a pipeline.
        """
        return packet_io.packet_out(self._packets().pipeline, message)

    def _packets(self) -> State:
        if self._running is None:
            precondition("no forwarding pipeline config was set")
        return self._running

    # -- ports ------------------------------------------------------------------------------------------------------

    def set_port_up(self, port: int, up: bool) -> None:
        """Set a port up or down.

        Groups exclude members that watch a port that is down, and backup replicas replace replicas at such ports.

        Parameters
        ----------
        port
            Number of the port in the engine.
        up
            Whether its link is up.
        """
        with self._control, self._lock:
            if up == (port not in self._down):
                return
            if up:
                self._down.discard(port)
            else:
                self._down.add(port)
            for state in (self._running, self._saved):
                if state is not None:
                    state.profiles.ports_changed()
                    state.replication.ports_changed()
                    if not up:
                        state.path.port_failed(port)


def _until_error(messages: Iterator[Message | None], position: int,
                 errors: list[tuple[int, P4RuntimeError]]) -> Iterator[Message]:
    """Yield all items up to the first error, which is added to `errors`."""
    try:
        yield from (message for message in messages if message is not None)
    except P4RuntimeError as error:
        errors.append((position, error))


def _errors(count: int, failed: list[tuple[int, P4RuntimeError]], all_or_none: bool) -> list[Message]:
    """Return one p4.v1.Error for each member of a batch.

    ABORTED means that a member was undone, or not tried, because another member failed.
    """
    if all_or_none:
        other = p4runtime_pb2.Error(canonical_code=code_pb2.ABORTED, message="another update of the batch failed")
    else:
        other = p4runtime_pb2.Error(canonical_code=code_pb2.OK)
    errors = [other] * count
    for position, error in failed:
        errors[position] = error.as_error()
    return errors


_ALWAYS_THERE = (
    "counter_entry", "meter_entry", "direct_meter_entry", "register_entry", "value_set_entry", "extern_entry",
)  # fmt: skip


def _carry_over(old: State, new: State) -> None:
    """Write the whole content of `old` into `new`.

    Raises P4RuntimeError (INVALID_ARGUMENT) if `new` cannot hold it.
    """
    queries = [p4runtime_pb2.Entity(**{kind: {}}) for kind in (
        "action_profile_member", "action_profile_group", "value_set_entry", "counter_entry", "meter_entry",
        "register_entry", "digest_entry", "extern_entry")]
    for kind in ("multicast_group_entry", "clone_session_entry"):
        queries.append(p4runtime_pb2.Entity(packet_replication_engine_entry={kind: {}}))
    for query in queries:
        if query.WhichOneof("entity") not in {*old.readers, *old.cell_readers}:
            continue
        for entity in old.read(query):
            if entity is not None:
                _put(new, entity)
    new.replication.trees.carry_over(old.replication.trees)
    new.tables.forget_initial_entries(old.tables)
    for entry in old.tables.carried():
        _put(new, p4runtime_pb2.Entity(table_entry=entry))
    new.tables.carry_indirect_defaults(old.tables)
    for meter in old.tables.carried_default_meters():
        _put(new, p4runtime_pb2.Entity(direct_meter_entry=meter))


def _put(state: State, entity: Message) -> None:
    """Insert an entity, or modify it if its kind always exists."""
    always = entity.WhichOneof("entity") in _ALWAYS_THERE
    always = always or entity.table_entry.is_default_action
    try:
        state.write(p4runtime_pb2.Update(type=_Update.MODIFY if always else _Update.INSERT, entity=entity))
    except P4RuntimeError as error:
        invalid(f"the forwarding state cannot be preserved: {error.message}")
