"""Calls of the command line within the process of an attack."""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from p4cc.cli import main
from tools.attack.attack import Finding

_SHOWN = 300  # characters of the output


@dataclass(frozen=True)
class Called:
    """Result of a command.

    `said` has its lines on stderr without warnings and progress.
    """

    command: str
    status: object
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        return [line for line in self.err.splitlines() if "arning: " not in line and line[0:1] not in ("[", " ", "")]

    def expect_one_line(self, statuses: Sequence[int]) -> None:
        """Raise Finding for another status, a refusal of several lines, and characters unfit for a terminal."""
        if self.status not in statuses:
            raise Finding(f"{self.command}: exit status {self.status}: {str(self.said[-1:])[:_SHOWN]}")
        if self.status == 2 and len(self.said) != 1:
            raise Finding(f"{self.command}: not one line: {str(self.said)[:_SHOWN]}")
        for line in (*self.out.split("\n"), *self.err.split("\n")):
            if not line.replace("\t", " ").isprintable():
                raise Finding(f"{self.command}: not for a terminal: {line!r:.300}")


def call(arguments: Sequence[str]) -> Called:
    """Execute a command. Raises Finding if it ends in a traceback."""
    command = "p4cc " + " ".join(map(repr, arguments))
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        raise Finding(f"{command}: {traceback.format_exc()}") from None
    return Called(command, status, out.getvalue(), err.getvalue())
