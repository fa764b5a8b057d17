"""A protocol's need is the default if the scenario has no value, and an error if it has another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness.plan.portable import PortableRun
from harness.plan.resolve import plan, plan_tables, resolved
from harness.plan.run import Run
from harness.plan.scenario import check, dump, parse
from host_agents import registry
from p4cc.reference.keys import all_keys
from p4switch.errors import UserError
from p4switch.tables import Table

FAT_TREE = {"name": "fat-tree", "k": 4}


def planned(cc: str = "dcqcn", **tables: Any) -> Run:
    wanted = {"cc": [cc], "topology": FAT_TREE, "workload": {"name": "permutation"}, **tables}
    return plan_tables("test", wanted, Path())[0]


def test_credits_take_the_path_of_data_where_the_scenario_says_nothing_of_it() -> None:
    run = planned("expresspass")
    assert run.switch_programs[0].load_balancer.name == "symmetric"
    assert resolved(run).switch.load_balancing == "symmetric"
    assert PortableRun.of(run).run().switch_programs[0].load_balancer.name == "symmetric"
    assert planned("dcqcn").switch_programs[0].load_balancer.name == "ecmp"
    with pytest.raises(UserError, match=r"^switch\.load_balancing: 'ecmp' sends answers"):
        planned("expresspass", switch={"load_balancing": "ecmp"})


def test_each_protocol_of_a_scenario_has_its_own_need() -> None:
    runs = plan_tables(
        "test",
        {"cc": ["dcqcn", "expresspass"], "topology": FAT_TREE, "workload": {"name": "permutation"}},
        Path(),
    )
    assert [run.switch_programs[0].load_balancer.name for run in runs] == ["ecmp", "symmetric"]


@pytest.mark.parametrize("side", ["protocols", "programs"])
def test_what_both_must_have_follows_the_one_that_is_given(side: str) -> None:
    """With `accurate`, hosts and switches have the same period."""
    run = planned("accurate", **{side: {"accurate": {"period_ns": 40_000}}})
    assert run.protocol.parameters.period_ns == 40_000
    assert run.switch_programs[0].parameters.model_dump()["period_ns"] == 40_000
    assert PortableRun.of(run).run().protocol.parameters.period_ns == 40_000


def test_two_that_are_given_have_to_be_equal() -> None:
    given = {"protocols": {"accurate": {"period_ns": 40_000}}, "programs": {"accurate": {"period_ns": 20_000}}}
    with pytest.raises(UserError, match=r"^protocols\.accurate\.period_ns: should be programs\.accurate\.period_ns"):
        planned("accurate", **given)


def test_a_protocol_that_can_do_with_selective_repeat_alone_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = dataclasses.replace(registry.protocols()["dcqcn"], reliabilities=("selective-repeat",))
    monkeypatch.setattr(registry.KINDS["cc"], "get", lambda name: one)
    assert planned().reliability == "selective-repeat"
    with pytest.raises(UserError, match="dcqcn: reliability 'go-back-n': expected one of: selective-repeat"):
        planned(nic={"reliability": "go-back-n"})


def test_hosts_and_switches_are_for_the_lanes_of_the_program() -> None:
    run = planned("dart", programs={"dart": {"lane_priorities": [4, 6], "threshold_bytes": 0}})
    nic, switch = run.scenario.nic, run.scenario.switch
    assert (nic.data_priority, nic.control_priority) == (4, 7)
    assert (switch.classes, switch.equal_priorities, switch.pfc.priorities) == ("oldest", (4, 6), (4, 6))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"nic": {"data_priority": 4}}, "should begin with nic.data_priority, 4, got 3"),
        ({"nic": {"control_priority": 4}}, "4 is nic.control_priority"),
        ({"switch": {"classes": "strict"}}, "switch.classes: should be 'oldest' for the lanes of"),
        ({"switch": {"equal_priorities": [1, 3]}}, "switch.equal_priorities: should have all of"),
        ({"switch": {"pfc": {"priorities": [3]}}}, "switch.pfc.priorities: should have all of"),
    ],
)
def test_what_is_written_against_lanes_is_refused(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        planned("dart", **tables)
    assert message in str(refused.value)


def test_a_switch_without_a_limit_loses_nothing_and_pauses_nobody() -> None:
    run = planned(switch={"buffer_bytes": "none"})
    assert run.scenario.switch.buffer_bytes is None
    assert not run.scenario.switch.pfc.enabled
    with pytest.raises(UserError, match=r"^switch\.buffer_bytes: missing; PFC needs a shared buffer"):
        planned(switch={"buffer_bytes": "none", "pfc": {"enabled": True}})


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"switch": {"buffer_bytes": "none"}}, "buffer_bytes"),
        ({"programs": {"ecn": {"reference_rate_bps": "none"}}}, "reference_rate_bps"),
    ],
)
def test_no_value_is_written_down_where_the_default_is_one(tables: dict[str, Any], key: str) -> None:
    """A run's written scenario makes the same run."""
    text = dump(resolved(planned(**tables)))
    assert f'{key} = "none"' in text
    again = plan("test", check(parse(text)), Path())[0]
    assert dump(resolved(again)) == text


def _kinds(model: type[Table]) -> Iterator[type[Table]]:
    for kind in model.__subclasses__():
        yield kind
        yield from _kinds(kind)


def test_none_is_accepted_for_each_key_that_may_be_without_a_value() -> None:
    all_keys()  # imports every model that a scenario's tables are checked by
    for kind in _kinds(Table):
        for name in kind.model_fields:
            told = kind.model_json_schema()["properties"].get(name, {})
            choices = [value for one in told.get("anyOf", ()) for value in one.get("enum", ())]
            if not any(one.get("type") == "null" for one in told.get("anyOf", ())) or "none" in choices:
                continue
            assert name not in _wrong(kind, {name: "none"}), (kind, name)


def _wrong(kind: type[Table], values: dict[str, Any]) -> set[Any]:
    try:
        kind.model_validate(values)
    except ValidationError as error:
        return {one["loc"][0] for one in error.errors() if one["loc"]}
    return set()
