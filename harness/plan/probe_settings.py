"""Settings of one probe in a scenario; `harness.plan.probes` has the kinds of probes and how they read."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from p4switch.numbers import integral
from p4switch.tables import Table


class ProbeSettings(Table):
    """Additional table of a run: `name`.parquet in its folder."""

    kind: str  # of probe (`p4cc list probes`)
    reads: str  # what is read, by name
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]  # of the table
    # Between readings, from time 0; 0: only at the end of the run.
    interval_ns: Annotated[int, BeforeValidator(integral), Field(ge=0, lt=2**62)] = 0

    # Of what is read, as figures say it; none: the one that the name of what is read ends in (_ns, _bps, _bytes, ...).
    unit: Annotated[str, Field(min_length=1, max_length=24)] | None = None
