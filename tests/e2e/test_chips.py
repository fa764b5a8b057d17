"""Programs for TNA and T2NA in a network: both forms of p4src's programs, and an outside one with its v1model twin."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from harness.measure.results import Result
from p4cc import Switch
from p4switch.trace import events
from p4switch.trace.log import log_lines
from tests.e2e.runs import forked, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "tofino"
CHIPS = ("tna", "t2na")
STAR = ("incast-star", "--set", "workload.size_bytes=300000")
STEP = ("--set", "programs.ecn.kmin_bytes=100000", "--set", "programs.ecn.kmax_bytes=100000")
T2NA_TRIMS = ("--cc", "eqds", "--set", "switch.architecture=t2na")
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
PSA = """\
#include <core.p4>
#include <psa.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> ether_type; }
header ipv4_t {
    bit<8> version_ihl; bit<8> tos; bit<16> total_len; bit<32> fragment; bit<8> ttl; bit<8> protocol;
    bit<16> hdr_checksum; bit<32> src_addr; bit<32> dst_addr;
}
struct headers { ethernet_t ethernet; ipv4_t ipv4; }
struct empty {}

parser InParse(packet_in packet, out headers hdr, inout empty meta, in psa_ingress_parser_input_metadata_t input,
                     in empty resubmitted, in empty recirculated) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) { 0x0800: parse_ipv4; default: accept; }
    }
    state parse_ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
control In(inout headers hdr, inout empty meta, in psa_ingress_input_metadata_t input,
                inout psa_ingress_output_metadata_t output) {
    action send(PortId_t port) { send_to_port(output, port); }
    action drop() { ingress_drop(output); }
    table routes {
        key = { hdr.ipv4.dst_addr: exact; }
        actions = { send; drop; }
        default_action = drop();
    }
    apply { routes.apply(); }
}
control InDeparse(packet_out packet, out empty cloned, out empty resubmitted, out empty normal, inout headers hdr,
                        in empty meta, in psa_ingress_output_metadata_t output) {
    apply { packet.emit(hdr); }
}
parser OutParse(packet_in packet, out headers hdr, inout empty meta, in psa_egress_parser_input_metadata_t input,
                    in empty normal, in empty cloned_i, in empty cloned_e) {
    state start { transition accept; }
}
control Out(inout headers hdr, inout empty meta, in psa_egress_input_metadata_t input,
               inout psa_egress_output_metadata_t output) {
    apply {}
}
control OutDeparse(packet_out packet, out empty cloned, out empty recirculated, inout headers hdr, in empty meta,
                       in psa_egress_output_metadata_t output, in psa_egress_deparser_input_metadata_t input) {
    apply { packet.emit(hdr); }
}

