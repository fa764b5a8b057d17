"""Search for inputs that change the outcome of a decision, by z3 from the formulas of a run's path."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import z3

from p4switch.testgen.machine import ENVIRONMENTS, MAX_PACKET_BYTES
from p4switch.testgen.run import Alternative, Inputs, Run
from p4switch.testgen.values import Variables

# Limit of one query to z3, in z3's units, which do not depend on the machine (a core of 2.5 GHz does about 600,000 per
# second). Each further try has a higher limit.
_RESOURCES = 150_000
_MORE = 4
_MOST = 10_000_000
_ROUNDS = 60  # number of rounds, in each of which some goals are dropped
_PRODUCTS = (z3.Z3_OP_BMUL, z3.Z3_OP_BUDIV, z3.Z3_OP_BUREM, z3.Z3_OP_BUDIV_I, z3.Z3_OP_BUREM_I)
# Values that are tried for a factor, given its number in the run and its width in bits.
_NUMBERS: tuple[Callable[[int, int], int], ...] = (
    lambda now, bits: now,
    lambda now, bits: 0,
    lambda now, bits: 1 << bits // 2,
    lambda now, bits: 1,
)
# Kinds of optional goals, in the order in which they are dropped if not all can be met: other
# statements, the rest of the path, the packet's length and the clock.
_WISH, _STAY, _KEEP = range(3)


class Solver:
    """Search for inputs until `deadline`, a time of `time.monotonic`."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._variables = Variables()
        self.undecided = False  # True if z3 did not decide the last query within its limit

    def inputs(
        self,
        run: Run,
        position: int,
        way: Alternative,
        wishes: Mapping[int, Alternative] | None = None,
        by_any_path: bool = False,
        effort: int = 0,
    ) -> Inputs | None:
        """Return inputs with which the decision of `run` at `position` has the other outcome `way`, or None.

        `wishes` are desired outcomes of other decisions, by position, which are met if possible. With
        `by_any_path`, conditions of the path that contradict `way` are dropped, so that the path may
        change. `effort` is the number of earlier tries that z3 did not decide.
        """
        inputs = run.inputs.copy()
        inputs.choices.update(way.choices)
        if way.formula is None:
            return inputs  # only a choice changes, and the path to it stays the same
        try:
            wanted = way.condition()
            wished = {k: w.condition() for k, w in (wishes or {}).items() if k != position}
        except TimeoutError:
            self.undecided = True
            return None
        last = max([position, *wished])
        path = {k: d.formula for k, d in enumerate(run.decisions[: last + 1]) if d.formula is not None}
        path.pop(position, None)
        path = {k: f for k, f in path.items() if not self._undefined(f)}
        goals = [wanted, *wished.values()]
        must, may = list(self._everywhere(run, wanted)), []
        for k, formula in self.related(path, goals).items():
            if k in wished:
                may.append((_WISH, wished[k]))
                if k < position:
                    must.append(z3.Or(wished[k], formula))
            elif k < position and not by_any_path:
                must += self._everywhere(run, formula)
            else:
                may += [(_STAY, f) for f in self._everywhere(run, formula)]
        length, clock = run.variables.get("len"), run.variables.get("clock")
        if length is not None and run.length_read:  # other lengths and times only if they matter
            must += [z3.UGE(length, run.parsed_bytes), z3.ULE(length, MAX_PACKET_BYTES)]
            may.append((_KEEP, length == inputs.numbers["len"]))
        if clock is not None:
            may.append((_KEEP, clock == inputs.numbers["clock"]))
        resources = min(_RESOURCES * _MORE**effort, _MOST)
        verdict, model = self._model(must, may, _RESOURCES if wished else resources)
        if verdict == z3.unknown and wished:
            return self.inputs(run, position, way, None, by_any_path, effort)
        self.undecided = verdict == z3.unknown
        if verdict == z3.unknown and (factors := self._factors(run, must)):
            for number in _NUMBERS:
                fixed = [v == number(run.inputs.numbers[name], v.size()) for name, v in factors.items()]
                verdict, model = self._model([*must, *fixed], [], resources)
                if verdict == z3.sat:
                    break
        if verdict != z3.sat:
            return None
        for name, variable in run.variables.items():
            value = model[variable]
            if value is not None:
                inputs.numbers[name] = value.as_long()
        return inputs

    def nearby(self, run: Run, way: Alternative) -> Iterator[Inputs]:
        """Yield inputs with one changed number for which `way` holds. The change may affect the path to it."""
        try:
            wanted = way.condition()
        except TimeoutError:
            return
        names = sorted(n for n in self._variables.of(wanted) if n in run.variables and n != "len")
        for name in names:
            others = [(run.variables[n], run.inputs.numbers[n]) for n in names if n != name]
            fixed = [(variable, z3.BitVecVal(number, variable.size())) for variable, number in others]
            question = [z3.substitute(formula, *fixed) for formula in self._everywhere(run, wanted)]
            verdict, model = self._model(question, [], _RESOURCES)
            if verdict == z3.sat and (value := model[run.variables[name]]) is not None:
                inputs = run.inputs.copy()
                inputs.choices.update(way.choices)
                inputs.numbers[name] = value.as_long()
                yield inputs

    def has_more(self, effort: int) -> bool:
        """Return whether a query that z3 did not decide with `effort` may have more resources."""
        return bool(_RESOURCES * _MORE**effort < _MOST)

    def related(self, path: Mapping[int, Any], goals: Sequence[Any]) -> dict[int, Any]:
        """Return the conditions of `path` that share inputs with `goals`. Other conditions hold for the present inputs.

        Conditions on values that a test cannot set have to hold for all of these values, and are kept.
        """
        names = {k: self._variables.of(f) for k, f in path.items()}
        with_name: dict[str, list[int]] = {}
        for k, here in names.items():
            for name in here:
                with_name.setdefault(name, []).append(k)
        kept = {k for k, here in names.items() if any(name.startswith("?") for name in here)}
        waiting = [*set().union(*(self._variables.of(goal) for goal in goals), *(names[k] for k in kept))]
        while waiting:
            for k in with_name.pop(waiting.pop(), ()):
                if k not in kept:
                    kept.add(k)
                waiting += [name for name in names[k] if name in with_name]
        return {k: f for k, f in path.items() if k in kept}

    def _undefined(self, formula: Any) -> bool:
        """Return whether `formula` depends only on undefined values, and not on inputs."""
        names = self._variables.of(formula)
        return bool(names) and all(name.startswith("?") for name in names)

    def _everywhere(self, run: Run, formula: Any) -> list[Any]:
        """Return `formula` with the undefined values of each environment."""
        used = [(v, values) for v, values in run.environment.values() if v.decl().name() in self._variables.of(formula)]
        if not used:
            return [formula]
        return [
            z3.substitute(formula, *((v, z3.BitVecVal(values[e], v.size())) for v, values in used))
            for e in range(ENVIRONMENTS)
        ]

    def _model(
        self, must: Sequence[Any], may: Sequence[tuple[int, Any]], resources: int
    ) -> tuple[z3.CheckSatResult, Any]:
        """Return whether `must` has a model, and a model that also satisfies as much of `may` as possible."""
        solver = z3.SolverFor("QF_BV")
        solver.set("rlimit", resources)
        solver.add(*must)
        held: dict[Any, int] = {}
        for number, (rank, formula) in enumerate(may):
            name = z3.Bool(f"may {number}")
            solver.add(z3.Implies(name, formula))
            held[name] = rank
        for _ in range(_ROUNDS):
            left_ms = int(1000 * (self._deadline - time.monotonic()))
            if left_ms <= 0:
                break
            solver.set("timeout", left_ms)
            verdict = solver.check(*held)
            if verdict == z3.sat:
                return verdict, solver.model()
            if verdict == z3.unknown:
                if min(held.values(), default=_KEEP) == _KEEP:
                    break
                held = {name: rank for name, rank in held.items() if rank == _KEEP}
                continue
            core = [name for name in solver.unsat_core() if name in held]
            if not core:
                return verdict, None
            least = min(held[name] for name in core)
            given_up = [name for name in core if held[name] == least]
            for name in given_up[len(given_up) // 2 :]:
                del held[name]
        return z3.unknown, None

    def _factors(self, run: Run, must: Sequence[Any]) -> dict[str, Any]:
        """Return inputs that fix one factor of each product, because constant factors make the rest easier to solve."""
        names: set[str] = set()
        waiting, seen = list(must), set()
        while waiting:
            part = waiting.pop()
            if part.get_id() in seen:
                continue
            seen.add(part.get_id())
            waiting += part.children()
            if z3.is_app(part) and part.decl().kind() in _PRODUCTS:
                factors = [f for f in map(self._variables.of, part.children()) if f]
                if len(factors) > 1 and not any(f <= names for f in factors):
                    names |= min(factors, key=len)
        return {name: run.variables[name] for name in sorted(names) if name in run.variables}
