"""A queue for the hot paths: in compiled code a `collections.deque` costs ten times as much."""

from __future__ import annotations

from typing import Final, Generic, TypeVar, cast

from librt.vecs import vec
from mypy_extensions import i64

T = TypeVar("T")
_FEWEST: Final = 2  # slots after the first use
_FEWEST_ROWS: Final = 8
_NO_ITEMS: Final[list[object]] = []


class Fifo(Generic[T]):
    """First-in-first-out queue of `size` items. It allocates at its first use, since most are never used."""

    def __init__(self) -> None:
        self.size = 0
        self._items = cast("list[T | None]", _NO_ITEMS)
        self._mask = -1
        self._head = 0

    def push(self, item: T) -> None:
        if self.size > self._mask:
            self._grow()
        self._items[(self._head + self.size) & self._mask] = item
        self.size += 1

    def pop(self) -> T:
        """Remove and return the oldest item.

        Raises IndexError if there is none.
        """
        if self.size == 0:
            raise IndexError("pop from an empty Fifo")
        item = self._items[self._head]
        self._items[self._head] = None
        self._head = (self._head + 1) & self._mask
        self.size -= 1
        return cast(T, item)

    def peek(self) -> T:
        """Return the oldest item.

        Raises IndexError if there is none.
        """
        if self.size == 0:
            raise IndexError("peek into an empty Fifo")
        return cast(T, self._items[self._head])

    def at(self, index: int) -> T:
        """Return the item at `index` from the oldest.

        Raises IndexError if there is none.
        """
        if not 0 <= index < self.size:
            raise IndexError("no such item in a Fifo")
        return cast(T, self._items[(self._head + index) & self._mask])

    def last(self) -> T:
        """Return the newest item.

        Raises IndexError if there is none.
        """
        if self.size == 0:
            raise IndexError("peek into an empty Fifo")
        return cast(T, self._items[(self._head + self.size - 1) & self._mask])

    def _grow(self) -> None:
        old = self._items[self._head :] + self._items[: self._head]
        self._items = old + [None] * max(len(old), _FEWEST)
        self._mask = len(self._items) - 1
        self._head = 0


class RowFifo:
    """First-in-first-out queue of `size` rows of `width` integers each.

    They are contiguous in `rows`, which is replaced when it grows. An object for each row would be
    traversed by the garbage collector, and its numbers would be scattered in memory.
    """

    def __init__(self, width: int) -> None:
        self.size = 0
        self.rows = vec[i64]([0] * (_FEWEST_ROWS * width))
        self._width = width
        self._mask = _FEWEST_ROWS - 1
        self._head = 0

    def push(self) -> i64:
        """Add a row to be filled in; return its index in `rows`."""
        if self.size > self._mask:
            self._grow()
        place: i64 = ((self._head + self.size) & self._mask) * self._width
        self.size += 1
        return place

    def oldest(self) -> i64:
        """Return the index of the oldest row in `rows`; there must be one."""
        place: i64 = self._head * self._width
        return place

    def drop(self) -> None:
        """Drop the oldest row, whose contents stay until the next push."""
        self._head = (self._head + 1) & self._mask
        self.size -= 1

    def _grow(self) -> None:
        old = self.rows
        rows = vec[i64]([0] * (2 * len(old)))
        first = self.oldest()
        for at in range(len(old)):
            rows[at] = old[(first + at) % len(old)]
        self.rows = rows
        self._mask = 2 * self._mask + 1
        self._head = 0
