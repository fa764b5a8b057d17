"""Folders of papers: a further paper needs only a new folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import papers
from harness.plan import scenario
from p4cc.cli import main
from p4cc.execution import sweep
from papers.make import targets
from reports import claims
from tests.papers_tables import claim_rows

SCENARIO = """
title = "Nemo, figure 1"
claims = ["N1"]
topology = { name = "single-switch" }
workload = { name = "incast" }
"""
SWEEP = 'title = "Nemo by load"\nscenario = "nemo-fig1"\n\n[axes]\nseeds = [1, 2]\n'
PAPER = 'title = "Nemo"\nsource = "nowhere"\n\n[claims.N1]\nsource = "Nemo, fig 1"\ntext = "it swims"\n'


@pytest.fixture
def nemo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder of a paper, in a folder that replaces `papers/`."""
    folder = tmp_path / "nemo"
    for name, text in {
        "paper.toml": PAPER,
        "scenarios/nemo-fig1.toml": SCENARIO,
        "sweeps/nemo-loads.toml": SWEEP,
        "studies/depth.py": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    claims.claims.cache_clear()
    yield folder
    claims.claims.cache_clear()


def test_a_new_paper_is_a_new_folder(nemo: Path) -> None:
    assert papers.folders() == {"nemo": nemo}
    assert papers.title("nemo") == "Nemo"
    assert scenario.find("nemo-fig1") == nemo / "scenarios" / "nemo-fig1.toml"
    assert sweep.load("nemo-loads")[0].scenario == "nemo-fig1"
    assert claims.claims()["N1"].text == "it swims"
    assert [target.path.name for target in targets()["nemo"]] == ["nemo-loads", "nemo-fig1", "nemo-depth.csv"]


def test_a_new_paper_is_a_group_of_the_lists_of_scenarios_and_sweeps(
    nemo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind, name, shown in (("scenarios", "nemo-fig1", "Nemo, figure 1"), ("sweeps", "nemo-loads", "Nemo by load")):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(["list", kind])
        lines = capsys.readouterr().out.splitlines()
        after = lines.index("  Nemo (papers/nemo):") + 1
        assert lines[after].split(maxsplit=1) == [name, shown]


def test_general_scenarios_belong_to_no_paper() -> None:
    found = papers.files("scenarios")
    assert papers.paper_of(found["incast"]) == ""
    assert papers.paper_of(found["dart-fig11"]) == "dart"


def test_each_scenario_and_sweep_of_a_paper_names_claims_of_its_own_paper() -> None:
    for kind in ("scenarios", "sweeps"):
        for name, path in papers.files(kind).items():
            folder = papers.paper_of(path)
            named = scenario.read(path).get("claims", [])
            if folder:
                own = scenario.read(papers.PAPERS / folder / "paper.toml")["claims"]
                assert set(named) <= set(own), name
            else:
                assert named == [], name


@pytest.mark.parametrize("paper", papers.folders())
def test_each_claim_has_a_row_with_the_papers_number_and_ours(paper: str) -> None:
    their_title = "the simulator's" if paper == "uec" else "the paper's"
    for row in claim_rows(paper):
        assert list(row.cells) == ["id", "claim", their_title, "ours", "verdict", "figure"], row.claim
        # A claim without a number of the paper may have one of ours, but not the other way around.
        assert all(row.cells[title] for title in ("claim", their_title, "ours")), row.claim
        assert row.cells[their_title] == "-" or row.cells["ours"] != "-", row.claim
