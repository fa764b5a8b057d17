"""Kinds of things by name, each registered where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from p4switch.errors import lookup

Base = TypeVar("Base")
Class = TypeVar("Class", bound=type)


class Registry(Generic[Base]):
    """Subclasses of one base class; `kind` is what messages call them."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._classes: dict[str, type[Base]] = {}

    def register(self, name: str) -> Callable[[Class], Class]:
        """Class decorator: makes the class known by name."""

        def add(cls: Class) -> Class:
            self._classes[name] = cls
            return cls

        return add

    def names(self) -> list[str]:
        return sorted(self._classes)

    def find(self, name: str) -> type[Base]:
        """The class of that name. Raises UserError."""
        cls: type[Base] = lookup(self._kind, name, self._classes)
        return cls
