"""Parsing of other simulators' traffic files: their lines, numbers and hosts.

Numbers are parsed by `p4switch.foreign_files`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import Field

from harness.workloads.base import MAX_SIZE_BYTES, MAX_TIME_NS, Setting
from p4switch import foreign_files
from p4switch.errors import UserError
from p4switch.foreign_files import decimal, opened, read_text, real, shown

Classes = dict[Annotated[str, Field(pattern=r"^[0-9]{1,10}$")], Annotated[int, Field(ge=0, le=7)]]
"""The class of data by the priority that a file gives a flow, as decimal digits."""

__all__ = ["Classes", "ends", "host", "opened", "read_lines", "read_text", "real", "time_ns", "whole"]


def read_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number, from 1, and the words of each line while reading.

    Raises UserError for a file that is not a text file.
    """
    try:
        yield from foreign_files.read_words(path)
    except UserError as error:
        raise UserError(f"workload.file: {error}") from None


def whole(where: str, word: str, what: str = "a number", most: int = MAX_SIZE_BYTES, least: int = 0) -> int:
    """Return the integer value of a word, below `most`.

    Raises UserError that begins with `where`.
    """
    return foreign_files.whole(where, word, what, most, least)


def time_ns(where: str, word: str, unit_ns: Decimal) -> int:
    """Return a time in `unit_ns` as whole nanoseconds, rounded down.

    Raises UserError for a word that is not a time, or one that is too large.
    """
    value = decimal(word)
    if value is None or (found_ns := value * unit_ns) >= MAX_TIME_NS:
        raise UserError(f"{where}: expected a time from 0 to 2^61 ns, got {shown(word)}")
    return int(found_ns)


def host(where: str, index: int, setting: Setting) -> int:
    """Return `index` if the network has such a host.

    Raises UserError if it does not.
    """
    if not 0 <= index < setting.hosts:
        raise UserError(
            f"{where}: no host {index}; topology {setting.topology.name!r} has hosts 0 to {setting.hosts - 1}"
        )
    return index


def ends(where: str, source: int, destination: int, setting: Setting) -> tuple[int, int]:
    """Return the two hosts of a flow.

    Raises UserError if the network has no such host, or if they are the same.
    """
    hosts = host(where, source, setting), host(where, destination, setting)
    if source == destination:
        raise UserError(f"{where}: a flow from host {source} to itself; expected two hosts")
    return hosts
