"""Programs for TNA and T2NA in a network: p4src's own in both forms, and one from outside beside its v1model twin."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from harness.measure.results import Result
from tests.e2e.runs import p4cc, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "tofino"
CHIPS = ("tna", "t2na")
STAR = ("incast-star", "--set", "workload.size_bytes=300000")
STEP = ("--set", "programs.ecn.kmin_bytes=100000", "--set", "programs.ecn.kmax_bytes=100000")
TWIN = """\
#include "include/prelude.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; }
struct metadata_t { common_metadata_t common; }
counter(512, CounterType.packets) marked;
control Step(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != 0 && standard_metadata.deq_qdepth >= 500) {
            hdr.ipv4.ecn = 3;
            marked.count((bit<32>)standard_metadata.egress_port);
        }
    }
}
#define EGRESS_STAGE Step
#include "include/switch.p4"
"""


def one(*arguments: str) -> Result:
    (result,) = run(*arguments)
    return result


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("protocol", [("--cc", "hpcc"), ("--cc", "dcqcn", *STEP)], ids=["hpcc", "dcqcn"])
def test_flows_are_the_same_in_both_forms_of_a_program(chip: str, protocol: tuple[str, ...]) -> None:
    """Behind one switch no path is chosen, and depth and time have the same units: so every flow is the same."""
    plain = one(*STAR, *protocol)
    chips = one(*STAR, *protocol, "--set", f"switch.architecture={chip}")
    pd.testing.assert_frame_equal(chips.flows, plain.flows)
    assert chips.summary["packets_sent"] == plain.summary["packets_sent"] > 0


def test_marking_by_lot_is_as_likely_in_both_forms() -> None:
    """The marks of both forms are binomial draws over all packets: they differ by five standard deviations at most."""
    thresholds = ("--set", "programs.ecn.kmin_bytes=1", "--set", "programs.ecn.kmax_bytes=8000000")
    fixed = ("--cc", "none", "--set", "workload.size_bytes=300000", "--set", "programs.ecn.pmax=0.5")
    plain = one("incast-star", *fixed, *thresholds)
    chips = one("incast-star", *fixed, *thresholds, "--set", "switch.architecture=tna")
    sent, marks = plain.summary["packets_sent"], plain.summary["ecn_marked"]
    share = marks / sent
    assert chips.summary["packets_sent"] == sent == 4800
    assert abs(chips.summary["ecn_marked"] - marks) < 5 * (2 * sent * share * (1 - share)) ** 0.5


def test_ports_are_numbered_as_the_chips_front_panel_is() -> None:
    """T2NA's ports 6 and 7 lead back to ingress, and the first one of its front panel is 8."""
    chips = one(*STAR, "--cc", "hpcc", "--set", "switch.architecture=t2na")
    assert sorted(chips.table("links").query("node == 's0'")["port"].unique()) == list(range(8, 25))


def test_a_tna_program_from_outside_does_what_its_v1model_twin_does(tmp_path: Path) -> None:
    """The senders' leaf and the receiver's have one path each way, as there is one spine."""
    chip, twin = tmp_path / "tofino", tmp_path / "twin"
    shutil.copytree(EXAMPLE, chip)
    twin.mkdir()
    (twin / "step.p4").write_text(TWIN)
    shutil.copy(EXAMPLE / "incast.toml", twin)
    results = [one(str(folder / "incast.toml"), "--set", "topology.spines=1") for folder in (chip, twin)]
    pd.testing.assert_frame_equal(results[0].flows, results[1].flows)
    states = [result.table("program_state").query("object == 'marked'") for result in results]
    assert states[0]["value"].tolist() == states[1]["value"].tolist() != []


def test_a_trace_has_both_parsers_and_what_the_traffic_manager_did(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    done = p4cc(
        "run", str(EXAMPLE / "incast.toml"), "--no-report", "--out", str(tmp_path / "out" / "run"),
        "--set", "workload.size_bytes=2000", "--trace", "0", "--trace-packets", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (trace,) = (tmp_path / "out").rglob("trace.txt")
    text = trace.read_text()
    order = ["extract hdr.ig_intr_md", "table Ingress.routes", "enqueued at port", "extract hdr.eg_intr_md", "below ="]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (["--cc", "smartt"], "switch.architecture: program 'trim' is not written for 'tna'; expected 'v1model'"),
        (
            ["--set", "switch.load_balancing=drill"],
            "switch.architecture: load balancer 'drill' is not written for 'tna'; expected 'v1model'",
        ),
        (["--set", "switch.architecture=tofino"], "switch.architecture: no architecture 'tofino'; expected"),
        (["--compiler", "p4c"], "switch.architecture: p4c-bm2-ss compiles for v1model alone, not for tna"),
    ],
)
def test_what_a_chip_does_not_do_is_an_error_of_one_line(tmp_path: Path, settings: list[str], error: str) -> None:
    out = tmp_path / "out"
    done = p4cc("run", "incast-star", "--set", "switch.architecture=tna", *settings, "--no-report", "--out", str(out))
    assert done.returncode == 2
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1
