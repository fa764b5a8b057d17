"""The STF language: commands, and numbers with don't-care digits."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p4switch.errors import UserError, suggest


class StfError(UserError):
    """Error of a test that cannot be run or that failed: `line N: MESSAGE`.

    `details` are further lines, which describe the differences of a packet field by field.
    `packet_line` is the line of that packet in the test.
    """

    def __init__(self, line: int, message: str, details: Sequence[str] = (), packet_line: int | None = None) -> None:
        super().__init__("\n".join([f"line {line}: {message}", *(f"  {detail}" for detail in details)]))
        self.packet_line = packet_line


@dataclass(frozen=True, slots=True)
class Command:
    """Command of a test.

    `args` is the text after the command's name, without comments.
    """

    line: int
    name: str
    args: str


_COMMANDS = {
    "packet", "expect", "no_packet", "add", "setdefault", "remove", "check_counter", "wait", "mirroring_add",
    "mirroring_add_mc", "mirroring_delete", "mirroring_get", "mc_mgrp_create", "mc_node_create", "mc_node_update",
    "mc_node_associate", "counter_read", "counter_write", "register_read", "register_write", "register_reset",
    "meter_get_rates", "meter_set_rates", "meter_array_set_rates", "pvs_add", "pvs_clear", "clock", "queue",
    "random",
}  # fmt: skip
NAME = r"[A-Za-z_$.][\w$.\[\]]*"
_ANY_NAME = rf"(?:\"[^\"]+\"|{NAME})"
_WORD = r'(?:"[^"]*"|\S)+'
_BEFORE_COMMENT = re.compile(r'(?:"[^"]*"|[^#])*')  # names in quotes may have '#'
NUMBER = r"[\w*]+"
VALUE = rf"{NUMBER}(?:\s*(?:/|&&&|\.\.|->)\s*{NUMBER})?"
MATCH = re.compile(rf"\s*({_ANY_NAME})\s*:\s*({VALUE})")
ACTION = re.compile(rf"\s*({_ANY_NAME})\s*\(([^)]*)\)\s*(?:=\s*(\$?\w+))?\s*$")
ADD = re.compile(rf"({_ANY_NAME})\s+(?:(\d+)\s+(?=\S))?(.*)$", re.DOTALL)
COUNTER = re.compile(
    rf"({_ANY_NAME})\s*\(\s*(\$?\w+)\s*\)\s*(?:(packets|bytes)\s*(==|!=|<=|<|>=|>)\s*(\w+))?\s*$", re.IGNORECASE
)
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


def parse(text: str) -> list[Command]:
    """Return the commands of a test. A line that does not start with a command continues the previous line.

    Raises StfError for a line with a misspelt command.
    """
    commands: list[Command] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _BEFORE_COMMENT.match(raw)[0].strip()  # type: ignore[index]
        if not line:
            continue
        word, _, rest = line.partition(" ")
        word = word.split("\t", 1)[0]
        rest = line[len(word) :].strip()
        if word.lower() in _COMMANDS:
            commands.append(Command(number, word.lower(), rest))
        elif not commands or _is_meant_as_command(word):
            raise StfError(number, f"'{word}' is not a command; {suggest(word.lower(), sorted(_COMMANDS))}")
        else:
            last = commands[-1]
            commands[-1] = Command(last.line, last.name, f"{last.args} {line}")
    return commands


def _is_meant_as_command(word: str) -> bool:
    """Return whether a line that begins with this word is a misspelt command, not a continuation."""
    letters = re.fullmatch(r"[A-Za-z_]+", word) and not re.fullmatch(r"[0-9A-Fa-f]+", word)
    return bool(letters) and bool(difflib.get_close_matches(word.lower(), _COMMANDS, 1, 0.75))


def plain(name: str) -> str:
    """Return a name without quotes."""
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


def words(text: str) -> list[str]:
    """Return the words between blanks, without splitting names in quotes."""
    return re.findall(_WORD, text)


def first_word(text: str) -> tuple[str, str]:
    """Return the first word of `text` and the rest. The word is empty if `text` has none."""
    match = re.match(_WORD, text)
    return ("", text) if match is None else (match[0], text[match.end() :].strip())


def number(command: Command, text: str) -> int:
    try:
        return int(text, 0) if not re.fullmatch(r"0\d+", text) else int(text)
    except ValueError:
        raise StfError(command.line, f"'{text}' is not a number") from None


def digits(command: Command, text: str) -> tuple[int, int, int]:
    """Return the value, the mask and the bits per digit of a number in which `*` stands for any digit.

    For a decimal number, mask and bits per digit are 0.
    """
    bits = {"0x": 4, "0b": 1, "0o": 3}.get(text[:2].lower())
    if bits is None:
        return number(command, text), 0, 0
    value = number(command, text[:2] + text[2:].replace("*", "0"))
    ones = (1 << bits) - 1
    mask = 0
    for digit in text[2:]:
        mask = mask << bits | (0 if digit == "*" else ones)
    return value, mask, bits
