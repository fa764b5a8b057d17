"""Base of all kinds of attack, and their findings."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).parents[2]
P4SRC = ROOT / "p4src"


class Finding(Exception):  # noqa: N818  (what is looked for is no error of the attack's)
    """Violation found by an attack.

    `files` reproduce it, by name.
    """

    def __init__(self, what: str, files: Mapping[str, bytes] | None = None) -> None:
        super().__init__(what)
        self.files = dict(files or {})


class Attack(ABC):
    """Kind of attack in a process of its own, so that crashes, hangs and unbounded growth are found, too.

    `corpus` are further P4 programs to start from. `folder` is an empty folder for the attack's own
    files.
    """

    units: ClassVar[str]
    """Units that `attempt` counts."""
    short_turns: ClassVar[int]
    """The number of attempts of a short attack (`--short`): about 20 seconds on an idle core."""
    patience_s: ClassVar[float] = 180.0
    """Time limit in seconds; an attempt that takes longer is a finding."""
    memory_bytes: ClassVar[int | None] = 4 << 30
    """Limit of an attempt's address space; None: no limit (sanitizers reserve terabytes)."""

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        self.folder = folder
        self.corpus = corpus

    @classmethod
    def missing(cls) -> str | None:
        """Return why the attack cannot be made on this machine; None if it can."""
        return None

    @abstractmethod
    def attempt(self, rng: random.Random) -> int:
        """Make one attack, whose choices are all drawn from `rng`, and return its number of units.

        Raises Finding for a violated promise.
        """

    def close(self) -> None:  # noqa: B027  (most have nothing to end)
        """End everything that still exists."""
