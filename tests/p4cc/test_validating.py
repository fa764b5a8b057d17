"""The tutorial runs unchanged; the Python interface of packet tests; the plug-in for pytest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import p4cc
from p4cc.cli import cli
from p4switch.trace import events

PAGE = (Path(__file__).parents[2] / "docs" / "validating.md").read_text(encoding="utf-8")
_FILE = re.compile(r"^`([\w.]+)`[^\n]*:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("router")
    for name, text in _FILE.findall(PAGE):
        (made / name).write_text(text)
    # Other projects have options of such names: the plug-in's are no hindrance.
    own = 'def pytest_addoption(parser):\n    parser.addoption("--switch", default="theirs")\n'
    (made / "conftest.py").write_text(own)
    return made


PLAIN = {**os.environ, "P4CC_NATIVE": "0"}  # hosts are in no packet test


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    if command[0] == "pytest":
        plugin = ["-p", "no:p4cc", "-p", "p4cc.pytest_plugin", "-p", "no:cacheprovider"]
        words = [sys.executable, "-m", "pytest", *plugin, *command[1:]]
    else:
        words = [sys.executable, "-c", "from p4cc.cli import main; main()", *command[1:]]
    return subprocess.run(words, cwd=folder, env=PLAIN, capture_output=True, text=True, check=False, timeout=300)


def test_the_commands_of_the_page(folder: Path) -> None:
    commands = [line.split() for line in re.findall(r"^ {4}((?:p4cc|pytest) .*)$", PAGE, re.MULTILINE)]
    assert [command[:2] for command in commands] == [
        ["p4cc", "stf"], ["p4cc", "stf"], ["p4cc", "testgen"], ["p4cc", "fit"], ["pytest", "-q"], ["p4cc", "compile"],
    ]  # fmt: skip
    told, covered, generated, fitted, tested, compiled = (run(folder, *command) for command in commands)
    assert told.returncode == 1
    lines = told.stdout.splitlines()
    assert lines[0].startswith("router.stf: line 4: port 1, byte 22: expected")
    assert lines[1] == "  hdr.ipv4.ttl: expected 0x3f, got 0x3e"
    assert "hdr.ipv4.ttl = hdr.ipv4.ttl - 2;   hdr.ipv4.ttl 0x40 -> 0x3e" in told.stdout
    assert "register Route.last_source[0] written: 0x0b000001" in told.stdout
    assert covered.returncode == 1
    assert "not reached: router.p4:44: false of hdr.ipv4.isValid()" in covered.stdout
    assert "not reached: router.p4:38: table routes: miss" in covered.stdout
    page = (folder / "coverage" / "index.html").read_text()
    assert "not reached" in page
    assert "hdr.ipv4.ttl = hdr.ipv4.ttl - 2;" in page
    info = (folder / "coverage" / "coverage.info").read_text()
    assert re.search(r"^DA:34,[1-9]", info, re.MULTILINE)
    if find_spec("z3") is None:
        assert (generated.returncode, "pip install 'p4cc[testgen]'" in generated.stderr) == (2, True)
    else:
        assert generated.returncode == 0, generated.stderr
        assert generated.stdout.splitlines()[0] in PAGE
        assert run(folder, "p4cc", "stf", "--p4", "router.p4", "generated").returncode == 0
    assert fitted.returncode == 0, fitted.stderr
    assert "stages12" in fitted.stdout
    assert tested.returncode == 0, tested.stdout
    assert re.search(r"not reached: .*table routes: miss", tested.stdout)
    assert compiled.returncode == 0, compiled.stderr
    assert json.loads(compiled.stdout)["program"] == "router.p4"
    assert compiled.stderr == ""  # nothing to warn of


def test_every_packet_is_told_and_junit_has_the_failure(folder: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.stf"
    good.write_text((folder / "router.stf").read_text().replace("4500001400000000 3f", "4500001400000000 3e"))
    junit = tmp_path / "results.xml"
    tests = [str(good), str(folder / "router.stf")]
    told = CliRunner().invoke(cli, ["stf", "-v", "--p4", str(folder / "router.p4"), "--junit", str(junit), *tests])
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")
    assert told.stdout.count("register Route.last_source[0] written: 0x0b000001") == 2  # also of the test that passes
    suite = ElementTree.parse(junit).getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "2", "1")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert cases["good"].find("failure") is None
    failure = cases["router"].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("line 4: port 1, byte 22: expected")
    assert "hdr.ipv4.ttl: expected 0x3f, got 0x3e" in str(failure.text)
    assert float(str(cases["router"].get("time"))) > 0


def test_tests_that_reach_too_little_fail(folder: Path, tmp_path: Path) -> None:
    done = run(folder, "pytest", "-q", "test_router.py", "--p4-coverage", str(tmp_path), "--p4-fail-under", "100")
    assert (done.returncode, "expected 100% or more" in done.stdout) == (1, True)


def test_a_folder_for_coverage_is_looked_at_before_the_tests(folder: Path) -> None:
    done = run(folder, "pytest", "-q", "test_router.py", "--p4-coverage", "/dev/null/x")
    told = "--p4-coverage /dev/null/x: expected a folder, and '/dev/null' is none"
    assert (done.returncode, done.stdout + done.stderr) == (4, f"ERROR: {told}\n\n")


def test_what_a_packet_test_says_when_it_fails(folder: Path) -> None:
    switch = p4cc.Switch(folder / "router.p4")
    routes = switch.table("routes")
    routes.add(dst="10.0.0.0/8", action="forward", port=1, mac="02:00:00:00:00:01")
    packet = bytes.fromhex("020000000002020000000003080045000014000000004006" + "00000b0000010a000002")
    sent = switch.send(0, packet)
    with pytest.raises(AssertionError) as failed:
        sent.expect((2, packet))
    told = str(failed.value).splitlines()
    assert told[:3] == [
        "packet 0: expected at port 2, got at port 1",
        "packet 0: hdr.ethernet.dst: expected 0x020000000002, got 0x020000000001",
        "packet 0: hdr.ipv4.ttl: expected 0x40, got 0x3e",
    ]
    assert "arrives at port 0" in told[3]
    (applied,) = sent.trace.of(events.TableApplied)
    assert (applied.table, applied.key[0].match) == ("Route.routes", "0x0a000000/8")
    assert str(applied.place).endswith("router.p4:38")
    assert sent.coverage.summary(["hit", "miss"]) == (1, 2)
    assert switch.send(packet, port=0) == sent  # as it was
    routes.modify(dst="10.0.0.0/8", action="drop")
    assert switch.send(0, packet) == []
    assert switch.send(0, packet).trace.of(events.Dropped)[0].reason == "the program drops it in ingress"
    assert len(routes) == 1
    routes.delete(dst="10.0.0.0/8")
    assert len(routes) == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"dts": "10.0.0.0/8", "action": "drop"}, "parameter 'dts'"),
        ({"dst": "10.0.0.0/8", "action": "dorp"}, "did you mean"),
        ({"dst": "ten", "action": "drop"}, "expected a number or an address"),
        ({"dst": "10.0.0.0/8", "action": "forward", "port": 1}, "missing mac"),
        ({"dst": "10.0.0.0/8", "action": "forward", "port": 1 << 9, "mac": 0}, "routes"),
    ],
)
def test_mistakes_in_entries_are_one_line(folder: Path, wrong: dict[str, object], words: str) -> None:
    with pytest.raises(p4cc.UserError, match=re.escape(words)) as error:
        p4cc.Switch(folder / "router.p4").table("routes").add(**wrong)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
