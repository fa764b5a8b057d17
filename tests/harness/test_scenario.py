"""Scenarios: what is read is what was written, and every mistake is one line that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import scenario, workloads
from harness.experiment import plan, resolved
from harness.scenario import check, override, parse
from p4switch.errors import UserError, validate

MINIMAL = {
    "topology": {"name": "single-switch", "hosts": 3},
    "workload": {"name": "incast", "size_bytes": 1000},
}


@pytest.mark.parametrize("name", scenario.built_in())
def test_built_in_scenarios_are_valid_and_described(name: str) -> None:
    checked, folder = scenario.load(name)
    assert checked.title
    assert plan(name, checked, folder)


@pytest.mark.parametrize("name", ["incast", "hadoop", "allreduce"])
def test_the_resolved_scenario_reads_back_as_itself(name: str) -> None:
    checked, folder = scenario.load(name)
    run = plan(name, checked, folder)[0]
    again = check(parse(scenario.dump(resolved(run))))
    assert again == resolved(run)
    rerun = plan(name, again, folder)[0]
    assert rerun.traffic().flows == run.traffic().flows
    assert rerun.protocol.resolved() == run.protocol.resolved()
    assert rerun.program_parameters == run.program_parameters


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["topolgy.k=4"], "topolgy: no such key; did you mean 'topology'?"),
        (["switch.bufer_bytes=1"], "switch.bufer_bytes: no such key; did you mean 'buffer_bytes'?"),
        (["switch.pfc.alpah=1"], "switch.pfc.alpah: no such key; did you mean 'alpha'?"),
        (["nic.mtu_bytes=1"], "nic.mtu_bytes: should be greater than or equal to 64, got 1"),
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
        (["program=int", "cc=dcqcn"], "program 'int' does not fit protocol 'dcqcn'; expected 'ecn' or 'trim'"),
        (["program=router"], "no program 'router'"),
        (["x"], "--set x: expected KEY=VALUE"),
        (["workload.name.x=1"], "'name' is a value, not a table"),
    ],
)
def test_mistakes(settings: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        plan("test", check(override(MINIMAL, settings)), Path())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_overrides_take_toml_values_and_bare_words() -> None:
    tables = override(MINIMAL, ["topology.hosts=5", 'cc=["hpcc"]', "lb=ecmp", "framing=true", "limit_ns=2e6"])
    checked = check(tables)
    assert checked.topology["hosts"] == 5
    assert checked.cc == ["hpcc"]
    assert checked.lb == ["ecmp"]
    assert checked.framing_bytes == 24
    assert checked.limit_ns == 2_000_000
    assert MINIMAL["topology"]["hosts"] == 3


def test_every_combination_is_a_run() -> None:
    runs = plan("test", check({**MINIMAL, "cc": ["hpcc", "dcqcn", "hpcc"], "seeds": [1, 2]}), Path())
    assert [(run.protocol.name, run.seed) for run in runs] == [("hpcc", 1), ("hpcc", 2), ("dcqcn", 1), ("dcqcn", 2)]
    assert len({run.label for run in runs}) == 4


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
