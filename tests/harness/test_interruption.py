"""Interrupts are raised again if a library has swallowed them, and only then."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from p4switch import interruption

PATIENCE_S = 20.0
ALL = (*interruption.ENDING, interruption.AGAIN)


@pytest.fixture(autouse=True)
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ALL}
    monkeypatch.setattr(interruption, "_AGAIN_S", 0.02)
    for number in interruption.ENDING:
        signal.signal(number, signal.SIG_DFL)
    with interruption.listening():
        yield
    for number, handler in before.items():
        signal.signal(number, handler)


def wait(seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("number", interruption.ENDING)
def test_what_a_library_has_lost_is_raised_again(number: signal.Signals) -> None:
    def twice() -> None:
        for _ in range(2):
            with contextlib.suppress(BaseException):
                signal.raise_signal(number)
        wait()

    with pytest.raises(KeyboardInterrupt):
        twice()


def test_what_a_library_has_made_an_error_of_is_raised_again() -> None:
    def imports() -> None:
        with contextlib.suppress(ImportError):
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("it failed to import") from None
        wait()

    with pytest.raises(KeyboardInterrupt):
        imports()


def test_what_a_finalizer_has_lost_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: lost.append(told.exc_type))

    class Interrupted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def ends() -> None:
        Interrupted()
        wait()

    with pytest.raises(KeyboardInterrupt):
        ends()
    assert lost == [KeyboardInterrupt]


IN_A_FINALIZER = """
import signal, sys, time
from p4switch import interruption
interruption._AGAIN_S = 0.02

class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

class Failing:
    def __del__(self):
        raise ValueError("of another kind")

with interruption.listening():
    Failing()
    try:
        Interrupted()
        time.sleep(20)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
"""


def test_what_a_finalizer_has_lost_is_not_called_ignored() -> None:
    """Python still reports other errors in finalizers."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FINALIZER], capture_output=True, text=True, timeout=60, check=True
    )
    assert "KeyboardInterrupt" not in done.stderr
    assert "ValueError: of another kind" in done.stderr
    assert done.stderr.endswith("interrupted\n")


def test_cleaning_up_is_left_alone() -> None:
    """Check this frame, other frames, context managers, and errors within."""
    done = []

    @contextlib.contextmanager
    def cleaning() -> Iterator[None]:
        try:
            yield
        finally:
            wait(0.1)
            done.append("a context manager")

    def interrupted() -> None:
        try:
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                wait(0.1)
                done.append("finally")
        except KeyboardInterrupt:
            wait(0.1)
            done.append("except")
            raise ImportError("it failed to import") from None

    with pytest.raises(ImportError), cleaning():
        interrupted()
    assert done == ["finally", "except", "a context manager"]


@pytest.mark.parametrize("number", interruption.ENDING)
def test_another_signal_leaves_cleaning_up_alone(number: signal.Signals) -> None:
    """A session that ends sends SIGHUP and SIGTERM, and people press Ctrl-C twice."""
    done = []

    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(number)
            done.append("finally")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["finally"]


def test_who_goes_on_is_left_alone() -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        interruption.heard()
    wait(0.1)
    with pytest.raises(KeyboardInterrupt):  # the next one
        signal.raise_signal(signal.SIGINT)


_ENDS = """
import os, signal, sys
from p4switch import interruption

class Last:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.Signals(%d)):
        kill(process, number)

last = Last()
with interruption.listening():
    sys.exit(3)
"""


@pytest.mark.parametrize("number", interruption.ENDING)
def test_no_signal_changes_the_status_of_a_program_that_ends(number: signal.Signals) -> None:
    """Python removes its signal handlers before it frees the objects of modules."""
    done = subprocess.run([sys.executable, "-c", _ENDS % number], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, "")


def test_each_once() -> None:
    interruption.once()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        wait(0.1)


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interruption.listening():
        signal.raise_signal(signal.SIGHUP)
        wait(0.1)
    assert not interruption.came()
