"""Places in the source."""

from __future__ import annotations

import posixpath
from typing import NamedTuple


class Place(NamedTuple):
    """Place in the source. Line and column count from 1.

    `text` is the source text at this place. `file` is "" if it is not known.
    """

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def note(self) -> str:
        """The name of the file, the line and the text, in a form for human readers."""
        return f"{posixpath.basename(self.file)}:{self.line}: {self.text}" if self.text else ""
