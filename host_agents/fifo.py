"""A queue for the hot paths: in compiled code a `collections.deque` costs ten times as much."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Fifo(Generic[T]):
    """First in, first out. `size` is its length."""

    def __init__(self) -> None:
        self.size = 0
        self._items: list[T | None] = [None] * 8
        self._mask = 7
        self._head = 0

    def push(self, item: T) -> None:
        if self.size > self._mask:
            self._grow()
        self._items[(self._head + self.size) & self._mask] = item
        self.size += 1

    def pop(self) -> T:
        """The oldest item, taken out. Raises IndexError when there is none."""
        if self.size == 0:
            raise IndexError("pop from an empty Fifo")
        item = self._items[self._head]
        self._items[self._head] = None
        self._head = (self._head + 1) & self._mask
        self.size -= 1
        return cast(T, item)

    def peek(self) -> T:
        """The oldest item. Raises IndexError when there is none."""
        if self.size == 0:
            raise IndexError("peek into an empty Fifo")
        return cast(T, self._items[self._head])

    def last(self) -> T:
        """The newest item. Raises IndexError when there is none."""
        if self.size == 0:
            raise IndexError("peek into an empty Fifo")
        return cast(T, self._items[(self._head + self.size - 1) & self._mask])

    def _grow(self) -> None:
        old = self._items[self._head :] + self._items[: self._head]
        self._items = old + [None] * len(old)
        self._mask = 2 * self._mask + 1
        self._head = 0
