"""C as a tree: declarations, statements and blocks, and the one printer of them.

Statements have the text of expressions (`cexpr`). Only the printer adds braces and indentation, and breaks long lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

_COLUMNS = 120
_COMMENT_CHARS = 100
_DEEPEST_INDENT = 16  # blocks that are nested deeper are not indented any further

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][(){} ]')  # strings, parentheses and spaces
_CHARACTER = re.compile(r"\\[0-7]{3}|\\?.")  # a character of a string literal


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
    note: str = ""  # comment


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


# --- outside of functions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Initialiser of an array; with `c_type` an expression, which is an array without a name."""

    items: Sequence[object]
    c_type: str = ""

    def __str__(self) -> str:
        cast = f"(const {self.c_type}[])" if self.c_type else ""
        return f"{cast}{{{', '.join(map(str, self.items)) or '0'}}}"


@dataclass(frozen=True)
class Fields:
    """Initialiser of a struct by the names of its members; those that are 0 or NULL are omitted."""

    members: Mapping[str, object]

    def __str__(self) -> str:
        shown = {name: value for name, value in self.members.items() if str(value) not in ("0", "NULL")} or self.members
        return f"{{{', '.join(f'.{name} = {value}' for name, value in shown.items())}}}"


@dataclass(frozen=True)
class Line:
    """Use of a macro, or a line for the preprocessor."""

    text: str


@dataclass(frozen=True)
class Enum:
    values: Mapping[str, object]


@dataclass(frozen=True)
class Struct:
    """Struct with the declarations of its members; inside of another one, `name` is that of the member."""

    name: str
    members: "Sequence[str | Struct]"


@dataclass(frozen=True)
class Variable:
    """Definition of a constant; `head` is its declaration without a semicolon."""

    head: str
    value: Rows | Fields


@dataclass(frozen=True)
class Function:
    """Definition of a function; `head` is its declaration without a semicolon."""

    head: str
    body: list[Statement]


Declaration = Comment | Line | Enum | Struct | Variable | Function


def array(c_type: str, name: str, rows: Sequence[object], *last: object) -> Variable:
    """Return a constant array, which `last` ends."""
    return Variable(f"static const {c_type} {name}[]", Rows([*rows, *last]))


def limbs(number: int, count: int) -> Rows:
    """Return the limbs of a wide integer, the least significant one first."""
    return Rows([f"0x{number >> 64 * i & (1 << 64) - 1:x}ull" for i in range(count)])


# --- order of statements ----------------------------------------------------------------------------------------------


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


# --- the printer ------------------------------------------------------------------------------------------------------


def source(declarations: Sequence[Declaration]) -> str:
    """Return the text of a file, with blank lines around functions and between declarations of different kinds."""
    parts: list[str] = []
    before: Declaration | None = None
    for one in declarations:
        if not isinstance(before, Comment | None) and (isinstance(one, Function) or type(one) is not type(before)):
            parts.append("")
        parts += _declaration(one)
        before = one
    return "\n".join(parts) + "\n"


def _declaration(declaration: Declaration) -> Iterator[str]:
    match declaration:
        case Comment(text):
            yield _comment(text, 0)
        case Line(text):
            yield from [text] if text.startswith("#") else _folded(text, "")
        case Enum(values):
            yield from _folded(f"enum {{ {', '.join(f'{name} = {value}' for name, value in values.items())} }};", "")
        case Struct():
            yield from _struct("typedef struct", declaration, 0)
        case Variable(head, Rows(rows)) if any(isinstance(row, Fields) for row in rows[1:]):
            yield f"{head} = {{"
            for row in rows:
                yield from _folded(f"{row},", "    ")
            yield "};"
        case Variable(head, value):
            yield from _folded(f"{head} = {value};", "")
        case Function(head, body):
            tidied = tidy(body)
            yield from _folded(head if tidied else f"{head} {{}}", "")
            if tidied:
                yield from ("{", *_lines(tidied, 1), "}")


def _struct(keyword: str, struct: Struct, depth: int) -> Iterator[str]:
    yield f"{_indent(depth)}{keyword} {{"
    inner = [member for member in struct.members if isinstance(member, Struct)]
    for member in inner:
        yield from _struct("struct", member, depth + 1)
    plain = " ".join(member for member in struct.members if isinstance(member, str))
    if plain:
        yield from _folded(plain, _indent(depth + 1), _indent(depth + 1))
    yield f"{_indent(depth)}}} {struct.name};"


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
    line = f"{_indent(depth)}{_plain(following[0])}  /* {comment.text} */"
    return line if len(line) <= _COLUMNS else ""


def _statement(statement: Statement, depth: int) -> Iterator[str]:
    indent = _indent(depth)
    match statement:
        case Label(name):
            yield f"{name}:;"
        case Comment(text):
            yield _comment(text, depth)
        case Block(body):
            yield f"{indent}{{"
            yield from _lines(body, depth + 1)
            yield f"{indent}}}"
        case If():
            yield from _if(statement, indent, depth)
        case Switch(value, cases):
            yield from _folded(f"switch ({value}) {{", indent)
            for case in cases:
                yield from _case(case, indent, depth)
            yield f"{indent}}}"
        case _:
            yield from _folded(_plain(statement), indent)


def _indent(depth: int) -> str:
    return "    " * min(depth, _DEEPEST_INDENT)


def _comment(text: str, depth: int) -> str:
    """Return a line with as much of the comment as fits."""
    indent = _indent(depth)
    return f"{indent}/* {text[:_COLUMNS - len(indent) - len('/*  */')]} */"


def _folded(code: str, indent: str, further: str = "") -> Iterator[str]:
    """Yield the lines of a piece of code, broken inside of as few parentheses as possible and best after a comma."""
    further = further or f"{indent}    "
    while len(indent) + len(code) > _COLUMNS:
        room = _COLUMNS - len(indent) - 1
        breaks = [(quote, at < room / 2, depth, code[at - 1] not in ",;", -at) for quote, depth, at in _breaks(code)]
        fitting = [found for found in breaks if -found[-1] <= room]
        if not fitting:
            break
        quote, *_, at = min(fitting)
        yield indent + code[:-at] + quote
        indent, code = further, quote + code[-at:].lstrip(" " if not quote else "")
    yield indent + code


def _breaks(code: str) -> Iterator[tuple[str, int, int]]:
    """Yield where code may be broken: the quotes needed, the parentheses that are open, and the position."""
    depth = 0
    for token in _TOKEN.finditer(code):
        if token[0] == " ":
            yield "", depth, token.start()
        elif token[0].startswith('"'):
            for character in _CHARACTER.finditer(token[0], 1, len(token[0]) - 1):
                if character.start() > 1:
                    yield '"', depth, token.start() + character.start()
        else:
            depth += (token[0] in "([{") - (token[0] in ")]}")


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
        line = f"{head}{'' if bare else ' {'}"
        beside = f"{line}  /* {note} */" if note else line
        if len(indent) + len(beside) <= _COLUMNS:
            yield indent + beside
        else:
            yield from _folded(line, indent)
            if note:
                yield _comment(note, depth + 1)
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
