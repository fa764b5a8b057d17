"""Load balancers of the switches: a P4 file each.

Every program that includes `forwarding.p4` works with each of them. They are found by name in
`p4src/load_balancing/`, or by path. The first line of a file describes it. The annotations of its
control describe its effect on the packets of a flow. `p4src/include/forwarding.p4` lists what a
load balancer must define.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from p4switch.compiler.annotations import of_controls
from p4switch.errors import UserError, suggest
from p4switch.sources import SOURCE_DIRECTORY

DIRECTORY = SOURCE_DIRECTORY / "load_balancing"
DEFAULT = "ecmp"

_CONTROL, _PER_PACKET, _SYMMETRIC = "LoadBalancer", "per_packet", "symmetric"
_DETOURS, _ADAPTIVE = "detours", "adaptive"
_V1MODEL = "v1model_only"


@dataclass(frozen=True)
class LoadBalancer:
    """Load balancer of a switch, which chooses among paths of equal cost."""

    name: str
    source: Path

    @cached_property
    def _text(self) -> str:
        try:
            return self.source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self.source}: {getattr(error, 'strerror', None) or 'not a text file'}") from None

    @property
    def summary(self) -> str:
        """First line of the program's file, which describes it, without the comment mark."""
        return self._text.partition("\n")[0].strip().lstrip("/").strip()

    @cached_property
    def _annotations(self) -> frozenset[str] | None:
        """Names of the annotations of its control; None if no control has the expected name."""
        return of_controls(self.source, [SOURCE_DIRECTORY]).get(_CONTROL)

    @property
    def per_packet(self) -> bool:
        """True if packets of one flow take several paths, so that arrival out of order is normal."""
        return _PER_PACKET in (self._annotations or ())

    @property
    def symmetric(self) -> bool:
        """True if the packets of both directions between two hosts take the same links."""
        return _SYMMETRIC in (self._annotations or ())

    @property
    def detours(self) -> bool:
        """True if packets take detours through other groups of switches, if the topology has groups."""
        return _DETOURS in (self._annotations or ())

    @property
    def adaptive(self) -> bool:
        """True if packets may also go directly where there are detours."""
        return _ADAPTIVE in (self._annotations or ())

    @property
    def architectures(self) -> tuple[str, ...] | None:
        """Names of the architectures that it is written for; None if it names none."""
        return ("v1model",) if _V1MODEL in (self._annotations or ()) else None

    def check(self, key: str) -> None:
        """Raise UserError, which begins with the scenario's `key`, if the file cannot be a load balancer."""
        if self._annotations is None:
            raise UserError(f"{key}: {self.source} has no control {_CONTROL}")
        if not self.name.isidentifier():
            raise UserError(f"{key}: {self.source.name!r}: expected a name of letters, digits and underscores")


def names() -> list[str]:
    """Return the names of the load balancers of p4cc."""
    return sorted(path.stem for path in DIRECTORY.glob("*.p4"))


def find(name: str, folder: Path, key: str = "switch.load_balancing") -> LoadBalancer:
    """Return a load balancer by name, or by the path of a `.p4` file, relative to `folder`.

    Raises UserError, which begins with the scenario's `key`.
    """
    if name.endswith(".p4"):
        balancer = LoadBalancer(Path(name).stem, (folder / name).resolve())
        if not balancer.source.is_file():
            raise UserError(f"{key}: no file {name!r}")
    elif name in names():
        balancer = LoadBalancer(name, DIRECTORY / f"{name}.p4")
    else:
        raise UserError(f"{key}: no load balancer {name!r}; {suggest(name, names())}, or a .p4 file")
    balancer.check(key)
    return balancer
