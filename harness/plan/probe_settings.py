"""Settings of one probe in a scenario; `harness.plan.probes` has the kinds of probes and how they read."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from p4switch.numbers import integral
from p4switch.tables import Table


class ProbeSettings(Table):
    """Additional table of a run: `name`.parquet in its folder."""

    kind: str  # kind of probe (`p4cc list probes`)
    reads: str  # name of the quantity or object that is read
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]  # name of the table
    # Time between readings, from time 0; 0: only at the end of the run.
    interval_ns: Annotated[int, BeforeValidator(integral), Field(ge=0, lt=2**62)] = 0

    # Unit of the values in figures; none: the unit in the suffix of `reads` (_ns, _bps, _bytes,
    # ...).
    unit: Annotated[str, Field(min_length=1, max_length=24)] | None = None
