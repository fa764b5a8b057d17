"""Results are kept even if their report fails, and names are checked before any run starts."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.measure.results import load_all
from tests.p4cc.commands.test_commands import call

SCENARIO = """
cc = "none"
[topology]
name = "single-switch"
hosts = 3
[workload]
name = "incast"
size_bytes = 5_000
[[variants]]
name = '{name}'
"""
SWEEP = """
scenario = "odd.toml"
[axes]
workload.size_bytes = [1000, 2000]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.toml").write_text(SCENARIO.format(name=r"$\frac{$"))
    return tmp_path


def test_a_name_is_no_formula(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "run", "odd.toml", "--out", "out")
    assert status == 0, err
    assert r"$\frac{$" in (folder / "out" / "report.html").read_text()


@pytest.mark.parametrize(("command", "interrupted"), [("run", False), ("sweep", False), ("run", True)])
def test_results_are_kept_whatever_the_report_does(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, interrupted: bool
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt if interrupted else ZeroDivisionError("a defect\nof ours")

    (folder / "odd-sweep.toml").write_text(SWEEP)
    monkeypatch.setattr("p4cc.execution.reports.write_report", fail)
    monkeypatch.setattr("p4cc.execution.reports.write_sweep", fail)
    monkeypatch.setattr("p4cc.execution.reports.findings_of", fail)  # they may read what the report could not
    what = ["odd.toml"] if command == "run" else ["odd-sweep.toml", "--jobs", "1"]
    status, _, err = call(capsys, command, *what, "--out", "out")
    reason = "interrupted" if interrupted else "ZeroDivisionError: a defect (see report-error.txt)"
    told = f"the results are kept, but there is no report: {reason}"
    assert (status, err.splitlines()[-1]) == (1, f"p4cc: error: {told}")
    assert len(load_all(folder / "out")) == (1 if command == "run" else 2)
    errors = folder / "out" / "report-error.txt"
    assert interrupted or "ZeroDivisionError" in errors.read_text()


def test_a_full_disk_is_named_and_no_page_that_is_absent(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("p4cc.execution.reports.write_report", fail)
    status, out, err = call(capsys, "run", "odd.toml", "--out", "out")
    told = "p4cc: error: the results are kept, but there is no report: No space left on device"
    assert (status, err.splitlines()[-1]) == (1, told)
    assert out.splitlines()[-1].endswith("s: out")
    assert not (folder / "out" / "report-error.txt").exists()


def test_a_name_that_is_too_long_for_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.toml").write_text(SCENARIO.format(name="x" * 300))
    status, _, err = call(capsys, "run", "odd.toml")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "should be a folder's name, of at most 200 bytes" in err


def test_a_damaged_folder_is_named_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.toml").write_text(SCENARIO.format(name="x"))
    assert call(capsys, "run", "odd.toml", "--out", "good")[0] == 0
    (run,) = (path for path in (folder / "good").iterdir() if (path / "summary.json").exists())
    damages = {
        name: [content[: len(content) // 2], b"\xff\xfe", b"{}"]
        for name in ("summary.json", "flows.parquet", "queues.parquet", "rates.parquet", "scenario.toml")
        for content in [(run / name).read_bytes()]
    }
    told = 0
    for name, contents in damages.items():
        sound = (run / name).read_bytes()
        for content in contents:
            (run / name).write_bytes(content)
            status, _, err = call(capsys, "report", "good")
            told += status == 2
            assert (status, len(err.splitlines())) in ((0, 0), (2, 1)), (name, content[:20], err)
            assert str(run.relative_to(folder)) in err or status == 0
        (run / name).write_bytes(sound)
    assert told > 8
    assert call(capsys, "report", "good")[0] == 0
