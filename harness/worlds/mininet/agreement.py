"""Agreement of a run on real frames with the virtual run of the same scenario and seed.

If a machine kept up, no event was late. Even then both worlds may differ in single packets: two
frames that are due within a few nanoseconds may be reordered on real links. If switches draw random
numbers, another packet then gets the number, and another flow gets the mark. Such runs agree over
several seeds, not individually.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from harness.measure.metrics import flows_table, messages_table
from harness.measure.recording import Recording
from harness.plan.run import Run
from harness.worlds.switch_pipelines import pipelines_of
from harness.worlds.virtual import VirtualWorld


def flows_of(run: Run, recording: Recording) -> pd.DataFrame:
    """Return the table of a recording's flows, by number."""
    return flows_table(run, recording, messages_table(run, recording)).set_index("flow")


def least_share(flows: pd.DataFrame) -> float:
    """Return the sum of minimum FCTs of all completed flows divided by the sum of their FCTs.

    1 if no flow is completed.
    """
    done = flows.dropna(subset="fct_ns")
    return float((done["fct_ns"] / done["slowdown"]).sum() / done["fct_ns"].sum()) if len(done) else 1.0


def agreement(run: Run, recording: Recording, compiler: str) -> dict[str, Any] | None:
    """Run the same scenario and seed in the virtual world, and compare the two.

    Returns
    -------
    dict or None
        `quantity` names what is compared: the "mean FCT" of the flows that are done in both worlds,
        or without flows the "end of the run". `virtual_ns` and `mininet_ns` are its values, and
        `difference` is relative to the virtual world. `draws` says whether the switches draw random
        numbers. None if no flow is done in both worlds.
    """
    virtual = VirtualWorld(run, compiler=compiler).run()
    quantity, times_ns = "end of the run", (float(virtual.end_ns), float(recording.end_ns))
    if recording.flows:
        both = flows_of(run, virtual)[["fct_ns"]].join(flows_of(run, recording)["fct_ns"], rsuffix="_real", how="inner")
        means = both.dropna().mean()
        if means.isna().any():
            return None
        quantity, times_ns = "mean FCT", (float(means["fct_ns"]), float(means["fct_ns_real"]))
    model_ns, real_ns = times_ns
    return {
        "quantity": quantity,
        "virtual_ns": model_ns,
        "mininet_ns": real_ns,
        "difference": real_ns / model_ns - 1,
        "draws": any(pipeline.draws for pipeline in pipelines_of(run, compiler).values()),
    }
