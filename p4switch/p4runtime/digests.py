"""Digests: messages of the data plane, collected in lists for the controller (specification, "DigestEntry")."""
from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch.p4runtime import p4data
from p4switch.p4runtime.errors import already_exists, invalid, not_found
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.pipeline import Digest, Pipeline
from p4switch.p4runtime.profiles import Undo

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

_LOG = logging.getLogger(__name__)
MAX_LIST = 1024  # largest length of a list if the controller sets no limit
MIN_ACK_TIMEOUT_NS = 100_000_000  # minimum of ack_timeout_ns, as in PI
MAX_KEPT = 65536  # maximum number of unsent and unacknowledged messages of a digest; further ones are lost


@dataclass(slots=True)
class _Stream:
    info: Digest
    config: Message | None = None  # None: the controller does not listen
    configured_ns: int = 0
    buffer: dict[bytes, None] = field(default_factory=dict)  # unsent data in order, without repetitions
    first_ns: int = 0  # time at which the first data in the buffer arrived
    sent: dict[int, tuple[int, list[bytes]]] = field(default_factory=dict)  # unacknowledged lists, by id
    unacknowledged: set[bytes] = field(default_factory=set)
    next_list: int = 1
    lost: int = 0  # number of messages lost since the last one that was kept


class DigestStore:
    """Digests of one device: configurations, waiting data, and unacknowledged lists."""

    def __init__(self, pipeline: Pipeline, switch: Switch, clock_ns: Callable[[], int]) -> None:
        self._pipeline = pipeline
        self._switch = switch
        self._clock_ns = clock_ns
        self._streams = {ident: _Stream(info) for ident, info in pipeline.digests.items()}
        self._lost = 0

    def note_lost(self, lost: int) -> None:
        """Log that the switch discarded `lost` digests because they were not fetched in time."""
        if lost > self._lost:
            _LOG.warning("%d digests were lost: no earlier ones had been requested", lost - self._lost)
        self._lost = lost

    def _stream(self, ident: int) -> _Stream:
        stream = self._streams.get(ident)
        if stream is None:
            invalid(f"no digest has the id {ident}")
        return stream

    def write(self, kind: int, message: Message) -> Undo:
        """Configure a digest and return how to undo it."""
        stream = self._stream(message.digest_id)
        name = stream.info.name
        if kind == p4runtime_pb2.Update.INSERT and stream.config is not None:
            already_exists(f"digest {name} is configured")
        if kind != p4runtime_pb2.Update.INSERT and stream.config is None:
            not_found(f"digest {name} is not configured")
        old, new = stream.config, None
        if kind != p4runtime_pb2.Update.DELETE:
            config = message.config
            if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
                invalid(f"digest {name}: time-outs and list size must not be negative")
            p4data.check(stream.info.type_spec, self._pipeline.p4info.type_info)
            new = p4runtime_pb2.DigestEntry.Config()
            new.CopyFrom(config)
        self._configure(stream, new)
        return lambda: self._configure(stream, old)

    def _configure(self, stream: _Stream, config: Message | None) -> None:
        stream.config = config
        stream.configured_ns = self._clock_ns()
        if config is None:
            stream.buffer.clear()
            stream.sent.clear()
            stream.unacknowledged.clear()

    @property
    def enabled(self) -> bool:
        """True if a controller listens to any digest."""
        return any(stream.config is not None for stream in self._streams.values())

    def read(self, query: Message) -> Iterator[Message]:
        """Yield the configurations that a query selects."""
        for stream in [self._stream(query.digest_id)] if query.digest_id else self._streams.values():
            if stream.config is not None:
                yield p4runtime_pb2.DigestEntry(digest_id=stream.info.id, config=stream.config)

    def acknowledge(self, ack: Message) -> None:
        """Process the acknowledgement of a list. An unknown list is ignored.

        Raises P4RuntimeError (INVALID_ARGUMENT) for an unknown digest.
        """
        stream = self._stream(ack.digest_id)
        self._forget(stream, ack.list_id)

    @staticmethod
    def _forget(stream: _Stream, list_id: int) -> None:
        _, data = stream.sent.pop(list_id, (0, []))
        stream.unacknowledged.difference_update(data)

    def poll(self, learnt: Iterable[tuple[int, bytes]], now_ns: int) -> list[Message]:
        """Return DigestList messages that are due, including new data of the switch."""
        lists = []
        for stream in self._streams.values():
            self._expire(stream, now_ns)
        for list_id, data in learnt:
            digest = self._pipeline.digest_of_list.get(list_id)
            if digest is not None:
                lists += self._learn(self._streams[digest.id], data, now_ns)
        for stream in self._streams.values():
            if stream.buffer and stream.config and now_ns - stream.first_ns >= stream.config.max_timeout_ns:
                lists.append(self._flush(stream, now_ns))
        return lists

    @staticmethod
    def _expire(stream: _Stream, now_ns: int) -> None:
        """Discard unacknowledged lists like PI: there is one sweep per time-out, and the second sweep discards a list.

        Data of unacknowledged lists may therefore be sent again after one to two time-outs.
        """
        if stream.config is None:
            return
        period_ns = max(stream.config.ack_timeout_ns, MIN_ACK_TIMEOUT_NS)
        sweeps = (now_ns - stream.configured_ns) // period_ns
        for list_id, (sent_ns, _) in list(stream.sent.items()):
            if sweeps >= max(sent_ns - stream.configured_ns, 0) // period_ns + 2:
                DigestStore._forget(stream, list_id)

    def _learn(self, stream: _Stream, data: bytes, now_ns: int) -> list[Message]:
        if stream.config is None or data in stream.buffer or data in stream.unacknowledged:
            return []
        if len(stream.buffer) + len(stream.unacknowledged) >= MAX_KEPT:
            if not stream.lost:
                _LOG.warning("digest %s: %d wait for a controller that acknowledges none; more are lost",
                             stream.info.name, MAX_KEPT)
            stream.lost += 1
            return []
        if stream.lost:
            _LOG.warning("digest %s: %d were lost", stream.info.name, stream.lost)
            stream.lost = 0
        if not stream.buffer:
            stream.first_ns = now_ns
        stream.buffer[data] = None
        if len(stream.buffer) < min(stream.config.max_list_size or MAX_LIST, MAX_KEPT):
            return []
        return [self._flush(stream, now_ns)]

    def _flush(self, stream: _Stream, now_ns: int) -> Message:
        message = p4runtime_pb2.DigestList(digest_id=stream.info.id, list_id=stream.next_list, timestamp=time.time_ns())
        types = self._pipeline.p4info.type_info
        data = list(stream.buffer)
        message.data.extend(map(p4data.encoder(stream.info.type_spec, types), data))
        stream.buffer.clear()
        if stream.config and stream.config.ack_timeout_ns:
            stream.sent[stream.next_list] = (now_ns, data)
            stream.unacknowledged.update(data)
        stream.next_list += 1
        return message
