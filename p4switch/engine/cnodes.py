"""Tree of C declarations, statements and blocks, and its printer.

Expressions are nodes of `cexpr`. Only the printer adds braces and indentation, and breaks long lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code, Fields, Rows, node

_COLUMNS = 120
_COMMENT_CHARS = 100
_DEEPEST_INDENT = 16  # blocks that are nested deeper are not indented any further

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][(){} ]')  # strings, parentheses and spaces
_CHARACTER = re.compile(r"\\[0-7]{3}|\\?.")  # a character of a string literal


@dataclass(frozen=True)
class Do:
    """Expression used as a statement."""

    expression: C


@dataclass(frozen=True)
class Assign:
    target: C
    value: C
    operator: str = "="


@dataclass(frozen=True)
class Declare:
    """Declaration of a variable, a parameter or a member. In a block, the scope of the name is that block.

    `size` is the size of an array; None stands for the number of elements in its value.
    """

    c_type: str
    name: str
    value: C | None = None
    size: int | None = 0

    @property
    def text(self) -> str:
        """The declaration without a semicolon."""
        space = "" if self.c_type.endswith("*") else " "
        extent = f"[{'' if self.size is None else self.size}]" if self.size != 0 else ""
        value = f" = {self.value.bare}" if self.value is not None else ""
        return f"{self.c_type}{space}{self.name}{extent}{value}"


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
    value: C | None = None


@dataclass(frozen=True)
class Break:
    """`break` at the end of a case."""


@dataclass
class Block:
    body: "list[Statement]" = field(default_factory=list)


@dataclass
class If:
    condition: C
    then: "list[Statement]" = field(default_factory=list)
    otherwise: "list[Statement]" = field(default_factory=list)
    note: str = ""  # comment


@dataclass
class Case:
    """Case of a switch; `value` is None for the default."""

    value: C | None
    body: "list[Statement]" = field(default_factory=list)


@dataclass
class Switch:
    value: C
    cases: list[Case] = field(default_factory=list)


Statement = Do | Assign | Declare | Comment | Label | Goto | Return | Break | Block | If | Switch
_LEAVES = (Goto, Return, Break)


# --- outside of functions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Include:
    """Inclusion of a file. The name includes the quotes or brackets."""

    file: str


@dataclass(frozen=True)
class Define:
    name: str
    value: int


@dataclass(frozen=True)
class Macro:
    """Use of a macro that expands to declarations. An argument that is a list has the members of a struct."""

    name: str
    arguments: Sequence[Code | Sequence[Declare]]


@dataclass(frozen=True)
class Enum:
    values: Mapping[str, Code]


@dataclass(frozen=True)
class Struct:
    """Struct with the declarations of its members. In a struct within a struct, `name` is the member's name."""

    name: str
    members: "Sequence[Declare | Struct]"


@dataclass(frozen=True)
class Function:
    """Definition of a function. `result` is the type of the result, with keywords such as `static`."""

    result: str
    name: str
    parameters: Sequence[Declare]
    body: list[Statement]


_LINES = Include | Define | Macro
Declaration = Comment | Include | Define | Macro | Enum | Struct | Declare | Function

SWITCH = Declare("P4_UNUSED p4_switch *", "sw")
PACKET = Declare("P4_UNUSED phv *", "p")
"""Parameters of most functions."""


def array(c_type: str, name: str, rows: Sequence[Code], *last: Code) -> Declare:
    """Return a constant array with the elements `rows` and `last`."""
    return Declare(f"static const {c_type}", name, Rows([*rows, *last]), None)


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
    """Return a block without jumps to the next statement, and without braces around code without declarations."""
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
                flat = [If(cexpr.compared("==", statement.value, cases[0].value), cases[0].body)]
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
        beside = isinstance(one, _LINES) if isinstance(before, _LINES) else type(one) is type(before)
        if not isinstance(before, Comment | None) and (isinstance(one, Function) or not beside):
            parts.append("")
        parts += _declaration(one)
        before = one
    return "\n".join(parts) + "\n"


