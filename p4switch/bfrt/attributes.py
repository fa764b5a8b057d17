"""Attributes of BfRuntime's tables: settings of a whole table, some of which cause notifications.

`Table.offers` of each kind of table lists the attributes that it may have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

ALL_PIPES = 0xFFFF
_Mode = bfruntime_pb2.Mode


@dataclass(frozen=True)
class Client:
    """Client that sent a write. `wants` are the notifications that it has subscribed to."""

    id: int
    wants: Message


@dataclass(frozen=True)
class Notice:
    """StreamMessageResponse for a client. It is sent if the client has subscribed to the notification `flag`."""

    client_id: int
    flag: str
    message: Message


class Owner(Protocol):
    """Table that has an attribute."""

    @property
    def name(self) -> str:
        """The table's name in messages."""

    @property
    def pipes(self) -> Sequence[int]:
        """Numbers of the pipes that have the table."""


class Attribute(ABC):
    """Attribute of a table."""

    kind: ClassVar[str]
    """Name of the attribute's message in a TableAttribute."""

    def __init__(self, table: Owner) -> None:
        self._table = table

    @abstractmethod
    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Set the attribute and return how to undo it. Raises P4RuntimeError without changing anything."""

    @abstractmethod
    def read(self, into: Message) -> None:
        """Put the attribute into a message of its kind."""

    def notices(self, state: State) -> Iterator[Notice | None]:
        """Yield the notifications that are due, and None for each step that yields none."""
        yield from ()


class EntryScope(Attribute):
    """Scope of a table's entries: the pipes that share entries, and those that have their own.

    The scope of parsers is stored and returned, but has no effect: all parsers of a pipe have the
    same entries.
    """

    kind = "entry_scope"
    has_single_gress: ClassVar[bool] = False
    """True if the scope of ingress and egress may be SINGLE."""
    _SCOPES = ("gress_scope", "pipe_scope", "prsr_scope")

    def __init__(self, table: Owner) -> None:
        super().__init__(table)
        self._gress = _Mode(predef=_Mode.ALL)
        self._pipes = _Mode(predef=_Mode.ALL)
        self._parsers = _Mode(predef=_Mode.ALL, args=0xFF)

    @property
    def is_symmetric(self) -> bool:
        """True if all pipes share the entries."""
        return bool(self._pipes == _Mode(predef=_Mode.ALL, args=self._pipes.args))

    def scope(self, pipe: int) -> list[int]:
        """Return the pipes that share entries with a pipe. The table is not symmetric."""
        if self._pipes.WhichOneof("scope") == "user_defined":
            return next(scope for scope in _scopes(self._pipes.user_defined) if pipe in scope)
        return [pipe]

    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Set the scope of the pipes, or those of the pipes, of ingress and egress, and of the parsers."""
        there = [name for name in self._SCOPES if given.HasField(name)]
        if there not in (["pipe_scope"], [*self._SCOPES]):
            invalid(f"{self._table.name}: expected pipe_scope, or all of {', '.join(self._SCOPES)}")
        for name in there:
            mode = getattr(given, name)
            kind = mode.WhichOneof("scope")
            if kind is None:
                invalid(f"{self._table.name}: {name}: the scope is missing")
            if name == "gress_scope" and (kind != "predef" or (mode.predef != _Mode.ALL and not self.has_single_gress)):
                expected = "ALL and SINGLE are" if self.has_single_gress else "ALL is"
                unimplemented(f"{self._table.name}: {name}: only {expected} supported")
        pipes = given.pipe_scope
        if pipes.WhichOneof("scope") == "predef" and pipes.predef not in _Mode.PredefinedMode.values():
            invalid(f"{self._table.name}: pipe_scope: {pipes.predef}; expected ALL or SINGLE")
        if pipes.WhichOneof("scope") == "user_defined":
            named = [pipe for scope in _scopes(pipes.user_defined) for pipe in scope]
            if any(named.count(pipe) != 1 for pipe in self._table.pipes):
                expected = "pipe 0" if list(self._table.pipes) == [0] else f"each of pipes {[*self._table.pipes]}"
                invalid(f"{self._table.name}: pipe_scope: {pipes.user_defined:#x}; expected {expected} in one scope")
        old = self._gress, self._pipes, self._parsers
        self._pipes = pipes
        if "gress_scope" in there:
            self._gress, self._parsers = given.gress_scope, given.prsr_scope

        def undo() -> None:
            self._gress, self._pipes, self._parsers = old

        return undo

    def read(self, into: Message) -> None:
        """Put the scopes into a message."""
        into.gress_scope.CopyFrom(self._gress)
        into.pipe_scope.CopyFrom(self._pipes)
        into.prsr_scope.CopyFrom(self._parsers)


class ParserScope(EntryScope):
    """Scope of the entries of parsers, where ingress and egress may also have entries of their own.

    A parser of a program is either in ingress or in egress, so the latter makes no difference to its
    entries.
    """

    has_single_gress = True

    def check_target(self, target: Message) -> None:
        """Refuse a write that does not name the one direction, pipe or parser that a scope requires."""
        scopes = (self._gress, self._pipes, self._parsers)
        named = (("direction", target.direction), ("pipe", target.pipe_id), ("parser", target.prsr_id))
        for (what, number), mode, every in zip(named, scopes, (0xFF, ALL_PIPES, 0xFF), strict=True):
            if mode.WhichOneof("scope") == "predef" and mode.predef == _Mode.SINGLE and number == every:
                invalid(f"{self._table.name}: {what} {number:#x}; expected one, as each has entries of its own")


def _scopes(user_defined: int) -> list[list[int]]:
    """Return the sets of pipes in a user-defined scope: each byte is a set, with a bit for each pipe."""
    return [[pipe for pipe in range(8) if scope >> pipe & 1] for scope in user_defined.to_bytes(8, "little")]
