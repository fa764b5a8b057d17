"""Folders and pages that runs write."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.measure.results import load_all
from tests.e2e.runs import p4cc, run
from tests.margins import packet_gbps

SMALL = ("--set", "workload.size_bytes=100000")
SEEDS = ("incast", "--cc", "dcqcn", "--cc", "hpcc", "--seed", "1", "--seed", "2", *SMALL)


def test_a_comparison_over_seeds_has_confidence_intervals(tmp_path: Path) -> None:
    runs = run(*SEEDS, report=True)
    assert {(r.summary["protocol"], r.summary["seed"]) for r in runs} == {
        (cc, seed) for cc in ("dcqcn", "hpcc") for seed in (1, 2)
    }
    page = tmp_path / "page.html"
    done = p4cc("report", str(runs[0].folder.parent), "--out", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text.count("±") >= 10  # where seeds differ
    assert "mean of 2 seeds and 95% confidence interval" in text
    assert "preamble, gap and FCS are not" in text


def test_a_page_loads_nothing_from_elsewhere() -> None:
    page = (run(*SEEDS, report=True)[0].folder.parent / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:image/png;)""", page)
    assert not re.findall(r"url\((?!#)", page)
    assert not re.search(r"<script[^>]*\bsrc", page)
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert page.count("<svg") >= 4


def test_a_folder_has_tables_plots_and_the_resolved_scenario() -> None:
    folder = run(*SEEDS, report=True)[0].folder
    assert {path.name for path in folder.iterdir()} == {
        "flows.parquet", "queues.parquet", "rates.parquet", "links.parquet", "summary.json", "performance.json",
        "provenance.json", "scenario.toml"
    }  # fmt: skip
    assert list((folder.parent / "plots").glob("*.svg"))
    assert "kmin_bytes" in (folder / "scenario.toml").read_text()


def test_framing_is_charged_and_said(tmp_path: Path) -> None:
    arguments = ("incast-star", "--cc", "none", "--set", "workload.interval_ns=0", *SMALL)
    plain = run(*arguments)[0]
    framed = run(*arguments, "--set", "framing=true", report=True)[0]
    for result, packet_bytes in ((plain, 1058), (framed, 1058 + 24)):
        packet_ns = packet_bytes * 0.08
        assert result.summary["last_delivery_ns"] == pytest.approx((1_600 + 1) * packet_ns + 2_000, abs=2)
        # Neither is all of the first sample, which is the first packet's way.
        whole = result.rates.groupby("time_ns")["throughput_bps"].sum().iloc[1:-1]
        assert whole.mean() / 1e9 == pytest.approx(100, abs=packet_gbps(10_000 * len(whole), packet_bytes))
    assert "24 bytes more a frame" in (framed.folder.parent / "report.html").read_text(encoding="utf-8")


def test_captures_and_traces(tmp_path: Path) -> None:
    target = tmp_path / "out"
    arguments = ["--cc", "hpcc", "--set", "workload.size_bytes=3000", "--set", "workload.senders=2"]
    done = p4cc("run", "incast", *arguments, "--pcap", "--trace", "1", "--out", str(target))
    assert done.returncode == 0, done.stderr
    (result,) = load_all(target)
    story = (result.folder / "trace.txt").read_text()
    words = ("leaves the host", "arrives at port", "enqueued", "ipv4_lpm", "port_telemetry", "state")
    for word in (*words, "hdr.ipv4.ttl 0x40 -> 0x3f", "if hdr.ipv4.isValid(): true"):
        assert word in story
    assert story.count("leaves the host") == 3  # packets of flow 1; its ACKs are another flow's direction
    if shutil.which("tshark"):
        command = ["tshark", "-r", str(result.folder / "hosts.pcapng"), "-Y", "infiniband.bth.opcode == 17"]
        acks = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        assert "Malformed" not in acks


@pytest.mark.parametrize(
    ("scenario", "settings"),
    [
        ("permutation", ["topology.k=4", "workload.size_bytes=100000"]),
        ("alltoall", ["workload.size_bytes=10000"]),
        ("allreduce", ["workload.size_bytes=160000"]),
        ("hadoop", ["workload.duration_ns=20000", "topology.pods=2", "topology.hosts_per_tor=4"]),
    ],
)
def test_every_kind_of_workload_runs_to_its_end(scenario: str, settings: list[str]) -> None:
    arguments = [word for setting in settings for word in ("--set", setting)]
    for result in run(scenario, "--cc", "dcqcn", "--cc", "hpcc", *arguments):
        assert result.summary["ended"] == "done"
        assert result.summary["flows_delivered"] == result.summary["flows"] > 0
        assert (result.flows["slowdown"] >= 1).all()
        if scenario in ("alltoall", "allreduce"):
            assert result.summary["workload"]["job_completion_ns"] >= result.flows["delivered_ns"].max()


def test_a_run_that_cannot_finish_in_time_says_so() -> None:
    (result,) = run("incast-star", "--cc", "hpcc", "--set", "limit_ns=500000", report=True)
    assert result.summary["ended"] == "limit"
    assert 0 < result.summary["flows_delivered"] < 16
    assert result.summary["conservation"]["queued"] + result.summary["conservation"]["on_wire"] > 0
    assert result.summary["conservation"]["balance"] == 0
    page = (result.folder.parent / "report.html").read_text(encoding="utf-8")
    assert "some flows were not done at the end" in page
