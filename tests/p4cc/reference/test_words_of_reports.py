"""`p4cc explain` knows every term of a report, in any case and spelling."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reports
from harness.measure.summary import PERCENTILES
from p4cc.cli import main
from p4cc.reference import spelling
from p4cc.reference.entries import entries, words
from reports import page, sweep_page
from reports.figures import REGISTRY

FOLDER = Path(reports.__file__).parent
NOT_WORDS = ("p4cc report",)  # a title


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["explain", *arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out + err


def headings() -> Iterator[str]:
    """Return the rows, columns and headings of the pages' tables that are not data."""
    yield from (row.name for row in page._ROWS)
    yield from (name for name, *_ in page._ROWS_OF_PARTS)
    for template in FOLDER.glob("*.j2"):
        text = re.sub(r"{%.*?%}", "", template.read_text(encoding="utf-8"))
        yield from re.findall(r"<(?:th|h[1-6])(?: [^>]*)?>([^<{]+)<", text)
        yield from re.findall(r'<summary class="note">([^<{]+)<', text)


def columns() -> Iterator[str]:
    yield from ("variant", "seed", "folder", "ended", "busy", "drops", "pfc_pauses", "class", "flows")
    yield from sweep_page._FIGURES
    yield from (f"fct_{name}" for name in ("mean", *PERCENTILES, "max"))


def axes() -> Iterator[str]:
    """Yield the labels that figures write themselves, and those that their class gives them."""
    for file in (FOLDER / "figures").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in ("xlabel", "ylabel"):
                yield str(node.value.value) if isinstance(node.value, ast.Constant) else ""
    for figure in REGISTRY.all().values():
        if hasattr(figure, "what"):
            yield figure.what
        if " " in (unit := getattr(figure, "unit", "")):
            yield unit


def test_every_word_of_a_report_has_an_explanation() -> None:
    known = {spelling.words(one.name) for one in words()}
    keys = {spelling.normal(one.name).rpartition(".")[2] for one in entries()}
    used = [name for name in (*headings(), *columns(), *axes()) if name.strip() and name not in NOT_WORDS]
    assert len(used) > 80, "the templates are not read"
    without = [name for name in used if spelling.words(name) not in known and spelling.normal(name) not in keys]
    assert without == [], "write what they mean into reports.toml"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Jain", "Jain index first above 0.9"),
        ("JAIN", "Jain index"),
        ("utilization", "summary.queues.worst[].utilisation"),
        ("Utilisation", "summary.queues.worst[].utilisation"),
        ("fct p99 (µs)", "99% of the delivered flows"),
        ("TOPOLOGY.LINK_RATE_BPS", "bit/s"),
        ("where packets waited", "queues of switches"),
    ],
)
def test_a_word_is_found_in_any_case_and_spelling(capsys: pytest.CaptureFixture[str], name: str, told: str) -> None:
    status, text = explained(capsys, name)
    assert status == 0
    assert told in text


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("utilisation", "utilization"),
        ("normalised", "normalized"),
        ("serialising", "serializing"),
        ("analyse", "analyze"),
        ("neighbours", "neighbors"),
        ("colour", "color"),
        ("behaviour", "behavior"),
        ("centre", "center"),
        ("labelled", "labeled"),
        ("cancelling", "canceling"),
        ("queueing", "queuing"),
        ("grey", "gray"),
        ("catalogue", "catalog"),
        ("licence", "license"),
        ("topology.Neighbour_rate", "topology.neighbor_rate"),
    ],
)
def test_two_spellings_are_one_word(british: str, american: str) -> None:
    assert spelling.normal(british) == spelling.normal(american)
