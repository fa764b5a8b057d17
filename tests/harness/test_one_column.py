"""One declared line adds a count to a run's tables, and it appears wherever counts do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

# One line more of `FLOWS` in harness/columns/flows.py, for a count of each end.
SENDERS = (
    'packets("heard", "answers to data", Sender("stats.acks_received"), Total("all_heard", "of all senders", '
    'row=Row("answers heard", "acknowledgements that senders received")), replayed="answers heard")'
)
RECEIVERS = 'packets("arrived", "packets that arrived", Receiver("packets_received"))'
# One line more of `RATES`, `LINKS` and `NICS` in the files of harness/columns beside it.
OTHERS = {
    "rates": 'Column("sent", "packets", "packets sent", Sampled("stats.packets_sent", grows=True))',
    "links": 'Column("tx_packets", "packets", "packets sent", PortCounter("tx_packets"))',
    "nics": 'Column("classes_paused_ns", "ns", "of all classes", NicCounter("paused_ns"))',
}
# Rebinds `FLOWS` and the others before anything else reads them, as an edit of their files would.
PROGRAM = """
import json, pickle, sys, tempfile
from dataclasses import replace
from pathlib import Path

import p4cc._hosts
from harness.columns import flows, links, nics, rates
from harness.columns.column import Column, NicCounter, PortCounter, Receiver, Row, Sampled, Sender, Total
from harness.columns.flows import packets

attack, others, *lines = sys.argv[1:]
flows.FLOWS = replace(flows.FLOWS, columns=(*flows.FLOWS.columns, *map(eval, lines)))
for module in (rates, links, nics):
    line = json.loads(others).get(module.__name__.rpartition(".")[2])
    if line:
        name = module.__name__.rpartition(".")[2].upper()
        table = getattr(module, name)
        setattr(module, name, replace(table, columns=(*table.columns, eval(line))))

import p4cc
from harness.measure import results
from harness.plan import resolve, scenario
from p4cc.reference import recorded
from p4cc.reference.glossary import of_reports
from reports.replay.recorded import Recorded
from reports.page import _ROWS
from reports.sweep_page import Entry, runs_table
from p4cc._transfer import _table
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
        "rates": result.rates.to_dict("list"),
        "links": result.table("links").to_dict("list"),
        "words of tables": {name: dict(recorded.recorded()[name]) for name in ("rates", "links", "summary")},
    }
print(json.dumps(told, default=str))
"""


def told(*lines: str, attack: str = "", others: Mapping[str, str] = {}) -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, attack, json.dumps(others), *lines]
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


def test_one_line_adds_what_is_sampled_of_queue_pairs_what_ports_count_and_what_nics_count() -> None:
    found = told(others=OTHERS)
    rates, links, summary = found["rates"], found["links"], found["summary"]
    # Every flow has a queue pair of its own, and is over before the last sample.
    assert sum(rates["sent"]) == summary["packets_sent"] == sum(found["flows"]["packets_sent"])
    assert sum(count > 0 for count in rates["sent"]) > len(found["flows"]["flow"])
    sent = dict.fromkeys(links["node"], 0)
    for node, count in zip(links["node"], links["tx_packets"], strict=True):
        sent[node] += count
    (switch,) = (node for node in sent if not node.startswith("h"))
    assert sent[switch] == sum(count for node, count in sent.items() if node != switch) >= summary["packets_sent"]
    assert sum(map(sum, found["replay"]["link_tx_packets"])) == sum(links["tx_packets"])
    assert sum(found["replay"]["rate_sent"]) == sum(rates["sent"])
    assert summary["nic"]["classes_paused_ns"] == summary["nic"]["paused_ns"]
    words = found["words of tables"]
    assert words["rates"]["sent"] == words["links"]["tx_packets"] == "packets sent"
    assert words["summary"]["nic.classes_paused_ns"] == "of all classes"


def test_without_the_line_nobody_tells_of_it() -> None:
    found = told()
    assert "heard" not in json.dumps(found)
