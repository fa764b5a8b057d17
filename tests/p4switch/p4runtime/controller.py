"""A small controller for the tests: P4Runtime messages by name, with values as ints or bytes."""

from __future__ import annotations

from typing import Any

import pytest

from p4switch.p4runtime import Device, P4RuntimeError
from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2

INSERT, MODIFY, DELETE = p4runtime_pb2.Update.INSERT, p4runtime_pb2.Update.MODIFY, p4runtime_pb2.Update.DELETE
CONTINUE, ROLLBACK, ATOMIC = (
    p4runtime_pb2.WriteRequest.CONTINUE_ON_ERROR,
    p4runtime_pb2.WriteRequest.ROLLBACK_ON_ERROR,
    p4runtime_pb2.WriteRequest.DATAPLANE_ATOMIC,
)


def blob(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else canonical(value)


class Controller:
    """Controller of `device` with P4Info `info`; names are aliases. Without a device it only makes messages."""

    def __init__(self, device: Device | None, info: Message) -> None:
        self._device = device
        self.info = info
        self.tables = {t.preamble.alias: t for t in info.tables}
        self.actions = {a.preamble.alias: a for a in info.actions}

    @property
    def device(self) -> Device:
        assert self._device is not None
        return self._device

    def id(self, kind: str, alias: str) -> int:
        found: int = next(x.preamble.id for x in getattr(self.info, kind) if x.preamble.alias == alias)
        return found

    # -- messages ---------------------------------------------------------------------------------------------------

    def action(self, name: str, **params: int | bytes) -> Message:
        info = self.actions[name]
        ids = {p.name: p.id for p in info.params}
        message = p4runtime_pb2.Action(action_id=info.preamble.id)
        for param, value in params.items():
            message.params.add(param_id=ids[param], value=blob(value))
        return message

    def entry(self, table: str, match: dict[str, Any] | None = None, action: Any = None, **more: Any) -> Message:
        """Return a table entry.

        `match`: an int or bytes for exact and optional, (value, length) for lpm, (value, mask) for
        ternary, (low, high) for range. `action`: (name, params), or a TableAction.
        """
        info = self.tables[table]
        message = p4runtime_pb2.TableEntry(table_id=info.preamble.id, **more)
        fields = {f.name: f for f in info.match_fields}
        for name, value in (match or {}).items():
            kind = fields[name].match_type
            part = message.match.add(field_id=fields[name].id)
            if kind == 2:
                part.exact.value = blob(value)
            elif kind == 3:
                part.lpm.value, part.lpm.prefix_len = blob(value[0]), value[1]
            elif kind == 4:
                part.ternary.value, part.ternary.mask = blob(value[0]), blob(value[1])
            elif kind == 5:
                part.range.low, part.range.high = blob(value[0]), blob(value[1])
            else:
                part.optional.value = blob(value)
        if isinstance(action, tuple):
            message.action.action.CopyFrom(self.action(action[0], **(action[1] if len(action) > 1 else {})))
        elif action is not None:
            message.action.CopyFrom(action)
        return message

    def action_set(self, *members: tuple[Any, ...]) -> Message:
        """Return an action set of members (action name, params, weight[, watch port])."""
        message = p4runtime_pb2.TableAction()
        message.action_profile_action_set.SetInParent()
        for name, params, weight, *watch in members:
            slot = message.action_profile_action_set.action_profile_actions.add(weight=weight)
            slot.action.CopyFrom(self.action(name, **params))
            if watch:
                slot.watch_port = blob(watch[0])
        return message

    # -- requests ---------------------------------------------------------------------------------------------------

    def write(self, *updates: tuple[int, Message], atomicity: int = CONTINUE) -> None:
        """Write updates, each (type, entity message without the enclosing Entity)."""
        request = p4runtime_pb2.WriteRequest(device_id=self.device.device_id, atomicity=atomicity)
        for kind, message in updates:
            request.updates.add(type=kind).entity.CopyFrom(wrap(message))
        self.device.write(request)

    def insert(self, *messages: Message) -> None:
        self.write(*((INSERT, m) for m in messages))

    def modify(self, *messages: Message) -> None:
        self.write(*((MODIFY, m) for m in messages))

    def delete(self, *messages: Message) -> None:
        self.write(*((DELETE, m) for m in messages))

    def read(self, *queries: Message) -> list[Message]:
        """Return the entities without the enclosing Entity."""
        request = p4runtime_pb2.ReadRequest(device_id=self.device.device_id, entities=[wrap(q) for q in queries])
        return [
            getattr(entity, entity.WhichOneof("entity"))
            for response in self.device.read(request)
            for entity in response.entities
        ]

    def refused(self, code: str, kind: int, message: Message) -> str:
        """Return the message of one update, which must fail with this code."""
        with pytest.raises(P4RuntimeError) as caught:
            self.write((kind, message))
        return check(caught.value, code)

    def read_refused(self, code: str, query: Message) -> str:
        with pytest.raises(P4RuntimeError) as caught:
            self.read(query)
        return check(caught.value, code)


def check(error: P4RuntimeError, code: str) -> str:
    assert error.code == code_pb2.UNKNOWN
    (detail,) = error.errors
    assert code_pb2.Code.Name(detail.canonical_code) == code, detail.message
    assert detail.space == "p4cc"
    return str(detail.message)


_ENTITY_OF = {f.message_type.name: f.name for f in p4runtime_pb2.Entity.DESCRIPTOR.fields}


def wrap(message: Message) -> Message:
    """Return an Entity around a message of any kind."""
    name = type(message).DESCRIPTOR.name
    if name in ("MulticastGroupEntry", "CloneSessionEntry"):
        which = "multicast_group_entry" if name == "MulticastGroupEntry" else "clone_session_entry"
        return p4runtime_pb2.Entity(packet_replication_engine_entry={which: message})
    return p4runtime_pb2.Entity(**{_ENTITY_OF[name]: message})


def config_request(info: Message, config: bytes, action: str = "VERIFY_AND_COMMIT", device_id: int = 1) -> Message:
    cls = p4runtime_pb2.SetForwardingPipelineConfigRequest
    request = cls(device_id=device_id, action=cls.Action.Value(action))
    request.config.p4info.CopyFrom(info)
    request.config.p4_device_config = config
    return request