IngressPipeline(InParse(), In(), InDeparse()) ingress;
EgressPipeline(OutParse(), Out(), OutDeparse()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
"""
PSA_ENTRIES = """\
from p4cc.programs import Action, Exact, ProgramParameters, TableEntry, register


@register("route")
class Route(ProgramParameters):
    def entries(self, switch):
        for route in switch.routes:
            key = {"hdr.ipv4.dst_addr": Exact(int(route.prefix.network_address))}
            yield TableEntry("routes", key, Action("send", {"port": route.ports[0]}))
"""
PSA_SCENARIO = """\
cc = "none"
program = "route.p4"
[topology]
name = "single-switch"
hosts = 4
[workload]
name = "permutation"
size_bytes = "100 KB"
"""


def one(*arguments: str) -> Result:
    (result,) = run(*arguments)
    return result


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("protocol", [("--cc", "hpcc"), ("--cc", "dcqcn", *STEP)], ids=["hpcc", "dcqcn"])
def test_flows_are_the_same_in_both_forms_of_a_program(chip: str, protocol: tuple[str, ...]) -> None:
    """Check one switch, so that no path is chosen, with the same units of depth and time."""
    plain = one(*STAR, *protocol)
    chips = one(*STAR, *protocol, "--set", f"switch.architecture={chip}")
    pd.testing.assert_frame_equal(chips.flows, plain.flows)
    assert chips.summary["packets_sent"] == plain.summary["packets_sent"] > 0


def test_credits_of_expresspass_are_the_same_in_both_forms() -> None:
    """A receiver's own link paces its credits, so neither the register's limit nor the meter's is reached."""
    plain = one(*STAR, "--cc", "expresspass")
    chips = one(*STAR, "--cc", "expresspass", "--set", "switch.architecture=tna")
    pd.testing.assert_frame_equal(chips.flows, plain.flows)


@pytest.mark.parametrize("chip", CHIPS)
def test_rcp_gives_flows_their_shares_in_both_forms(chip: str) -> None:
    """A chip measures a queue's depth in cells when a packet leaves, and a timer updates the rate."""
    flows = ("incast-star", "--cc", "rcp", "--set", "workload.senders=4", "--set", "workload.size_bytes=1500000")
    plain = one(*flows).flows["fct_ns"]
    chips = one(*flows, "--set", f"switch.architecture={chip}").flows["fct_ns"]
    assert chips.tolist() == pytest.approx(plain.tolist(), rel=0.03)


def test_trimming_is_the_same_in_both_forms() -> None:
    """Check limits of whole packets, no random spread and cells of a byte, so that both forms measure bytes."""
    exact = [
        "trim_from_fraction=1", "queue_bytes=42320", "header_queue_bytes=64000", "kmin_fraction=1", "kmax_fraction=1"
    ]  # fmt: skip
    chosen = [part for each in exact for part in ("--set", f"programs.trim.{each}")]
    chosen += ["--set", "switch.cell_bytes=1", "--cc", "eqds"]
    plain = one(*STAR, *chosen)
    chips = one(*STAR, *chosen, "--set", "switch.architecture=t2na")
    pd.testing.assert_frame_equal(chips.flows, plain.flows)
    assert plain.summary["retransmitted"] > 500


def test_marking_by_lot_is_as_likely_in_both_forms() -> None:
    """In both forms the marks are binomial draws over all packets, and differ by at most five standard deviations."""
    thresholds = ("--set", "programs.ecn.kmin_bytes=1", "--set", "programs.ecn.kmax_bytes=8000000")
    fixed = ("--cc", "none", "--set", "workload.size_bytes=300000", "--set", "programs.ecn.pmax=0.5")
    plain = one("incast-star", *fixed, *thresholds)
    chips = one("incast-star", *fixed, *thresholds, "--set", "switch.architecture=tna")
    sent, marks = plain.summary["packets_sent"], plain.summary["ecn_marked"]
    share = marks / sent
    assert chips.summary["packets_sent"] == sent == 4800
    assert abs(chips.summary["ecn_marked"] - marks) < 5 * (2 * sent * share * (1 - share)) ** 0.5


def test_ports_are_numbered_as_the_chips_front_panel_is() -> None:
    """T2NA's ports 6 and 7 lead back to ingress, and the first port of its front panel is 8."""
    chips = one(*STAR, "--cc", "hpcc", "--set", "switch.architecture=t2na")
    assert sorted(chips.table("links").query("node == 's0'")["port"].unique()) == list(range(8, 25))


def test_a_loopback_port_takes_its_time(tmp_path: Path) -> None:
    """Every packet passes the switch twice. A flow of one packet is complete after its ACK has done so, too."""
    text = (EXAMPLE / "step.p4").read_text()
    again = "if (intrinsic.ingress_port != 68) { tm.ucast_egress_port = 68; }"
    place = "spread: { members.apply(); }\n            }\n"
    assert place in text
    (tmp_path / "step.p4").write_text(text.replace(place, f"{place}{again}\n"))
    shutil.copy(EXAMPLE / "step.py", tmp_path)
    star = 'cc = "dcqcn"\nprogram = "step.p4"\ntopology.name = "single-switch"\n[workload]\nname = "incast"\n'
    (tmp_path / "once.toml").write_text(star + "senders = 1\nsize_bytes = 1000\n")
    straight = tmp_path / "straight"
    shutil.copytree(EXAMPLE, straight)
    shutil.copy(tmp_path / "once.toml", straight)
    loop = ("--set", "switch.loopback.ports=[68]", "--set", "switch.loopback.delay_ns=700")
    first = one(str(straight / "once.toml")).flows.iloc[0]
    second = one(str(tmp_path / "once.toml"), *loop).flows.iloc[0]
    data_ns, ack_ns = 1058 * 8 / 100, 62 * 8 / 100
    assert second["delivered_ns"] - first["delivered_ns"] == pytest.approx(700 + data_ns, abs=1)
    assert second["completed_ns"] - first["completed_ns"] == pytest.approx(1400 + data_ns + ack_ns, abs=2)


def test_hosts_may_have_other_mac_addresses(tmp_path: Path) -> None:
    """The program forwards only addresses with its own first byte."""
    text = (EXAMPLE / "step.p4").read_text()
    assert "hdr.ipv4.ttl <= 1" in text
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "step.p4").write_text(text.replace("hdr.ipv4.ttl <= 1", "hdr.ethernet.dst_addr[47:40] != 10"))
    small = (str(tmp_path / "incast.toml"), "--set", "workload.size_bytes=3000")
    assert one(*small, "--set", "nic.mac_prefix=2570").flows["retransmitted"].sum() == 0
    assert (one(*small, "--set", "limit_ns=100000").flows["completed_ns"] < 0).all()


