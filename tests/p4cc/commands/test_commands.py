"""Commands that need no run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from harness.measure.tracing import explain, hops
from harness.plan import scenario
from p4cc import commands
from p4cc.cli import cli, main
from p4cc.commands import doctor

WAVE = """
import click

@click.command()
@click.option("--times", default=1)
def command(times):
    '''Greet the world.'''
    click.echo(" ".join(["hello"] * times))
"""


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_a_new_file_is_a_new_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "wave.py").write_text(WAVE)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "p4cc.commands.wave", raising=False)
    assert call(capsys, "wave", "--times", "2") == (0, "hello hello\n", "")
    assert "Greet the world." in call(capsys, "--help")[1]
    assert call(capsys, "wav") == (2, "", "p4cc: error: no command 'wav'; did you mean 'wave'?\n")


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "list", "--json")
    assert status == 0
    found = {kind: {entry["name"] for entry in entries} for kind, entries in json.loads(out).items()}
    assert found["scenarios"] == set(scenario.built_in())
    assert {"dcqcn", "hpcc"} <= found["cc"]
    assert "ecmp" in found["lb"]
    assert {"single-switch", "dumbbell", "parking-lot", "fat-tree", "clos"} <= found["topologies"]
    assert {"incast", "permutation", "alltoall", "allreduce", "poisson", "htsim", "ns3"} <= found["workloads"]
    assert {"ecn", "int"} <= found["programs"]


def test_list_of_one_kind_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "list", "scenarios")
    assert status == 0
    assert "incast-star" in out
    assert "16 to 1" in out


def test_list_fits_the_terminal_and_is_unbroken_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = call(capsys, "list")[1]
    assert max(map(len, whole.splitlines())) > 100
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # to rich the output is a terminal
    monkeypatch.setenv("COLUMNS", "100")
    broken = call(capsys, "list")[1]
    assert max(map(len, broken.splitlines())) <= 100
    assert broken.split() == whole.split()


def test_list_takes_what_the_documentation_calls_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "list", "protocols") == call(capsys, "list", "cc")
    assert call(capsys, "list", "load-balancers", "plb") == call(capsys, "list", "lb", "plb")
    status, _, err = call(capsys, "list", "scenaros")
    assert status == 2
    assert "no kind 'scenaros'; did you mean 'scenarios'?" in err


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["run", "--help"], ["--version"]):
        assert call(capsys, *arguments)[0] == 0


def test_doctor_tells_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from p4switch import native

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    native.compiler.cache_clear()
    try:
        status, out, err = call(capsys, "doctor")
    finally:
        native.compiler.cache_clear()
    assert status == 1
    assert "C compiler" in err
    assert "apt-get install gcc" in out


def test_doctor_tells_versions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, script in {
        "simple_switch_grpc": "echo 1.15.6-abc",
        "tshark": "echo 'TShark (Wireshark) 4.2.2 (Git).'; echo; echo 'Copyright 1998'",
        "mn": "echo 2.3.0 >&2",
        "p4c-bm2-ss": "echo 'error while loading shared libraries' >&2; exit 127",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    _, out, _ = call(capsys, "doctor", "--json")
    findings = {finding["name"]: finding for finding in json.loads(out)}
    assert findings["simple_switch_grpc"]["detail"].endswith(", 1.15.6-abc")
    assert findings["tshark"]["detail"].endswith(", TShark (Wireshark) 4.2.2 (Git).")
    assert findings["mn"]["detail"].endswith(", 2.3.0")
    assert not findings["p4c-bm2-ss"]["ok"]
    assert "does not run" in findings["p4c-bm2-ss"]["detail"]
    assert not findings["simple_switch"]["ok"]


def test_doctor_finds_this_machine_well(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "doctor", "--json")
    findings = {finding["name"]: finding for finding in json.loads(out)}
    assert status == 0
    assert findings["C compiler"]["ok"]
    assert len(findings) == len(doctor.CHECKS)


def test_compile_writes_json_and_p4info(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from p4switch.sources import SOURCE_DIRECTORY

    out, info = tmp_path / "ecn.json", tmp_path / "ecn.txtpb"
    status, _, err = call(capsys, "compile", str(SOURCE_DIRECTORY / "ecn.p4"), "-o", str(out), "--p4info", str(info))
    assert status == 0, err
    assert json.loads(out.read_text())["pipelines"]
    assert "ipv4_lpm" in info.read_text()
    assert len(list(tmp_path.iterdir())) == 2


def test_compile_prints_the_program_after_a_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from p4switch.sources import SOURCE_DIRECTORY

    source, out = str(SOURCE_DIRECTORY / "ecn.p4"), tmp_path / "ecn.json"
    status, listed, _ = call(capsys, "compile", "--list-passes")
    names = [line.split()[0] for line in listed.splitlines()]
    assert status == 0
    assert names[:8] == ["parse", "names", "check", "desugar", "casts", "warn", "lower", "slices"]
    texts = {name: call(capsys, "compile", source, "--check-ir", f"--dump-ir={name}")[1] for name in names[6:]}
    assert "\negress\n" in texts["lower"]
    assert len(texts["simplify"]) < len(texts["lower"])
    status, text, _ = call(capsys, "compile", source, "-o", str(out), "--dump-ir")
    assert (status, text) == (0, texts[names[-1]])
    assert out.exists()
    assert call(capsys, "compile", source, "--dump-ir=simplfy")[2] == (
        "p4cc: error: --dump-ir=simplfy: did you mean 'simplify'?\n"
    )
    assert call(capsys, "compile", source)[0] == 2


def test_compile_leaves_a_device_and_a_link_what_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from p4switch.sources import SOURCE_DIRECTORY

    source, link = str(SOURCE_DIRECTORY / "ecn.p4"), tmp_path / "link"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    link.symlink_to("there")
    try:
        status, _, err = call(capsys, "compile", source, "-o", str(link), "--p4info", str(tmp_path / "pipe"))
        assert status == 0, err
        assert b"proto-file" in os.read(reader, 100)
    finally:
        os.close(reader)
    assert link.is_symlink()
    assert json.loads((tmp_path / "there").read_text())["pipelines"]
    assert (tmp_path / "pipe").is_fifo()
    status, _, err = call(capsys, "compile", source, "-o", "a.json", "--p4info", "a.json")
    assert (status, err) == (2, "p4cc: error: --p4info a.json: expected another file than that of -o\n")
    assert call(capsys, "compile", source, "-o", "/dev/null", "--p4info", "/dev/null")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "begun", "name"),
    [([], "incast-s", "incast-star"), (["incast", "--cc"], "dcq", "dcqcn"), (["incast", "--lb"], "sp", "spray")],
)
def test_the_shell_completes_names(arguments: list[str], begun: str, name: str) -> None:
    completing = ShellComplete(cli, {}, "p4cc", "_P4CC_COMPLETE")
    assert name in [item.value for item in completing.get_completions(["run", *arguments], begun)]
    assert [item.type for item in completing.get_completions(["run", *arguments], "./x")] == ["file"]


@pytest.mark.parametrize("coverage", ["/dev/null/x", "/dev/null"])
def test_a_folder_for_coverage_is_looked_at_before_the_tests(capsys: pytest.CaptureFixture[str], coverage: str) -> None:
    test = Path(__file__).parents[2] / "p4switch" / "stf" / "head.stf"
    status, out, err = call(capsys, "stf", str(test), "--coverage", coverage)
    assert (status, out) == (2, "")
    assert err == f"p4cc: error: --coverage {coverage}: expected a folder, and '/dev/null' is none\n"


def test_a_trace_reads_as_a_story() -> None:
    records = [
        (10, 0, "send", 0, -1, 0, 1058, 1, 0),
        (1095, 1, "receive", 2, -1, 0, 1058, 1, 0),
        (1095, 1, "enqueue", 4, 3, 2116, 1058, 1, 0),
        (1200, 1, "transmit", 4, 3, 1058, 1066, 1, 0),
        (1300, 1, "drop:buffer", 4, 3, 0, 1058, 1, 0),
    ]
    told = explain(hops(records, lambda *_: pytest.fail("nothing is of a pipeline")), ["h0", "s0"])
    lines = [" ".join(line.split()) for line in told]
    assert lines == [
        "10 ns h0 #0 1058 B leaves the host",
        "1095 ns s0 #0 1058 B arrives at port 2",
        "1095 ns s0 #0 1058 B enqueued at port 4, priority 3, 2116 bytes ahead",
        "1200 ns s0 #0 1066 B leaves by port 4, priority 3; 1058 bytes stay behind",
        "1300 ns s0 #0 1058 B dropped: buffer",
    ]
