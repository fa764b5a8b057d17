"""Source files, and the way back from preprocessed text to them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


class Location(NamedTuple):
    """A place in a source file; line and column count from 1."""

    file: str
    line: int
    column: int


@dataclass(slots=True)
class SourceFile:
    """A file as read. `path` is how messages name it."""

    path: str
    text: str
    _line_starts: list[int] = field(default_factory=list)

    def locate(self, offset: int) -> Location:
        if not self._line_starts:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._line_starts = starts
        line = bisect_right(self._line_starts, offset)
        return Location(self.path, line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of line `number`, without its end."""
        start = self._line_starts[number - 1] if self._line_starts else 0
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].rstrip("\r")


class Piece(NamedTuple):
    """A stretch of preprocessed text that came from one place of a file.

    Verbatim pieces map character by character; the text of an expanded macro maps to where the macro's name stands.
    """

    start: int
    file: SourceFile
    offset: int
    verbatim: bool


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
        """Where in which file the text at `pos` came from."""
        file, offset = self._file_offset(pos)
        return file.locate(offset)

    def line_at(self, pos: int) -> str:
        """The source line that `pos` is on."""
        file, offset = self._file_offset(pos)
        return file.line(file.locate(offset).line)
