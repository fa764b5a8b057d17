"""The code in the documentation runs."""

import re
from pathlib import Path
from typing import Any

import pytest

from host_agents import wire
from host_agents.collective.packets import READ
from p4cc._link import Wire
from tests.host_agents.collective_star import nics
from tests.host_agents.narrow import due_frame

DOCS = Path(__file__).parents[2] / "docs"


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


def test_the_example_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    code, _ = blocks("host-api.md")
    names: dict[str, Any] = {}
    exec(compile(code, "host-api.md", "exec"), names)
    assert names["message"].start_ns == 20_000
    Wire(names["a"], names["b"]).run(10_000_000)
    assert names["message"].completed_ns > 100_000


def test_the_example_of_collectives() -> None:
    _, code = blocks("host-api.md")
    (nic,) = nics(1, "3cpo")
    names = {"nic": nic}
    exec(compile(code, "host-api.md", "exec"), names)
    frame = due_frame(nic, 0)
    assert frame[wire.BTH] == READ
    assert due_frame(nic, 100)[wire.DESTINATION] == 239
