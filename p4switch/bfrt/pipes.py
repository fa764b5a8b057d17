"""Programs of a switch, the pipes that run their pipelines, and the pipes to which a request applies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from p4switch.bfrt.attributes import ALL_PIPES, Client
from p4switch.bfrt.dispatch import Tables
from p4switch.bfrt.fields import Json
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.entities import in_turn
from p4switch.p4runtime.errors import invalid, not_found

if TYPE_CHECKING:
    from p4switch.compiler import Compiled
    from p4switch.p4runtime.device import Device, State
    from p4switch.p4runtime.profiles import Undo

_T = TypeVar("_T")
SHARED = "$SHARED"
"""Program name by which clients use fixed tables alone."""


@dataclass(frozen=True)
class Pipe:
    """Pipe of a switch, with its device and the pipeline that it runs.

    The devices of all pipes of a switch have the same id and the same locks.
    """

    number: int
    device: Device
    compiled: Compiled


@dataclass(frozen=True)
class Program:
    """Program under the name that BfRuntime's clients use, with the pipes that run it."""

    name: str
    pipes: Sequence[Pipe]

    @cached_property
    def bf_rt(self) -> Json:
        """The `bf-rt.json` of all pipelines of the program."""
        parts = {id(pipe.compiled): pipe.compiled.bf_rt for pipe in self.pipes}.values()
        lists = {key: [each for part in parts for each in part[key]] for key in ("tables", "learn_filters")}
        return {**next(iter(parts)), **lists}


class Part:
    """Tables of one pipe."""

    def __init__(self, program: Program, pipe: Pipe, fixed: Sequence[Json], pipes: Sequence[int]) -> None:
        self.number = pipe.number
        self.device = pipe.device
        self.program = program.name
        alike = [each.number for each in program.pipes if each.compiled is pipe.compiled]
        self.tables = Tables(pipe.compiled.bf_rt, pipe.compiled.p4info, fixed, alike, pipe.number, pipes)

    def look(self, at: Callable[[State], _T]) -> _T:
        """Call a function with the pipe's state while no other thread changes it, and return its result.

        Raises P4RuntimeError if the switch has no pipeline.
        """
        return self.device.look(at)

    def has(self, entity: Message) -> bool:
        """Return whether the entry with an entity's key exists."""
        return self.look(lambda state: self.tables.has(entity, state))

    def read(self, query: Message, target: Message) -> list[Message]:
        """Return the entities that a query of a request for `target` selects.

        Raises P4RuntimeError for an invalid or unsupported query.
        """
        return self.look(lambda state: self.tables.read(query, state, target))

    def listen(self) -> None:
        """Have the pipe send digests."""
        self.device.apply([self.tables.listen], all_or_none=True, at_once=False)

    def write(self, update: Message, client: Client, target: Message) -> Undo:
        """Apply an update and return how to undo it. The caller holds the lock of the data plane.

        Raises P4RuntimeError without changing anything.
        """
        undo = self.look(lambda state: self.tables.write(update, state, client, target))
        return lambda: self.look(lambda _: undo())


class Parts:
    """Pipes of a switch that runs `programs`. `fixed` are the tables that all programs share."""

    def __init__(self, programs: Sequence[Program], fixed: Sequence[Mapping[str, Any]]) -> None:
        tables = [dict(table) for table in fixed]
        numbers = sorted(pipe.number for program in programs for pipe in program.pipes)
        parts = (Part(program, pipe, tables, numbers) for program in programs for pipe in program.pipes)
        self._parts = sorted(parts, key=lambda part: part.number)
        self._fixed = {table["id"] for table in tables}
        self._names = [program.name for program in programs]

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    @property
    def first(self) -> Part:
        return self._parts[0]

    def of(self, program: str) -> list[Part]:
        """Return the pipes of a program, or all pipes if no program is named. Raises P4RuntimeError (NOT_FOUND)."""
        if program in ("", SHARED):
            return self._parts
        if program not in self._names:
            not_found(f"no program is called {program!r}; expected {' or '.join(map(repr, self._names))}")
        return [part for part in self._parts if part.program == program]

    def check_target(self, target: Message) -> None:
        """Raise P4RuntimeError (INVALID_ARGUMENT) for a pipe that does not exist."""
        numbers = [part.number for part in self._parts]
        if target.pipe_id != ALL_PIPES and target.pipe_id not in numbers:
            some = "0, the only one" if numbers == [0] else f"0 to {numbers[-1]}"
            invalid(f"target: pipe {target.pipe_id}; expected {some}, or {ALL_PIPES:#x} for all")

    def concerned(self, parts: Sequence[Part], entity: Message, target: Message) -> list[Part]:
        """Return those of `parts` to which an entity in a request for `target` applies.

        Fixed tables belong to all programs.

        Raises P4RuntimeError: INVALID_ARGUMENT if the target's pipe does not have the table, NOT_FOUND if none has it.
        """
        kind = entity.WhichOneof("entity")
        ident = getattr(getattr(entity, kind), "table_id", 0) if kind else 0
        having = [part for part in (self._parts if ident in self._fixed else parts) if part.tables.has_table(ident)]
        if kind == "table_entry" and entity.table_entry.HasField("entry_tgt"):
            target = entity.table_entry.entry_tgt
        if not having:
            return [parts[0]]  # its tables report the error
        if target.pipe_id == ALL_PIPES:
            return having
        table = having[0].tables.table(ident)
        scope = [target.pipe_id] if kind == "table_attribute" else table.scope(target.pipe_id)
        found = [part for part in having if part.number in scope]
        if not found:
            invalid(f"{table.name}: pipe {target.pipe_id} runs another pipeline")
        return found

    def write(self, parts: Sequence[Part], update: Message, client: Client, target: Message) -> Undo:
        """Apply an update to all its pipes, or to none if one refuses it, and return how to undo it."""
        concerned = self.concerned(parts, update.entity, target)
        return in_turn(part.write(update, client, target) for part in concerned)

    def has(self, parts: Sequence[Part], entity: Message, target: Message) -> bool:
        """Return whether the entry with an entity's key exists in one of the entity's pipes."""
        concerned = self.concerned(parts, entity, target)
        return any(part.has(entity) for part in concerned)

    def read(self, parts: Sequence[Part], query: Message, target: Message) -> list[Message]:
        """Return the entities that a query selects, joined over the query's pipes.

        Raises P4RuntimeError for an invalid or unsupported query.
        """
        concerned = self.concerned(parts, query, target)
        if query.WhichOneof("entity") != "table_entry":
            concerned = concerned[:1]
        found = [part.read(query, target) for part in concerned]
        if len(found) == 1:
            return found[0]
        table = concerned[0].tables.table(query.table_entry.table_id)
        entries = table.joined([[entity.table_entry for entity in entities] for entities in found])
        return [bfruntime_pb2.Entity(table_entry=entry) for entry in entries]
