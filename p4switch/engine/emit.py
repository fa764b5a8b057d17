"""Construction of the body of one C function, statement by statement."""

from collections.abc import Iterator
from contextlib import contextmanager

from p4switch.engine.cexpr import C, Code, Text, call, node
from p4switch.engine.cnodes import (
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
    limbs,
)


class Emitter:
    """Collector of the statements of one function, which also names its temporaries.

    `traced` tells whether the pipeline reports packet events; otherwise notes are omitted.
    """

    def __init__(self, *, traced: bool = False) -> None:
        self.traced = traced
        self.body: list[Statement] = []
        self._temps = 0

    # --- statements ---

    def add(self, *statements: Statement) -> None:
        self.body += statements

    def do(self, text: str) -> None:
        self.body.append(Do(text))

    def declare(self, text: str) -> None:
        self.body.append(Declare(text))

    def note(self, text: str) -> None:
        """Add a statement that reports a packet event."""
        if self.traced:
            self.body.append(Do(text))

    def comment(self, text: str) -> None:
        """Add the first line of a piece of source as a comment."""
        if first := commented(text):
            self.body.append(Comment(first))

    def label(self, name: str) -> None:
        self.body.append(Label(name))

    def goto(self, name: str) -> None:
        self.body.append(Goto(name))

    def leave(self, value: str = "") -> None:
        """Add a return."""
        self.body.append(Return(value))

    # --- blocks ---

    @contextmanager
    def inside(self, body: list[Statement]) -> Iterator[None]:
        """Add to another block while the context is active."""
        outer, self.body = self.body, body
        try:
            yield
        finally:
            self.body = outer

    @contextmanager
    def block(self) -> Iterator[None]:
        """Add to a block of its own, so that the scope of names ends with it."""
        inner = Block()
        self.body.append(inner)
        with self.inside(inner.body):
            yield

    @contextmanager
    def when(self, condition: Code) -> Iterator[None]:
        """Add the statements for a condition that holds."""
        branch = If(node(condition).bare)
        self.body.append(branch)
        with self.inside(branch.then):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Add the statements for the case that the condition of the preceding `when` does not hold."""
        branch = self.body[-1]
        assert isinstance(branch, If)
        with self.inside(branch.otherwise):
            yield

    @contextmanager
    def switch(self, value: str) -> Iterator[Switch]:
        statement = Switch(value)
        yield statement
        if statement.cases:
            self.body.append(statement)

    @contextmanager
    def case(self, switch: Switch, value: str) -> Iterator[None]:
        branch = Case(value)
        switch.cases.append(branch)
        with self.inside(branch.body):
            yield

    # --- names ---

    def name(self, what: str = "t") -> str:
        """Return a new name with this stem."""
        self._temps += 1
        return f"{what}{self._temps}"

    def temp(self, c_type: str, value: Code, what: str = "t") -> str:
        """Declare a constant with that value; return its name."""
        name = self.name(what)
        self.declare(f"const {c_type}{'' if c_type.endswith('*') else ' '}{name} = {node(value).bare}")
        return name

    def limbs(self, count: int, number: int) -> C:
        """Declare a constant of `count` limbs."""
        name = self.name()
        self.declare(f"static const uint64_t {name}[{count}] = {limbs(number, count)}")
        return Text(name)

    def array(self, limbs: int) -> C:
        """Declare an array for a wide integer."""
        name = self.name()
        self.declare(f"uint64_t {name}[{limbs}]")
        return Text(name)

    def wide(self, limbs: int, function: str, *args: Code | int) -> C:
        """Return the wide integer that a function writes to its first argument, given the other arguments."""
        result = self.array(limbs)
        self.do(call(function, "", result, *args).text)
        return result
