"""Programs of single switches: the switches that an entry selects, and how a plan checks and keeps them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import topologies
from harness.plan.portable import PortableRun
from harness.plan.resolve import plan, resolved
from harness.plan.run import Run
from harness.plan.scenario import anchored, check, dump, override, parse
from harness.plan.switch_programs import selected
from p4switch.architectures.front_panel import PIPE_PORT_BITS
from p4switch.architectures.tna import TNA
from p4switch.errors import UserError

EXAMPLE = Path(__file__).parents[3] / "examples" / "tofino"
LEAF_SPINE = {"name": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}


def planned(*switches: dict[str, Any], **tables: Any) -> Run:
    given = {
        "cc": "dcqcn",
        "topology": LEAF_SPINE,
        "workload": {"name": "incast", "senders": 2, "size_bytes": 1000},
        "switches": list(switches),
        **tables,
    }
    return plan("x", check(given), EXAMPLE)[0]


def names(run: Run) -> dict[str, str]:
    return {name: pipe.program.name for name, pipe in run.pipes.items()}


@pytest.mark.parametrize(
    ("topology", "group", "some"),
    [
        ({"name": "fat-tree", "k": 4}, {"tier": "tor"}, "tor0-0"),
        ({"name": "fat-tree", "k": 4}, {"tier": "aggregation"}, "agg0-0"),
        ({"name": "fat-tree", "k": 4}, {"tier": "spine"}, "spine0"),
        ({"name": "fat-tree", "k": 4}, {"tier": 2}, "spine0"),
        (LEAF_SPINE, {"tier": "spine"}, "spine0"),
        ({"name": "single-switch", "hosts": 2}, {"tier": "tor"}, "s0"),
    ],
)
def test_a_tier_has_a_number_and_a_name(topology: dict[str, Any], group: dict[str, Any], some: str) -> None:
    network = topologies.build(topology["name"], {key: value for key, value in topology.items() if key != "name"})
    tables = {"topology": topology, "workload": {"name": "none"}, "switches": [{"program": "ecn", **group}]}
    found = selected(check(tables), network)[0]
    (tier,) = {network.switch_by_name[name].tier for name in found}
    assert some in found
    assert tuple(found) == tuple(switch.name for switch in network.switches if switch.tier == tier)


def test_every_switch_has_the_last_entry_that_selects_it() -> None:
    every, first = {"names": ["leaf*", "spine0"], "program": "ecn_int"}, {"names": ["leaf0"], "program": "step.p4"}
    run = planned(every, first)
    assert names(run) == {"spine1": "ecn", "spine0": "ecn_int", "leaf1": "ecn_int", "leaf0": "step"}
    assert [each.place for each in run.switch_programs] == [None, 0, 1]


def test_names_and_a_tier_both_hold() -> None:
    assert names(planned({"names": ["*1"], "tier": "tor", "program": "ecn_int"}))["spine1"] == "ecn"


def test_one_program_of_all_switches_is_the_scenarios_own() -> None:
    (of_all,) = planned().switch_programs
    assert (of_all.place, of_all.switches) == (None, ("spine0", "spine1", "leaf0", "leaf1"))
    (of_all,) = planned({"names": ["*"], "program": "ecn_int"}).switch_programs
    assert (of_all.place, of_all.name) == (0, "ecn_int")
    with pytest.raises(UserError, match=r"^program: entries of switches select all switches; expected no program"):
        planned({"names": ["*"], "program": "ecn_int"}, program="ecn")


@pytest.mark.parametrize(
    ("switches", "error"),
    [
        ([{"names": ["tor*"]}], r"^switches\.0: topology 'leaf-spine' has no such switch; it has, for example, 'leaf0' "
         r"in tier 0 \('tor'\), 'spine0' in tier 1 \('spine'\)$"),
        ([{"tier": "aggregation"}], r"^switches\.0: topology 'leaf-spine' has no such switch"),
        ([{"tier": 0}, {"names": ["leaf*"]}], r"^switches\.0: later entries select all of its switches; expected some"),
        ([{}], r"^switches\.0: should have names or tier"),
        ([{"tier": 0, "program": "nope.p4"}], r"^switches\.0\.program: no P4 program '.*nope\.p4'$"),
        ([{"tier": 0, "program": "int"}], r"^switches\.0: program 'int' does not fit protocol 'dcqcn'; expected "),
        ([{"tier": 0, "parameters": {"kmin": 1}}], r"^switches\.0\.parameters\.kmin: no such key"),
        ([{"tier": 0, "architecture": "x"}], r"^switches\.0\.architecture: no architecture 'x'; expected one of"),
        ([{"tier": 0, "architecture": "psa"}], r"^switches\.0\.architecture: program 'ecn' is not written for 'psa'"),
        ([{"tier": 0, "load_balancing": "x"}], r"^switches\.0\.load_balancing: no load balancer 'x'"),
        ([{"tier": 0, "load_balancing": "valiant"}], r"^switches\.0\.load_balancing: 'valiant' sends packets through"),
        ([{"tier": 0, "loopback": {"ports": [2]}}], r"^switches\.0\.loopback\.ports: port 2 of 'leaf0' leads to"),
        ([{"tier": 0, "in_pipes": [1]}], r"^switches\.0\.in_pipes: pipe 1 of 'leaf0', which has 1 pipe; expected"),
        ([{"tier": 0, "pipes": 2}], r"^switches: 'leaf0' has 2 pipes, and program 'ecn' is not for a chip; expected"),
        ([{"tier": 0, "pipes": 2, "in_pipes": [1], "program": "step.p4"}],
         r"^switches: pipes 0 and 1 of 'leaf0' have programs for v1model and tna; expected one architecture"),
        ([{"tier": 0, "pipes": 5}], r"^switches\.0\.pipes: "),
    ],
)  # fmt: skip
def test_a_mistake_names_the_entry(switches: list[dict[str, Any]], error: str) -> None:
    with pytest.raises(UserError, match=error):
        planned(*({"program": "ecn", **each} for each in switches))


def test_ports_are_divided_among_pipes() -> None:
    run = planned({"tier": "tor", "program": "step.p4", "pipes": 2}, topology={**LEAF_SPINE, "hosts_per_leaf": 3})
    assert sorted(run.topology.ports["leaf0"]) == [1, 2, 3, 128, 129]
    assert [(pipe.name, pipe.number) for pipe in run.pipes.values() if pipe.switch == "leaf0"] == [
        ("leaf0.pipe0", 0),
        ("leaf0.pipe1", 1),
    ]


@pytest.mark.parametrize(
    ("ports", "pipes", "without", "of_pipes"),
    [(5, 4, (), [2, 1, 1, 1]), (122, 2, range(1, 5), [59, 63]), (124, 2, range(129, 132), [63, 61])],
)
def test_ports_are_divided_evenly_as_far_as_pipes_have_them(
    ports: int, pipes: int, without: Collection[int], of_pipes: list[int]
) -> None:
    assert TNA.front_panel is not None
    divided = TNA.front_panel.divided_ports(ports, pipes, without)
    assert [sum(port >> PIPE_PORT_BITS == pipe for port in divided) for pipe in range(pipes)] == of_pipes


def test_a_pipe_whose_ports_all_lead_back_has_no_links() -> None:
    run = planned({
        "tier": "tor", "program": "step.p4", "pipes": 3, "loopback": {"ports": list(range(128, 192))},
    })  # fmt: skip
    assert sorted(run.topology.ports["leaf0"]) == [1, 2, 256, 257]


def test_entries_select_pipes() -> None:
    first = {"names": ["leaf0"], "program": "step.p4", "pipes": 3, "architecture": "tna"}
    run = planned(first, {"names": ["leaf*"], "program": "ecn", "in_pipes": [0], "architecture": "tna"})
    assert [names(run)[f"leaf0.pipe{pipe}"] for pipe in range(3)] == ["ecn", "step", "step"]
    assert names(run)["leaf1"] == "ecn"
    (again,) = plan("x", check(parse(dump(resolved(run)))), EXAMPLE)
    assert again.pipes.keys() == run.pipes.keys()
    assert names(again) == names(run)


def test_an_entry_has_parameters_on_top_of_those_of_its_program() -> None:
    leaves = {"tier": "tor", "program": "ecn", "parameters": {"kmin_bytes": 7}}
    run = planned(leaves, programs={"ecn": {"kmin_bytes": 5, "kmax_bytes": 9}})
    values = {name: pipe.program.parameters.model_dump() for name, pipe in run.pipes.items()}
    assert {name: (each["kmin_bytes"], each["kmax_bytes"]) for name, each in values.items()} == {
        "spine0": (5, 9), "spine1": (5, 9), "leaf0": (7, 9), "leaf1": (7, 9)
    }  # fmt: skip


def test_an_entry_inherits_what_it_does_not_set() -> None:
    own = {"tier": "spine", "program": "ecn", "load_balancing": "ecmp", "defines": {"B": 2}}
    run = planned(own, switch={"architecture": "tna", "load_balancing": "symmetric", "defines": {"A": 1}})
    leaf, spine = run.pipes["leaf0"].program, run.pipes["spine0"].program
    assert (leaf.architecture, leaf.load_balancer.name, leaf.defines) == ("tna", "symmetric", {"A": 1})
    assert (spine.architecture, spine.load_balancer.name, spine.defines) == ("tna", "ecmp", {"B": 2})
    assert dict(run.build(spine).defines) == {"B": "2"}


def test_ports_are_numbered_by_the_architecture_of_each_switch() -> None:
    chip = {"tier": "tor", "program": "ecn", "architecture": "t2na", "loopback": {"ports": [9]}}
    ports = planned(chip).topology.ports
    assert sorted(ports["leaf0"]) == [8, 10, 11, 12]
    assert sorted(ports["spine0"]) == [1, 2]


def test_a_run_is_the_same_from_its_resolved_scenario_and_in_another_process() -> None:
    own = {"tier": "tor", "program": "step.p4", "parameters": {"threshold_bytes": 8000}, "loopback": {"ports": [68]}}
    run = planned(own, {"names": ["spine1"], "program": "ecn_int", "architecture": "t2na"})
    (again,) = plan("x", check(parse(dump(resolved(run)))), Path("/"))
    for other in (again, PortableRun.of(run).run()):
        assert other.switch_programs == run.switch_programs
        assert list(map(other.build, other.switch_programs)) == list(map(run.build, run.switch_programs))
    assert resolved(again) == resolved(run)


def test_paths_of_programs_are_relative_to_the_file_or_the_working_directory() -> None:
    tables = {"switches": [{"program": "a.p4", "load_balancing": "b.p4"}, {"program": "ecn"}]}
    assert anchored(tables, Path("/x"))["switches"] == [
        {"program": "/x/a.p4", "load_balancing": "/x/b.p4"}, {"program": "ecn"}
    ]  # fmt: skip
    assert override(tables, ["switches.1.program=c.p4"])["switches"][1]["program"] == str(Path.cwd() / "c.p4")


def test_programs_have_to_agree_where_packets_and_hosts_see_it() -> None:
    trims = {"tier": 0, "program": "trim", "parameters": {"trim_last_hop_dscp": 50}}
    protocol = {"cc": "smartt", "switch": {"pfc": {"enabled": False}}}
    run = planned(trims, **protocol)
    assert run.nic_config(run.topology.hosts[0]).last_hop_dscp == 50
    with pytest.raises(UserError, match=r"^switches: trimmed packets have DSCP 51 by 'trim' and 50 by 'trim' at"):
        planned(trims, programs={"trim": {"trim_last_hop_dscp": 51}}, **protocol)
    lanes = {"tier": 0, "program": "dart", "parameters": {"lane_priorities": [3, 5]}}
    with pytest.raises(UserError, match=r"^switches: packets change between the priorities"):
        planned(lanes, cc="dart")


def test_a_probe_reads_the_switches_whose_program_has_it() -> None:
    leaves = {"tier": "tor", "program": "step.p4"}
    probe = {"kind": "counter", "reads": "marked", "name": "marks"}
    assert [each.name for each in planned(leaves, record={"probes": [probe]}).probes] == ["marks", "program_state"]
    with pytest.raises(UserError, match=r"^record\.probes: 'marks': program 'ecn' has no counter 'marked'"):
        planned(leaves, record={"probes": [{**probe, "switches": "spine*"}]})
    with pytest.raises(UserError, match=r"^record\.probes: 'marks': switches: topology 'leaf-spine' has no switch 'x'"):
        planned(leaves, record={"probes": [{**probe, "switches": "x"}]})
