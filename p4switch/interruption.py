"""Signals that end a command: all act like Ctrl-C, as a KeyboardInterrupt in the main thread.

Libraries sometimes lose this exception. A C library that is interrupted during its import raises
ImportError, and callers that can work without the library catch it. Other libraries put its text
into an exception of their own. Exceptions in finalizers are discarded. Therefore the exception is
raised again until it is acknowledged, and a command checks at its end whether a signal has arrived.

While a command cleans up, further signals have no effect: a session that ends sends two signals,
and people press Ctrl-C twice. Python's message for an exception in a finalizer ("Exception ignored
in ...") is suppressed for a KeyboardInterrupt, because the signal is not ignored.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN = signal.SIGALRM
_AGAIN_S = 1.0

_came = False


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Let signals interrupt the block, except those that are already ignored, as SIGHUP is under nohup.

    After the block these signals are ignored, so that the program ends with its own exit status.
    Otherwise Python's shutdown would restore the default handlers, and a signal could kill the
    program.
    """
    global _came
    _came = False
    tell = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, KeyboardInterrupt) else tell(lost)
    signal.signal(AGAIN, _again)
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        sys.unraisablehook = tell
        once()
        for number in ENDING:
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_IGN)


def heard() -> None:
    """Acknowledge a caught KeyboardInterrupt, so that it is not raised again."""
    if _came:
        signal.setitimer(signal.ITIMER_REAL, 0)


def once() -> None:
    """Raise each interrupt only once from now on.

    This is for libraries that handle interrupts themselves, and for the end of a command.
    """
    heard()
    signal.signal(AGAIN, signal.SIG_IGN)


def came() -> bool:
    """Return whether an interrupt has arrived; other exceptions may be its consequence."""
    return _came


def _is_behind(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _came
    _came = True
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
    _again(number, frame)


def _again(_: int, __: FrameType | None) -> None:
    if not _is_behind(sys.exc_info()[1]):  # no cleaning up is in progress
        raise KeyboardInterrupt
