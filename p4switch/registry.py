"""Registries of objects by name; the files that define objects register them.

An object is defined in a file of p4cc, in a file of the user (`p4switch.extensions`), or in an installed package. A
package declares it by an entry point: the group is the registry's, the name that of the object, and the value the
module to import.

    [project.entry-points."p4cc.cc"]
    aimd = "my_package.aimd"
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from p4switch.errors import UserError, lookup, raised_at

Thing = TypeVar("Thing")
Class = TypeVar("Class", bound=type)

_REGISTRIES: list[Registry[Any]] = []


@functools.cache
def _installed(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of the packages on `path`. They are cached, because finding them takes long."""
    return tuple(entry_points(group=group))


class Registry(Generic[Thing]):
    """Objects of one kind, by name. Error messages call them by `kind`."""

    def __init__(self, kind: str, *, group: str, package: str, base: type) -> None:
        """Create a registry.

        `group` is the group of the entry points. All modules in `package` are imported when a name is
        first requested. Registered classes derive from `base`, and registered objects are instances of
        it.
        """
        self.kind = kind
        self._group, self._package, self._base = group, package, base
        self._things: dict[str, Thing] = {}
        self._origins: dict[str, str] = {}  # file (or "__main__") by name, for objects that do not come with p4cc
        self._complete = False  # True if all of the package is imported
        _REGISTRIES.append(self)

    def add(self, name: str, thing: Thing, stacklevel: int = 1) -> None:
        """Register an object by name.

        Its origin is the file of the caller. `stacklevel` 2 stands for the caller's caller, and so on.

        Raises UserError for an object of a wrong class, or if the name is taken.
        """
        origin = self._origin_of(sys._getframe(stacklevel).f_globals)
        if origin:
            self._import_package()  # so that a name that p4cc itself uses is reported now, not at its first use
        before = self._origins.get(name)
        if name in self._things and origin != before:
            places = " and ".join(sorted(place or "p4cc itself" for place in (before, origin)))
            raise UserError(f"{self.kind} {name!r} is registered twice, by {places}; expected different names")
        self._check(name, thing)
        self._things[name] = thing
        if origin:
            self._origins[name] = origin

    def register(self, name: str) -> Callable[[Class], Class]:
        """Return a class decorator that registers the class, like `add`."""

        def add(cls: Class) -> Class:
            self.add(name, cast(Thing, cls), stacklevel=2)
            return cls

        return add

    def _origin_of(self, module: Mapping[str, Any]) -> str | None:
        """Return the file of a module, or None if the module belongs to p4cc or is compiled.

        All cells of a notebook have the same origin.
        """
        name = module["__name__"]
        if name == "__main__":
            return "__main__"
        if name == self._package or name.startswith((f"{self._package}.", "importlib.")):
            return None
        return cast("str | None", module.get("__file__"))

    def _check(self, name: str, thing: Thing) -> None:
        if not isinstance(thing, type):
            if not isinstance(thing, self._base):
                raise UserError(f"{self.kind} {name!r}: expected a {self._base.__name__}, got {thing!r}")
        elif not issubclass(thing, self._base):
            raise UserError(f"{self.kind} {name!r}: class {thing.__name__} should derive from {self._base.__name__}")
        elif inspect.isabstract(thing):
            missing = ", ".join(sorted(getattr(thing, "__abstractmethods__", ())))
            raise UserError(f"{self.kind} {name!r}: class {thing.__name__} should have {missing}")

    def names(self) -> list[str]:
        """Return all names.

        Raises UserError for an installed package that cannot be imported.
        """
        return list(self.all())

    def all(self) -> dict[str, Thing]:
        """Return everything registered, in order of names.

        Raises UserError like `names`.
        """
        self._import_package()
        for point in _installed(self._group, tuple(sys.path)):
            self._import(point)
        return dict(sorted(self._things.items()))

    def find(self, name: str) -> Thing:
        """Return the object with that name.

        Raises UserError if there is none.
        """
        thing = self.get(name)
        if thing is None:
            thing = cast(Thing, lookup(self.kind, name, self.all()))
        return thing

    def get(self, name: str) -> Thing | None:
        """Return the object with that name, if there is one.

        Raises UserError like `names`.
        """
        self._import_package()
        if name not in self._things:
            for point in _installed(self._group, tuple(sys.path)):
                if point.name == name:
                    self._import(point)
        return self._things.get(name)

    def origin(self, name: str) -> str | None:
        """Return the file that registered a name, or None if it comes with p4cc."""
        return self._origins.get(name)

    def origins(self) -> list[str]:
        """Return the files that registered objects, except those of p4cc."""
        return sorted(set(self._origins.values()))

    def described(self, name: str) -> str:
        """Return the text KIND NAME, with the file if the object does not come with p4cc."""
        origin = self._origins.get(name)
        return f"{self.kind} {name!r}{f' of {origin}' if origin else ''}"

    def names_from(self, origin: str) -> list[str]:
        """Return the names that a file has registered."""
        return sorted(name for name, place in self._origins.items() if place == origin)

    def forget(self, origin: str) -> None:
        """Remove everything that a file has registered."""
        for name in self.names_from(origin):
            del self._things[name], self._origins[name]

    def _import_package(self) -> None:
        if self._complete:
            return
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{self._package}."):
            importlib.import_module(module.name)
        self._complete = True

    def _import(self, point: EntryPoint) -> None:
        owner = f" of package {point.dist.name!r}" if point.dist else ""
        where = f"entry point {point.name!r} in group {self._group!r}{owner}"
        try:
            importlib.import_module(point.module)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        except Exception as error:
            raise UserError(f"{where}: {raised_at(error)}") from None
        if point.name not in self._things:
            raise UserError(f"{where}: module {point.module!r} registers no {self.kind} of that name")


def forget(origin: str) -> None:
    """Remove everything that a file has registered from all registries."""
    for registry in _REGISTRIES:
        registry.forget(origin)
