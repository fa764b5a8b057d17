"""Traced packets have ids that a script can follow, and traces have limits."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import tomli_w

import p4cc
from harness.plan.how import Tracing
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4cc.cli import main
from p4switch.errors import UserError
from p4switch.quantities import quantity

LOSSY = {
    "cc": "dcqcn",
    "topology": {"name": "dumbbell", "pairs": 2},
    "switch": {"loss": 0.03},
    "nic": {"mtu_bytes": 1000, "rto_ns": 50_000},
    "workload": {"name": "permutation", "size_bytes": 60_000},
}
MULTICAST = {
    "cc": "none",
    "topology": {"name": "fat-tree", "k": 4},
    "workload": {"name": "multicast", "size_bytes": 5_000},
}
Line = dict[str, Any]


def traced(tables: dict[str, Any], folder: Path, *, workers: int = 1, **limits: Any) -> list[Line]:
    folder.mkdir()
    run = plan("x", check(tables), Path())[0]
    world = VirtualWorld(run, trace=Tracing(0, **limits), workers=workers)
    assert world.run().ended == "done"
    world.write_more(folder)
    return [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]


def by_id(lines: Sequence[Line]) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        found[line["id"]].append(line)
    return found


def test_a_packet_has_one_id_over_all_hops_and_a_retransmission_another(tmp_path: Path) -> None:
    packets = by_id(traced(LOSSY, tmp_path / "one", pipelines=False))
    assert list(packets) == sorted(packets)
    ends: Counter[str] = Counter()
    psns: dict[int, list[str]] = defaultdict(list)
    for lines in packets.values():
        assert len({line["psn"] for line in lines}) == 1
        first, *_, last = lines
        assert first["event"] == "send"
        end = last["event"] if last["event"] == "drop" else f"{last['event']} at {last['node'][0]}"
        at_switch = ["receive", "enqueue", "transmit"]
        if end == "receive at h":
            assert [line["event"] for line in lines] == ["send", *at_switch * (len(lines) // 3), "receive"]
        ends[end] += 1
        psns[first["psn"]].append(end)
    assert set(ends) == {"drop", "receive at h"}
    assert sorted(psns) == list(range(60))
    sent_again = [outcomes for outcomes in psns.values() if len(outcomes) > 1]
    assert sent_again
    assert all("receive at h" in outcomes for outcomes in psns.values())


def test_copies_have_the_id_of_what_they_are_copies_of(tmp_path: Path) -> None:
    packets = by_id(traced(MULTICAST, tmp_path / "one", pipelines=False))
    assert len(packets) == 5
    for lines in packets.values():
        assert sum(line["event"] == "send" for line in lines) == 1
        assert sum(line["event"] == "receive" and line["node"].startswith("h") for line in lines) == 15


def test_pipelines_tell_of_the_same_packets(tmp_path: Path) -> None:
    whole = traced(LOSSY, tmp_path / "whole")
    hops = [line for line in whole if "depth_bytes" in line]
    assert hops == traced(LOSSY, tmp_path / "hops", pipelines=False)
    parsed = [line for line in whole if line["event"] == "Extracted" and line["header"] == "hdr.bth"]
    assert parsed
    assert all(int(line["fields"][-1]["value"], 16) == line["psn"] for line in parsed)
    written = [sum(file.stat().st_size for file in (tmp_path / name).iterdir()) for name in ("hops", "whole")]
    assert written[0] < written[1] / 20


def test_limits_keep_whole_packets(tmp_path: Path) -> None:
    whole = by_id(traced(LOSSY, tmp_path / "whole", pipelines=False))
    assert by_id(traced(LOSSY, tmp_path / "three", pipelines=False, packets=3)) == {n: whole[n] for n in range(3)}
    starts = {number: lines[0]["time_ns"] for number, lines in whole.items()}
    begin, end = starts[10], starts[20]
    some = by_id(traced(LOSSY, tmp_path / "some", pipelines=False, from_ns=begin, until_ns=end))
    assert len(some) == 10
    assert [
        [{**line, "id": number + 10} for line in lines] for number, lines in some.items()
    ] == [whole[number] for number in range(10, 20)]  # fmt: skip
    text = (tmp_path / "three" / "trace.txt").read_text()
    assert {line.split()[3] for line in text.splitlines()} == {"#0", "#1", "#2"}


@pytest.mark.parametrize("limits", [{}, {"packets": 7}, {"from_ns": 2_000, "packets": 5}])
def test_workers_write_the_same(tmp_path: Path, limits: dict[str, int]) -> None:
    for tables in (LOSSY, MULTICAST):
        workload: Any = tables["workload"]
        name = workload["name"]
        one = traced(tables, tmp_path / f"{name}-one", **limits)
        assert traced(tables, tmp_path / f"{name}-two", workers=2, **limits) == one


def test_the_command_line_limits_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("P4CC_NATIVE", "0")
    star = 'topology = { name = "single-switch", hosts = 3 }\nworkload = { name = "incast", size_bytes = 20_000 }\n'
    (tmp_path / "star.toml").write_text(star)
    command = ["run", "star.toml", "--no-report", "--trace", "0", "--trace-hops", "--trace-packets", "4", "--out", "a"]
    for more, count in ([], 4), (["--trace-from", "1us", "--trace-until", "1.2 us"], 3):
        with pytest.raises(SystemExit) as ended:
            main([*command[:-1], f"out{count}", *more])
        assert not ended.value.code
        lines = next(tmp_path.glob(f"out{count}/*/trace.jsonl")).read_text().splitlines()
        assert len({json.loads(line)["id"] for line in lines}) == count


def test_a_trace_without_packets_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("P4CC_NATIVE", "0")
    tables = {
        "cc": "none",
        "topology": {"name": "single-switch", "hosts": 3},
        "workload": {"name": "incast", "size_bytes": 20_000},
    }
    command = ["run", "star.toml", "--no-report", "--trace", "0", "--trace-hops"]
    (tmp_path / "star.toml").write_text(tomli_w.dumps(tables))
    for more, told in (
        (["--trace-from", "1s"], "no packet of flow 0 was sent from 1,000,000,000 ns until the end; the run ended at "),
        (["--trace-from", "5us", "--trace-until", "6us"], "was sent from 5,000 ns until 6,000 ns; the run ended at "),
        ([], ""),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*command, *more, "--out", f"out{len(more)}{told[:1]}{more[:1]}"])
        assert not ended.value.code
        lines = [line for line in capsys.readouterr().err.splitlines() if "trace" in line]
        assert len(lines) == bool(told)
        assert all(line.startswith("warning: star-none-seed1: trace.txt and trace.jsonl are empty: ") for line in lines)
        assert all(told in line for line in lines)
    with pytest.warns(UserWarning, match="star-none-seed1: trace.txt and trace.jsonl are empty"):
        p4cc.run("star.toml", trace=Tracing(0, from_ns=10**9, pipelines=False))


def test_mistakes() -> None:
    for limits, words in (
        ({"packets": 0}, r"^trace: 0 packets; expected 1 or more$"),
        ({"from_ns": 5, "until_ns": 5}, r"^trace: from 5 ns until 5 ns; expected a span of time$"),
        ({"from_ns": 2**64}, r"expected a span of time$"),
    ):
        with pytest.raises(UserError, match=words):
            Tracing(0, **cast(Any, limits))
    assert quantity("--trace-from", "20us", "ns") == 20_000
    assert quantity("--trace-from", "20", "ns") == 20
    for text in ("soon", "-1 us", "0.5 ns", "20 MB", "-5"):
        with pytest.raises(UserError, match=r"^--trace-from"):
            quantity("--trace-from", text, "ns")
