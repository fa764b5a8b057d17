"""Coverage counts, summed over switches, runs and tests."""

from __future__ import annotations

import functools
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from p4switch.engine.points import Point, Points
from p4switch.errors import UserError
from p4switch.printable import hidden
from p4switch.regular_file import read_regular

KINDS = ("state", "transition", "hit", "miss", "action", "entry", "branch", "statement")
"""Kinds of items, in the order of reports."""

_KIND_OF = {"extract": "statement", "checksum": "statement", "checksum update": "statement"}
_EXCLUDED = re.compile(r"LCOV_EXCL_(LINE|BR_LINE|START|STOP)")
_MOST_BYTES = 64 << 20
_BRANCHES = ("branch", "transition")


class Item(NamedTuple):
    """Part of a program that packets may reach.

    A point of the source that occurs several times in the generated code is one item. `file` is "" and
    `line` is 0 if the program does not give them. `name` and `detail` are those of `points.Point`.
    """

    file: str
    line: int
    column: int
    kind: str
    name: str
    detail: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        words = {
            "state": f"state {self.name}",
            "transition": f"transition from {self.name} to {self.detail}",
            "hit": f"table {self.name}: hit",
            "miss": f"table {self.name}: miss",
            "action": f"table {self.name}: action {self.detail}",
            "entry": f"table {self.name}: entry {self.detail} of the program",
            "branch": f"{self.detail} of {self.name}",
        }
        return where + words.get(self.kind, self.name)


class Share(NamedTuple):
    """Share of items that were reached."""

    reached: int
    all: int

    @property
    def percent(self) -> float:
        """Percentage of reached items; 100 if there are no items."""
        return 100 * self.reached / self.all if self.all else 100.0


class Coverage:
    """Number of times that packets passed each item, for one program or several."""

    def __init__(self) -> None:
        self.counts: Counter[Item] = Counter()

    def add(self, points: Points, passed: Sequence[int]) -> None:
        """Add a switch's counts; `passed` has a number for each point."""
        for point, count in zip(points.all, passed, strict=True):
            if point.counted and (item := _item(point)) is not None:
                self.counts[item] += count

    def merge(self, other: Coverage) -> None:
        for item, count in other.counts.items():
            self.counts[item] += count

    def items(self, kinds: Iterable[str] = KINDS) -> Iterator[tuple[Item, int]]:
        """Yield the items and their counts in the order of the source, except excluded items."""
        wanted = {*kinds}
        for item in sorted(self.counts):
            if item.kind in wanted and not _excluded(item):
                yield item, self.counts[item]

    def missed(self, kinds: Iterable[str] = KINDS) -> list[Item]:
        return [item for item, count in self.items(kinds) if not count]

    def summary(self, kinds: Iterable[str] = KINDS, file: str | None = None) -> Share:
        counts = [count for item, count in self.items(kinds) if file is None or item.file == file]
        return Share(sum(map(bool, counts)), len(counts))

    @property
    def files(self) -> list[str]:
        return sorted({item.file for item in self.counts})

    def within(self, folder: Path) -> Coverage:
        """Return the coverage of source files in `folder`."""
        part, top = Coverage(), folder.resolve()
        inside = {file for file in self.files if file and top in Path(file).resolve().parents}
        part.counts.update({item: count for item, count in self.counts.items() if item.file in inside})
        return part

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([[*item, count] for item, count in sorted(self.counts.items())]))

    @classmethod
    def load(cls, path: Path, sources: Collection[str]) -> Coverage:
        """Return the coverage that `save` has written, for a program with the files `sources`.

        The file may come from someone else, and reports show the content of the source files that
        it names. UserError is therefore raised for a file that is not coverage of this program.
        """
        loaded = cls()
        try:
            for *values, count in json.loads(read_regular(path, _MOST_BYTES)):
                item = Item(*values)
                if not _is_sound(item, count):
                    raise ValueError(f"an item {values!r:.80}")
                if item.file and item.file not in sources:
                    raise UserError(f"{path}: {item.file!r:.200} is no file of the program")
                loaded.counts[item] += count
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise UserError(f"{path}: expected a file of saved coverage: {error}") from None
        return loaded


def _is_sound(item: Item, count: object) -> bool:
    """Return whether values from a file are valid for an item and its count."""
    texts, numbers = (item.file, item.kind, item.name, item.detail), (item.line, item.column, count)
    return (
        all(isinstance(text, str) and hidden(text) is None and "\n" not in text for text in texts)
        and all(type(number) is int and 0 <= number < 2**62 for number in numbers)
        and item.kind in KINDS
    )


def _item(point: Point) -> Item | None:
    """Return the item of a point, or None for statements that a compiler generated."""
    kind = _KIND_OF.get(point.kind, point.kind)
    place = point.place
    if place is None:
        return None if kind in ("statement", "branch") else Item("", 0, 0, kind, point.name, point.detail)
    at = os.path.normpath(place.file), place.line, place.column, kind
    if kind == "statement":
        return Item(*at, place.text, "")
    if kind == "branch":
        return Item(*at, point.name, point.detail)
    return Item(*at, _local(point.name), _local(point.detail))


def _local(name: str) -> str:
    """Return a name without the instances in it, because all instances of a control are one place in the source."""
    return name.rpartition(".")[2]


def _excluded(item: Item) -> bool:
    lines, branches = _exclusions(item.file, _version(item.file)) if item.file else (frozenset(), frozenset())
    return item.line in lines or (item.kind in _BRANCHES and item.line in branches)


def _version(file: str) -> tuple[int, int] | None:
    """Return the time and the size of a file, because it may be edited between two runs of a process."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=256)
def _exclusions(file: str, version: tuple[int, int] | None) -> tuple[frozenset[int], frozenset[int]]:
    """Return the excluded lines of a version of a file, and the lines whose branches are excluded."""
    del version  # part of the cache's key
    try:
        text = Path(file).read_text(errors="replace")
    except OSError:
        return frozenset(), frozenset()
    lines: set[int] = set()
    branches: set[int] = set()
    out = False
    for number, line in enumerate(text.splitlines(), start=1):
        marks = set(_EXCLUDED.findall(line))
        out = (out or "START" in marks) and "STOP" not in marks
        if out or marks & {"LINE", "STOP"}:
            lines.add(number)
        if "BR_LINE" in marks:
            branches.add(number)
    return frozenset(lines), frozenset(branches)
