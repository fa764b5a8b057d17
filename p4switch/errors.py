"""The exception class for errors that the user can correct, and checks that raise it."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

_T = TypeVar("_T")


class UserError(Exception):
    """Request that cannot be carried out; one line names the object and what was expected.

    The command line prints it without a traceback and exits with status 2.
    """

    starts_with_place = False
    """True if the text begins with `file:line:col: error:`, as compilers' errors do."""


class Doubt(UserWarning):
    """Warning about valid input that is probably not intended.

    It is one line, which also says how p4cc treats the input. The command line prints it once,
    after `warning: `.
    """


class Mistakes:
    """Collector of the errors of independent checks, so that one message can report them all."""

    def __init__(self) -> None:
        self._found: dict[str, UserError] = {}

    def attempt(self, check: Callable[[], _T]) -> _T | None:
        """Return the result of the check, or None if it raised a UserError, which is kept."""
        try:
            return check()
        except UserError as error:
            self._found[str(error)] = error
            return None

    def __bool__(self) -> bool:
        return bool(self._found)

    def tell(self) -> None:
        """Raise a UserError with all errors that were found, if there are any."""
        if len(self._found) == 1:
            raise next(iter(self._found.values()))
        if self._found:
            raise UserError("; ".join(self._found))


def raised_at(error: BaseException) -> str:
    """Return an error of foreign Python code and its place in one line."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {error.msg}"
    text = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f"{last[0].filename}:{last[0].lineno}: {what}" if last else what


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """Return the known name that `name` probably misspells, or None.

    A misspelling differs in case, lacks the unit at the end, or differs in a few letters. `alike` is
    the required similarity from 0 to 1, as difflib computes it. It should be higher if there are
    many known names, because one of them may be similar by chance.
    """
    names = sorted(known)
    same = [one for one in names if one.lower() == name.lower()]
    without_unit = [one for one in names if one.startswith(f"{name}_")]
    return next(iter(same or without_unit or difflib.get_close_matches(name, names, 1, alike)), None)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: a similar known name, or else all known names."""
    names = sorted(known)
    if not names:
        return "there is none to choose from"
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near is not None else f"expected one of {', '.join(names)}"


def lookup(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    """Return `known[name]`.

    Raises UserError that lists the known names.
    """
    if name not in known:
        raise UserError(f"no {kind} {name!r}; {suggest(name, known)}")
    return known[name]


def validate(model: type[Model], values: Mapping[str, Any], where: str) -> Model:
    """Return `values` as a pydantic model.

    Raises UserError that names every wrong key below `where`.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        mistakes = dict.fromkeys(_mistake(one, model, where) for one in errors if not _is_of_its_items(one, errors))
        raise UserError("; ".join(mistakes)) from None


def _is_of_its_items(mistake: Any, errors: Sequence[Any]) -> bool:
    """Return whether the error "list too short" only follows from errors in the list's items."""
    loc = mistake["loc"]
    return mistake["type"] == "too_short" and any(
        one["loc"][: len(loc)] == loc and len(one["loc"]) > len(loc) for one in errors
    )


def _mistake(mistake: Any, model: type[Any], where: str) -> str:
    # For a tagged union, pydantic puts the tag's value into the location; it is not a key of the file.
    key = ".".join(str(part) for part in (*([where] if where else []), *mistake["loc"]))
    if mistake["type"] == "extra_forbidden":
        fields, name = _fields_at(model, mistake["loc"][:-1]), str(mistake["loc"][-1])
        quoted = "." in name and name.partition(".")[0] in fields  # in TOML, "a.b" in quotes is a single name
        return f"{key}: no such key; {'expected it without quotes' if quoted else suggest(name, fields)}"
    if mistake["type"] == "missing":
        return f"{key}: missing; it must be given"
    message = mistake["msg"].removeprefix("Value error, ").removeprefix("Input ")
    value = repr(mistake["input"])
    return f"{key}: {message}, got {value if len(value) < 80 else value[:77] + '...'}"


def _fields_at(model: type[Any], location: tuple[int | str, ...]) -> list[str]:
    """Return the field names of the model that a location inside `model` leads to."""
    current: Any = model
    for part in location:
        fields = getattr(current, "model_fields", {})
        if part in fields:
            wanted = fields[part].annotation
            current = next((each for each in get_args(wanted) if hasattr(each, "model_fields")), wanted)  # X | None
    return list(getattr(current, "model_fields", {}))
