"""C as a tree: declarations, statements and blocks, and the one printer of them.

Expressions are text, made by `value` and `expr`. Blocks are lists of statements, so that only the printer adds braces
and indentation to generated code.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

_COLUMNS = 100
_COMMENT_CHARS = 100
_BESIDE_COLUMNS = 120  # line length of a statement with its comment after it


@dataclass(frozen=True)
class Do:
    """Expression used as a statement, without its semicolon."""

    text: str


@dataclass(frozen=True)
class Declare:
    """Declaration of a name whose scope is its block, without its semicolon."""

    text: str


@dataclass(frozen=True)
class Comment:
    text: str


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Goto:
    label: str


@dataclass(frozen=True)
class Return:
    value: str = ""


@dataclass(frozen=True)
class Break:
    """`break` at the end of a case."""


@dataclass
class Block:
    body: "list[Statement]" = field(default_factory=list)


@dataclass
class If:
    condition: str
    then: "list[Statement]" = field(default_factory=list)
    otherwise: "list[Statement]" = field(default_factory=list)
    note: str = ""  # a comment


@dataclass
class Case:
    """Case of a switch; `value` is None for the default."""

    value: str | None
    body: "list[Statement]" = field(default_factory=list)


@dataclass
class Switch:
    value: str
    cases: list[Case] = field(default_factory=list)


Statement = Do | Declare | Comment | Label | Goto | Return | Break | Block | If | Switch
_LEAVES = (Goto, Return, Break)


def ends(body: Sequence[Statement]) -> bool:
    """Return whether control never reaches the end of a block that is entered at its first statement."""
    last = body[-1] if body else None
    if isinstance(last, If):
        return ends(last.then) and ends(last.otherwise)
    return isinstance(last, _LEAVES) or (isinstance(last, Block) and ends(last.body))


def _blocks(statement: Statement) -> list[list[Statement]]:
    if isinstance(statement, If):
        return [statement.then, statement.otherwise]
    if isinstance(statement, Switch):
        return [case.body for case in statement.cases]
    return [statement.body] if isinstance(statement, Block) else []


def _targets(body: Sequence[Statement]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Goto):
            yield statement.label
        for inner in _blocks(statement):
            yield from _targets(inner)


def _simple(body: Sequence[Statement]) -> list[Statement]:
    """Return a block without jumps to the code that follows, and without braces that enclose no declaration."""
    simple: list[Statement] = []
    for statement in body:
        if isinstance(statement, Block):
            inner = _simple(statement.body)
            if any(isinstance(s, Declare) for s in inner):
                simple.append(Block(inner))
                continue
            flat = inner
        elif isinstance(statement, If):
            flat = [replace(statement, then=_simple(statement.then), otherwise=_simple(statement.otherwise))]
        elif isinstance(statement, Switch):
            cases = [Case(c.value, _simple(c.body)) for c in statement.cases]
            flat = [Switch(statement.value, cases)]
            if len(cases) == 1 and cases[0].value is not None:
                flat = [If(f"{statement.value} == {cases[0].value}", cases[0].body)]
        else:
            flat = [statement]
        for one in flat:
            if isinstance(one, Label) and simple and simple[-1] == Goto(one.name):
                simple.pop()
            if isinstance(one, Label) or not (simple and isinstance(simple[-1], _LEAVES)):
                simple.append(one)
    return simple


def _without_labels(body: Sequence[Statement], used: set[str]) -> list[Statement]:
    for statement in body:
        for inner in _blocks(statement):
            inner[:] = _without_labels(inner, used)
    return [s for s in body if not isinstance(s, Label) or s.name in used]


def tidy(body: Sequence[Statement]) -> list[Statement]:
    """Return the same statements without needless jumps, labels and braces, and without unreachable code."""
    simple = _simple(body)
    tidied = _without_labels(simple, {*_targets(simple)})
    if tidied and tidied[-1] == Return():
        tidied.pop()
    return tidied


def text_of(body: Sequence[Statement], depth: int = 1) -> str:
    """Return the text of a block's statements, indented by `depth`."""
    return "\n".join(_lines(body, depth))


def function(head: str, body: Sequence[Statement]) -> str:
    """Return the text of a function definition; `head` is its declaration without a semicolon."""
    inside = text_of(tidy(body))
    return f"{head}\n{{\n{inside}\n}}\n" if inside else f"{head} {{}}\n"


def _lines(body: Sequence[Statement], depth: int) -> Iterator[str]:
    at = 0
    while at < len(body):
        beside = _beside(body, at, depth)
        if beside:
            yield beside
        else:
            yield from _statement(body[at], depth)
        at += 2 if beside else 1


def _beside(body: Sequence[Statement], at: int, depth: int) -> str:
    """Return the line of a statement with its comment after it; "" if it has several lines or is too long."""
    comment, *following = body[at : at + 3]
    if not isinstance(comment, Comment) or not following or not isinstance(following[0], Do):
        return ""
    if len(following) == 2 and isinstance(following[1], Do | Declare | If | Switch):
        return ""
    line = f"{'    ' * depth}{_plain(following[0])}  /* {comment.text} */"
    return line if len(line) <= _BESIDE_COLUMNS else ""


