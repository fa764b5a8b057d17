"""A user's own protocol that raises, has a misspelt method or an invalid value: the error names it and the place."""

from __future__ import annotations

import math
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CodeError, passed_on
from harness.plan.resolve import plan_tables
from host_agents import registry
from host_agents.cc.base import Path as NetworkPath
from host_agents.cc.base import ReactionPoint
from host_agents.cc.composite import CompositeReactionPoint
from host_agents.errors import HostError, LimitError
from p4switch.errors import UserError
from tests.e2e import runs

CODE = """\
from dataclasses import dataclass
from p4cc.cc import ProtocolInfo, ReactionPoint, register

@dataclass(frozen=True)
class Parameters:
    pass

class Mine(ReactionPoint):
    def on_ack(self, feedback):
        {body}
{more}
register(ProtocolInfo(name="{name}", summary="x", source="x", program="{program}", parameters=Parameters,
    reaction_point=lambda parameters, mechanisms, path: Mine(path){options}))
"""


def file_of(
    folder: Path, name: str, body: str = "pass", more: str = "", program: str = "ecn", options: str = ""
) -> str:
    file = folder / f"{name}.py"
    file.write_text(CODE.format(name=name, body=body, more=more, program=program, options=options))
    return str(file)


def tables(cc: str) -> dict[str, Any]:
    return {
        "cc": cc,
        "topology": {"name": "single-switch", "hosts": 3},
        "workload": {"name": "incast", "senders": 2, "size_bytes": 20_000},
    }


def p4cc(*arguments: str, native: bool = True) -> tuple[int, str]:
    done = runs.forked(*arguments) if native else runs.p4cc(*arguments, env={**os.environ, "P4CC_NATIVE": "0"})
    return done.returncode, done.stderr


SCENARIO = ("incast-star", "--set", "topology.hosts=4", "--set", "workload.senders=3", "--no-report")


@pytest.mark.parametrize("options", [("--workers", "1"), ("--workers", "2"), ("--workers", "1", "--debug")])
def test_what_a_protocol_raises_says_who_where_and_when(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = file_of(tmp_path, "divides", "self.set_window(1000 / (feedback.order - feedback.order))")
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--out", str(tmp_path / "out"), *options)
    assert status == 1
    assert re.search(
        rf"protocol 'divides' of {re.escape(file)} raised at host h0-0-\d, flow \d, "
        r"after \d+\.\d{3} us of model time:\n"
        rf'  File "{re.escape(file)}", line 10, in on_ack\n'
        r"    self\.set_window\(.*\)\nZeroDivisionError: .*division by zero",
        told,
    ), told
    assert ("Traceback (most recent call last)" in told) == ("--debug" in options)
    assert len(told.splitlines()) < 10 or "--debug" in options
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "call", ["set_window(float('nan'))", "set_window(-5)", "set_rate(float('inf'))", "set_rate(-1)"]
)
def test_what_cannot_be_a_rate_or_a_window_is_named(tmp_path: Path, call: str) -> None:
    file = file_of(tmp_path, "asks", f"self.{call}")
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--out", str(tmp_path / "out"))
    assert status == 1
    assert "raised at host h0-0-" in told
    assert f"    self.{call}\n" in told
    assert "HostError: set_" in told
    assert ": expected " in told


@pytest.mark.parametrize("rate_bps", [math.nan, -1.0, 0.0, math.inf, -math.inf])
def test_a_rate_is_a_number_above_0(rate_bps: float) -> None:
    point = ReactionPoint(NetworkPath(1e9, 10_000, 1000, 1058, 80))
    with pytest.raises(HostError, match=r"^set_rate\("):
        point.set_rate(rate_bps)
    assert point.rate_bps == 1e9


