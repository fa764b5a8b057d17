"""Figures of probes over time, with a unit and a legend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import p4cc
from p4switch.errors import UserError


def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: int, probe: dict[str, Any]) -> Any:
    """Return the axes of the only probe's figure of an incast to one host."""
    monkeypatch.setenv("P4CC_NATIVE", "0")
    scenario = {
        "cc": "dcqcn",
        "topology": {"name": "single-switch", "hosts": hosts},
        "workload": {"name": "incast", "size_bytes": 20_000, "starts_together": hosts - 1},
        "programs": {"ecn": {"kmin_bytes": 1_000, "kmax_bytes": 10_000}},
        "record": {"probes": [{"name": "seen", "interval_ns": 2_000, **probe}]},
    }
    figure = p4cc.run(scenario, out=tmp_path / "out").figures()["probe-seen"]
    (axes,) = (axes for axes in figure.axes if axes.lines)
    return axes


@pytest.mark.parametrize(
    ("probe", "label"),
    [
        ({"kind": "queue"}, "depth (bytes)"),
        ({"kind": "queue", "reads": "tx_packets"}, "tx (packets)"),
        ({"kind": "queue", "unit": "octets"}, "depth bytes (octets)"),
        ({"kind": "reaction_point", "reads": "alpha"}, "alpha"),
        ({"kind": "counter", "reads": "ecn_marked"}, "ecn_marked (packets)"),
        ({"kind": "reaction_point", "reads": "alpha", "unit": "1"}, "alpha (1)"),
    ],
)
def test_the_axis_has_the_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: dict[str, Any], label: str
) -> None:
    assert drawn(tmp_path, monkeypatch, 4, probe).get_ylabel() == label


@pytest.mark.parametrize("hosts", [4, 20])
def test_every_line_is_named_in_the_legend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: int) -> None:
    axes = drawn(tmp_path, monkeypatch, hosts, {"kind": "reaction_point", "reads": "alpha"})
    legend = axes.get_legend()
    assert len(axes.lines) == hosts - 1
    assert [text.get_text() for text in legend.get_texts()] == [line.get_label() for line in axes.lines]
    assert legend.get_title().get_text() == "host, qp"


def test_a_unit_is_a_word() -> None:
    scenario = {
        "topology": {"name": "single-switch", "hosts": 3},
        "workload": {"name": "incast"},
        "record": {"probes": [{"name": "seen", "kind": "queue", "unit": ""}]},
    }
    with pytest.raises(UserError, match=r"record\.probes\.0\.unit"):
        p4cc.run(scenario)
