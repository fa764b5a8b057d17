"""Run of one packet through a program: its inputs, its decisions and its results."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from p4switch import ir


class Inputs:
    """Inputs of a run: numbers by name, and choices of entries.

    Other inputs are drawn at random, with `seed`.
    """

    def __init__(self, seed: int, numbers: dict[str, int] | None = None, choices: dict[Any, Any] | None = None) -> None:
        self.seed = seed
        self.numbers = dict(numbers or {})
        self.choices = dict(choices or {})

    def number(self, name: str, bits: int, draw: Callable[[random.Random], int] | None = None) -> int:
        if name not in self.numbers:
            rng = random.Random(f"{self.seed} {name}")
            self.numbers[name] = rng.getrandbits(bits) if draw is None else draw(rng)
        return self.numbers[name]

    def choice(self, key: Any, options: list[Any]) -> Any:
        if key not in self.choices:
            self.choices[key] = random.Random(f"{self.seed} {key}").choice(options)
        return self.choices[key]

    def copy(self) -> Inputs:
        return Inputs(self.seed, self.numbers, self.choices)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Other outcome of a decision, which occurs if `formula` holds or with other `choices`.

    `own` are the statements of this outcome, and `reach` those that can be reached after it. `formula`
    may be a function that returns the formula (see `condition`), because few of the many formulas are
    used. With `by_chance`, the outcome is not known in advance and can be tried without end, so that
    the search limits the number of tries.
    """

    site: Any
    own: int
    reach: int
    formula: Any = None
    choices: tuple[tuple[Any, Any], ...] = ()
    by_chance: bool = False

    def condition(self) -> Any:
        """Return the formula of the alternative.

        Raises TimeoutError if there is no time left to compute it.
        """
        return self.formula() if callable(self.formula) else self.formula


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of a run.

    `context` are the valid headers at that time, and the result of the last table. The search tries the
    same place again in another context. `open` are the statements that are reachable with these
    headers.
    """

    formula: Any  # condition that holds in this run; None if it does not depend on inputs
    alternatives: tuple[Alternative, ...] = ()
    context: tuple[frozenset[str], Any] = frozenset(), None
    open: int = -1


@dataclass(slots=True)
class Entry:
    table: ir.Table
    keys: list[tuple[ir.Key, int | None]]  # None: any value of the key
    action: ir.Action
    args: list[int]
    colour: int | None = None  # colour of the entry's direct meter


@dataclass(slots=True)
class Run:
    """Result of a run.

    `problem` is the reason why the run cannot become a test. `failed` is the span of an assertion that failed.
    """

    inputs: Inputs
    decisions: list[Decision] = field(default_factory=list)
    signature: list[Any] = field(default_factory=list)
    covered: int = 0
    environment: dict[str, tuple[Any, tuple[int, ...]]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    outputs: list[tuple[int, bytes]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    defaults: dict[str, tuple[ir.Table, ir.Action, list[int]]] = field(default_factory=dict)
    registers: dict[tuple[str, int], int] = field(default_factory=dict)  # initial values of registers that were read
    draws: dict[str, int] = field(default_factory=dict)  # random numbers, by `FILE:LINE`
    sessions: dict[int, int] = field(default_factory=dict)
    groups: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    members: list[tuple[str, int]] = field(default_factory=list)  # members of value sets; fields are one number
    port: int = 0
    packet: bytes = b""
    parsed_bytes: int = 0
    length_read: bool = False
    clock: int | None = None  # arrival of the packet in microseconds; None: not read
    depth: int | None = None  # queue depth in cells; None: not read
    meters: dict[tuple[str, int], int] = field(default_factory=dict)  # colours of executed meters
    problem: str | None = None
    failed: int | None = None

    def formulas(self, count: int) -> list[Any]:
        return [d.formula for d in self.decisions[:count] if d.formula is not None]


class StopError(Exception):
    """End of a run that cannot become a test."""


class LongerError(Exception):
    """Request for another packet length, with which the run starts again."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


class ParserError(Exception):
    """End of a parser with an error, given by its name or number."""

    def __init__(self, name: str | int) -> None:
        super().__init__(name)
        self.name = name
