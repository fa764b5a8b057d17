"""The line that says what runs interpreted on the compiled hosts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.worlds.interpreted import tell_interpreted
from host_agents import native


def test_edited_files_are_told_where_the_hosts_are_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = native.SOURCES / "cc" / "timely.py"
    monkeypatch.setattr(sys, "meta_path", [native._Edited([file]), *sys.meta_path])
    tell_interpreted(["timely"], ["ecmp"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(native, "active", lambda: True)
    tell_interpreted(["timely"], ["ecmp"])
    told = f"{Path(file)}, edited since the hosts were compiled, runs interpreted on the compiled hosts\n"
    assert capsys.readouterr().err == told