def _declaration(declaration: Declaration) -> Iterator[str]:
    match declaration:
        case Comment(text):
            yield _comment(text, 0)
        case Include(file):
            yield f"#include {file}"
        case Define(name, value):
            yield f"#define {name} {value}"
        case Macro(name, arguments):
            shown = (node(each).bare if isinstance(each, Code) else _members(each) for each in arguments)
            yield from _folded(f"{name}({', '.join(shown)})", "")
        case Enum(values):
            pairs = (f"{name} = {node(value).bare}" for name, value in values.items())
            yield from _folded(f"enum {{ {', '.join(pairs)} }};", "")
        case Struct():
            yield from _struct("typedef struct", declaration, 0)
        case Declare(value=Rows(rows)) if any(isinstance(row, Fields) for row in rows[1:]):
            yield f"{replace(declaration, value=None).text} = {{"
            for row in rows:
                yield from _folded(f"{node(row).bare},", "    ")
            yield "};"
        case Declare():
            yield from _folded(f"{declaration.text};", "")
        case Function(result, name, parameters, body):
            tidied = tidy(body)
            head = f"{result} {name}({', '.join(each.text for each in parameters)})"
            yield from _folded(head if tidied else f"{head} {{}}", "")
            if tidied:
                yield from ("{", *_lines(tidied, 1), "}")


def _members(members: Sequence[Declare]) -> str:
    return " ".join(f"{each.text};" for each in members)


def _struct(keyword: str, struct: Struct, depth: int) -> Iterator[str]:
    yield f"{_indent(depth)}{keyword} {{"
    inner = [member for member in struct.members if isinstance(member, Struct)]
    for member in inner:
        yield from _struct("struct", member, depth + 1)
    plain = _members([member for member in struct.members if isinstance(member, Declare)])
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
    """Return the line of a statement followed by its comment; "" if it has several lines or is too long."""
    comment, *following = body[at : at + 3]
    if not isinstance(comment, Comment) or not following or not isinstance(following[0], Do | Assign):
        return ""
    if len(following) == 2 and isinstance(following[1], Do | Assign | Declare | If | Switch):
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
            yield from _folded(f"switch ({value.bare}) {{", indent)
            for case in cases:
                yield from _case(case, indent, depth)
            yield f"{indent}}}"
        case _:
            yield from _folded(_plain(statement), indent)


def _indent(depth: int) -> str:
    return "    " * min(depth, _DEEPEST_INDENT)


def _comment(text: str, depth: int) -> str:
    """Return a comment in one line, truncated to the line's length."""
    indent = _indent(depth)
    return f"{indent}/* {text[:_COLUMNS - len(indent) - len('/*  */')]} */"


def _folded(code: str, indent: str, further: str = "") -> Iterator[str]:
    """Yield the lines of code, broken within as few parentheses as possible, and after a comma if possible."""
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
    """Yield the places where code may be broken: the quotes to add, the open parentheses, and the position."""
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
        case Do(expression):
            return f"{expression.text};"
        case Assign(target, value, operator):
            return f"{target.text} {operator} {value.bare};"
        case Declare():
            return f"{statement.text};"
        case Goto(label):
            return f"goto {label};"
        case Return(C() as value):
            return f"return {value.bare};"
        case Return():
            return "return;"
    return "break;"


def _is_plain(body: Sequence[Statement]) -> bool:
    return all(isinstance(s, Do | Assign | Goto | Return | Break) for s in body)


def _if(statement: If, indent: str, depth: int) -> Iterator[str]:
    then, otherwise, head = statement.then, statement.otherwise, f"if ({statement.condition.bare})"
    note = statement.note
    if not then and otherwise:
        then, otherwise, head = otherwise, [], f"if ({cexpr.negated(statement.condition).bare})"
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
            head, note = f"}} else if ({inner.condition.bare})", inner.note
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
    head = f"{indent}default:" if case.value is None else f"{indent}case {case.value.bare}:"
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
    """Return the first line of a piece of source, without characters that would end a comment."""
    first = text.strip().partition("\n")[0].strip()
    plain = first[:_COMMENT_CHARS].encode("ascii", "replace").decode()
    return plain.replace("*/", "* /").replace("/*", "/ *")
