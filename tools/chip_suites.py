"""Runner of the packet tests of open-p4studio's p4-examples on `p4cc switch`, which prints a table of the results.

    python -m tools.chip_suites CHECKOUT [--only TEXT] [--test NAME] [--environment FOLDER] [--logs FOLDER]

CHECKOUT has p4lang/open-p4studio's `pkgsrc`, whose `p4-examples/p4_16_programs`, `ptf-modules` and
`bf-drivers/src/bf_rt` are needed. The tests run unchanged, with their own PTF, packet library (bf_pktpy) and BfRuntime
client. All tests of a program run on one switch in a network namespace. Each test runs in a process of its own, so a
test that fails does not leave its connection to the next. A v1model program has P4Runtime instead
of BfRuntime, because its early client uses that. The command needs root.

PTF logs no debugging messages; there would be 90 for each packet. There is no Thrift: the modules
that its compiler generates are empty here, and tests that use it fail. Ports are those that the
published scripts use without a `ports.json`. Programs that come with options of the closed model
have the ports of that file and four pipes; the options name the pipes that loop back.

The packages that the tests need get a virtual environment, made once in FOLDER (`.chip-ptf` by default).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from p4switch.errors import UserError
from tools.ptf_suites import Outcome, namespace, write_pi_messages

_PACKAGES = (
    "six", "scapy<2.6", "crcmod", "grpcio", "grpcio-tools", "googleapis-common-protos", "thrift", "setuptools<81",
    "protobuf", "p4runtime", "getmac", "netifaces", "psutil", "tabulate", "scapy-helper",
)  # fmt: skip
_PROGRAMS = Path("pkgsrc/p4-examples/p4_16_programs")
_PTF = Path("pkgsrc/ptf-modules")
_BF_RT = Path("pkgsrc/bf-drivers/src/bf_rt")
_CLIENT = ("client.py", "info_parse.py")
_THRIFT = ("mc_pd_rpc/mc", "conn_mgr_pd_rpc/conn_mgr", "res_pd_rpc/ttypes", "pal_rpc/ttypes")
_BFRT_PORT, _P4RUNTIME_PORT = 50052, 50051
_P4INFO = "p4info.txt"
_START_S = 120.0
_BEGIN = re.compile(r"(test\.\w+)( \.\.\. .*)?")
_END = re.compile(r"(OK|FAILED)( \(.*\))?")
# The tests are for Pythons before 3.11, in which sets and dictionaries could be sampled.
_SHIM = """\
import random

_sample = random.sample


def sample(population, k, **more):
    return _sample(population if hasattr(population, "index") else tuple(population), k, **more)