def _statement(statement: Statement, depth: int) -> Iterator[str]:
    indent = "    " * depth
    match statement:
        case Label(name):
            yield f"{name}:;"
        case Comment(text):
            yield f"{indent}/* {text} */"
        case Block(body):
            yield f"{indent}{{"
            yield from _lines(body, depth + 1)
            yield f"{indent}}}"
        case If():
            yield from _if(statement, indent, depth)
        case Switch(value, cases):
            yield f"{indent}switch ({value}) {{"
            for case in cases:
                yield from _case(case, indent, depth)
            yield f"{indent}}}"
        case _:
            yield indent + _plain(statement)


def _plain(statement: Statement) -> str:
    match statement:
        case Do(text) | Declare(text):
            return f"{text};"
        case Goto(label):
            return f"goto {label};"
        case Return(value):
            return f"return {value};" if value else "return;"
    return "break;"


def _is_plain(body: Sequence[Statement]) -> bool:
    return all(isinstance(s, Do | Goto | Return | Break) for s in body)


def _if(statement: If, indent: str, depth: int) -> Iterator[str]:
    then, otherwise, head = statement.then, statement.otherwise, f"if ({statement.condition})"
    note = statement.note
    if not then and otherwise:
        then, otherwise, head = otherwise, [], f"if (!({statement.condition}))"
    while True:
        bare = len(then) == 1 and _is_plain(then) and head.startswith("if") and len(otherwise) <= 1 \
            and _is_plain(otherwise)
        yield f"{indent}{head}{'' if bare else ' {'}{f'  /* {note} */' if note else ''}"
        yield from _lines(then, depth + 1)
        if bare and not otherwise:
            return
        if len(otherwise) == 1 and isinstance(otherwise[0], If) and otherwise[0].then:
            inner = otherwise[0]
            head, note = f"}} else if ({inner.condition})", inner.note
            then, otherwise = inner.then, inner.otherwise
            continue
        if otherwise and bare:
            yield f"{indent}else"
            yield from _lines(otherwise, depth + 1)
            return
        if otherwise:
            yield f"{indent}}} else {{"
            yield from _lines(otherwise, depth + 1)
        yield f"{indent}}}"
        return


def _case(case: Case, indent: str, depth: int) -> Iterator[str]:
    """Yield a case, on one line if it fits."""
    head = f"{indent}default:" if case.value is None else f"{indent}case {case.value}:"
    body = list(case.body) if ends(case.body) else [*case.body, Break()]
    line = " ".join([head, *map(_plain, body)]) if _is_plain(body) else ""
    if line and len(line) <= _COLUMNS:
        yield line
        return
    braces = any(isinstance(s, Declare) for s in body)
    yield head + (" {" if braces else "")
    yield from _lines(body, depth + 1)
    if braces:
        yield f"{indent}}}"


def commented(text: str) -> str:
    """Return the first line of a piece of source in a form that can be part of a comment."""
    first = text.strip().partition("\n")[0].strip()
    plain = first[:_COMMENT_CHARS].encode("ascii", "replace").decode()
    return plain.replace("*/", "* /").replace("/*", "/ *")


# --- constants --------------------------------------------------------------------------------------------------------


def initialiser(members: Mapping[str, object]) -> str:
    """Return the initialiser of a struct by the names of its members; members that are 0 or NULL are omitted."""
    shown = {name: value for name, value in members.items() if str(value) not in ("0", "NULL")} or members
    return "{" + ", ".join(f".{name} = {value}" for name, value in shown.items()) + "}"


def filled(head: str, items: Sequence[str], tail: str) -> str:
    """Return a list wrapped to full lines, between `head` and `tail`; on one line if there is room."""
    one = head + ", ".join(items) + tail
    if len(one) <= _COLUMNS and "\n" not in one:
        return one
    lines = [head.rstrip()]
    line = ""
    for item in items:
        if line and len(line) + len(item) + 3 > _COLUMNS:
            lines.append(line)
            line = ""
        line = f"{line} {item}," if line else f"    {item},"
    return "\n".join([*lines, line, tail.lstrip()])


def literal_array(c_type: str, rows: Sequence[str]) -> str:
    """Return a constant array as an expression."""
    return f"(const {c_type}[]){{{', '.join(rows)}}}"


def array(c_type: str, name: str, rows: Sequence[str], last: str = "") -> str:
    """Return the definition of a constant array with a row per line; `last` ends it."""
    every = [*rows, last] if last else list(rows)
    if len(every) == 1 and len(every[0]) < _COLUMNS // 2:
        return f"static const {c_type} {name}[] = {{{every[0]}}};"
    return f"static const {c_type} {name}[] = {{\n" + "".join(f"    {_row(row)},\n" for row in every) + "};"


def members(declared: Sequence[str], indent: str) -> str:
    """Return declarations of a struct's members, wrapped to full lines."""
    lines = [indent]
    for one in declared:
        if len(lines[-1]) + len(one) + 1 > _COLUMNS and lines[-1].strip():
            lines.append(indent)
        lines[-1] += one if not lines[-1].strip() else f" {one}"
    return "\n".join(lines)


def _row(row: str) -> str:
    """Return a row, split into several lines if it is too long."""
    lines: list[str] = []
    line = ""
    for part in row.split(", ."):
        piece = part if not line and not lines else f".{part}"
        if line and len(line) + len(piece) + 6 > _COLUMNS:
            lines.append(f"{line},")
            line = f" {piece}"
        else:
            line = f"{line}, {piece}" if line else piece
    return "\n    ".join([*lines, line])
