"""A count is added to a run's tables by one line of its declaration, and is wherever counts are."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

# One line more of `FLOWS` in harness/columns/flows.py, for a count of each end.
SENDERS = (
    'packets("heard", "answers to data", Sender("stats.acks_received"), Total("all_heard", "of all senders", '
    'row=Row("answers heard", "acknowledgements that senders received")), replayed="answers heard")'
)
RECEIVERS = 'packets("arrived", "packets that arrived", Receiver("packets_received"))'
# Rebinds `FLOWS` before anything else reads it, as an edit of the file would.
PROGRAM = """
import json, pickle, sys, tempfile
from dataclasses import replace
from pathlib import Path

import p4cc._hosts
from harness.columns import flows
from harness.columns.column import Receiver, Row, Sender, Total
from harness.columns.flows import packets

attack, *lines = sys.argv[1:]
flows.FLOWS = replace(flows.FLOWS, columns=(*flows.FLOWS.columns, *map(eval, lines)))

import p4cc
from harness.measure import results
from harness.plan import resolve, scenario
from harness.reference import recorded
from harness.reference.glossary import of_reports
from harness.replay.recorded import Recorded
from harness.report.page import _ROWS
from harness.report.sweep_page import Entry, runs_table
from harness.worlds.mininet.transfer import _table
from harness.worlds.virtual import VirtualWorld


class Apart(VirtualWorld):
    def _note(self, host, event):
        super()._note(host, pickle.loads(pickle.dumps(event)))  # as between processes


tables = {"cc": "dctcp", "topology": {"name": "single-switch", "hosts": 4},
          "workload": {"name": "incast", "size_bytes": 100_000}}
if attack:
    tables |= {"attack": {"kind": attack, "hosts": [1], "piece_bytes": 30_000}, "limit_ns": 2_000_000}
(run,) = resolve.plan("star", scenario.check(tables), Path())
with tempfile.TemporaryDirectory() as folder:
    recording = Apart(run).run()
    result = results.write(Path(folder) / run.label, results.files(run, recording))
    replayed = Recorded(result)
    told = {
        "flows": result.flows.to_dict("list"),
        "messages": result.messages.to_dict("list"),
        "transfers": _table([("h", "h", 1, 0)] * len(recording.flows), recording.flows).to_dict("list"),
        "summary": result.summary,
        "results": p4cc.load(folder).table().to_dict("list"),
        "sweep": runs_table([Entry({}, "dctcp", result)]).to_dict("list"),
        "words of the replay": dict(replayed.head(1)["counts"]),
        "replay": {name: values.tolist() for name, values in replayed.arrays(1).items()},
        "reference": dict(recorded.recorded()["flows"] | recorded.recorded()["summary"]),
        "rows": {row.name: row.figure(result.summary) for row in _ROWS},
        "glossary": of_reports(),
    }
print(json.dumps(told, default=str))
"""


def told(*lines: str, attack: str = "") -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, attack, *lines]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_one_line_adds_a_count_of_senders_everywhere() -> None:
    found = told(SENDERS)
    heard = found["flows"]["heard"]
    assert list(found["flows"])[-1] == "heard"
    assert sum(heard) > 0
    assert heard == found["replay"]["heard"] == found["transfers"]["heard"]
    # Every flow has a queue pair of its own.
    assert found["summary"]["all_heard"] == found["rows"]["answers heard"] == sum(heard)
    assert found["results"]["all_heard"] == found["sweep"]["all_heard"] == [sum(heard)]
    assert found["words of the replay"]["heard"] == "answers heard"
    assert found["reference"]["heard"] == "answers to data"
    assert found["reference"]["all_heard"] == "of all senders"
    assert found["glossary"]["answers heard"] == "acknowledgements that senders received"


def test_a_count_of_receivers_is_a_line_too() -> None:
    found = told(RECEIVERS)
    arrived, flows = found["flows"]["arrived"], found["flows"]
    sent_once = [sent - again for sent, again in zip(flows["packets_sent"], flows["retransmitted"], strict=True)]
    assert arrived == sent_once == found["transfers"]["arrived"]
    assert "arrived" not in found["summary"]


def test_counts_of_a_flow_in_pieces_are_added_up() -> None:
    found = told(SENDERS, RECEIVERS, attack="parallel")
    pieces = found["messages"]
    for name in ("heard", "arrived"):
        of_flow = [0] * len(found["flows"][name])
        for flow, count in zip(pieces["flow"], pieces[name], strict=True):
            of_flow[flow] += count
        assert len(pieces[name]) > len(of_flow)
        assert found["flows"][name] == of_flow
        assert sum(of_flow) > 0


def test_without_the_line_nobody_tells_of_it() -> None:
    found = told()
    assert "heard" not in json.dumps(found)
