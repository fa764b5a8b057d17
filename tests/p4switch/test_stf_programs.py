"""The packet tests in `stf/` of the language's semantics, on the built-in switch and, if it is installed, on BMv2."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from p4switch.stf import find_tests, run_test

TESTS = find_tests([Path(__file__).parent / "stf"])
NOT_ON_BMV2 = {"initial_entries"}  # its tables with initial entries cannot be changed
has_bmv2 = shutil.which("simple_switch") is not None and shutil.which("simple_switch_CLI") is not None


@pytest.mark.parametrize("test", TESTS, ids=lambda t: t.stem)
def test_on_the_built_in_switch(test: Path) -> None:
    run_test(test.with_suffix(".p4"), test)


@pytest.mark.skipif(not has_bmv2, reason="simple_switch is not installed")
@pytest.mark.parametrize("test", [t for t in TESTS if t.stem not in NOT_ON_BMV2], ids=lambda t: t.stem)
def test_on_bmv2(test: Path) -> None:
    run_test(test.with_suffix(".p4"), test, switch="bmv2")
