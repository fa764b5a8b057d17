"""Construction of the body of a C function, statement by statement."""

from collections.abc import Iterator
from contextlib import contextmanager

from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code, Name, limbs, node
from p4switch.engine.cnodes import (
    Assign,
    Block,
    Case,
    Comment,
    Declare,
    Do,
    Goto,
    If,
    Label,
    Return,
    Statement,
    Switch,
    commented,
)


class Emitter:
    """Collector of the statements of one function, which also names its temporaries.

    `traced` is True if the pipeline reports packet events; otherwise reports are omitted.
    """

    def __init__(self, *, traced: bool = False) -> None:
        self.traced = traced
        self.body: list[Statement] = []
        self._temps = 0

    # --- statements ---

    def add(self, *statements: Statement) -> None:
        self.body += statements

    def call(self, function: Code, *args: Code) -> None:
        self.body.append(Do(cexpr.call(function, "", *args)))

    def set(self, target: C, value: Code, operator: str = "=") -> None:
        """Add an assignment."""
        self.body.append(Assign(target, node(value), operator))

    def declare(self, c_type: str, name: str, value: C | None = None, size: int = 0) -> C:
        """Declare a variable, or an array of `size` elements, and return it."""
        self.body.append(Declare(c_type, name, value, size))
        return Name(name, "" if size else c_type)

    def note(self, macro: str, *args: Code) -> None:
        """Add a statement that reports a packet event."""
        if self.traced:
            self.call(macro, *args)

    def trace(
        self, event: str, point: Code, value: Code = 0, extra: Code = 0, data: Code = "NULL", size: Code = 0
    ) -> None:
        """Add a report of an event: its point, two numbers, and the address and size of its data."""
        self.note("TRACE", f"P4_TRACE_{event}", point, value, extra, data, size)

    def comment(self, text: str) -> None:
        """Add the first line of a piece of source as a comment."""
        if first := commented(text):
            self.body.append(Comment(first))

    def label(self, name: str) -> None:
        self.body.append(Label(name))

    def goto(self, name: str) -> None:
        self.body.append(Goto(name))

    def leave(self, value: Code | None = None) -> None:
        """Add a return."""
        self.body.append(Return(None if value is None else node(value)))

    # --- blocks ---

    @contextmanager
    def inside(self, body: list[Statement]) -> Iterator[None]:
        """Add statements to `body` while the context is active."""
        outer, self.body = self.body, body
        try:
            yield
        finally:
            self.body = outer

    @contextmanager
    def block(self) -> Iterator[None]:
        """Add the statements in the context to a new block, which is the scope of their names."""
        inner = Block()
        self.body.append(inner)
        with self.inside(inner.body):
            yield

    @contextmanager
    def when(self, condition: Code) -> Iterator[None]:
        """Add the statements in the context to an `if` with this condition."""
        branch = If(node(condition))
        self.body.append(branch)
        with self.inside(branch.then):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Add the statements in the context to the `else` of the preceding `when`."""
        branch = self.body[-1]
        assert isinstance(branch, If)
        with self.inside(branch.otherwise):
            yield

    @contextmanager
    def switch(self, value: Code) -> Iterator[Switch]:
        statement = Switch(node(value))
        yield statement
        if statement.cases:
            self.body.append(statement)

    @contextmanager
    def case(self, switch: Switch, value: Code) -> Iterator[None]:
        branch = Case(node(value))
        switch.cases.append(branch)
        with self.inside(branch.body):
            yield

    # --- names ---

    def name(self, what: str = "t") -> str:
        """Return a new name that begins with `what`."""
        self._temps += 1
        return f"{what}{self._temps}"

    def temp(self, c_type: str, value: Code, what: str = "t") -> C:
        """Declare a constant with that value and return it."""
        name = self.name(what)
        self.declare(f"const {c_type}", name, node(value))
        return Name(name, c_type)

    def limbs(self, count: int, number: int) -> C:
        """Declare a constant of `count` limbs."""
        return self.declare("static const uint64_t", self.name(), limbs(number, count), count)

    def array(self, limbs: int) -> C:
        """Declare an array for a wide integer."""
        return self.declare("uint64_t", self.name(), size=limbs)

    def wide(self, limbs: int, function: str, *args: Code) -> C:
        """Return the wide integer that `function`, called with `args`, writes to its first argument."""
        result = self.array(limbs)
        self.call(function, result, *args)
        return result
