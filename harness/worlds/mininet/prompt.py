"""Moment of a run at which Mininet's own prompt opens: before it, during it, or after it.

Switches and hosts run by the wall clock, which cannot be stopped. So model time continues while a
prompt is open during a run. The run is not delayed, and two commands at the prompt see two
different moments.
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
    """Return when the prompt is to open, from the option's text: `start`, `end` or a time.

    Raises UserError for an invalid one.
    """
    if text in get_args(Edge):
        return cast(Edge, text)
    try:
        return quantity("--cli", text, "ns")
    except UserError as error:
        raise UserError(f"{error}; or start (before the first packet), or end (after the last)") from None


def while_running(run: Callable[[], str], wait_s: float, open_prompt: Callable[[bool], object]) -> str:
    """Execute `run` in another thread, and open the prompt in this one after `wait_s`.

    Returns the result of `run`. The prompt and signals need the main thread. The argument of
    `open_prompt` is whether the run had ended by then. If the prompt ends early, so does the run,
    and this function does not wait for it.
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
