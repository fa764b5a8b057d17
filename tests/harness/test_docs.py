"""Commands, scenario and links of the README, the documentation and the Makefile."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest

from harness.papers import folders
from harness.plan.resolve import plan
from harness.plan.scenario import built_in, check, find, parse
from p4cc.cli import cli
from p4cc.execution import sweep
from p4cc.execution.batch import planned
from p4switch.errors import UserError
from papers.make import chosen, targets
from reports.claims import claims
from tests.papers_tables import claim_rows

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "papers").rglob("*.md"))]
OWN_FOLDERS = ("runs/fairness", "runs/accurate-fig5", "runs/my-2", "runs/my", "FOLDER")  # of the reader's runs
# Files of the reader.
OWN_FILES = ("my.toml", "incast.toml", "fairness.toml", "./aimd.py:aimd", "./gentle.py", "quell/quell.toml")
STANDS_FOR_A_NUMBER = re.compile(r"=[A-Z]\b")


def commands_of(page: str) -> list[str]:
    """Return the `p4cc` commands in indented lines and in backquotes, without comments and optional parts."""
    shown = re.findall(r"^ {4}(?:sudo )?(?:\S*/)?p4cc (.*)$", page, re.MULTILINE)
    shown += re.findall(r"`(?:sudo )?p4cc ([a-z][^`]*)`", page)
    return [re.sub(r"[][]", "", re.sub(r"\s+#.*", "", text)).strip() for text in shown]


def commands_of_make() -> list[str]:
    """Return the `p4cc` commands behind `make reproduce`."""
    made = [target.arguments for of_paper in targets().values() for target in of_paper]
    return [shlex.join(arguments[2:]) for arguments in made if arguments[0] == "-c"]


SHOWN = sorted({command for page in PAGES for command in commands_of(page.read_text(encoding="utf-8"))})


def parsed(command: str) -> tuple[str, click.Context]:
    for folder in OWN_FOLDERS:
        command = re.sub(rf"{folder}\b", ".", command)
    name, *arguments = shlex.split(STANDS_FOR_A_NUMBER.sub("=8", command))
    with click.Context(cli) as root:
        found = cli.get_command(root, name)
        assert found is not None, f"there is no command {name!r}"
        # A command that is only named (`p4cc switch`) is not one to type.
        return name, found.make_context(name, arguments, parent=root, resilient_parsing=not arguments)


def starts(command: str) -> None:
    """Check everything but the runs themselves."""
    name, context = parsed(command)
    given = context.params
    if name == "run" and not {*(given["scenarios"] or OWN_FILES), *given["cc"]} & set(OWN_FILES):
        several = {"cc": tuple(given["cc"]), "lb": tuple(given["lb"]), "seeds": tuple(given["seeds"])}
        changed = given["settings"] or any(several.values())
        # As they are, those that come with p4cc are planned by tests/harness/plan/test_scenario.py.
        if changed or {find(scenario) for scenario in given["scenarios"]} - set(built_in().values()):
            assert planned(given["scenarios"], given["settings"], several)
    if name == "sweep" and given["sweep_file"]:
        assert sweep.load(given["sweep_file"])[0].axes


@pytest.mark.parametrize("command", SHOWN)
def test_every_command_in_the_documentation_is_one(command: str) -> None:
    with suppress(click.exceptions.Exit):  # of an option that shows something and ends (--list-passes)
        starts(command)


def test_make_reproduce_runs_what_there_is() -> None:
    commands = commands_of_make()
    assert len(commands) > 20
    assert len({parsed(command)[1].params["out"] for command in commands}) == len(commands)
    for command in commands:
        starts(command)


def test_targets_are_chosen_by_paper_and_by_name() -> None:
    dart = targets()["dart"]
    assert chosen(["dart"], targets()) == dart
    assert [target.path.name for target in chosen(["dart-deadlock.csv"], targets())] == ["dart-deadlock.csv"]
    with pytest.raises(UserError, match="did you mean 'smartt'"):
        chosen(["smart"], targets())


def test_a_command_that_is_wrong_would_be_noticed() -> None:
    page = "    sudo .venv/bin/p4cc run incats --strict   # real frames\n and `p4cc sweep x --jbos 3`, `p4cc rnu`"
    assert commands_of(page) == ["run incats --strict", "sweep x --jbos 3", "rnu"]
    for command in commands_of(page):
        with pytest.raises(Exception, match=r"incats|jbos|rnu"):
            starts(command)


def test_the_scenario_in_the_readme_can_be_run() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    runs = plan("readme", check(parse(text)), Path())
    assert [run.protocol.name for run in runs] == ["dcqcn", "hpcc"]
    assert len(runs[0].traffic().flows) == 8


def places(page: Path) -> set[str]:
    """Return the places that `#` may lead to: headings, as GitHub and the site name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower())) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, place in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        to = page.parent / target if target else page
        assert "://" in target or to.exists(), target
        assert not place or place in places(to), f"{target}#{place}"


_UNIT = r"(?:%|x|[kKMGT]?i?B|[kMGT]b/s|ns|us|ms|s)"
_NUMBER = r"(?<![\w.^])\d[\d,.]*(?:/\d+|:\d+)?(?:\^-?\d+)?(?!\w)"
_RANGE_OR_SHARE = re.compile(rf"({_NUMBER})(?: ?{_UNIT})?(?:(?: to | of | x |-){_NUMBER})+")


def numbers_in(cell: str) -> int:
    """Return how many numbers a table's cell has; a range and a share count as one, and text counts as none."""
    numbers = _RANGE_OR_SHARE.sub(r"\1", re.sub(r"`[^`]*`|\*", "", cell))
    rest = re.sub(rf"{_NUMBER}(?: ?{_UNIT}(?!\w))?|\band\b", "", numbers)
    return 0 if re.search(r"[^\W\d_]", rest) else len(re.findall(_NUMBER, numbers))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_cell_of_a_table_has_one_number(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    rows = [line.strip("|").split("|")[1:] for line in text.splitlines() if line.startswith("|")]
    assert [cell.strip() for row in rows for cell in row if numbers_in(cell) > 1] == []


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        *((one, 1) for one in ("1,234.5 us", "1.0 to 2.0 x", "3 of 5", "8 x 128 KiB", "8:1", "2^-12")),
        *((text, 0) for text in ("seeds 1, 2", "`1, 2`", "")),
        *((two, 2) for two in ("6 and 7", "25 / 63", "16.2 (8)", "114.8, 6.0%", "5; 0.1")),
        ("1.7 ± 1.6, 6.4", 3),
    ],
)
def test_several_numbers_in_a_cell_would_be_noticed(cell: str, count: int) -> None:
    assert numbers_in(cell) == count


def test_each_claim_has_a_verdict_and_they_are_in_order() -> None:
    found: list[str] = []
    for paper in folders():
        rows = claim_rows(paper)
        assert {row.verdict for row in rows} <= {"holds", "holds in part", "does not hold", "not yet run"}, paper
        names = [(row.claim[0], int(row.claim[1:])) for row in rows]
        assert names == sorted(names), paper
        found += [row.claim for row in rows]
    assert sorted(found) == sorted(claims())
