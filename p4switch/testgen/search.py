"""Search for tests until every statement is covered.

A run yields decisions, each with the formula that held and with alternatives. The search selects the most promising
alternative, has z3 find inputs for it, and runs the program with these inputs (concolic execution: Godefroid, Klarlund
and Sen, "DART", PLDI 2005; for P4: Ruffy et al., "P4Testgen", SIGCOMM 2023).
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from p4switch.compiler.source import Location
from p4switch.testgen.code import Code
from p4switch.testgen.machine import ENVIRONMENTS, Machine
from p4switch.testgen.proof import Prover
from p4switch.testgen.reached import Unreachable
from p4switch.testgen.run import Alternative, Decision, Inputs, Run
from p4switch.testgen.solver import Solver
from p4switch.testgen.values import Scalar

_VAIN = 6  # number of unsatisfiable formulas that count as one try
_PROOF_AFTER = 0.25  # share of the time after which a proof of unreachable statements is tried
_FRESH = 8  # number of runs with new random inputs when alternatives are used up or cover nothing new
_PATIENCE = 15  # number of runs that cover nothing new before random inputs are tried
_CHANCES = 64  # number of other inputs tried for one hash while nothing new is covered


@dataclass(slots=True)
class Test:
    """Packet with its setup and its results.

    The results do not depend on undefined values, which are 0 in `run`. `anyway` are the statements
    that the test covers for all undefined values.
    """

    run: Run
    expected: list[tuple[int, bytes, bytes]]  # port, data, and mask with ones for bits that are compared
    new: int  # statements that no earlier test covers
    anyway: int


@dataclass(slots=True)
class Result:
    """Result of a search.

    `unreachable` are statements that are proven to be unreachable, and `missing` are the other
    statements that no test covers. `exhausted` is True if nothing was left to try. `given_up` is the
    number of queries that z3 did not decide within the cost limit.
    """

    tests: list[Test] = field(default_factory=list)
    violations: list[tuple[Location, Run]] = field(default_factory=list)
    statements: int = 0
    covered: int = 0
    unreachable: list[Unreachable] = field(default_factory=list)
    missing: list[Location] = field(default_factory=list)
    only_unstable: list[Location] = field(default_factory=list)
    exhausted: bool = False
    given_up: int = 0
    runs: int = 0
    problems: Counter[str] = field(default_factory=Counter)


class Search:
    """Search for tests of `code` within `seconds`. `assume` is that of `Machine`."""

    def __init__(
        self,
        code: Code,
        seed: int = 0,
        assume: Callable[[Machine], Scalar] | None = None,
        most: int | None = None,
        seconds: float = 60.0,
    ) -> None:
        self.code = code
        self._seed = seed
        self._assume = assume
        self._most = most
        self._end = time.monotonic() + seconds
        self._prove_at = self._end - (1 - _PROOF_AFTER) * seconds
        self._unreachable = 0
        self._proven = False
        self._covered = 0
        self._touched = 0
        self._gained = 0  # number of the run that last covered something new
        self._heaps: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = [], []
        self._later: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]] = [], []
        self._turn = 0  # index of the heap from which the next query is taken
        self._asked: set[int] = set()
        self._attempts: Counter[Any] = Counter()
        self._vain: Counter[Any] = Counter()
        self._too_hard: Counter[Any] = Counter()
        self._chances: Counter[Any] = Counter()  # number of tries by chance since something new was covered
        self._count = itertools.count()
        self._violated = 0
        self._solver = Solver(self._end)
        self._seen: set[int] = set()
        self.result = Result()

    def _over(self) -> bool:
        return time.monotonic() > self._end

    def _done(self) -> bool:
        enough = self._most is not None and len(self.result.tests) >= self._most
        return self._over() or enough or (self._most is None and not self._wanted())

    def _wanted(self) -> int:
        """Return the statements not yet covered, and the assertions not yet violated."""
        return (self.code.all & ~self._covered & ~self._unreachable) | (self.code.assertions & ~self._violated)

    def run(self) -> Result:
        """Run until all statements are covered, the limit of tests or time is reached, or nothing is left to try."""
        for fresh in range(_FRESH):
            self._try(Inputs(self._seed + 1000 * fresh))
            self._gained = self.result.runs
            if fresh == _FRESH - 1:
                for heap, later in zip(self._heaps, self._later, strict=True):
                    heap += later
                    heapq.heapify(heap)
            while any(self._heaps) and not self._done():
                if time.monotonic() > self._prove_at:
                    self._prove()
                self._next()
                if self.result.runs - self._gained > _PATIENCE and fresh < _FRESH - 1:
                    self._begin_anew()
                    break
            if not any(self._heaps) and not self._done():
                self._prove()
            if self._done():
                break
        result = self.result
        result.exhausted = not any(self._heaps) and not self._over()
        bits = [1 << n for n in range(self.code.all.bit_length())]
        result.statements = self.code.all.bit_count()
        result.covered = (self._covered & self.code.all).bit_count()
        missing = self.code.all & ~self._covered & ~self._unreachable
        result.missing = sorted(self.code.location(b) for b in bits if b & missing & ~self._touched)
        result.only_unstable = sorted(self.code.location(b) for b in bits if b & missing & self._touched)
        return result

    def _begin_anew(self) -> None:
        """Forget earlier attempts. Alternatives in the heaps are set aside until nothing else is left."""
        for heap, later in zip(self._heaps, self._later, strict=True):
            later += heap
            heap.clear()
        for tried in (self._attempts, self._vain, self._too_hard):
            tried.clear()

    def _prove(self) -> None:
        """Exclude statements that are proven to be unreachable. This is done once."""
        wanted = self.code.all & ~self._covered & ~self._touched
        if self._proven or self._most is not None or not wanted:
            return
        self._proven = True
        unreachable: list[Unreachable] = []
        for stable in (False, True):
            now = time.monotonic()
            try:
                prover = Prover(self.code, now + (self._end - now) / 4, stable)
            except TimeoutError:
                break
            unreachable += prover.reached.unreachable(wanted & ~self._unreachable)
            for one in unreachable:
                self._unreachable |= one.bit
        self.result.unreachable = sorted(unreachable, key=lambda f: f.place)

    # Alternatives

    def _worth(self, way: Alternative, decision: Decision) -> tuple[int, int, int]:
        """Return the cost of an alternative. It is lower for places that were tried less often in this context.

        An attempt that failed because of earlier decisions counts less, because another path may succeed.
        """
        missing = self._wanted() & decision.open
        key = way.site, decision.context
        tried = self._attempts[key] + self._too_hard[key] + self._vain[key] // _VAIN
        return tried, -bool(way.own & missing), -(way.reach & missing).bit_count()

    def _push(self, run: Run) -> None:
        rounds: Counter[Any] = Counter()
        for i, decision in enumerate(run.decisions):
            if self._over():
                return
            for way in decision.alternatives:
                key = way.site, decision.context
                if self._worth(way, decision)[2] or way.site == "assume" or self._most is not None:
                    self._offer(run, i, way, 0, rounds[key])
                rounds[key] += 1

    def _offer(self, run: Run, position: int, way: Alternative, effort: int, rounds: int = 0) -> None:
        """Add an alternative to both heaps, which have different orders among alternatives of the same cost.

        In the first heap, earlier rounds of a loop come first, and then newer alternatives. In the second
        heap, alternatives of newer runs come first, and then earlier decisions of a run. Each heap finds
        some statements quickly that the other finds slowly.
        """
        number = next(self._count)
        worth = self._worth(way, run.decisions[position])
        for heap, age in zip(self._heaps, ((rounds, -number), (-self.result.runs, number)), strict=True):
            heapq.heappush(heap, (worth, age, number, run, position, way, effort))

    def _next(self) -> None:
        """Try the next alternative of the heap whose turn it is, or remove it if it is no longer useful."""
        heap = self._heaps[self._turn] or self._heaps[1 - self._turn]
        worth, age, number, run, i, way, effort = heapq.heappop(heap)
        decision = run.decisions[i]
        now = self._worth(way, decision)
        if number in self._asked or (not now[2] and way.site != "assume" and self._most is None):
            return
        if now > worth:
            heapq.heappush(heap, (now, age, number, run, i, way, effort))
            return
        if way.by_chance:
            if self._chances[way.site] == _CHANCES:
                return
            self._chances[way.site] += 1
        self._asked.add(number)
        self._turn = 1 - self._turn
        key = way.site, decision.context
        missing = way.own & self._wanted()
        wishes = self._wishes(run, way) if missing else {}
        inputs = self._solver.inputs(run, i, way, wishes, effort=effort)
        if inputs is not None:
            self._try(inputs)
            if wishes and missing & self._wanted():  # the wishes may be the reason for the failure
                inputs = self._solver.inputs(run, i, way, effort=effort)
                if inputs is not None:
                    self._try(inputs)
            self._attempts[key] += 1
        elif self._solver.undecided:  # try again later, with more resources
            self._too_hard[key] += 1
            for near in self._solver.nearby(run, way) if missing and not effort else ():
                self._try(near)
                if not missing & self._wanted():
                    break
            if self._solver.has_more(effort):
                self._offer(run, i, way, effort + 1)
            else:
                self.result.given_up += 1
        else:
            if missing or not self._vain[key]:  # another path may lead there
                other = self._solver.inputs(run, i, way, by_any_path=True, effort=effort)
                if other is not None:
                    self._try(other)
            self._vain[key] += 1

    def _wishes(self, run: Run, chosen: Alternative) -> dict[int, Alternative]:
        """Return, by position, alternatives to decisions that may reach further uncovered statements."""
        missing = self.code.all & ~self._covered & ~self._unreachable & ~chosen.own
        alternatives: dict[int, Alternative] = {}
        for i, decision in enumerate(run.decisions):
            for way in decision.alternatives:
                if way.own & missing and way.formula is not None and not way.choices:
                    missing &= ~way.own
                    alternatives.setdefault(i, way)
        return alternatives

    # Runs

    def _machine(self, inputs: Inputs, environment: int) -> Machine:
        return Machine(self.code, inputs, environment, environment == 0, self._assume, self._over)

    def _try(self, inputs: Inputs) -> None:
        self.result.runs += 1
        run = self._machine(inputs, 0).run()
        known = hash(tuple(map(str, run.signature)))
        if known in self._seen:
            return
        self._seen.add(known)
        self._touched |= run.covered
        if run.failed is not None:
            bit = self.code.assertion(run.failed)
            if not bit & self._violated:
                self._violated |= bit
                self.result.violations.append((self.code.location(self.code.bit(run.failed)), run))
        if run.problem is None:
            self._keep(run)
        else:
            self.result.problems[run.problem] += 1
        self._push(run)

    def _keep(self, run: Run) -> None:
        new = run.covered & ~self._covered
        if not new and self._most is None:
            return
        expected = [(port, data, bytearray(b"\xff" * len(data))) for port, data in run.outputs]
        anyway = run.covered
        for environment in range(1, ENVIRONMENTS) if run.environment else ():
            other = self._machine(run.inputs, environment).run()
            anyway &= other.covered
            if not _same_way(run, other):
                self.result.problems["the outcome depends on undefined values"] += 1
                return
            for (_, data, mask), (_, there) in zip(expected, other.outputs, strict=True):
                for i, (a, b) in enumerate(zip(data, there, strict=True)):
                    mask[i] &= (0xF0 if a >> 4 == b >> 4 else 0) | (0x0F if a & 15 == b & 15 else 0)
        different = {(bytes(data), bytes(mask)) for _, data, mask in expected}
        if len({port for port, *_ in expected}) < len(expected) and len(different) > 1:
            self.result.problems["several different packets leave by one port"] += 1
            return
        self._covered |= run.covered
        self._gained = self.result.runs
        self._chances.clear()
        self.result.tests.append(Test(run, [(port, data, bytes(mask)) for port, data, mask in expected], new, anyway))


def _same_way(run: Run, other: Run) -> bool:
    def shape(r: Run) -> Any:
        entries = [(e.table.name, [k for _, k in e.keys], e.action.name, e.args, e.colour) for e in r.entries]
        defaults = {name: (action.name, args) for name, (_, action, args) in r.defaults.items()}
        outputs = [(port, len(data)) for port, data in r.outputs]
        copies, inputs = (r.sessions, r.groups), (r.members, r.draws, r.registers, r.meters, r.clock, r.depth)
        return entries, defaults, outputs, copies, inputs, r.problem

    return bool(shape(run) == shape(other))
