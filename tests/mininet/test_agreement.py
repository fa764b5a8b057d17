"""The virtual world and Mininet agree on the same scenario, programs and hosts."""

from __future__ import annotations

import collections
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.measure.results import Result
from host_agents import wire
from tests.mininet.conftest import Both
from tests.mininet.margins import expected, mean_fct_ns
from tests.mininet.networks import needs_mininet, p4cc

# Links of 1 us: of a base RTT that is three times the usual one, lateness of a process is a third of the part.
BOTH = ("--cc", "dcqcn", "--cc", "hpcc", "--set", "topology.k=4", "--set", "topology.link_delay_ns=1000")
INCAST_8 = ("incast", *BOTH, "--set", "workload.senders=8", "--set", "workload.size_bytes=200000", "--pcap")
INCAST_15 = ("incast", *BOTH, "--set", "workload.size_bytes=150000")
PERMUTATION = ("permutation", *BOTH, "--set", "workload.size_bytes=150000", "--set", "record.queue_interval_ns=1000")
RUNS = pytest.mark.parametrize(
    "arguments", [INCAST_8, INCAST_15, PERMUTATION], ids=["8 to 1", "15 to 1", "permutation"]
)
CONGESTED_BYTES = 25_000  # not a few packets that met
pytestmark = needs_mininet


@RUNS
def test_every_flow_is_done_and_every_frame_is_accounted_for(both: Both, arguments: tuple[str, ...]) -> None:
    for result in both(*arguments)[1]:
        summary = result.summary
        assert summary["world"] == "mininet"
        assert summary["ended"] == "done"
        assert summary["flows_delivered"] == summary["flows"]
        assert [check["name"] for check in summary["checks"] if not check["holds"]] == []
        assert summary["conservation"]["balance"] == 0
        assert sum(summary["drops"].values()) == 0
        # Data there, acknowledgements back, and a frame of each pair of hosts before it began.
        hosts = 16
        assert summary["conservation"]["entered"] >= 2 * summary["packets_sent"] + hosts * (hosts - 1)


@RUNS
def test_flows_take_as_long(both: Both, arguments: tuple[str, ...]) -> None:
    virtual, mininet = both(*arguments)
    for model, real in zip(virtual, mininet, strict=True):
        assert real.summary["protocol"] == model.summary["protocol"]
        low_ns, high_ns = expected(arguments, real, mean_fct_ns)
        assert low_ns <= mean_fct_ns(real) <= high_ns


@pytest.mark.parametrize("arguments", [INCAST_8, INCAST_15], ids=["8 to 1", "15 to 1"])  # where they differ clearly
def test_protocols_are_in_the_same_order(both: Both, arguments: tuple[str, ...]) -> None:
    def order(results: tuple[Result, ...]) -> list[str]:
        return [r.summary["protocol"] for r in sorted(results, key=lambda r: float(r.summary["fct_ns"]["mean"]))]

    virtual, mininet = both(*arguments)
    assert order(mininet) == order(virtual)


@RUNS
def test_the_same_ports_are_congested(both: Both, arguments: tuple[str, ...]) -> None:
    def congested(result: Result) -> set[tuple[str, int]]:
        deepest = result.queues.groupby(["switch", "port"])["depth_bytes"].max()
        return set(deepest[deepest > max(0.1 * deepest.max(), CONGESTED_BYTES)].index)

    virtual, mininet = both(*arguments)
    for model, real in zip(virtual, mininet, strict=True):
        assert congested(model)
        assert congested(real) == congested(model)


@RUNS
def test_rates_add_up_to_what_was_delivered(both: Both, arguments: tuple[str, ...]) -> None:
    """Samples of senders and receivers, which separate processes take, are consistent."""
    for result in both(*arguments)[1]:
        totals = result.rates.groupby("time_ns")["throughput_bps"].sum()
        receivers = result.flows["destination"].nunique()
        # Packets may be counted on either side of an interval's end, and samples are as late as their processes are.
        assert totals.rolling(3).mean().max() < receivers * 105e9
        sampled_bytes = totals.sum() * result.rate_interval_ns / 8e9
        assert sampled_bytes > 0.8 * result.flows["size_bytes"].sum()  # those after the last sample are missing


@RUNS
def test_fidelity_is_told(both: Both, arguments: tuple[str, ...]) -> None:
    for result in both(*arguments)[1]:
        fidelity = result.summary["fidelity"]
        assert fidelity["kept_up"] == (not fidelity["reasons"])
        agreement = result.summary["agreement"]
        assert agreement["mininet_ns"] == pytest.approx(result.summary["fct_ns"]["mean"])
        assert agreement["draws"] == (result.summary["program"] == "ecn")
        assert fidelity["dilation"] >= 1
        assert fidelity["memory_bytes"] < 1.5 * 2**30
        assert set(fidelity["lag"]) == {"hosts", "switches"}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("world", [0, 1], ids=["virtual", "mininet"])
def test_tshark_reads_rocev2(both: Both, world: int) -> None:
    for result in both(*INCAST_8)[world]:
        capture = result.folder / "hosts.pcapng"
        assert _tshark(capture, "-Y", "_ws.malformed", "-T", "fields", "-e", "frame.number") == []
        fields = (
            "frame.len", "ip.len", "udp.length", "ip.checksum.status", "infiniband.bth.opcode",
            "infiniband.invariant.crc",
        )  # fmt: skip
        rows = _tshark(
            capture, "-o", "ip.check_checksum:TRUE", "-T", "fields", *(f"-e{field}" for field in fields), "-Y", "udp"
        )
        whole = [frame for frame in _frames(capture) if frame[12:14] == b"\x08\x00"]
        assert len(rows) == len(whole) > 4 * result.summary["packets_sent"] * 0.9  # data and ACKs, at both ends
        opcodes: collections.Counter[int] = collections.Counter()
        for row, frame in zip(rows, whole, strict=True):
            length, ip_length, udp_length, checksum, opcode, icrc = row.split("\t")
            assert int(length) == len(frame) == int(ip_length) + 14 == int(udp_length) + 34
            assert checksum == "1"  # good
            opcodes[int(opcode, 0)] += 1
            if int(opcode, 0) < wire.WITH_INT:  # no switch has changed what the ICRC covers
                assert int(icrc, 16) == int.from_bytes(wire.icrc(frame), "big")
        data = {0x00, 0x01, 0x02, 0x04} if result.summary["protocol"] == "dcqcn" else {0xC0, 0xC1, 0xC2, 0xC4}
        assert set(opcodes) & data


def _tshark(capture: Path, *arguments: str) -> list[str]:
    command = ["tshark", "-r", str(capture), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()


def _frames(capture: Path) -> list[bytes]:
    from scapy.utils import RawPcapNgReader

    with RawPcapNgReader(str(capture)) as reader:
        return [frame for frame, _ in reader]


def test_a_report_compares_the_worlds(both: Both, tmp_path: Path) -> None:
    virtual, mininet = both(*INCAST_8)
    p4cc("report", str(virtual[0].folder), str(mininet[0].folder), "--out", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert "<th>dcqcn</th><th>dcqcn, mininet</th>" in page
    assert "wall-clock time of a unit of model time" in page
