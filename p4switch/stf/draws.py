"""Tests' random numbers: on every switch they stand where the program would draw its own.

A draw becomes the read of a register that the test writes: it is not the switch's own `random` that such a test sees.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from p4switch.architectures.v1model.externs.random import Random
from p4switch.architectures.v1model.externs.register import RegisterRead
from p4switch.stf.language import Command, StfError

REGISTER = "p4cc.random."
"""Prefix of a register for a place in the source, whose name follows."""
DRAW_BITS = 64


def draws(commands: Sequence[Command]) -> list[Command]:
    """Return those of the commands that name a draw."""
    return [command for command in commands if command.name == "random"]


def with_draws(document: dict[str, Any], commands: Sequence[Command]) -> dict[str, Any]:
    """Return `document` with registers in place of the draws that `commands` name.

    Raises StfError for unknown ones.
    """
    named = {command.args.rpartition(" ")[0] or command.args: command for command in draws(commands)}
    document = copy.deepcopy(document)
    known = list(_draws(document))
    places = sorted({place for place, _ in known})
    for place, command in named.items():
        if place not in places:
            there = ", ".join(places) or "none"
            raise StfError(command.line, f"no random number is drawn at '{place}'; expected one of: {there}")
    for place, primitive in known:
        if place in named:
            register = {"type": "register_array", "value": REGISTER + place}
            first = {"type": "hexstr", "value": "0x0"}
            primitive |= {"op": RegisterRead.primitive, "parameters": [primitive["parameters"][0], register, first]}
    arrays = document["register_arrays"]
    following = 1 + max((array["id"] for array in arrays), default=-1)
    for number, place in enumerate(named, start=following):
        arrays.append({"name": REGISTER + place, "id": number, "size": 1, "bitwidth": DRAW_BITS})
    return document


def _draws(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the draws of a program, with their places: `FILE:LINE`."""
    for action in document["actions"]:
        for primitive in action["primitives"]:
            if primitive["op"] == Random.primitive:
                where = primitive["source_info"]
                yield f"{Path(where['filename']).name}:{where['line']}", primitive
