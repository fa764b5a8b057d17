"""What the README shows works."""

from __future__ import annotations

import re
from pathlib import Path

from harness.experiment import plan
from harness.scenario import check, parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_scenario_in_the_readme_can_be_run() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    runs = plan("readme", check(parse(text)), Path())
    assert [run.protocol.name for run in runs] == ["dcqcn", "hpcc"]
    assert len(runs[0].traffic().flows) == 8


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target
