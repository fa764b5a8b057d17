"""Ledger of the packets that a program absorbs, makes and drops, by name and exact to the packet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from control_plane.pipelines import Build, compiled
from control_plane.program_ledger import Kind, accounts, by_name, miscounted
from harness.measure import metrics, summary
from harness.measure.recording import Recording
from harness.plan.run import Run
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from p4switch.registry import forget
from tests.control_plane.test_own_program import one, scenario_of

# A reduction in small: of two ACKs to a host one is made, as ACKs are cumulative. Data is copied to two ports, and the
# copies are taken in there. (The Mininet world tries its network with ACKs to queue pair 1.)
# OVER: counted once too often.
MERGING = """
#include "include/prelude.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; }
struct metadata_t { common_metadata_t common; }
@absorbed["ingress", "ack"]
counter(MAX_PORTS, CounterType.packets) absorbed;
@made["ingress", "merged_ack"]
counter(1, CounterType.packets) made;
@absorbed["egress", "", "mirrored"]
counter(2, CounterType.packets_and_bytes) mirrored;
register<bit<1>>(MAX_PORTS) waiting;
control Merging(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<1> one_waits;
    apply {
        if (hdr.bth.isValid() && hdr.bth.opcode == 0x11 && hdr.bth.dest_qp != 1) {
            absorbed.count((bit<32>)standard_metadata.ingress_port);
            waiting.read(one_waits, (bit<32>)standard_metadata.egress_spec);
            waiting.write((bit<32>)standard_metadata.egress_spec, ~one_waits);
            if (one_waits == 1) {
                made.count(0);
#ifdef OVER
                absorbed.count((bit<32>)standard_metadata.ingress_port);
#endif
            } else {
                mark_to_drop(standard_metadata);
            }
        } else if (hdr.bth.isValid()) {
            clone(CloneType.I2E, 7);
        }
    }
}
control Mirror(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == 1) {
            mirrored.count(1);
            mark_to_drop(standard_metadata);
        }
    }
}
#define INGRESS_STAGE Merging
#define EGRESS_STAGE Mirror
#include "include/switch.p4"
"""

PARAMETERS = """
from p4cc.programs import CloneSession, ProgramParameters, forwarding_entries, register

@register("merging")
class MergingParameters(ProgramParameters):
    def entries(self, switch):
        return [*forwarding_entries(switch), CloneSession(7, ((3, 0), (2, 0)))]
"""


@pytest.fixture
def merging(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "merging.p4").write_text(MERGING)
    (tmp_path / "merging.py").write_text(PARAMETERS)
    more = "[workload]\nname = 'incast'\nsenders = 2\nsize_bytes = 4000\n"
    scenario = Path(scenario_of(tmp_path, "merging.p4"))
    scenario.write_text(scenario.read_text().split("[workload]")[0] + more)
    yield str(scenario)
    forget(str(tmp_path / "merging.py"))


def _flows(run: Run, recording: Recording) -> pd.DataFrame:
    return metrics.flows_table(run, recording, metrics.messages_table(run, recording))


def test_what_a_program_absorbs_and_makes_is_in_the_ledger(merging: str) -> None:
    run = one(merging)
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    ledger = {term: packets for term, packets in recording.conservation.items() if packets}
    assert ledger == {
        "entered": 16,  # four packets of each of two senders, an ACK for each
        "copied": 16,
        "cloned": 16,
        "delivered": 12,
        "absorbed_ack": 8,
        "made_merged_ack": 4,
        "absorbed_mirrored": 16,
    }
    told = summary.checks(run, recording, _flows(run, recording))[0]
    assert told["holds"]
    assert told["detail"].startswith("16 entered, 16 copied, 12 delivered, 24 absorbed, 4 made of them, 0 dropped")
    for balance, words in ((-3, "3 more PFC frames arrived than were sent"), (2, "2 PFC frames did not arrive")):
        recording.conservation["pfc_balance"] = balance
        told = summary.checks(run, recording, _flows(run, recording))[0]
        assert not told["holds"]
        assert told["detail"].endswith(f"0 unaccounted for; {words}")


def test_a_program_that_counts_what_it_did_not_lose_fails_its_run(merging: str) -> None:
    run = one(merging, "switch.defines.OVER=1")
    recording = VirtualWorld(run).run()
    told = summary.checks(run, recording, _flows(run, recording))[0]
    assert not told["holds"]
    assert "drop_program_ingress is -4" in told["detail"]


def test_names_split_what_the_pipelines_lost() -> None:
    ledger = {"entered": 9, "drop_program_ingress": 5, "drop_program_egress": 1, "drop_buffer": 2}
    counted = {
        Kind("dropped", "ingress", "stale"): 2,
        Kind("absorbed", "ingress", "part"): 4,
        Kind("made", "ingress", "sum"): 1,
    }
    named = by_name(ledger, counted)
    assert named == {
        "entered": 9, "drop_program_ingress": 0, "drop_program_egress": 1, "drop_buffer": 2,
        "drop_stale": 2, "absorbed_part": 4, "made_sum": 1,
    }  # fmt: skip
    assert miscounted(named) == ""
    assert "5 made of 4 absorbed" in miscounted(named | {"made_sum": 5})


@pytest.mark.parametrize(
    ("annotation", "units", "told"),
    [
        ('@dropped["somewhere", "a"]', "packets", "'somewhere' comes first; expected one of 'ingress', 'egress'"),
        ("@absorbed[]", "packets", "nothing comes first"),
        ('@absorbed["ingress", "a", "b", "c"]', "packets", "3 names of 2 cells"),
        ('@dropped["ingress", "buffer"]', "packets", "'buffer'; expected a word that is not one of"),
        ('@made["ingress", "a reply"]', "packets", "'a reply'; expected a word"),
        ('@made["ingress", "reply"]', "bytes", "it counts bytes; expected packets"),
    ],
)
def test_an_annotation_that_is_not_as_it_has_to_be(tmp_path: Path, annotation: str, units: str, told: str) -> None:
    declared = f"{annotation} counter(2, CounterType.{units}) own;\n"
    use = "#define INGRESS_STAGE Own\ncontrol Own(inout headers_t hdr, inout metadata_t meta, "
    use += "inout standard_metadata_t standard_metadata) { apply { own.count(0); } }\n"
    source = tmp_path / "own.p4"
    source.write_text(MERGING[: MERGING.index("@absorbed")] + declared + use + '#include "include/switch.p4"\n')
    with pytest.raises(UserError) as error:
        accounts(compiled(Build(source)).p4info)
    assert told in str(error.value)
    assert "'own'" in str(error.value)
