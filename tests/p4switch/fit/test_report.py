"""The command, its drawing, and the table of docs/fit.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from p4cc.cli import cli
from p4switch.errors import UserError
from p4switch.fit import built_in, load, measure, report

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "p4src").glob("*.p4"))
INT = str(ROOT / "p4src" / "int.p4")
EXPRESSPASS = str(ROOT / "p4src" / "expresspass.p4")


def test_the_table_of_the_documentation_is_true() -> None:
    page = (ROOT / "docs" / "fit.md").read_text()
    targets = [load(name) for name in built_in()]
    rows = [[program.fit(t) for t in targets] for program in map(measure, PROGRAMS)]
    assert report.updated(page, report.table(rows, [p.stem for p in PROGRAMS])) == page, (
        "out of date: p4cc fit p4src/*.p4 --docs docs/fit.md"
    )


def test_what_the_command_says(tmp_path: Path) -> None:
    drawing = tmp_path / "int.svg"
    result = CliRunner().invoke(cli, ["fit", EXPRESSPASS, "--target", "stages12", "--svg", str(drawing)])
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].endswith("does not fit")
    assert "  stages     20 of 12" in lines
    update = next(line for line in lines if "register-update" in line)
    place, _, text = update.partition(": ")
    assert Path(place.split(":")[0]).name == "credit_limit.p4"
    assert "one access has 2" in text
    assert drawing.read_bytes().startswith(b"<?xml")


def test_a_program_that_fits(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["fit", INT, "--target", "fpga-nic", "--json"])
    assert result.exit_code == 0
    (said,) = json.loads(result.output)
    assert (said["fits"], said["stages"], said["least"], said["findings"]) == (True, 8, True, [])


def test_a_drawing_is_of_one_program_on_one_target() -> None:
    result = CliRunner().invoke(cli, ["fit", INT, "--svg", "x.svg"])
    assert isinstance(result.exception, UserError)
    assert "one --target" in str(result.exception)


def test_a_page_without_marks() -> None:
    with pytest.raises(UserError, match="begin"):
        report.updated("nothing", [])
