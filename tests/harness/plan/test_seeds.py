"""Seeds by number, by range and in lists, in scenarios and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plan.resolve import plan_tables
from harness.plan.scenario import check, override
from harness.plan.seeds import expanded
from p4cc.cli import main
from p4switch.errors import UserError

TABLES: dict[str, Any] = {
    "cc": "none",
    "topology": {"name": "single-switch", "hosts": 2},
    "workload": {"name": "exchange", "size_bytes": 2000},
}


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 20)), min_size=1, max_size=5))
def test_a_text_names_its_ranges_in_its_order(ranges: list[tuple[int, int]]) -> None:
    text = ", ".join(f"{first}-{first + more}" if more else str(first) for first, more in ranges)
    assert expanded(text) == [seed for first, more in ranges for seed in range(first, first + more + 1)]


@pytest.mark.parametrize(
    ("seeds", "wanted"), [("1-4", [1, 2, 3, 4]), ([9, "2-3", "7"], [9, 2, 3, 7]), (5, [5]), ("1-2,8", [1, 2, 8])]
)
def test_a_scenario_has_the_seeds_that_it_names(seeds: object, wanted: list[int]) -> None:
    assert check({**TABLES, "seeds": seeds}).seeds == wanted
    runs = plan_tables("test", {**TABLES, "seeds": seeds}, Path())
    assert [run.seed for run in runs] == wanted


def test_a_setting_has_ranges_too() -> None:
    assert check(override(TABLES, ["seeds=3-5"])).seeds == [3, 4, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5-1", "the range ends before it begins; expected 1-5"),
        ("one", "'one': expected a seed, a range as 1-100, or several with commas between"),
        ("1-", "expected a seed, a range"),
        ("-1", "expected a seed, a range"),
        ("4294967296", "expected seeds of at most 4294967295"),
        ("0-4294967295", "expected at most 100000 seeds in a range"),
    ],
)
def test_what_names_no_seeds_is_one_line(capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        check({**TABLES, "seeds": text})
    assert str(refused.value).startswith("seeds: ")
    assert message in str(refused.value)
    with pytest.raises(SystemExit) as ended:
        main(["run", "incast", "--dry-run", f"--seed={text}"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "--seed" in told
    assert message in told
    assert told.count("\n") == 1


def test_the_command_line_takes_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "incast-star", "--dry-run", "--cc", "dcqcn", "--seed", "1-3", "--seed", "7"])
    assert not ended.value.code
    told = capsys.readouterr().out
    assert [f"incast-star-dcqcn-seed{seed}\n" in told for seed in (1, 2, 3, 4, 7)] == [True, True, True, False, True]
