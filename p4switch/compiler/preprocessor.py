"""C-like preprocessor that records the origin of all text.

Supported: `#include`, `#define` (object- and function-like, `#` and `##`, variadic), `#undef`, `#if`, `#ifdef`,
`#ifndef`, `#elif`, `#else`, `#endif`, `#error`, `#warning`; `#pragma`, `#line` and `# 1 "file"` are ignored. Macros
`__LINE__`, `__FILE__` and `__p4cc__` are predefined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from p4switch.compiler.conditions import ConditionError, evaluate_condition
from p4switch.compiler.diagnostics import CompileError, Diagnostic
from p4switch.compiler.source import Piece, SourceFile, SourceMap
from p4switch.errors import UserError

MAX_INCLUDE_DEPTH = 64
MAX_CONDITIONALS = 200
MAX_INCLUDES = 10_000
MAX_SOURCE_CHARACTERS = 64_000_000
"""Maximum number of characters of all included files, counted once per inclusion."""
MAX_EXPANSION = 100_000
MAX_ARGUMENTS = 1_000_000
MAX_EXPANDED_CHARACTERS = 2_000_000
"""Limit of macro expansion in one program. A program that exceeds it is refused as a macro bomb.

The tokens that macros expand to, the tokens searched for arguments, and the characters of both
count.
"""

_SKIP = re.compile(r'"(?:\\.|[^"\\])*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*(?:\n|\Z)", re.MULTILINE)
_DIRECTIVE_PARTS = re.compile(r"\s*#\s*([A-Za-z_]\w*)?(.*)", re.DOTALL)
_WORD_OR_STRING = re.compile(r'"(?:\\.|[^"\\])*"?|[A-Za-z_]\w*')
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"?|[A-Za-z_]\w*|\d\w*|##|\s+|.', re.DOTALL)
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(\(\s*([^)]*)\))?(.*)", re.DOTALL)
_INCLUDE = re.compile(r'\s*(?:"([^"]+)"|<([^>]+)>)\s*$')


@dataclass(frozen=True, slots=True)
class Macro:
    """Macro. `params` is None for object-like macros. `body` are the tokens, including whitespace."""

    name: str
    params: tuple[str, ...] | None
    body: tuple[str, ...]
    variadic: bool = False


@dataclass(slots=True)
class _Token:
    text: str
    hidden: frozenset[str] = frozenset()


def _tokens(text: str) -> list[_Token]:
    return [_Token(t) for t in _TOKEN.findall(text)]


def _strip(tokens: list[_Token]) -> list[_Token]:
    start, end = 0, len(tokens)
    while start < end and tokens[start].text.isspace():
        start += 1
    while end > start and tokens[end - 1].text.isspace():
        end -= 1
    return tokens[start:end]


@dataclass(slots=True)
class _Conditional:
    """State of an open `#if`: whether the current branch, any branch so far, and the enclosing text are active."""

    offset: int
    live: bool
    taken: bool
    outer: bool
    seen_else: bool = False


class Preprocessor:
    """Preprocessor that turns a file into one text and a map back to the source files."""

    def __init__(self, include_dirs: Sequence[Path], defines: Mapping[str, str]) -> None:
        self._include_dirs = list(include_dirs)
        self._macros: dict[str, Macro] = {}
        for name, text in {"__p4cc__": "1", "__LINE__": "", "__FILE__": "", **defines}.items():
            self._macros[name] = Macro(name, None, tuple(_TOKEN.findall(text)))
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._length = 0
        self._expanded = self._looked_at = self._characters = 0
        self._included = self._read_characters = 0
        self._depth = 0
        self._file = SourceFile("", "")
        self.warnings: list[Diagnostic] = []

    def run(self, path: Path) -> SourceMap:
        """Preprocess the file. Raises UserError if it cannot be read, and CompileError for errors in it."""
        self._process(_read(path))
        self._emit("\n", self._file, len(self._file.text), True)
        return SourceMap("".join(self._parts), self._pieces)

    # Errors

    def _diagnostic(self, severity: str, offset: int, message: str) -> Diagnostic:
        location = self._file.locate(offset)
        return Diagnostic(severity, location, message, self._file.line(location.line))

    def _fail(self, offset: int, message: str) -> NoReturn:
        raise CompileError([self._diagnostic("error", offset, message)])

    # Output

    def _emit(self, text: str, file: SourceFile, offset: int, verbatim: bool) -> None:
        if text:
            self._pieces.append(Piece(self._length, file, offset, verbatim))
            self._parts.append(text)
            self._length += len(text)

    # Files

    def _process(self, file: SourceFile) -> None:
        self._read_characters += len(file.text)
        outer, self._file = self._file, file
        text = _SKIP.sub(self._blank_comment, file.text)
        conditionals: list[_Conditional] = []
        live = True
        done = 0
        for match in _DIRECTIVE.finditer(text):
            if live:
                self._emit_text(text, done, match.start())
            else:
                self._emit_blank_lines(text, done, match.start())
            done = match.end()
            live = self._directive(match.group(), match.start(), conditionals, live)
            self._emit_blank_lines(text, match.start(), done)
        if conditionals:
            self._fail(conditionals[-1].offset, "this conditional has no #endif")
        self._emit_text(text, done, len(text))
        if self._depth:
            self._emit("\n", file, len(file.text), True)
            self._file = outer

    def _blank_comment(self, match: re.Match[str]) -> str:
        text = match.group()
        if text[0] == '"':
            if len(text) == 1 or text[-1] != '"':
                self._fail(match.start(), "unterminated string")
            return text
        if text[1] == "*" and (len(text) < 4 or not text.endswith("*/")):
            self._fail(match.start(), "unterminated comment")
        return _NOT_NEWLINE.sub(" ", text)

    def _emit_text(self, text: str, start: int, end: int) -> None:
        """Emit `text[start:end]` of the current file with macros expanded."""
        macros = self._macros
        done = start
        for match in _WORD_OR_STRING.finditer(text, start, end):
            if match.start() < done or match.group() not in macros:
                continue
            use = self._expand_use(text, match, end)
            if use is None:
                continue
            expansion, after = use
            self._emit(text[done : match.start()], self._file, done, True)
            self._emit(expansion, self._file, match.start(), False)
            done = after
        self._emit(text[done:end], self._file, done, True)

    def _emit_blank_lines(self, text: str, start: int, end: int) -> None:
        """Emit blank lines in place of omitted lines. They are visible in multi-line strings of annotations."""
        self._emit("\n" * text.count("\n", start, end), self._file, start, False)

    # Directives

    def _directive(self, line: str, offset: int, conditionals: list[_Conditional], live: bool) -> bool:
        """Execute a directive, and return whether the text after it is active."""
        parts = _DIRECTIVE_PARTS.match(line)
        assert parts is not None
        name, rest = parts.group(1), parts.group(2).strip()
        if name in ("if", "ifdef", "ifndef"):
            holds = live and self._condition(name, rest, offset)
            conditionals.append(_Conditional(offset, holds, holds, live))
            if len(conditionals) > MAX_CONDITIONALS:
                self._fail(offset, f"conditionals nested more than {MAX_CONDITIONALS} deep")
        elif name in ("elif", "else", "endif"):
            if not conditionals:
                self._fail(offset, f"#{name} without #if")
            top = conditionals[-1]
            if name == "endif":
                conditionals.pop()
                return top.outer
            if top.seen_else:
                self._fail(offset, f"#{name} after #else")
            top.seen_else = name == "else"
            top.live = top.outer and not top.taken and (name == "else" or self._condition("if", rest, offset))
            top.taken = top.taken or top.live
        elif live and name is not None:
            self._action(name, rest, offset)
        return conditionals[-1].live if conditionals else True

    def _action(self, name: str, rest: str, offset: int) -> None:
        if name == "include":
            self._include(rest, offset)
        elif name == "define":
            self._define(rest, offset)
        elif name == "undef":
            self._macros.pop(rest, None)
        elif name == "error":
            self._fail(offset, f"#error {rest}")
        elif name == "warning":
            self.warnings.append(self._diagnostic("warning", offset, f"#warning {rest}"))
        elif name not in ("pragma", "line", "ident"):
            self._fail(offset, f"unknown preprocessor directive #{name}")

    def _condition(self, name: str, rest: str, offset: int) -> bool:
        if name != "if":
            macro = re.match(r"[A-Za-z_]\w*", rest)
            if macro is None:
                self._fail(offset, f"#{name} needs the name of a macro")
            return (macro.group() in self._macros) == (name == "ifdef")
        rest = re.sub(
            r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))",
            lambda m: "1" if (m.group(1) or m.group(2)) in self._macros else "0",
            rest,
        )
        text = "".join(t.text for t in self._expand(_tokens(rest), offset))
        try:
            return evaluate_condition(text)
        except ConditionError as error:
            self._fail(offset, f"#if: {error}")

    def _include(self, rest: str, offset: int) -> None:
        match = _INCLUDE.match(rest)
        if match is None:
            match = _INCLUDE.match("".join(t.text for t in self._expand(_tokens(rest), offset)))
        if match is None:
            self._fail(offset, '#include needs "file" or <file>')
        if self._depth >= MAX_INCLUDE_DEPTH:
            self._fail(offset, f"includes nested more than {MAX_INCLUDE_DEPTH} deep: does a file include itself?")
        quoted, angled = match.groups()
        target = quoted or angled
        beside = [Path(self._file.path).parent] if quoted else []
        for folder in [*beside, *self._include_dirs]:
            path = folder / target
            try:
                exists = path.is_file()
            except (OSError, ValueError):
                exists = False
            if exists:
                self._depth += 1
                self._included += 1
                if self._included > MAX_INCLUDES or self._read_characters > MAX_SOURCE_CHARACTERS:
                    self._fail(offset, f"over {MAX_INCLUDES} files or {MAX_SOURCE_CHARACTERS} characters are included")
                try:
                    self._process(_read(path))
                except UserError as error:
                    if isinstance(error, CompileError):
                        raise
                    self._fail(offset, str(error))
                self._depth -= 1
                return
        searched = ", ".join(str(d) for d in [*beside, *self._include_dirs])
        self._fail(offset, f"cannot find include file {target!r} (searched {searched})")

    def _define(self, rest: str, offset: int) -> None:
        match = _DEFINE.match(rest)
        if match is None:
            self._fail(offset, "#define needs the name of a macro")
        name, parens, param_text, body = match.groups()
        if name == "defined":
            self._fail(offset, "'defined' cannot be the name of a macro")
        params: tuple[str, ...] | None = None
        variadic = False
        if parens:
            names = [p.strip() for p in param_text.split(",")] if param_text.strip() else []
            if names and names[-1] == "...":
                names[-1] = "__VA_ARGS__"
                variadic = True
            bad = next((p for p in names if not p.isidentifier()), None)
            if bad is not None or len(set(names)) < len(names):
                self._fail(offset, f"bad parameter list of macro {name}")
            params = tuple(names)
        self._macros[name] = Macro(name, params, tuple(_TOKEN.findall(body.strip())), variadic)

    # Macros

    def _expand_use(self, text: str, match: re.Match[str], end: int) -> tuple[str, int] | None:
        """Expand the macro named at `match`.

        Return its text and the position where the source continues, or None if it is not used as a macro.
        """
        macro = self._macros[match.group()]
        after = match.end()
        if macro.params is not None:
            close = self._closing_paren(text, after, end, match.start())
            if close is None:
                return None
            after = close
        tokens = self._expand(_tokens(text[match.start() : after]), match.start())
        expansion = "".join(t.text for t in tokens)
        # The expansion may end in the name of a function-like macro, whose arguments follow in the source.
        last = next((t for t in reversed(tokens) if not t.text.isspace()), None)
        if last is not None and last.text not in last.hidden:
            pending = self._macros.get(last.text)
            if pending is not None and pending.params is not None:
                close = self._closing_paren(text, after, end, match.start())
                if close is not None:
                    tokens += _tokens(text[after:close])
                    return "".join(t.text for t in self._expand(tokens, match.start())), close
        # Spaces keep the expansion from merging with the text around it.
        return f" {expansion} ", after

    def _expand(self, tokens: list[_Token], offset: int) -> list[_Token]:
        """Replace all macros in `tokens` by Prosser's algorithm, in which a macro is not expanded within itself."""
        out: list[_Token] = []
        todo = tokens[::-1]
        while todo:
            token = todo.pop()
            macro = self._macros.get(token.text)
            if macro is None or token.text in token.hidden:
                out.append(token)
                continue
            args: list[list[_Token]] | None = None
            if macro.params is not None:
                before = len(todo)
                args = _take_arguments(todo)
                self._looked_at += before - len(todo) if args is not None else _unclosed(todo)
                self._check_budget(offset)
                if args is None:
                    out.append(token)
                    continue
                self._check_arguments(macro, args, offset)
            body = self._body(macro, args or [], offset)
            self._expanded += len(body) + 1
            self._characters += sum(len(t.text) for t in body)
            self._check_budget(offset)
            hidden = token.hidden | {macro.name}
            todo.extend(_Token(t.text, t.hidden | hidden) for t in reversed(body))
        return out

    def _check_budget(self, offset: int) -> None:
        if self._expanded > MAX_EXPANSION:
            self._fail(offset, f"macros expand to more than {MAX_EXPANSION} tokens")
        if self._looked_at > MAX_ARGUMENTS:
            self._fail(offset, f"arguments of macros have more than {MAX_ARGUMENTS} tokens, those in others included")
        if self._characters > MAX_EXPANDED_CHARACTERS:
            self._fail(offset, f"macros expand to more than {MAX_EXPANDED_CHARACTERS} characters")

    def _closing_paren(self, text: str, start: int, end: int, offset: int) -> int | None:
        """Return the position after the `)` of the next `(`; None if there is no `(` or no end."""
        depth = 0
        for match in _TOKEN.finditer(text, start, end):
            self._looked_at += 1
            token = match.group()
            if token == "(":
                depth += 1
            elif token == ")" and depth:
                depth -= 1
                if depth == 0:
                    return match.end()
            elif depth == 0 and not token.isspace():
                return None
        self._check_budget(offset)
        return None

    def _check_arguments(self, macro: Macro, args: list[list[_Token]], offset: int) -> None:
        assert macro.params is not None
        wanted = len(macro.params)
        if wanted == 0 and len(args) == 1 and not _strip(args[0]):
            args.clear()
        if macro.variadic:
            if len(args) >= wanted:
                rest = args[wanted - 1]
                for more in args[wanted:]:
                    rest = [*rest, _Token(","), *more]
                args[wanted - 1 :] = [rest]
            elif len(args) == wanted - 1:
                args.append([])
        if len(args) != wanted:
            self._fail(offset, f"macro {macro.name} needs {wanted} arguments, not {len(args)}")

    def _body(self, macro: Macro, args: list[list[_Token]], offset: int) -> list[_Token]:
        """Return the macro's body with its arguments substituted."""
        if macro.name == "__LINE__":
            return [_Token(str(self._file.locate(offset).line))]
        if macro.name == "__FILE__":
            return [_Token('"' + self._file.path.replace("\\", "\\\\").replace('"', '\\"') + '"')]
        bound = dict(zip(macro.params or (), args, strict=True))
        out: list[_Token] = []
        body = macro.body
        i = 0
        paste = False
        while i < len(body):
            text = body[i]
            i += 1
            following = next((t for t in body[i:] if not t.isspace()), "")
            if text == "##" and len(body) > 1:
                out = _strip(out)
                paste = True
                continue
            if paste and text.isspace():
                continue
            if text == "#" and bound and following in bound:
                i = body.index(following, i) + 1
                inner = "".join(t.text for t in _strip(bound[following]))
                self._characters += len(inner)
                self._check_budget(offset)
                new = [_Token('"' + re.sub(r'(["\\])', r"\\\1", inner) + '"')]
            elif text in bound:
                arg = _strip(bound[text])
                new = list(arg) if paste or following == "##" else self._expand(list(arg), offset)
            else:
                new = [_Token(text)]
            if paste and out and new:
                joined = _Token(out[-1].text + new[0].text)
                out[-1:] = [joined]
                new = new[1:]
            paste = False
            out.extend(new)
        return out


