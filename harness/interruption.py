"""The signals that end a command, which all do what Ctrl-C does: a KeyboardInterrupt in the main thread.

Libraries lose it now and then. One in C that is interrupted while it is imported raises ImportError, which whoever can
do without that library catches; another one makes a text of it, in an error of its own; and what a finalizer raises
nobody hears of. So it is raised again, as long as nobody deals with it, and who ends asks whether there was one. Who
cleans up after one is left alone, also by the next: a session that ends sends two, and people press Ctrl-C twice.
Python's own word on what a finalizer has raised ("Exception ignored in ...") is not printed for it: it is not ignored.
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
    """Let signals interrupt the block, except those that are ignored already, as SIGHUP under nohup.

    Behind it the program ends with the status that it has by then: Python's own end restores what signals do by
    default, unless they are ignored, and one would kill the program there.
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
    """Let each interrupt be raised only once from now on, for libraries that handle it and at the end."""
    heard()
    signal.signal(AGAIN, signal.SIG_IGN)


def came() -> bool:
    """Return whether there has been an interrupt, which other exceptions may result from."""
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
    if not _is_behind(sys.exc_info()[1]):  # nobody is cleaning up
        raise KeyboardInterrupt
