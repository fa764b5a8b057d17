"""Source files, and the mapping from preprocessed text to positions in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


class Location(NamedTuple):
    """Position in a source file; line and column count from 1."""

    file: str
    line: int
    column: int


_LINE_END = re.compile(r"(\\[ \t\f\v]*)?\r?\n")
"""End of a line. Group 1 matches if a backslash joins it with the next line, as C compilers do."""


class SourceFile:
    """Source file. `path` is its name in messages.

    `text` is the content with continued lines joined, and offsets are positions in `text`. Line numbers are those
    of the file, and `line_starts` has the offset of each line's start.
    """

    __slots__ = ("line_starts", "path", "text")

    def __init__(self, path: str, written: str) -> None:
        self.path = path
        self.line_starts = [0]
        self.text = written
        if "\\" in written:
            parts: list[str] = []
            done = length = 0
            for end in _LINE_END.finditer(written):
                part = written[done : end.start() if end.group(1) else end.end()]
                done = end.end()
                length += len(part)
                parts.append(part)
                self.line_starts.append(length)
            self.text = "".join(parts) + written[done:]
        else:
            at = written.find("\n")
            while at >= 0:
                self.line_starts.append(at + 1)
                at = written.find("\n", at + 1)

    def locate(self, offset: int) -> Location:
        line = bisect_right(self.line_starts, offset)
        return Location(self.path, line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return the text of line `number`, without its end."""
        start, *rest = self.line_starts[number - 1 : number + 1]
        line = self.text[start : rest[0] if rest else None]
        spliced = bool(rest) and not line.endswith("\n")
        return line.rstrip("\r\n") + ("\\" if spliced else "")


class Piece(NamedTuple):
    """Section of preprocessed text that comes from one position of a file.

    Verbatim pieces map character by character. All text of an expanded macro maps to the position of
    the macro's name.
    """

    start: int
    file: SourceFile
    offset: int
    verbatim: bool


_PLAIN = r'[^"/()\[\]{};]+'
_WORD = re.compile(rf'({_PLAIN})|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|.', re.DOTALL)


def _extent(text: str, start: int, most: int) -> str:
    """Return the fragment of `SourceMap.fragment` that begins at `start`, without comments."""
    parts: list[str] = []
    depth = length = 0
    for word in _WORD.finditer(text, start):
        piece = word.group()
        if word.lastindex:  # plain text, which can be truncated anywhere
            parts.append(piece[: most - length])
            length += len(piece)
            if length > most:
                break
            continue
        if piece.startswith(("//", "/*")):
            piece = " "
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        if depth < 0 or piece in ("{", "}") or length + len(piece) > most:
            break
        parts.append(piece)
        length += len(piece)
        if piece == ";" and not depth:
            break
    return "".join(parts)


@dataclass(slots=True)
class SourceMap:
    """The preprocessed text of a program. Positions in the syntax tree are offsets in `text`."""

    text: str
    pieces: list[Piece]
    _starts: list[int] = field(default_factory=list)

    def _file_offset(self, pos: int) -> tuple[SourceFile, int]:
        if not self._starts:
            self._starts = [p.start for p in self.pieces]
        piece = self.pieces[max(bisect_right(self._starts, pos) - 1, 0)]
        return piece.file, piece.offset + (pos - piece.start if piece.verbatim else 0)

    def locate(self, pos: int) -> Location:
        """Return the file and place of the text at `pos`."""
        file, offset = self._file_offset(pos)
        return file.locate(offset)

    def fragment(self, pos: int, most: int) -> str:
        """Return the statement, condition or head of a declaration that begins at `pos`, in one line.

        The result has at most `most` characters. It ends at the semicolon, at a brace, or at a closing
        bracket whose opening bracket is before `pos`.
        """
        file, offset = self._file_offset(pos)
        return " ".join(_extent(file.text, offset, most).split())

    def line_at(self, pos: int) -> str:
        """Return the source line of `pos`."""
        file, offset = self._file_offset(pos)
        return file.line(file.locate(offset).line)
