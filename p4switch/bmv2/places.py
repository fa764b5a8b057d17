"""Places of the source, as BMv2 JSON has them in `source_info`."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Place in the source; line and column count from 1.

    `text` begins there. `file` may be "": unknown.
    """

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def note(self) -> str:
        """The name of the file, the line and the text, for readers."""
        return f"{posixpath.basename(self.file)}:{self.line}: {self.text}" if self.text else ""


def place_of(source: Any) -> Place | None:
    """Return the place of a source info; None if the JSON has none or an invalid one."""
    if not isinstance(source, Mapping):
        return None
    file, line, column = source.get("filename"), source.get("line"), source.get("column", 1)
    if not isinstance(file, str) or not file or not isinstance(line, int) or not isinstance(column, int):
        return None
    return Place(file, line, column, str(source.get("source_fragment") or ""))
