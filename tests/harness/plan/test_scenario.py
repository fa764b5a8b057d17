"""Scenarios: writing and reading one changes no value, and each mistake gives one line that names the key."""

from __future__ import annotations

import dataclasses
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from control_plane import programs
from harness import workloads
from harness.plan import scenario
from harness.plan.headroom import headroom_bytes
from harness.plan.resolve import plan, resolved
from harness.plan.run import Run
from harness.plan.scenario import check, override, parse
from harness.workloads.base import MAX_FLOWS
from host_agents import registry
from p4cc.execution.batch import planned
from p4switch.errors import UserError, validate

SHORT_NS = 100_000
MINIMAL = {
    "topology": {"name": "single-switch", "hosts": 3},
    "workload": {"name": "incast", "size_bytes": 1000},
}


@pytest.mark.parametrize("name", scenario.built_in())
def test_built_in_scenarios_are_valid_and_described(name: str) -> None:
    """Random arrivals are generated for a short duration only, because generating them takes longest."""
    whole, folder = scenario.load(name)
    assert whole.title
    values = dict(whole.workload)
    workload = values.pop("name", None)  # of some, variants have it
    whole_ns = getattr(workload and workloads.parameters(workload).model_validate(values), "duration_ns", 0)
    short = [f"workload.duration_ns={SHORT_NS}"] if whole_ns > SHORT_NS else []
    runs = plan(name, scenario.load(name, short)[0], folder)
    assert runs
    for run in runs if short else []:
        assert run.scenario.workload["duration_ns"] == SHORT_NS
        assert len(run.traffic().flows) * whole_ns / SHORT_NS < 0.9 * MAX_FLOWS


