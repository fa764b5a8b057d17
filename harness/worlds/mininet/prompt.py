"""The moments of a run at which Mininet's own prompt may open: those at which model time does not go on.

Switches and hosts keep to the wall clock, which nobody can stop. So a prompt in between would make all that is under
way late by as long as it is open.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast, get_args

from p4switch.errors import UserError

Prompt: TypeAlias = Literal["start", "end"]


def moment(text: str) -> Prompt:
    """Return the moment that an option names. Raises UserError for any other."""
    if text in get_args(Prompt):
        return cast(Prompt, text)
    raise UserError(
        f"--cli {text}: switches and hosts keep to the wall clock, which does not stop; expected start (all is up, "
        f"nothing is sent yet) or end (with --set limit_ns={text!r}: as it is then)"
    )
