"""Messages about transfers between Linux hosts that did not complete."""

from __future__ import annotations

from harness.measure.flow_record import FlowRecord
from harness.workloads import Flow
from p4cc._transfer import Transfer, _shortfall

TRANSFERS = [Transfer("a", "b", 1000), Transfer("b", "c", 1000), Transfer("c", "a", 1000)]


def records(*done: bool) -> list[FlowRecord]:
    times = [9 if each else -1 for each in done]
    return [FlowRecord(Flow(0, 1, 1000, 0), 2, delivered_ns=time, completed_ns=time) for time in times]


def test_one_that_is_too_slow_is_named_with_the_time() -> None:
    said = _shortfall(TRANSFERS, records(True, False, False), set(), 2.5)
    assert said == "1 of 3 transfers are done after 2.5 s; that from b to c is not"


def test_one_that_has_failed_is_named_ahead_of_it() -> None:
    said = _shortfall(TRANSFERS, records(True, False, False), {2}, 2.5)
    assert said == "1 of 3 transfers are done; that from c to a has failed: its retries are used up"
