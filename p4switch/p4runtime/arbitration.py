"""Arbitration of controllers: roles and elections ("Client Arbitration and Controller Replication").

This module contains no gRPC and no threads; callers hold one lock for all calls. Roles have no configuration: each role
has access to all entities, and its own primary.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from p4switch.p4runtime.errors import denied, exhausted, invalid, not_found, precondition
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2

MAX_CONTROLLERS = 64  # maximum number of controllers of a role that are connected at the same time
MAX_ROLES = 1024  # maximum number of roles that have or had a controller, whose highest election ids are kept
MAX_ROLE_NAME = 256


@dataclass(eq=False)
class Controller:
    """Stream of a controller.

    `send` takes a StreamMessageResponse.
    """

    send: Callable[[Message], None]
    role: str | None = None  # None before its first arbitration update
    device_id: int | None = None  # None before its first arbitration update
    election_id: int | None = None


@dataclass
class _Role:
    controllers: list[Controller] = field(default_factory=list)
    primary: Controller | None = None
    highest: int | None = None  # highest election id that a primary has had


class Arbitration:
    """Roles of one device, and the controllers of each."""

    def __init__(self, device_id: int, *, zero_election_id: bool = False) -> None:
        """Create the roles of a device.

        With `zero_election_id`, a controller without an election id has the id 0 and may become primary.
        By the specification, a controller without an id is never primary.
        """
        self._device_id = device_id
        self._zero_election_id = zero_election_id
        self._roles: dict[str, _Role] = {"": _Role()}

    def update(self, controller: Controller, message: Message) -> None:
        """Process a MasterArbitrationUpdate of a controller.

        Raises P4RuntimeError, after which the controller's stream has to end.
        """
        name = message.role.name
        given = message.HasField("election_id") or self._zero_election_id
        election_id = _number(message.election_id) if given else None
        if controller.role is None:
            if message.device_id != self._device_id:
                not_found(f"device {message.device_id} is not here; this is device {self._device_id}")
        elif message.device_id != self._device_id or name != controller.role:
            precondition("a stream keeps its device and its role; expected a new stream for another one")
        if message.role.HasField("config"):
            invalid(f"role {name!r}: roles have no configuration here")
        if len(name) > MAX_ROLE_NAME:
            invalid(f"the name of a role has {len(name)} characters; expected at most {MAX_ROLE_NAME}")
        role = self._roles.get(name)
        if role is None:
            if len(self._roles) >= MAX_ROLES:
                exhausted(f"there are {MAX_ROLES} roles already")
            role = self._roles[name] = _Role()
        others = [c for c in role.controllers if c is not controller]
        if election_id is not None and any(c.election_id == election_id for c in others):
            invalid(f"election id {election_id} is in use by another controller")
        if controller.role is None:
            if len(others) >= MAX_CONTROLLERS:
                exhausted(f"role {name!r} has {MAX_CONTROLLERS} controllers already")
            controller.role, controller.device_id = name, self._device_id
            role.controllers.append(controller)
        before = role.primary
        controller.election_id = election_id
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.highest, role.primary = election_id, controller
            for other in others:
                self._notify(name, role, other)
            self._notify(name, role, controller)
        elif before is controller:
            role.primary = None
            self._notify_all(name, role)
        else:
            self._notify(name, role, controller)

    def leave(self, controller: Controller) -> None:
        """Remove a controller whose stream ended."""
        if controller.role is None:
            return
        role = self._roles[controller.role]
        role.controllers.remove(controller)
        if role.primary is controller:
            role.primary = None
            self._notify_all(controller.role, role)
        if controller.role and not role.controllers and role.highest is None:
            del self._roles[controller.role]

    def check(self, role_name: str, election_id: Message) -> None:
        """Raise P4RuntimeError (NOT_FOUND, PERMISSION_DENIED) unless the ids are the primary's."""
        role = self._roles.get(role_name)
        if role is None:
            not_found(f"role {role_name!r} is not known")
        if role.primary is None or role.primary.election_id != _number(election_id):
            denied("only the primary controller may do this")

    def is_primary(self, controller: Controller) -> bool:
        """Return whether a controller is the primary of its role."""
        return controller.role is not None and self._roles[controller.role].primary is controller

    def primaries(self) -> list[Controller]:
        """Return the primary of each role that has one."""
        return [role.primary for role in self._roles.values() if role.primary is not None]

    def _notify_all(self, name: str, role: _Role) -> None:
        for controller in role.controllers:
            self._notify(name, role, controller)

    def _notify(self, name: str, role: _Role, controller: Controller) -> None:
        response = p4runtime_pb2.StreamMessageResponse()
        update = response.arbitration
        update.device_id = self._device_id
        if name:
            update.role.name = name
        if role.highest is not None:
            update.election_id.high = role.highest >> 64
            update.election_id.low = role.highest & (1 << 64) - 1
        if role.primary is controller:
            update.status.code = code_pb2.OK
            update.status.message = "you are primary"
        elif role.primary is not None:
            update.status.code = code_pb2.ALREADY_EXISTS
            update.status.message = "another controller is primary"
        else:
            update.status.code = code_pb2.NOT_FOUND
            update.status.message = "there is no primary"
        controller.send(response)


def _number(election_id: Message) -> int:
    return int(election_id.high) << 64 | int(election_id.low)