random.sample = sample
"""


@dataclass(frozen=True)
class Chip:
    """Settings of the published scripts for the tests of a chip; `arch` is the architecture of the programs."""

    arch: str
    family: str
    first_port: int
    cpu_port: int


_TNA = Chip("tna", "tofino", 0, 64)
_CHIPS = {"t2na": Chip("t2na", "tofino2", 8, 2), "p4rt": Chip("v1model", "tofino", 1, 64)}  # P4Runtime has no port 0
_PIPES = {"tna_meter_bytecount_adjust": 2, "tna_port_metadata": 2, "tna_pvs": 2}
"""Numbers of pipes that tests need, because they write to pipe 1 or draw 100 ports; by default there is 1."""
_MAX_PORTS = 17
_CPU_PAIR = 125
_CHANNELS = 4  # ports of a connector
_PROFILE = "pipe"
_MOST_PIPES = 4


@dataclass(frozen=True)
class Suite:
    """Tests in a folder, and the programs that they are for."""

    folder: Path
    chip: Chip
    programs: Sequence[Path]

    @property
    def name(self) -> str:
        return self.folder.name

    def pairs(self) -> dict[int, int]:
        """Return the veth pair of each port."""
        own = self.folder / "ports.json"
        if self.looped_pipes():
            return {port["device_port"]: port["veth1"] // 2 for port in json.loads(own.read_bytes())["PortToVeth"]}
        return {**{self.chip.first_port + n: n for n in range(_MAX_PORTS)}, self.chip.cpu_port: _CPU_PAIR}

    def looped_pipes(self) -> list[int]:
        """Return the pipes whose ports lead back to them, by the options of the closed model."""
        options = self.folder / "custom_model_options"
        given = re.search(r"--int-port-loop (\S+)", options.read_text()) if options.is_file() else None
        return [pipe for pipe in range(_MOST_PIPES) if given and int(given[1], 0) >> pipe & 1]

    @property
    def pipes(self) -> int:
        return _MOST_PIPES if self.looped_pipes() else _PIPES.get(self.name, 1)


def find_suites(checkout: Path) -> list[Suite]:
    """Return the programs that have tests."""
    folders = sorted(file.parent for file in (checkout / _PROGRAMS).glob("*/test.py"))
    if not folders:
        raise UserError(f"{checkout}: expected programs with test.py in {_PROGRAMS}")
    return [_suite(folder) for folder in folders]


def _suite(folder: Path) -> Suite:
    """Return the tests in a folder, for the program of that name or else for those in folders of their own."""
    own = folder / f"{folder.name}.p4"
    programs = [own] if own.is_file() else sorted(folder.glob(f"*/{folder.name}_*.p4"))
    return Suite(folder, _CHIPS.get(folder.name.partition("_")[0], _TNA), programs)


def make_environment(folder: Path, checkout: Path) -> Path:
    """Return the Python of a virtual environment that finds the checkout's client and test library."""
    python = folder / "bin" / "python"
    if not (folder / "made").is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *_PACKAGES], check=True)
        (folder / "made").touch()
    modules = folder / "modules"
    shutil.rmtree(modules, ignore_errors=True)
    client = modules / "bfrt_grpc"
    client.mkdir(parents=True)
    (client / "__init__.py").touch()
    for name in _CLIENT:
        shutil.copy(checkout / _BF_RT / "bfruntime_grpc_client/python" / name, client)
    protos = checkout / _BF_RT / "proto"
    where = "import google.rpc, pathlib; print(pathlib.Path(google.rpc.__path__[0]).parent.parent)"
    common = subprocess.run([str(python), "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    options = [f"--python_out={client}", f"--grpc_python_out={client}"]
    includes = [f"-I{protos}", f"-I{common}"]
    subprocess.run([str(python), "-m", "grpc_tools.protoc", *includes, *options, "bfruntime.proto"], check=True)
    (modules / "sitecustomize.py").write_text(_SHIM)
    write_pi_messages(python)
    (modules / "p4testutils").symlink_to((checkout / _PTF / "ptf-utils").resolve())
    for name in _THRIFT:
        module = modules / f"{name}.py"
        module.parent.mkdir(exist_ok=True)
        (module.parent / "__init__.py").touch()
        module.touch()
    paths = [modules, client, *(checkout / _PTF / name for name in ("ptf-utils", "ptf/src", "bf-pktpy"))]
    for state in ("down", "up"):  # commands of the closed model that tests use to change ports
        command = folder / "bin" / f"port_if{state}"
        command.write_text(f'#!/bin/sh\nexec ip link set "$1" {state}\n')
        command.chmod(0o755)
    (folder / "modules.pth").write_text("\n".join(str(each.resolve()) for each in paths))
    return python


def _interface(port: int, pair: int) -> str:
    """Return a port for PTF, with the connector and the channel that it has on the published boards."""
    connector, channel = port // _CHANNELS + 1, port % _CHANNELS
    return f"0-{port}@veth{2 * pair + 1};speed=100g;fec=none;conn_id={connector};chnl_id={channel}"


def _parameters(suite: Suite, configs: Path) -> str:
    given: Mapping[str, object] = {
        "arch": suite.chip.family, "p4_name": suite.name, "target": "asic-model", "use_pi": "False",
        "traffic_gen": "None", "drivers_test_info": "None", "test_seed": "1", "pkt_size": "100",
        "num_pipes": str(suite.pipes), "grpcaddr": f"127.0.0.1:{_P4RUNTIME_PORT}",
        "p4info": str(configs / suite.name / _P4INFO),
        "port_mode": "100g", "counter_byte_adjust": "0", "thrift_server": "localhost", "grpc_server": "127.0.0.1",
        "bfrt_grpc_port": str(_BFRT_PORT), "reboot": "none", "setup": False, "cleanup": False,
        "base_pick_path": str(configs),
    }  # fmt: skip
    return ";".join(f"{name}={value!r}" for name, value in given.items())


def _compile_options(suite: Suite) -> list[str]:
    return ["--arch", suite.chip.arch, "-I", str(suite.folder.parent)]


def _write_config(suite: Suite, folder: Path) -> None:
    """Write the files of a program that tests read; the binary is empty, because the switch takes none."""
    for program in suite.programs:
        target = folder / program.stem
        (target / _PROFILE).mkdir(parents=True)
        (target / _PROFILE / "context.json").touch()
        (target / _PROFILE / f"{suite.chip.family}.bin").touch()
        command = [
            str(Path(sys.executable).with_name("p4cc")), "compile", str(program), "-o", str(target / "bmv2.json"),
            *_compile_options(suite), "--p4info", str(target / _P4INFO),
            *(() if suite.chip.arch == "v1model" else ("--bf-rt", str(target / "bf-rt.json"))),
        ]  # fmt: skip
        subprocess.run(command, check=False, capture_output=True)  # the switch reports what is wrong with a program


def _switch_command(suite: Suite, pairs: Mapping[int, int]) -> list[str]:
    servers = ["--bfrt", str(_BFRT_PORT)]
    if suite.chip.arch == "v1model":
        servers = ["--grpc-server-addr", f"127.0.0.1:{_P4RUNTIME_PORT}", "--early-p4runtime"]
    return [
        str(Path(sys.executable).with_name("p4cc")), "switch", *map(str, suite.programs), *_compile_options(suite),
        *servers, "--pipes", str(suite.pipes), *(f"--loopback-pipe={pipe}" for pipe in suite.looped_pipes()),
        "--log-console", *(word for port, pair in pairs.items() for word in ("-i", f"{port}@veth{2 * pair}")),
    ]  # fmt: skip


def run_suite(
    suite: Suite, checkout: Path, environment: Path, python: Path, logs: Path, tests: Sequence[str], limit_s: float
) -> Outcome:
    """Run the tests of a program; `logs` gets the output of the switch and of the tests."""
    began = time.monotonic()
    pairs = suite.pairs()
    log, switch_log = logs / f"{suite.name}.log", logs / f"{suite.name}.switch.log"
    failure = ""
    search = (environment / "modules.pth").read_text().splitlines()
    path = os.pathsep.join((str(environment / "bin"), os.environ["PATH"]))
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(search), "PATH": path}
    if suite.chip.arch == "v1model":
        variables["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"  # P4Runtime's published messages need it
    with tempfile.TemporaryDirectory(prefix="p4cc-ptf-") as scratch, namespace(sorted(set(pairs.values()))) as network:
        enter = ["ip", "netns", "exec", network]
        with switch_log.open("wb") as output:
            switch = subprocess.Popen(
                [*enter, *_switch_command(suite, pairs)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            _wait_for(switch, switch_log)
            configs = Path(scratch) / "configs"
            _write_config(suite, configs)
            command = [
                *enter, str(python), str(checkout / _PTF / "ptf/ptf"), "-pmm", "bf_pktpy.ptf.packet_pktpy",
                "--test-dir", str(suite.folder), "--pypath", str(suite.folder.parent),
                *(word for port, pair in pairs.items() for word in ("--interface", _interface(port, pair))),
                "--test-params", _parameters(suite, configs), "--socket-recv-size", "10240", "--debug", "info",
            ]  # fmt: skip
            run = partial(subprocess.run, cwd=scratch, env=variables, stdin=subprocess.DEVNULL)
            listed = run([*command, "--list-test-names", *tests], capture_output=True, text=True).stdout
            with log.open("wb") as output:
                for test in re.findall(r"^test\.\w+$", listed, re.MULTILINE):
                    left_s = began + limit_s - time.monotonic()
                    try:
                        run([*command, test], stdout=output, stderr=subprocess.STDOUT, timeout=max(left_s, 0))
                    except subprocess.TimeoutExpired:
                        failure = f"not done in {limit_s:g} s"
                        break
        except UserError as error:
            return Outcome(failure=str(error), seconds=time.monotonic() - began)
        finally:
            switch.send_signal(signal.SIGTERM)
            try:
                switch.wait(20)
            except subprocess.TimeoutExpired:
                switch.kill()
                switch.wait()
    results = verdicts(log.read_text(errors="replace"))
    return Outcome(results, failure or ("" if results else "no test was run"), time.monotonic() - began)


def verdicts(text: str) -> dict[str, str]:
    """Return PTF's verdict on each test; a test that has not ended counts as failed."""
    by_test: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if begin := _BEGIN.fullmatch(line):
            name = begin[1]
            by_test[name] = "ERROR"
        elif (end := _END.fullmatch(line)) and name:
            by_test[name], name = ("ok" if end[1] == "OK" else "FAIL"), ""
    return by_test


def _wait_for(switch: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the switch listens. Raises UserError with the last line that it printed if it has ended."""
    until = time.monotonic() + _START_S
    while "server at port" not in (said := log.read_text(errors="replace")):
        if switch.poll() is not None:
            raise UserError(next((line for line in said.splitlines() if "error: " in line), "the switch ended"))
        if time.monotonic() > until:
            raise UserError(f"the switch is not there after {_START_S:g} s")
        time.sleep(0.1)


@click.command(help=__doc__)
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", multiple=True, metavar="TEXT", help="Programs whose name contains it, or another one.")
@click.option("--test", "tests", multiple=True, metavar="NAME", help="Tests, as PTF names them: test.NAME.")
@click.option("--environment", default=".chip-ptf", type=click.Path(path_type=Path), help="Virtual environment to use.")
@click.option("--logs", default="chip-ptf-logs", type=click.Path(path_type=Path), help="Where logs go.")
@click.option("--limit", "limit_s", default=900.0, help="Seconds that the tests of a program may take.")
def main(
    checkout: Path, only: tuple[str, ...], tests: tuple[str, ...], environment: Path, logs: Path, limit_s: float
) -> None:
    try:
        checkout = checkout.resolve()
        suites = [s for s in find_suites(checkout) if not only or any(text in s.name for text in only)]
        if os.geteuid():
            raise UserError("network namespaces need root")
        signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # remaining namespaces are removed then
        logs = logs.resolve()
        logs.mkdir(parents=True, exist_ok=True)
        environment = environment.resolve()
        python = make_environment(environment, checkout)
        console, table = Console(width=200), Table("program", "tests", "pass", "s", "failed")
        for suite in suites:
            outcome = run_suite(suite, checkout, environment, python, logs, tests, limit_s)
            passed = sum(verdict == "ok" for verdict in outcome.verdicts.values())
            failed = outcome.failure or " ".join(outcome.failed)
            console.print(f"{suite.name}: {passed} of {len(outcome.verdicts)}: {failed}", highlight=False)
            table.add_row(suite.name, str(len(outcome.verdicts)), str(passed), f"{outcome.seconds:.0f}", failed)
        console.print(table)
    except UserError as error:
        click.echo(error, err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
