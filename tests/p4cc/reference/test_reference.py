"""The reference describes every name that a user meets."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import BaseModel

from harness.columns import tables
from harness.measure import results
from harness.plan import scenario
from harness.plan.resolve import plan
from harness.worlds.virtual import VirtualWorld
from host_agents.ranges import SHARE
from p4cc._site_pages import pages
from p4cc.cli import main
from p4cc.reference import keys, recorded
from p4cc.reference.comments import comments
from p4cc.reference.entries import entries

ROOT = Path(__file__).parents[3]
SOURCES = (
    "control_plane", "harness", "host_agents", "p4cc", "p4switch", "reports", "topologies", "wireformats", "vagrant",
)  # fmt: skip


class Below(BaseModel):
    # Said above, in
    # two lines.
    size_bytes: int = 3
    silent: str | None = None


class Model(BaseModel):
    below: Below = Below()
    several: list[Below] = []  # said behind


@dataclass(frozen=True)
class Parameters:
    eta: float = field(default=0.95, metadata=SHARE)  # said of eta
    steps: int = 5


def test_words_are_the_comments_above_and_behind() -> None:
    assert comments(Below) == {"size_bytes": "Said above, in two lines."}
    assert comments(Parameters) == {"eta": "said of eta"}


def test_a_class_without_source_has_no_words() -> None:
    assert comments(type("Made", (), {"__module__": "nowhere"})) == {}


def test_keys_of_tables_and_lists_of_tables() -> None:
    found = {key.name: key for key in keys.keys(Model, "top")}
    assert list(found) == [
        *("top.below.size_bytes", "top.below.silent"),
        *("top.several", "top.several[].size_bytes", "top.several[].silent"),
    ]
    size = found["top.below.size_bytes"]
    assert (size.type, size.unit, size.default, size.meaning) == ("integer", "bytes", 3, "Said above, in two lines.")
    assert found["top.below.silent"].meaning == ""  # what the next test is for
    assert (found["top.several"].type, found["top.several"].default_text) == ("list of table", "[]")


def test_keys_of_a_protocol_have_the_range_that_the_registry_checks() -> None:
    eta, steps = keys.keys(Parameters, "protocols.x")
    assert (eta.range, eta.default_text, eta.meaning) == ("> 0, <= 1", "0.95", "said of eta")
    assert (steps.range, steps.meaning) == (">= 0", "")


def test_a_range_says_each_limit_once() -> None:
    ranges = {key.name: key.range for key in keys.scenario_keys()}
    assert ranges["limit_ns"] == "> 0, < 2^61"
    assert not any("> 0, >= 0" in one for one in ranges.values())


def test_every_key_has_words() -> None:
    without = [f"{key.name} of {key.source}" for key in keys.all_keys() if not key.meaning]
    assert without == [], "write a comment beside each"


def test_every_key_of_a_resolved_scenario_is_known() -> None:
    known = {one.plain for one in entries()}
    for name in ("incast", "hadoop"):
        for run in plan(name, scenario.load(name)[0], Path()):
            for key in recorded.leaves(run.scenario.model_dump()):
                assert key.replace("[]", "") in known or key.split(".")[0] in ("protocols", "programs"), key


ATTACKED: dict[str, Any] = {
    "cc": "hpcc",
    "topology": {"name": "single-switch", "hosts": 4},
    "workload": {"name": "incast", "size_bytes": 20_000},
    "attack": {"kind": "parallel", "pieces": 2, "hosts": [1]},
    "record": {"columns": ["max_latency_ns", "mean_links", "shortest_links"], "sizes": [{"name": "all"}]},
}


WEIGHTED: dict[str, Any] = {
    "cc": "sperc+1rc+weights",
    "topology": {"name": "single-switch", "hosts": 2},
    "workload": {"name": "exchange", "size_bytes": 2000},
    "record": {"columns": ["mean_weight"], "sizes": [{"name": "all"}]},
}


SCHEDULED: dict[str, Any] = {
    "cc": "none",
    "topology": {"name": "single-switch", "hosts": 2},
    "workload": {"name": "exchange", "size_bytes": 2000},
}


def test_every_column_and_every_key_of_a_run_has_words() -> None:
    seen = set()
    runs = plan("attacked", scenario.check(ATTACKED), Path())
    runs += plan("weighted", scenario.check(WEIGHTED), Path())
    runs += plan("scheduled", scenario.check(SCHEDULED), Path())
    runs += plan("collective-small", scenario.load("collective-small", ["cc=3cpo"])[0], Path())[:1]
    for run in runs:
        for file, content in results.files(run, VirtualWorld(run).run()).items():
            name, _, suffix = file.partition(".")
            if suffix == "parquet":
                names = list(pd.read_parquet(io.BytesIO(content)).columns)
            elif suffix == "json":
                names = list(recorded.leaves(json.loads(content)))
            else:
                continue
            seen.add(name)
            without = [one for one in names if not recorded.meaning(name, one)]
            assert without == [], f"{file}: write what they mean into harness/columns or recorded.toml"
    assert seen == {*tables.NAMES, *recorded.FILES}


def test_a_name_without_words_would_be_noticed() -> None:
    assert recorded.meaning("summary", "drops.lost_in")
    assert recorded.meaning("summary", "jain.mean")
    assert not recorded.meaning("summary", "jain.median")
    assert not recorded.meaning("queues", "time_us")


def test_every_environment_variable_that_is_read_has_words() -> None:
    read = set()
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".sh", ".c") or path.name == "Vagrantfile":
                text = path.read_text(encoding="utf-8")
                read |= set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", text))
                read |= set(re.findall(r"ENV(?:\.fetch\(|\[)[\"'](\w+)[\"']", text))
    assert read - {"SHELL"} == set(recorded.recorded()["environment"])


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out + err


def test_explain_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = explained(capsys, "topology.link_rate_bps")
    assert status == 0
    for words in ("fat-tree", "bit/s", "> 0", "100000000000", "topologies.registry.TopologyParameters"):
        assert words in told


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("switch.pfc", ("switch.pfc.alpha", "0.125", "headroom")),
        ("eta", ("protocols.hpcc.eta", "0.95")),
        ("workload.flows.source", ("workload.flows[].source", "must be given")),
        ("flows.fct_ns", ("delivered_ns",)),
        ("summary.drops.buffer", ("summary.drops.*",)),
        ("protocols.rccc+nscc", ('protocols."rccc+nscc".nscc.most_window_bdp', "The largest window")),
        ('protocols."hpcc+vai"', ('protocols."hpcc+vai".vai.bytes_per_token',)),
        ("P4CC_CACHE", ("folder",)),
        ("exit-status", ("2", "wrong")),
        ("pfc", ("PFC", "Priority flow control")),
        ("D1", ("DASR", "Dart, fig 9")),
        ("variant", ("settings with which a scenario is run", "summary.variant")),
    ],
)
def test_explain_what_has_a_name(capsys: pytest.CaptureFixture[str], name: str, words: tuple[str, ...]) -> None:
    status, told = explained(capsys, name)
    assert status == 0
    assert all(word in told for word in words), told


def test_explain_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = json.loads(explained(capsys, "topology.k", "--json")[1])
    assert (one["name"], one["of"], one["default"], one["range"]) == ("topology.k", ["fat-tree"], 4, ">= 2, <= 64")


def test_explain_what_is_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = explained(capsys, "topology.link_rate_bp")
    assert status == 2
    assert "did you mean 'topology.link_rate_bps'?" in told
    assert "did you mean 'fct_ns'?" in explained(capsys, "fct_n")[1]
    assert "did you mean 'kmin_bytes'?" in explained(capsys, "kmin")[1]
    assert "'hpcc' is neither a key nor a column; `p4cc list cc hpcc` describes it" in explained(capsys, "hpcc")[1]


def test_explain_what_is_like_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = explained(capsys, "nonsense")
    assert status == 2
    assert "did you mean" not in told
    assert "nothing is called 'nonsense'; expected a key, a column, a variable or a word" in told


def test_pages_have_every_key_and_are_in_the_navigation() -> None:
    made = pages()
    together = "\n".join(made.values())
    for key in keys.all_keys():
        assert f"| `{key.name}` |" in together
        declared = rf"^Declared in `{re.escape(key.source)}`|^- `{re.escape(key.source)}`: .*`{re.escape(key.name)}`"
        assert re.search(declared, together, re.MULTILINE)
    assert "p4cc explain" in made["reference/commands.md"]
    assert "| `run` |" in made["reference/api.md"]
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    decisions = {name for name in there if name.startswith("decisions/")}  # tools/docs_hooks.py lists them
    of_papers = {path.relative_to(ROOT).as_posix() for path in (ROOT / "papers").rglob("*.md")}
    assert listed == there - decisions | of_papers | set(made) | {"index.md"}
