"""Figures of the papers' folders: bars from the tables of measured numbers, beside the papers' numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from PIL import Image

from harness import papers
from p4switch.errors import UserError, validate
from papers.figures import Bar, PapersFigure, bars, digest, draw, drawn, figures, read_bars
from papers.make import targets
from reports.claims import Number, claims
from tests.papers_tables import claim_rows

ROWS = pd.DataFrame(
    {
        "load": ["0.1", "0.1", "0.1", "0.1", "0.2", "0.2"],
        "scheme": ["ours", "ours", "theirs", "theirs", "ours", "theirs"],
        "seed": [1, 2, 1, 2, 1, 1],
        "mean_us": [10.0, 20.0, 30.0, 40.0, 10.0, 15.0],
        "their_us": [11.0, 19.0, 33.0, 44.0, 12.0, 15.0],
    }
)

CHECKED_BY_PACKETS = {"A1", "M1", "R1", "D12"}  # claims without numbers


def figure(**keys: Any) -> PapersFigure:
    base = {"caption": "FCT", "claims": ["A4"], "table": "fct", "values": ["mean_us"], "label": "us"}
    return validate(PapersFigure, {**base, **keys}, "")


def test_bars_are_of_groups_and_series_with_the_papers_number_at_each() -> None:
    paper = [{"group": "0.1", "series": "ours", "number": 12}, {"group": "0.2", "number": {"most": 9}}]
    assert bars(figure(group="load", series="scheme", paper=paper), ROWS) == [
        Bar("0.1", "ours", [10, 20], Number(12, 12)),
        Bar("0.1", "theirs", [30, 40], None),
        Bar("0.2", "ours", [10], Number(None, 9)),
        Bar("0.2", "theirs", [15], Number(None, 9)),
    ]


def test_a_series_may_be_divided_by_another_of_the_same_seed() -> None:
    found = bars(figure(group="load", series="scheme", over="ours", where={"seed": [1]}), ROWS)
    assert found == [Bar("0.1", "theirs", [3], None), Bar("0.2", "theirs", [1.5], None)]
    (both, _) = bars(figure(group="load", series="scheme", over="ours"), ROWS)
    assert both.values == [3, 2]
    (both, _) = bars(figure(group="load", series="scheme", over="ours"), ROWS.drop(columns="seed"))
    assert both.values == [2, 8 / 3]


def test_columns_may_be_the_groups_and_have_the_papers_numbers() -> None:
    assert bars(figure(values=["mean_us", "their_us"], where={"load": ["0.2"]}), ROWS) == [
        Bar("mean_us", "p4cc", [10, 15], None),
        Bar("their_us", "p4cc", [12, 15], None),
    ]
    (bar,) = bars(figure(group="load", paper_columns=["their_us"], where={"load": ["0.1"]}), ROWS)
    assert bar == Bar("0.1", "p4cc", [10, 20, 30, 40], Number(11, 44))


def test_a_number_of_the_paper_that_belongs_to_no_bar_is_an_error() -> None:
    message = r"paper\[0\]: expected a bar of the table fct \(got group '0.3' and series ''\)"
    with pytest.raises(UserError, match=message):
        bars(figure(group="load", paper=[{"group": "0.3", "number": 1}]), ROWS)


def test_a_picture_has_a_bar_for_each_and_the_papers_numbers() -> None:
    shown = figure(group="load", series="scheme", paper=[{"group": "0.1", "number": [12, 15]}])
    (axes,) = drawn(shown, bars(shown, ROWS)).axes
    heights = [patch.get_height() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert sorted(heights) == [10, 15, 15, 35]
    marks = [np.asarray(line.get_ydata()).tolist() for line in axes.lines if line.get_label() == "paper"]
    assert marks == [[12, 15], [12, 15]]


@pytest.mark.parametrize(("names", "degrees"), [(("ours", "theirs"), 0), (("without an attack", "staggered") * 3, 30)])
def test_names_that_would_overlap_are_rotated(names: tuple[str, ...], degrees: int) -> None:
    found = [Bar(f"{place} {name}", "p4cc", [1], None) for place, name in enumerate(names)]
    (axes,) = drawn(figure(), found).axes
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {degrees}


def test_each_claim_with_numbers_has_a_figure() -> None:
    shown: set[str] = set()
    for paper in papers.folders():
        shown.update(row.claim for row in claim_rows(paper) if "](figures/" in row.cells["figure"])
        shown.update(claim for one in figures(paper).values() for claim in one.claims)
    assert set(claims()) - shown == CHECKED_BY_PACKETS


@pytest.mark.parametrize("paper", papers.folders())
def test_each_paper_has_figures_with_its_numbers_and_its_table_of_claims_names_them(paper: str) -> None:
    folder = papers.PAPERS / paper
    rows = {row.claim: row for row in claim_rows(paper)}
    found = figures(paper)
    has_numbers = False
    for name, one in found.items():
        shown = read_bars(paper, one)
        has_numbers |= any(bar.paper for bar in shown)
        picture = folder / "figures" / f"{name}.png"
        assert picture in [target.path for target in targets()[paper]]
        make = f"make it by `python -m papers.figures {paper} {name} --out {picture}`"
        assert picture.exists(), make
        assert Image.open(picture).info["Source"] == digest(one, shown), f"its table has changed; {make}"
        for claim in one.claims:
            assert claim in claims()
            assert f"](figures/{name}.png)" in rows[claim].cells["figure"]
    assert has_numbers


@pytest.mark.parametrize("form", ["png", "svg"])
def test_a_picture_may_have_either_form(tmp_path: Path, form: str) -> None:
    draw("uec", "uec-rates", tmp_path / f"rates.{form}")
    assert (tmp_path / f"rates.{form}").stat().st_size > 0