@pytest.mark.parametrize("name", ["incast", "hadoop", "allreduce"])
def test_the_resolved_scenario_reads_back_as_itself(name: str) -> None:
    checked, folder = scenario.load(name)
    run = plan(name, checked, folder)[0]
    again = check(parse(scenario.dump(resolved(run))))
    assert again == resolved(run)
    rerun = plan(name, again, folder)[0]
    assert rerun.traffic().flows == run.traffic().flows
    assert rerun.protocol.resolved() == run.protocol.resolved()
    assert rerun.switch_programs == run.switch_programs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["topolgy.k=4"], "topolgy: no such key; did you mean 'topology'?"),
        (["hosts=4"], "--set hosts=4: no such key; did you mean 'topology.hosts'?"),
        (["switch.bufer_bytes=1"], "switch.bufer_bytes: no such key; did you mean 'buffer_bytes'?"),
        (["switch.pfc.alpah=1"], "switch.pfc.alpah: no such key; did you mean 'alpha'?"),
        (["nic.mtu_bytes=1"], "nic.mtu_bytes: should be greater than or equal to 64, got 1"),
        (["switch.latency_ns=4294967296"], "switch.latency_ns: should be less than 4294967296, got 4294967296"),
        (["switch.pfc.reaction_ns=5 s"], "switch.pfc.reaction_ns: should be less than 4294967296, got 5000000000"),
        (["nic.reliability=tcp"], "nic.reliability: should be 'go-back-n' or 'selective-repeat', got 'tcp'"),
        (["seeds=-1"], "seeds.0: should be greater than or equal to 0, got -1"),
        (["limit_ns=soon"], "limit_ns: should be a valid integer"),
        (["workload.senders=99"], "workload.senders: needs 100 hosts; topology 'single-switch' has 3"),
        (["workload.sender=1"], "workload.sender: no such key; did you mean 'senders'?"),
        (["workload.name=incest"], "no workload 'incest'; did you mean 'incast'?"),
        (["topology.name=ring"], "no topology 'ring'"),
        (["topology.hosts=1"], "topology.hosts: should be greater than or equal to 2, got 1"),
        (["cc=hpc"], "hpc"),
        (["lb=sprai"], "sprai"),
        (["protocols.hpcc.etta=1", "cc=hpcc"], "etta"),
        (["protocols.hpcc.eta=two", "cc=hpcc"], "eta"),
        (["programs.ecn.kmin=1", "cc=dcqcn"], "programs.ecn.kmin: no such key"),
        (
            ["program=int", "cc=dcqcn"],
            "program 'int' does not fit protocol 'dcqcn'; expected 'collective' or 'dart' or 'ecn' or 'ecn_int' "
            "or 'trim'",
        ),
        (["program=router"], "no program 'router'"),
        (
            ["cc=accurate", "protocols.accurate.period_ns=40000", "programs.accurate.period_ns=20000"],
            "protocols.accurate.period_ns: should be programs.accurate.period_ns, 20000, got 40000",
        ),
        (
            ["cc=sperc", "lb=spray"],
            "lb 'spray': chooses by packets; cc 'sperc' expects one that keeps a flow on its path",
        ),
        (
            ["cc=sperc", "switch.load_balancing=drill"],
            "switch.load_balancing 'drill': chooses by packets; cc 'sperc' expects one that keeps a flow on its path",
        ),
        (
            ["cc=accurate", "lb=spray"],
            "lb 'spray': chooses by packets; cc 'accurate' expects one that keeps a flow on its path",
        ),
        (
            ["cc=3cpo"],
            "cc '3cpo': is for collectives only, and workload 'incast' has none; "
            "expected a protocol for flows, or workload 'collectives'",
        ),
        (["cc=sperc", "nic.cc_scope=pair"], "cc_scope 'pair'"),
        (["cc=eqds", "nic.cc_scope=destination"], "cc_scope 'destination'"),
        (["switch.load_balancing=dril"], "switch.load_balancing: no load balancer 'dril'; did you mean 'drill'?"),
        (["switch.defines={2=1}"], "switch.defines"),
        (
            ["switch.loss=4e-7"],
            "switch.loss: rounds to no packet in a million; expected 0, or at least 1e-6",
        ),
        (["x"], "--set x: expected KEY=VALUE"),
        (["workload.name.x=1"], "'name' is a value, not a table"),
    ],
)
def test_mistakes(settings: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        plan("test", check(override(MINIMAL, settings)), Path())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_entries_of_lists_are_set_by_number() -> None:
    """Check that only the tables that the setting names change."""
    tables = {**MINIMAL, "groups": [{"name": "a", "priority": 1}, {"name": "b", "workload": {"name": "incast"}}]}
    before = deepcopy(tables)
    changed = override(tables, ["groups.1.workload.size_bytes=5", "groups.0.priority=2"])
    assert changed["groups"] == [
        {"name": "a", "priority": 2}, {"name": "b", "workload": {"name": "incast", "size_bytes": 5}}
    ]
    assert tables == before
    with pytest.raises(UserError, match=r"'groups' is a list without an entry '2'; expected 0 to 1"):
        override(tables, ["groups.2.priority=2"])
    with pytest.raises(UserError, match=r"'groups' is a list without an entry 'a'$"):
        override({**tables, "groups": []}, ["groups.a.priority=2"])


def test_a_path_may_be_too_long_for_a_protocols_packets() -> None:
    def planned(switches: int) -> None:
        row = {"name": "parking-lot", "switches": switches, "hosts_per_switch": 2}
        plan("test", check({**MINIMAL, "cc": "sperc", "topology": row}), Path())

    planned(6)
    with pytest.raises(UserError, match=r"^cc 'sperc': a path over 7 switches; expected at most 6$"):
        planned(7)


def test_what_protocols_and_programs_need_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names parameters that the other must have, too."""

    def planned(cc: str) -> None:
        plan("test", check(override(MINIMAL, [f"cc={cc}"])), Path())

    planned("dcqcn")
    monkeypatch.setattr(programs.program("ecn").parameters, "agrees", ("kmin_bytes",))
    with pytest.raises(UserError, match=r"^protocols\.dcqcn\.kmin_bytes: there is no such parameter; programs\.ecn\."):
        planned("dcqcn")
    monkeypatch.undo()
    needs_eta = dataclasses.replace(registry.protocols()["hpcc"], agrees=("eta",))
    monkeypatch.setattr(registry.KINDS["cc"], "get", lambda name: needs_eta)
    with pytest.raises(UserError, match=r"^programs\.int\.eta: there is no such parameter; protocols\.hpcc\.eta needs"):
        planned("hpcc")


def test_load_balancing_by_packet_in_the_switch_is_known_to_the_hosts() -> None:
    def run(*settings: str) -> Run:
        return plan("test", check(override(MINIMAL, ["cc=dcqcn", *settings])), Path())[0]

    assert (run().reliability, run().loss_packets) == ("go-back-n", 3)
    drill = run("switch.load_balancing=drill")
    assert (drill.reliability, drill.loss_packets) == ("selective-repeat", 0)
    defined = run("switch.load_balancing=drill", "switch.defines.INT_MAX_HOPS=4")
    assert dict(defined.build(defined.switch_programs[0]).defines) == {"LOAD_BALANCER": "drill", "INT_MAX_HOPS": "4"}


def test_overrides_take_toml_values_and_bare_words() -> None:
    tables = override(MINIMAL, ["topology.hosts=5", 'cc=["hpcc"]', "lb=ecmp", "framing=true", "limit_ns=2e6"])
    checked = check(tables)
    assert checked.topology["hosts"] == 5
    assert checked.cc == ["hpcc"]
    assert checked.lb == ["ecmp"]
    assert checked.framing_bytes == 24
    assert checked.limit_ns == 2_000_000
    assert MINIMAL["topology"]["hosts"] == 3


@pytest.mark.parametrize(
    ("settings", "title"),
    [
        ([], "Permutation of 2 MB flows on a k = 8 fat-tree"),
        (["limit_ns=2 ms", "seeds=[1, 2]"], "Permutation of 2 MB flows on a k = 8 fat-tree"),
        (["topology.k=4"], "permutation, with topology.k = 4"),
        (
            ["topology.k=4", "workload.size_bytes=20 KB", "switch.pfc.enabled=false"],
            "permutation, with topology.k = 4, workload.size_bytes = 20 KB, switch.pfc.enabled = false",
        ),
        (["topology.k=4", "title=smaller"], "smaller"),
    ],
)
def test_a_title_does_not_state_what_was_set_otherwise(settings: list[str], title: str) -> None:
    assert {run.scenario.title for run in planned(["permutation"], settings, {})} == {title}


def test_every_combination_is_a_run() -> None:
    runs = plan("test", check({**MINIMAL, "cc": ["hpcc", "dcqcn", "hpcc"], "seeds": [1, 2]}), Path())
    assert [(run.protocol.name, run.seed) for run in runs] == [("hpcc", 1), ("hpcc", 2), ("dcqcn", 1), ("dcqcn", 2)]
    assert len({run.label for run in runs}) == 4


def test_every_variant_is_run_in_every_combination() -> None:
    variants = [{"name": "as it is"}, {"name": "5 hosts: hpcc", "set": {"cc": "hpcc", "topology": {"hosts": 5}}}]
    runs = plan("test", check({**MINIMAL, "cc": ["hpcc", "dcqcn"], "seeds": [1, 2], "variants": variants}), Path())
    assert [run.variant for run in runs] == 2 * ["hpcc, as it is"] + 2 * ["dcqcn, as it is"] + 2 * ["5 hosts: hpcc"]
    assert [len(run.topology.hosts) for run in runs] == [3, 3, 3, 3, 5, 5]
    assert runs[-1].label == "test-5-hosts-hpcc-seed2"
    again = plan("test", check(scenario.parse(scenario.dump(resolved(runs[-1])))), Path())
    assert [(run.scenario.topology["hosts"], run.protocol.name, run.seed) for run in again] == [(5, "hpcc", 2)]
    for run in runs:
        (same,) = plan("test", check(scenario.parse(scenario.dump(resolved(run)))), Path())
        assert (same.variant, same.label) == (run.variant, run.label)


def test_link_events_find_their_links() -> None:
    topology = {"name": "leaf-spine", "spines": 1, "links_per_spine": 2}
    events: list[dict[str, Any]] = [
        {"time_ns": 5, "link": ["spine0", "leaf1"], "parallel": 1, "rate_fraction": 0.5},
        {"link": ["leaf0", "spine0"], "up": False},
    ]
    (run, *_) = plan("test", check({**MINIMAL, "topology": topology, "events": events}), Path())
    down, half = run.link_changes()  # in order of time
    assert (half.time_ns, half.up, half.rate_bps) == (5, None, 200_000_000_000)
    link = run.topology.links[half.link]
    assert ({link.a, link.b}, run.topology.links.index(link)) == ({"leaf1", "spine0"}, half.link)
    assert half.link == 1 + next(
        i for i, other in enumerate(run.topology.links) if {other.a, other.b} == {link.a, link.b}
    )
    assert (down.time_ns, down.up, down.rate_bps) == (0, False, None)


def test_a_rate_may_be_that_of_one_direction() -> None:
    events = [{"link": ["spine0", "leaf1"], "rate_fraction": 0.25, "towards": node} for node in ("leaf1", "spine0")]
    (run, *_) = plan("test", check({**MINIMAL, "topology": {"name": "leaf-spine"}, "events": events}), Path())
    down, up = run.link_changes()
    link = run.topology.links[down.link]
    assert down.link == up.link
    assert [(link.a, link.b)[change.direction or 0] for change in (down, up)] == ["spine0", "leaf1"]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"link": ["s0", "leaf1"], "up": False}, "events.0: there is no link s0 - leaf1 with number 0"),
        ({"link": ["s0"], "up": False}, "events.0.link"),
        ({"link": ["s0", "h0-0-2"]}, "events.0: should have at least one of up, rate_fraction, rate_bps"),
        ({"link": ["s0", "h0-0-2"], "rate_bps": 1e9, "rate_fraction": 2.0}, "either rate_fraction or rate_bps"),
        ({"link": ["s0", "h0-0-2"], "switch": "s0", "up": True}, "should have one of link, switch and host"),
        ({"up": True}, "should have one of link, switch and host"),
        ({"switch": "h0-0-2", "up": True}, "events.0.switch: topology 'single-switch' has none called 'h0-0-2'"),
        ({"host": "h0-0-22", "up": True}, "did you mean 'h0-0-2'?"),
        ({"link": ["s0", "h0-0-2"], "parallel": 1, "up": True}, "which has 1 between them"),
        ({"link": ["s0", "h0-0-2"], "up": True, "towards": "s0"}, "should name one of the link's ends, and go with"),
        ({"link": ["s0", "h0-0-2"], "rate_fraction": 0.5, "towards": "s1"}, "should name one of the link's ends"),
    ],
)
def test_mistaken_link_events(event: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        plan("test", check({**MINIMAL, "events": [event]}), Path())
    assert message in str(error.value)


def test_a_link_is_down_as_long_as_anything_has_it_down() -> None:
    topology = {"name": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    events: list[dict[str, Any]] = [
        {"time_ns": 10, "switch": "spine0", "up": False},
        {"time_ns": 20, "link": ["leaf0", "spine0"], "up": False},
        {"time_ns": 30, "switch": "spine0", "up": True},
        {"time_ns": 40, "link": ["leaf0", "spine0"], "up": True, "loss": 0.5, "delay_ns": 3},
        {"time_ns": 50, "host": "h0-0-2", "rate_bps": 5e9},
    ]
    (run, *_) = plan("test", check({**MINIMAL, "topology": topology, "events": events}), Path())
    links = run.topology.links
    (one, other) = (i for i, link in enumerate(links) if "spine0" in (link.a, link.b))
    (own,) = (i for i, link in enumerate(links) if "h0-0-2" in (link.a, link.b))
    assert {links[one].a, links[one].b} == {"leaf0", "spine0"}
    assert [(c.time_ns, c.link, c.up, c.rate_bps, c.delay_ns, c.loss) for c in run.link_changes()] == [
        (10, one, False, None, None, None),
        (10, other, False, None, None, None),
        (30, other, True, None, None, None),
        (40, one, True, None, 3, 0.5),
        (50, own, None, 5 * 10**9, None, None),
    ]
    assert run.shortest_delay_ns == 3


def test_files_that_are_no_scenarios(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("topology = [")
    with pytest.raises(UserError, match="not a TOML file"):
        scenario.load(str(bad))
    with pytest.raises(UserError, match="no scenario file"):
        scenario.load(str(tmp_path / "none.toml"))
    with pytest.raises(UserError, match="did you mean 'incast'"):
        scenario.load("incats")


def test_a_workload_builds_from_its_defaults_or_says_what_is_missing() -> None:
    for name in workloads.names():
        model = workloads.parameters(name)
        required = [key for key, field in model.model_fields.items() if field.is_required()]
        if not required:
            validate(model, {}, "workload")
            continue
        with pytest.raises(UserError, match=rf"workload\.{required[0]}: missing"):
            validate(model, {}, "workload")


@pytest.mark.parametrize("text", [f"a = {'[' * 100_000}{']' * 100_000}", f"[{'.'.join(['a'] * 20_000)}]"])
def test_what_is_nested_too_deeply_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text)
    with pytest.raises(UserError, match=r"deep\.toml: not a TOML file: tables and lists are nested too deeply$"):
        scenario.read(tmp_path / "deep.toml")


def test_links_may_charge_flits_alone() -> None:
    checked = check({**MINIMAL, "framing": "flits"})
    assert [checked.link_bytes(frame) for frame in (58, 74, 202)] == [16, 16, 144]
    assert check({**MINIMAL, "framing": True}).link_bytes(74) == 98
    with pytest.raises(UserError, match="framing"):
        check({**MINIMAL, "framing": "cells"})


def test_a_mistake_in_the_only_item_of_a_list_is_the_only_one_told() -> None:
    workload = {"name": "collectives", "applications": [{"operations": 1, "operator": "mul"}]}
    with pytest.raises(UserError, match=r"^workload\.applications\.0\.operator: should be 'sum', .* got 'mul'$"):
        plan("test", check({**MINIMAL, "cc": ["3cpo"], "workload": workload}), Path())
    with pytest.raises(UserError, match=r"^workload\.applications: .* at least 1 item"):
        plan("test", check({**MINIMAL, "cc": ["3cpo"], "workload": {**workload, "applications": []}}), Path())


def test_headroom_counts_a_frame_as_often_as_it_is_copied() -> None:
    tables = {"topology": {"name": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}, "cc": ["none"]}
    sizes = {}
    for workload, cc in (
        ({"name": "incast", "size_bytes": 1000}, "none"),
        ({"name": "multicast", "size_bytes": 1000}, "none"),
        ({"name": "collectives", "applications": [{"operations": 1}]}, "collective-none"),
    ):
        run = plan("test", check({**tables, "workload": workload, "cc": [cc]}), Path())[0]
        there = run.topology.ports["leaf0"][1]
        sizes[workload["name"]] = [headroom_bytes(run, switch, there) for switch in ("leaf0", "leaf1", "spine1")]
    plain = sizes["incast"][0]
    assert sizes == {
        "incast": [plain] * 3,
        "multicast": [4 * plain, 4 * plain, plain],
        "collectives": [4 * plain, 4 * plain, 2 * plain],
    }
    flits = plan("test", check({**tables, "workload": MINIMAL["workload"], "framing": "flits"}), Path())[0]
    there = flits.topology.ports["leaf0"][1]
    frames = 4 * flits.data_bytes
    assert headroom_bytes(flits, "leaf0", there) - frames == int((plain - frames) * 74 / 16)


@pytest.mark.parametrize(
    ("name", "told"),
    [("permutatoin", r"; did you mean 'permutation'\?$"), ("?", r"; expected one of .*, or a \.toml file$")],
)
def test_a_scenario_that_is_not_there(name: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        scenario.find(name)


def test_a_scenario_whose_groups_say_their_cc_is_run_once() -> None:
    groups = [
        {"name": "bulk", "cc": "hpcc", "workload": {"name": "permutation"}},
        {"name": "incast", "cc": "dcqcn", "workload": {"name": "incast"}},
    ]
    raw: dict[str, Any] = {"topology": {"name": "fat-tree"}, "workload": {"name": "none"}, "groups": groups}
    assert check(raw).cc == ["hpcc"]
    assert check({**raw, "cc": "swift"}).cc == ["swift"]
    more = [*groups, {"name": "third", "workload": {"name": "incast"}}]
    assert check({**raw, "groups": more}).cc == ["dcqcn", "hpcc"]
    assert check({**raw, "workload": {"name": "incast"}}).cc == ["dcqcn", "hpcc"]
