"""Messages about missing extras, with the command that installs them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import click
import pytest

from p4cc.cli import main
from p4cc.commands._extras import EXTRAS
from p4switch import interruption
from tests.p4cc.commands.test_commands import call

PYPROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
PACKAGES = {"z3": "z3-solver"}  # where they are called otherwise than their modules


def test_every_extra_is_one_that_brings_the_package() -> None:
    for module, extra in EXTRAS.items():
        (listed,) = re.findall(rf"^{extra} = \[(.*?)\]", PYPROJECT, re.MULTILINE | re.DOTALL)
        assert re.search(rf'"{PACKAGES.get(module, module)}>=', listed), f"{module} in {extra}"
    (core,) = re.findall(r"^dependencies = \[(.*?)^\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    assert not [module for module in EXTRAS if f'"{PACKAGES.get(module, module)}>=' in core]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run `p4cc doctor`, which imports a missing module."""

    def imports(module: str) -> None:
        @click.command()
        def command() -> None:
            importlib.import_module(module)

        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, "p4cc.commands.doctor", cast(ModuleType, SimpleNamespace(command=command)))

    return imports


def test_a_command_says_which_extra_it_needs(capsys: pytest.CaptureFixture[str], doctor: Callable[[str], None]) -> None:
    doctor("scipy.optimize")
    told = "p4cc: error: scipy is not installed; install it with: pip install 'p4cc[viz]'\n"
    assert call(capsys, "doctor") == (2, "", told)


@pytest.mark.parametrize("error", [ImportError("initialization failed"), ValueError("error: KeyboardInterrupt")])
def test_whatever_a_library_makes_of_a_signal_is_an_interruption(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Check a signal during an import, which pybind11 converts, and one while pydantic builds a model."""

    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(interruption, "came", lambda: True)
    monkeypatch.setitem(sys.modules, "p4cc.commands.doctor", cast(ModuleType, SimpleNamespace(command=command)))
    assert call(capsys, "doctor") == (1, "", "p4cc: error: interrupted\n")


def test_another_module_that_is_missing_is_no_such_mistake(doctor: Callable[[str], None]) -> None:
    doctor("harness.nothing")
    with pytest.raises(ModuleNotFoundError):
        main(["doctor"])
