"""Errors of programs in the intermediate representation."""

from __future__ import annotations

from p4switch.errors import UserError

_MOST_CHARACTERS = 300  # maximum length of an error's text


class ProgramError(UserError):
    """Program that the engine cannot run, or that refers to an object that it does not define.

    The message is one line of limited length, even if a name in the program has line breaks or is very long.
    """

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__(line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 4]} ...")
