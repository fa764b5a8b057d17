"""Reading of text files from other programs, and the parser of the numbers in them.

A number consists of decimal digits, and is checked before it is converted: `1e999999` would need all memory, and
Python's own conversion fails with messages of its own for five thousand digits or digits of another script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from p4switch.errors import UserError

_MAX_BYTES = 1 << 30
_MOST_DIGITS = 20  # maximum number of digits of a whole number; 2^64 has 20
_MOST_CHARACTERS = 28  # maximum length of a number with a point that is still converted exactly
_MOST_EXPONENT = 30
_MOST_WHOLE = 1 << 64
_WHOLE = re.compile(r"-?[0-9]+")
_REAL = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]{1,3}))?")
_SHOWN = 40  # maximum number of characters that an error message shows of an invalid word


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of at most 1 GiB. Raises UserError, also for errors while it is read."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: expected a regular file")
        if path.stat().st_size > _MAX_BYTES:
            raise UserError(f"{path}: expected a file of at most {_MAX_BYTES} bytes")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except ValueError:  # a null character in the name, or text that is not UTF-8
        raise UserError(f"{path}: not a text file") from None


def read_text(path: Path) -> str:
    """Return the content of a text file.

    Raises UserError if it is not one, for instance a device, or is larger than 1 GiB.
    """
    with opened(path) as file:
        return file.read().decode()


def read_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line, from 1, and its words, while the file is read.

    Raises UserError for a file that is not text.
    """
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.decode().split()


def whole(where: str, word: str, what: str = "a number", most: int = _MOST_WHOLE, least: int = 0) -> int:
    """Return a word as a whole number from `least` up to, but not including, `most`.

    Raises UserError for any other word; the message begins with `where`.
    """
    if _WHOLE.fullmatch(word) is not None and len(word) <= _MOST_DIGITS and least <= (value := int(word)) < most:
        return value
    raise UserError(f"{where}: expected {what} from {least} to {most - 1}, got {shown(word)}")


def real(where: str, word: str, what: str) -> float:
    """Return a word as a number that is not negative; it may have a decimal point and an exponent.

    Raises UserError for a word that is not such a number.
    """
    value = decimal(word)
    if value is None:
        raise UserError(f"{where}: expected {what}, got {shown(word)}")
    return float(value)


def decimal(word: str) -> Decimal | None:
    """Return the exact value of a number that may have a decimal point and an exponent.

    Return None for other words, and for numbers with too many digits or too large an exponent.
    """
    match = _REAL.fullmatch(word) if len(word) <= _MOST_CHARACTERS else None
    if match is None or abs(int(match["exponent"] or 0)) > _MOST_EXPONENT:
        return None
    return Decimal(word)


def shown(word: str) -> str:
    """Return a word in the form in which error messages show it."""
    return repr(word) if len(word) <= _SHOWN else f"{word[:_SHOWN]!r}..."
