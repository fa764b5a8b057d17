"""Errors that end a command with exit status 1, and errors passed on from other processes."""

from __future__ import annotations

import errno
import resource
import traceback

from p4switch.errors import UserError

_MOST_TOLD = 3000  # characters of an error: a pipe has room for them
_MOST_OF_WHOLE = 30_000  # and for those of a traceback that is asked for


class CheckError(Exception):
    """The request was carried out, and a check of its result did not hold."""


class DeadWorkerError(CheckError):
    """A process or a cluster's worker has ended in the midst of a run; runs that were done before hold."""


class CodeError(CheckError):
    """Somebody else's code has raised in the midst of a run. Its text ends with the last three lines of the traceback.

    `whole` has all of it, for `--debug`.
    """

    def __init__(self, message: str, whole: str = "") -> None:
        super().__init__(message, whole)  # both are pickled
        self.message = message
        self.whole = whole

    def __str__(self) -> str:
        return self.message


def out_of_memory(error: BaseException) -> UserError | None:
    """Return what a user is told of an error that means that there was no memory; None: it means something else.

    NumPy, Arrow and the compiled code raise MemoryError, fork and mmap OSError, a thread without a stack RuntimeError,
    and protobuf, whose messages are complete here, EncodeError.
    """
    from google.protobuf.message import EncodeError  # an error is rare

    of_system = isinstance(error, OSError) and error.errno == errno.ENOMEM
    of_thread = isinstance(error, RuntimeError) and str(error) == "can't start new thread"  # its stack has no room
    if not isinstance(error, (MemoryError, EncodeError)) and not of_system and not of_thread:
        return None
    most_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    where = "on this machine" if most_bytes == resource.RLIM_INFINITY else f"within ulimit -v {most_bytes // 1024}"
    return UserError(f"out of memory {where}; expected a smaller network or workload, fewer workers, or more memory")


def passed_on(error: BaseException, who: str = "") -> Exception:
    """Return the error to raise for another process's: user errors as they are, others with their traceback.

    `who` it comes from is told, too.
    """
    if isinstance(error, CodeError):
        return CodeError(f"{who}: {error}" if who else str(error), error.whole[-_MOST_OF_WHOLE:])
    error = out_of_memory(error) or error
    kind: type[Exception] = RuntimeError
    text = "".join(traceback.format_exception(error))
    for known in (UserError, DeadWorkerError, CheckError):
        if isinstance(error, known):
            kind, text = known, str(error)
            break
    return kind(f"{who}: {text[-_MOST_TOLD:]}" if who else text[-_MOST_TOLD:])
