"""Evaluation of the expressions in `#if`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|&&|\|\||\S)")
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlL]+\b")
MAX_DEPTH = 100

_LEVELS: dict[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a or b)), "&&": lambda a, b: int(bool(a and b)),
    "|": operator.or_, "^": operator.xor, "&": operator.and_, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "<<": operator.lshift, ">>": operator.rshift, "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


class ConditionError(Exception):
    """Error in a condition of the preprocessor."""


def evaluate_condition(text: str) -> bool:
    """Return the value of an `#if` condition. Macros are already expanded, and other names are 0."""
    tokens = _TOKEN.findall(_SUFFIX.sub("", text))
    if not tokens:
        raise ConditionError("there is no condition")
    evaluator = _Evaluator(tokens)
    value = evaluator.conditional(0)
    if evaluator.next is not None:
        raise ConditionError(f"unexpected {evaluator.next!r}")
    return bool(value)


class _Evaluator:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]

    @property
    def next(self) -> str | None:
        return self._tokens[-1] if self._tokens else None

    def _take(self) -> str:
        if not self._tokens:
            raise ConditionError("the condition is incomplete")
        return self._tokens.pop()

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise ConditionError(f"{token!r} is missing")

    def conditional(self, depth: int) -> int:
        value = self._binary(1, depth)
        if self.next != "?":
            return value
        self._take()
        then = self.conditional(depth + 1)
        self._expect(":")
        otherwise = self.conditional(depth + 1)
        return then if value else otherwise

    def _binary(self, level: int, depth: int) -> int:
        left = self._unary(depth + 1)
        while self.next is not None and _LEVELS.get(self.next, 0) >= level:
            op = self._take()
            right = self._binary(_LEVELS[op] + 1, depth + 1)
            if op in "/%":
                if right == 0:
                    raise ConditionError("division by zero")
                quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
                left = quotient if op == "/" else left - quotient * right
            elif op in ("<<", ">>") and not 0 <= right < 64:
                raise ConditionError(f"shift by {right}")
            else:
                left = int(_OPERATIONS[op](left, right))
        return left

    def _unary(self, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ConditionError("the condition is nested too deeply")
        token = self._take()
        if token == "(":
            value = self.conditional(depth + 1)
            self._expect(")")
            return value
        if token == "!":
            return int(not self._unary(depth + 1))
        if token == "-":
            return -self._unary(depth + 1)
        if token == "+":
            return self._unary(depth + 1)
        if token == "~":
            return ~self._unary(depth + 1)
        if token[0].isdigit():
            try:
                return int(token, 8) if re.fullmatch("0[0-7]+", token) else int(token, 0)
            except ValueError:
                raise ConditionError(f"{token[:20]!r} is not a number") from None
        if token[0].isalpha() or token[0] == "_":
            return 0
        raise ConditionError(f"unexpected {token!r}")
