"""The moment of a run at which Mininet's own prompt opens: before model time, after it, or in the midst of it.

Switches and hosts keep to the wall clock, which nobody can stop. So model time goes on while a prompt in the midst is
open: what is under way is no later than without it, and who looks twice sees two moments.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Literal, TypeAlias, cast, get_args

from p4switch.errors import UserError
from p4switch.quantities import quantity

Edge: TypeAlias = Literal["start", "end"]
Prompt: TypeAlias = Edge | int
"""An int: at this model time, ns."""


def moment(text: str) -> Prompt:
    """Return the moment that an option names. Raises UserError for what is none."""
    if text in get_args(Edge):
        return cast(Edge, text)
    try:
        return quantity("--cli", text, "ns")
    except UserError as error:
        raise UserError(f"{error}; or start (all is up, nothing is sent), or end (all is over)") from None


def while_running(run: Callable[[], str], wait_s: float, open_prompt: Callable[[bool], object]) -> str:
    """Carry out `run` in a thread of its own, and open the prompt in this one after `wait_s`; return what `run` does.

    A prompt is the main thread's, as signals are. `open_prompt` hears whether the run was over by then. Whoever ends
    this early ends the run, too, which this does not wait for.
    """
    pool = ThreadPoolExecutor(1, "run")
    try:
        running = pool.submit(run)
        over = bool(wait([running], max(0.0, wait_s)).done)
        if not over or running.exception() is None:
            open_prompt(over)
        return running.result()
    finally:
        pool.shutdown(wait=False)
