"""Messages of log_msg and asserts of programs, in packet tests and in runs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.measure.results import files
from harness.worlds.virtual import VirtualWorld
from p4cc.execution.batch import planned
from p4switch.compiler import compile_program
from p4switch.engine import build, build_traced, load
from p4switch.stf import StfError, run_folder
from p4switch.stf.many import run_test
from tests.p4switch.daemon.test_process import TALKING

PASSES = "packet 0 07\nexpect 2 07\n"
FAILS = PASSES + "packet 0 09\nexpect 2 09\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "talking.p4"
    path.write_text(TALKING)
    return path


@pytest.mark.parametrize("trace", [False, True])
def test_a_switch_keeps_what_its_program_says(program: Path, trace: bool) -> None:
    compiled = compile_program(program).program
    switch = load().Switch(str(build_traced(compiled).library if trace else build(compiled)))
    place = f"{program}:14: assert(h.h.a != 9)"
    switch.process(0, b"\7")
    assert (switch.failed_asserts, switch.failed_assert) == (0, None)
    assert switch.process(0, b"\x09") == [(2, b"\x09")]
    assert switch.said() == ([(False, "a is 7"), (False, "a is 9"), (True, place)], 0)
    assert switch.said() == ([], 0)
    assert (switch.failed_asserts, switch.failed_assert) == (1, place)
    switch.reset()
    assert (switch.failed_asserts, switch.failed_assert) == (0, None)


def test_what_nobody_fetches_is_bounded(program: Path) -> None:
    switch = load().Switch(str(build(compile_program(program).program)))
    for _ in range(5000):
        switch.process(0, b"\7")
    said, lost = switch.said()
    assert len(said) + lost == 5000
    assert len(said) == 4096


def test_a_failed_assert_fails_a_packet_test(program: Path) -> None:
    test = program.with_suffix(".stf")
    test.write_text(PASSES)
    said: list[tuple[int, str]] = []
    run_test(program, test, tell=lambda line, text: said.append((line, text)))
    assert said == [(1, "a is 7")]
    test.write_text(FAILS)
    with pytest.raises(StfError, match=r"^line 3: .*talking\.p4:14: assert\(h\.h\.a != 9\)$"):
        run_test(program, test)


def test_packet_tests_print_what_programs_say(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    test = program.with_suffix(".stf")
    test.write_text(FAILS)
    assert not run_folder([test])
    assert capfd.readouterr().out.splitlines()[:2] == [f"{test}:1: a is 7", f"{test}:3: a is 9"]


def test_a_failed_assert_fails_a_run(tmp_path: Path) -> None:
    (run,) = planned(["incast-star"], ["workload.senders=2", "workload.size_bytes=2000"], {"cc": ["none"]})
    (programmed,) = run.switch_programs
    own = tmp_path / "p4src" / programmed.program.source.name
    shutil.copytree(programmed.program.source.parent, own.parent)
    stages = own.parent / "include" / "switch.p4"
    text = stages.read_text()
    found = re.search(r"control \w*Ingress\b.*?apply \{", text, re.DOTALL)
    assert found is not None
    statement = "assert(standard_metadata.ingress_port != 2)"
    stages.write_text(f"{text[: found.end()]} {statement};{text[found.end() :]}")
    programmed = replace(programmed, program=replace(programmed.program, source=own))
    run = replace(run, switch_programs=(programmed,))
    summary = json.loads(files(run, VirtualWorld(run).run())["summary.json"])
    assert summary["flows_delivered"] == 2
    (failed,) = (check for check in summary["checks"] if not check["holds"])
    assert failed["name"] == "assertions of the P4 program hold"
    line = text[: found.end()].count("\n") + 1
    assert failed["detail"].endswith(f"failed, the first in s0: {stages}:{line}: {statement}")