@pytest.mark.parametrize("window_bytes", [math.nan, -1.0, -math.inf])
def test_a_window_is_a_number_from_0_on(window_bytes: float) -> None:
    point = ReactionPoint(NetworkPath(1e9, 10_000, 1000, 1058, 80))
    with pytest.raises(HostError, match=r"^set_window\("):
        point.set_window(window_bytes)
    point.set_window(0.0)
    point.set_window(math.inf)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("on_akc", "Mine.on_akc is not a method that a NIC calls; did you mean 'on_ack'?"),
        ("on_data", "Mine.on_data is not a method that a NIC calls"),  # that is a receiver's
        ("on_something_else", "Mine.on_something_else is not a method that a NIC calls; expected one of on_"),
    ],
)
def test_a_method_that_nobody_calls_is_named_when_planned(tmp_path: Path, name: str, message: str) -> None:
    file = file_of(tmp_path, f"hook_{name}", more=f"    def {name}(self, feedback):\n        pass\n")
    with pytest.raises(UserError) as refused:
        plan_tables("test", tables(file), Path())
    assert message in str(refused.value)
    assert file in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("def on_ack(self): pass", "Mine.on_ack(self); expected on_ack(self, feedback)"),
        ("def on_cnp(self, now_ns, more): pass", "Mine.on_cnp(self, now_ns, more); expected on_cnp(self, now_ns)"),
        ("def on_sent(self, now_ns, *, wire_bytes): pass",
         "Mine.on_sent(self, now_ns, *, wire_bytes); expected on_sent(self, now_ns, wire_bytes)"),
        ("def may_send(self) -> bool: return True", "Mine.may_send(self); expected may_send(self, inflight_bytes)"),
        ("def set_rate(self): pass", "Mine.set_rate(self); expected set_rate(self, rate_bps)"),
        ("on_post = 3", "Mine.on_post is not a method; expected on_post(self, now_ns)"),
        ("async def on_post(self, now_ns): pass", "Mine.on_post is asynchronous, or yields"),
        ("def on_post(self, now_ns): yield", "Mine.on_post is asynchronous, or yields"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("native", [False, True])
def test_a_method_that_a_nic_cannot_call_is_named_when_planned(
    tmp_path: Path, more: str, message: str, native: bool
) -> None:
    """Compiled hosts report the same errors of methods as interpreted ones."""
    file = file_of(tmp_path, "called", more=f"    {more}\n")
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--dry-run", native=native)
    assert status == 2
    (line,) = told.splitlines()
    assert file in line
    assert message in line


def test_a_method_may_take_more_than_a_nic_gives(tmp_path: Path) -> None:
    more = """
    def on_cnp(self, time_ns, more=3, *rest, **named):
        pass
    on_post = staticmethod(lambda now_ns: None)
    on_start = classmethod(lambda cls, now_ns: None)
"""
    plan_tables("test", tables(file_of(tmp_path, "wide", more=more)), Path())


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("value", ["float('nan')", "-5.0", "-float('inf')"])
@pytest.mark.parametrize("what", ["rate_bps", "window_bytes"])
def test_what_cannot_be_a_rate_or_a_window_is_named_where_it_is_assigned(
    tmp_path: Path, what: str, value: str, native: bool
) -> None:
    file = file_of(tmp_path, "assigns", f"self.{what} = {value}")
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--out", str(tmp_path / "out"), native=native)
    assert status == 1
    first, last, debug = told.splitlines()[-3:]
    assert re.search(r"protocol 'assigns' of .* raised at host h0-0-\d, flow \d, after", first)
    assert re.fullmatch(rf".*LimitError: Mine\.{what} = (nan|-5\.0|-inf): expected .*", last)
    assert "--debug" in debug


@pytest.mark.parametrize(("assigned", "held"), [("rate_bps = 0.0", True), ("window_bytes = float('inf')", False)])
def test_what_is_assigned_is_held_to_what_is_set(tmp_path: Path, assigned: str, held: bool) -> None:
    file = file_of(tmp_path, "holds", f"self.{assigned}")
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--out", str(tmp_path / "out"), native=False)
    assert (status, "LimitError" in told) == (int(held), held), told


def test_a_part_of_a_protocol_is_held_to_it_too(tmp_path: Path) -> None:
    """Otherwise a window that is not a number would be the smaller of two."""
    point = ReactionPoint(NetworkPath(1e9, 10_000, 1000, 1058, 80))
    whole = CompositeReactionPoint(point.path, [point])
    for what, value in (("window_bytes", math.nan), ("window_bytes", -1.0), ("rate_bps", math.nan), ("rate_bps", 0.0)):
        before = getattr(point, what)
        setattr(point, what, value)
        with pytest.raises(LimitError, match=rf"ReactionPoint.{what} = "):
            whole.follow()
        setattr(point, what, before)
    assert pickle.loads(pickle.dumps(LimitError("told", point))).args == ("told",)


@pytest.mark.parametrize("body", ["raise SystemExit", "raise SystemExit(0)", "import sys; sys.exit('done')"])
def test_a_protocol_that_exits_has_raised(tmp_path: Path, body: str) -> None:
    """Otherwise its status would be the command's, without results and without a message."""
    file = file_of(tmp_path, "exits", body)
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--out", str(tmp_path / "out"), native=False)
    assert status == 1
    assert "protocol 'exits' of " in told
    assert "SystemExit" in told
    file = file_of(tmp_path, "leaves")
    Path(file).write_text(Path(file).read_text().replace("Mine(path)", "exit(0)"))
    status, told = p4cc("run", *SCENARIO, "--cc", file, "--out", str(tmp_path / "out"), native=False)
    assert status == 2
    assert "does not fit: " in told


def test_methods_of_its_own_have_other_names(tmp_path: Path) -> None:
    more = "    def _on_loss(self):\n        pass\n    def on_timer(self, now_ns, timer):\n        pass\n"
    plan_tables("test", tables(file_of(tmp_path, "helpers", more=more)), Path())


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        ("int", "", "program 'int' writes telemetry into the INT shim of data packets, and they have none"),
        ("ecn", ", telemetry=True", "telemetry=True, and program 'ecn' writes none; expected program='int'"),
    ],
)
def test_telemetry_is_of_both_or_of_none(tmp_path: Path, program: str, options: str, message: str) -> None:
    file = file_of(tmp_path, f"shim_{program}", program=program, options=options)
    with pytest.raises(UserError) as refused:
        plan_tables("test", tables(file), Path())
    assert message in str(refused.value)


def test_every_protocol_that_comes_with_p4cc_is_of_one_mind_with_its_program() -> None:
    for name, info in registry.protocols().items():
        if info.injection is None and not registry.KINDS["cc"].origin(name):
            plan_tables("test", tables(name), Path())


def test_it_comes_through_other_processes_as_it_is() -> None:
    error = pickle.loads(pickle.dumps(passed_on(CodeError("told\nlast", "whole"))))
    assert isinstance(error, CodeError)
    assert (str(error), error.whole) == ("told\nlast", "whole")
