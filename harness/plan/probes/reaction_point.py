"""Probe of any attribute of reaction points, such as DCQCN's alpha or the credit of EQDS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import BeforeValidator, Field

from harness.plan.probes.base import HostProbe, ProbedHost, Values, register
from p4switch.errors import UserError, suggest
from p4switch.numbers import integral

if TYPE_CHECKING:
    from harness.plan.run import Run


@register("reaction_point")
class ReactionPointProbe(HostProbe):
    """Probe of a reaction point's attribute, with a value for each connection on which a host is sending.

    A dot in `reads` selects an attribute of an object. A value that does not exist yet (None) is
    NaN.
    """

    # An attribute; a dot selects an attribute of an object.
    reads: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]

    # At the end of a run no host is sending any more.
    interval_ns: Annotated[int, BeforeValidator(integral), Field(ge=1, lt=2**62)]

    keeps_zeros: ClassVar[bool] = True

    @property
    def places(self) -> tuple[str, ...]:
        return ("host", "qp")

    def values(self, run: Run) -> tuple[str, ...]:
        return (self.reads.rpartition(".")[2],)

    def read(self, host: ProbedHost) -> Iterator[Values]:
        get = attrgetter(self.reads)
        for number, point in host.reaction_points():
            value = get(point)
            yield number, math.nan if value is None else value

    def check(self, run: Run) -> None:
        if not any(self.covers(host.name) for host in run.topology.hosts):
            raise UserError(f"hosts: topology {run.topology.name!r} has no host {self.hosts!r}")
        try:
            expect_number(run, self.reads)
        except UserError as error:
            raise UserError(f"reads: {error}") from None


def expect_number(run: Run, attribute: str) -> None:
    """Raise UserError if reaction points of the run's protocol have no such numeric attribute."""
    from host_agents.nic import Nic  # imported here, because the compiled hosts have to be in place before

    # One reaction point as an example; all others have the same attributes.
    nic = Nic(run.nic_config(run.topology.hosts[0]), run.protocol, run.load_balancing)
    owner: object = nic.open_qp("10.0.0.1", 2, 2).reaction_point
    for name in attribute.split("."):
        if not hasattr(owner, name):
            known = [other for other in dir(owner) if not other.startswith("_") and _number(owner, other)]
            raise UserError(f"no reaction point of {run.protocol.name!r} has {attribute!r}; {suggest(name, known)}")
        owner = getattr(owner, name)
    if not (owner is None or isinstance(owner, int | float)):
        raise UserError(f"{attribute!r} of {run.protocol.name!r} is not a number")


def _number(owner: object, name: str) -> bool:
    return isinstance(getattr(owner, name, None), int | float)
