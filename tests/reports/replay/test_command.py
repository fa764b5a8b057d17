"""`p4cc replay`: its output, and its messages about folders that it cannot show."""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.measure.results import load
from p4switch.errors import UserError
from reports import write_report
from reports.replay.pack import unpacked
from reports.replay.page import recorded_page, shell
from tests.p4cc.commands.test_commands import call
from tests.reports.replay.runs import watched


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(watched().folder, tmp_path / "runs" / "watched-dcqcn-seed1")).parent


def test_one_page_that_loads_nothing(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert call(capsys, "replay", str(folder), "--out", str(out))[0] == 0
    text = out.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=\"?(?!data:,)[^\s\">]+", text.partition('<script type="application')[0])
    assert "<title>p4cc replay: Watched &lt;/script&gt;&lt;b&gt;</title>" in text
    assert _head(text)["network"]["name"] == "dumbbell"


def _head(text: str) -> dict[str, Any]:
    (data,) = re.findall(r'<script type="application/octet-stream" id="data">(.*?)</script>', text)
    return unpacked(base64.b64decode(data))[0]


def test_what_is_too_large_is_coarser(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recorded_page(watched())
    monkeypatch.setattr("reports.replay.page.MOST_BYTES", len(whole) - 1)
    coarser = recorded_page(watched())
    assert len(coarser) < len(whole)
    assert _head(whole.decode())["joined"] == 1
    assert _head(coarser.decode())["joined"] == 2


def test_of_a_large_trace_later_packets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recorded_page(watched())
    monkeypatch.setattr("reports.replay.page._MOST_OF_TRACE", 0.5)
    monkeypatch.setattr("reports.replay.page.MOST_BYTES", len(whole))
    cut = _head(recorded_page(watched()).decode())
    assert cut["left_out"] > 0
    assert cut["joined"] == 1
    assert len("".join(cut["texts"])) <= len("".join(_head(whole.decode())["texts"]))


def test_it_is_said_that_flows_alone_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.replay.page.MOST_BYTES", len(shell(b"", watched().summary["title"])) + 100)
    with pytest.raises(UserError, match="its flows alone take over"):
        recorded_page(watched())


def test_a_report_leaves_out_what_is_large_or_damaged_and_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = folder / "watched-dcqcn-seed1"
    target = tmp_path / "report.html"
    monkeypatch.setattr("reports.replay.page._SMALL_TRACE_BYTES", 100)
    write_report([load(one)], target)
    text = target.read_text()
    assert "seed 1 (without the packets of its trace, which is too large for a report)</summary>" in text
    (data,) = re.findall(r'</summary><script type="application/octet-stream">(.*?)</script>', text)
    _, arrays = unpacked(base64.b64decode(data))
    assert "packet_first" not in arrays
    assert len(arrays["flow"]) == len(watched().flows)
    monkeypatch.undo()
    trace = one / "trace.jsonl"
    trace.write_text('{"event": "PipelineEntered", "node": "s0", "time_ns": 1, "id": 7, "psn": 0}\n')
    write_report([load(one)], target)
    text = target.read_text()
    assert "cannot be watched" in text
    assert "trace.jsonl: damaged: line 1: KeyError: &#39;bytes&#39;" in text


def test_bad_input_is_one_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder / "watched-dcqcn-seed1"
    shutil.copytree(one, folder / "watched-hpcc-seed1")
    damaged = Path(shutil.copytree(one, tmp_path / "damaged"))
    (damaged / "links.parquet").write_bytes(b"no table")
    out = str(tmp_path / "page.html")
    cases = {
        (str(tmp_path / "nothing"),): "has no results",
        (str(folder),): "has 2 runs; expected --run with one of watched-dcqcn-seed1, watched-hpcc-seed1",
        (str(folder), "--run", "swift"): "no such run; expected one of",
        (str(damaged),): "links.parquet: damaged: ",
        (str(one), "--out", str(tmp_path)): "Is a directory",
    }
    for arguments, told in cases.items():
        status, _, err = call(capsys, "replay", "--out", out, *arguments)
        assert (status, err.count("\n")) == (2, 1), err
        assert told in err
    assert not Path(out).exists()
    assert call(capsys, "replay", str(folder), "--run", "hpcc-seed1", "--out", out)[0] == 0


def test_a_run_of_which_nothing_was_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder / "watched-dcqcn-seed1"
    (one / "links.parquet").unlink()
    result = watched()
    for name in ("queues", "rates"):
        result.table(name).iloc[:0].to_parquet(one / f"{name}.parquet")
    status, _, err = call(capsys, "replay", str(one))
    assert (status, err.count("\n")) == (2, 1)
    assert "nothing was recorded over time; expected a run with record.rate_interval_ns" in err
