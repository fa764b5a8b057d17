"""Errors that end a command with exit status 1, and errors passed on from other processes."""

from __future__ import annotations

import errno
import resource
import traceback

from p4switch.errors import UserError

_MOST_CHARACTERS = 3000  # largest length, in characters, of an error that is passed on: it has to fit into a pipe
# Messages of glibc's loader if there is too little memory for a library.
_UNMAPPED = ("failed to map segment", "cannot map", "cannot allocate memory")
_MOST_OF_WHOLE = 30_000  # largest length, in characters, of an error with its traceback, for `--debug`


class CheckError(Exception):
    """Error after a completed request whose result failed a check."""


class DeadWorkerError(CheckError):
    """Error for a process or a cluster's worker that died during a run; completed runs are kept."""


class CodeError(CheckError):
    """Exception of somebody else's code during a run.

    Its text ends with the last three lines of the traceback, and `whole` has all of it, for
    `--debug`.
    """

    def __init__(self, message: str, whole: str = "") -> None:
        super().__init__(message, whole)  # both are pickled
        self.message = message
        self.whole = whole

    def __str__(self) -> str:
        return self.message


def out_of_memory(error: BaseException) -> UserError | None:
    """Return the message for an error that means that memory ran out; None for other errors.

    Libraries report it in several ways. NumPy, Arrow and the compiled code raise MemoryError, fork
    and mmap raise OSError, and a thread without memory for its stack raises RuntimeError. A library
    that cannot be mapped raises ImportError or an OSError without errno. Protobuf raises
    EncodeError.
    """
    from google.protobuf.message import EncodeError  # errors are rare, so the import may be late

    of_system = isinstance(error, OSError) and error.errno == errno.ENOMEM
    # There is no room for its stack.
    of_thread = isinstance(error, RuntimeError) and str(error) == "can't start new thread"
    of_loader = isinstance(error, (ImportError, OSError)) and any(reason in str(error).lower() for reason in _UNMAPPED)
    if not isinstance(error, (MemoryError, EncodeError)) and not of_system and not of_thread and not of_loader:
        return None
    most_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    where = "on this machine" if most_bytes == resource.RLIM_INFINITY else f"within ulimit -v {most_bytes // 1024}"
    return UserError(f"out of memory {where}; expected a smaller network or workload, fewer workers, or more memory")


def passed_on(error: BaseException, who: str = "") -> Exception:
    """Return the error to raise for another process's error.

    User errors are unchanged, and other errors include their traceback. The message names the
    process, `who`.
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
    return kind(f"{who}: {text[-_MOST_CHARACTERS:]}" if who else text[-_MOST_CHARACTERS:])