def test_a_tna_program_from_outside_does_what_its_v1model_twin_does(tmp_path: Path) -> None:
    """There is one spine, so the senders' leaf and the receiver's have one path in each direction."""
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
    done = forked(
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
        (
            ["--cc", "smartt"],
            "switch.architecture: program 'trim' is not written for 'tna'; expected 'v1model' or 't2na'",
        ),
        (
            [*T2NA_TRIMS, "--set", "programs.trim.trimmed_by=traffic-manager"],
            "programs.trim.trimmed_by: T2NA's traffic manager does not trim; expected 'program'",
        ),
        (
            ["--set", "switch.load_balancing=drill"],
            "switch.architecture: load balancer 'drill' is not written for 'tna'; expected 'v1model'",
        ),
        (["--set", "switch.architecture=tofino"], "switch.architecture: no architecture 'tofino'; expected"),
        (["--set", "switch.loopback.ports=[512]"], "switch.loopback.ports.0: should be less than or equal to 511"),
        (["--compiler", "p4c"], "switch.architecture: p4c-bm2-ss compiles for v1model only, not for tna"),
    ],
)
def test_what_a_chip_does_not_do_is_an_error_of_one_line(tmp_path: Path, settings: list[str], error: str) -> None:
    out = tmp_path / "out"
    done = forked("run", "incast-star", "--set", "switch.architecture=tna", *settings, "--no-report", "--out", str(out))
    assert done.returncode == 2
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_packet_tests_of_a_tna_program_and_what_they_reach(tmp_path: Path) -> None:
    done = forked("stf", str(EXAMPLE / "step.stf"), "--coverage", str(tmp_path / "coverage"))
    assert done.returncode == 0, done.stderr
    assert "1 passed, 0 failed" in done.stdout
    assert "step.p4:73: state headers_parse_udp" in done.stdout
    assert "state start" not in done.stdout
    lines = (tmp_path / "coverage" / "coverage.info").read_text().splitlines()
    functions = [line.split(",")[1] for line in lines if line.startswith("FN:")]
    assert {"start:97", "start:186", "routes.send"} <= set(functions)
    assert len(functions) == len(set(functions))


def test_a_trace_names_the_parser_that_fails() -> None:
    sent = Switch(EXAMPLE / "step.p4").send(0, bytes(Ether() / IP())[:20])
    assert [(e.parser, e.error) for e in sent.trace.of(events.ParserFailed)] == [("ingress_parser", "PacketTooShort")]
    assert "Parser 'ingress_parser': error PacketTooShort" in log_lines(sent.trace.of(events.ParserFailed)[0])[0]


def test_the_plug_ins_switch_runs_a_tna_program() -> None:
    switch = Switch(EXAMPLE / "step.p4")
    switch.table("routes").add(dst_addr="10.0.0.0/8", action="send", port=1)
    frame = Ether() / IP(dst="10.0.0.3", ttl=9) / UDP(dport=4791)
    forwarded = Ether() / IP(dst="10.0.0.3", ttl=8) / UDP(dport=4791)
    switch.send(0, bytes(frame)).expect((1, bytes(forwarded)))


def test_a_psa_program_from_outside_forwards(tmp_path: Path) -> None:
    for name, text in (("route.p4", PSA), ("route.py", PSA_ENTRIES), ("star.toml", PSA_SCENARIO)):
        (tmp_path / name).write_text(text)
    summary = one(str(tmp_path / "star.toml")).summary
    assert (summary["ended"], summary["flows_delivered"]) == ("done", 4)