def _read(path: Path) -> SourceFile:
    try:
        return SourceFile(str(path), path.read_bytes().decode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _take_arguments(todo: list[_Token]) -> list[list[_Token]] | None:
    """Pop the arguments `( a, b )` from the end of `todo`, which is in reverse order.

    If there are none, return None and pop nothing.
    """
    at = len(todo) - 1
    while at >= 0 and todo[at].text.isspace():
        at -= 1
    if at < 0 or todo[at].text != "(":
        return None
    depth = 0
    args: list[list[_Token]] = [[]]
    for token in _backwards(todo, at):
        at -= 1
        if token.text in "([{" and token.text:
            depth += 1
            if depth == 1:
                continue
        elif token.text in ")]}":
            depth -= 1
            if depth == 0:
                del todo[at + 1 :]
                return args
        if token.text == "," and depth == 1:
            args.append([])
        else:
            args[-1].append(token)
    return None


def _unclosed(todo: list[_Token]) -> int:
    """Return how many tokens `_take_arguments` has read without finding a closing parenthesis."""
    following = next((t.text for t in reversed(todo) if not t.text.isspace()), "")
    return len(todo) if following == "(" else 0


def _backwards(tokens: list[_Token], start: int) -> Iterator[_Token]:
    for at in range(start, -1, -1):
        yield tokens[at]
