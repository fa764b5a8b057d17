"""What ends a command with exit status 1, and what one process raises of another one's errors."""

from __future__ import annotations

import traceback

from p4switch.errors import UserError

_MOST_TOLD = 3000  # characters of an error: a pipe has room for them


class CheckError(Exception):
    """The request was carried out, and a check of its result did not hold."""


class DeadWorkerError(CheckError):
    """A process or a cluster's worker has ended in the midst of a run; runs that were done before hold."""


def passed_on(error: BaseException, who: str = "") -> Exception:
    """What another process raises of it: what a user is to read as it is, and all else with its traceback.

    `who` it comes from is told, too.
    """
    kind: type[Exception] = RuntimeError
    text = "".join(traceback.format_exception(error))
    for told in (UserError, DeadWorkerError, CheckError):
        if isinstance(error, told):
            kind, text = told, str(error)
            break
    return kind(f"{who}: {text[-_MOST_TOLD:]}" if who else text[-_MOST_TOLD:])
