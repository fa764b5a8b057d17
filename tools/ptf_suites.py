"""Runner of PTF suites on `p4cc switch`, and on BMv2 if it is installed, which prints a table of the results.

    python tools/ptf_suites.py CHECKOUT... [--only TEXT] [--environment FOLDER]

CHECKOUT is a clone of a repository with suites, such as p4lang/tutorials, jafingerhut/p4-guide or
omec-project/up4. It is copied, and each suite's own script (`runptf.sh`) is run in the copy, in a
network namespace of its own with the veth pairs that the scripts expect. The scripts get
replacements of `p4c`, `simple_switch_grpc`, `sudo`, `sleep` and `pkill`, which use the compiler and
the switch under test and change nothing outside. The command needs root.

The suites need packages for an old protobuf. These are installed once into a virtual environment in
FOLDER (`.ptf` in the current folder by default).

The exit status is 1 if a test fails here that does not fail on BMv2.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from p4switch.compiler import compile_program
from p4switch.errors import UserError
from p4switch.p4runtime.messages import P4DeviceConfig

_PACKAGES = ("ptf", "scapy<2.6", "setuptools<81", "p4runtime-shell", "protobuf<3.21")
_VETH_PAIRS = 9
_MTU_BYTES = 9500
_TIME_LIMIT_S = 1200.0
_TARGETS = ("p4cc", "bmv2")
_UP4 = """\
    set -e
    mkdir -p build
    p4c --arch v1model -o build --p4runtime-files build/main.p4info.bin ../p4src/main.p4
    simple_switch_grpc --device-id 1 -i 1@veth0 -i 2@veth2 -i 3@veth4 -i 4@veth6 -i 5@veth8 -i 6@veth10 -i 7@veth12 \\
        -i 8@veth14 --no-p4 -- --cpu-port 255 --grpc-server-addr 0.0.0.0:28000 &
    sleep 2
    python3 -u lib/runner.py --bmv2-json build/main.json --p4info build/main.p4info.bin --grpc-addr localhost:28000 \\
        --device-id 1 --ptf-dir ./tests --cpu-port 255 --port-map lib/port_map.json
"""
_SCRIPTS = {
    "sudo": """\
        while [[ $1 == -* ]]; do shift; done
        exec "$@"
        """,
    "simple_switch_grpc": """\
        port=9559
        for word in "$@"; do [[ $before == --grpc-server-addr ]] && port=${{word##*:}}; before=$word; done
        echo $$ $port > {state}/switch
        exec {switch} "$@"
        """,
    # Scripts sleep until the switch is ready, so the replacement of `sleep` waits for the switch.
    "sleep": """\
        for _ in {{1..20}}; do [[ -f {state}/switch ]] && break; /bin/sleep 0.1; done
        [[ -f {state}/switch ]] || exit 0
        read -r process port < {state}/switch
        for _ in {{1..600}}; do
            kill -0 $process 2>/dev/null || exit 0
            (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && exit 0
            /bin/sleep 0.1
        done
        """,
    "pkill": """\
        read -r process port < {state}/switch && kill -TERM $process
        rm -f {state}/switch
        """,
    "p4c": """\
        exec {python} {tool} --p4c "$@"
        """,
}
VERDICT = re.compile(r"^(\w[\w.]*) \.\.\. (?:(?!^\w[\w.]* \.\.\. ).)*?(ok|FAIL|ERROR|skipped[^\n]*)$", re.M | re.S)


@dataclass(frozen=True)
class Suite:
    """Suite of tests.

    `folder` is the working folder of `script`, relative to the checkout. `script` is the script's
    name, or its text.
    """

    checkout: Path
    folder: Path
    script: str
    text: str = ""

    @property
    def name(self) -> str:
        variant = self.script.removesuffix("runptf.sh").rstrip("-")
        return "/".join(filter(None, (self.checkout.name, str(self.folder), variant)))


@dataclass
class Outcome:
    """Result of a suite on one target: verdicts by test, or in `failure` the reason why there are none."""

    verdicts: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> list[str]:
        return [name for name, verdict in self.verdicts.items() if verdict in ("FAIL", "ERROR")]

    def __str__(self) -> str:
        if self.failure:
            return f"[red]{self.failure}"
        passed = sum(verdict == "ok" for verdict in self.verdicts.values())
        text = f"{passed} of {len(self.verdicts)} passed"
        return f"[red]{text}" if self.failed else text


def find_suites(checkouts: Sequence[Path]) -> Iterator[Suite]:
    """Yield the suites that compile for v1model and run on simple_switch_grpc."""
    for checkout in checkouts:
        for script in sorted(checkout.rglob("*runptf.sh")):
            text = script.read_text(errors="replace")
            # Suites of p4testgen are written by a tool of p4c's.
            if "simple_switch_grpc" in text and not script.name.startswith("p4testgen"):
                yield Suite(checkout, script.parent.relative_to(checkout), script.name)
        if (checkout / "ptf/lib/runner.py").is_file():
            yield Suite(checkout, Path("ptf"), "", textwrap.dedent(_UP4))


def make_environment(folder: Path) -> Path:
    """Return the folder of programs of a virtual environment with the packages that suites import."""
    programs = folder / "bin"
    if not (programs / "ptf").is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(programs / "python"), "-m", "pip", "install", "-q", *_PACKAGES], check=True)
    write_pi_messages(programs / "python")
    return programs


def write_pi_messages(python: Path) -> None:
    """Write the module of PI's messages, which are on no package index, into the virtual environment of `python`."""
    find = "import p4.v1; print(list(p4.v1.__path__)[0])"
    where = subprocess.run([str(python), "-c", find], check=True, capture_output=True, text=True).stdout
    module = Path(where.strip()).parent / "tmp" / "p4config_pb2.py"
    module.parent.mkdir(exist_ok=True)
    (module.parent / "__init__.py").touch()
    descriptor = P4DeviceConfig.DESCRIPTOR.file.serialized_pb
    module.write_text(
        "from google.protobuf import descriptor_pool\n"
        "from google.protobuf.internal import builder\n"
        f"DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({descriptor!r})\n"
        "builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())\n"
        "builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, 'p4.tmp.p4config_pb2', globals())\n"
    )


@contextmanager
def namespace(pairs: Iterable[int] = range(_VETH_PAIRS)) -> Iterator[str]:
    """Yield a network namespace with pairs veth0-veth1, veth2-veth3 ...; its processes end with it."""
    name = f"p4cc-ptf-{os.getpid()}"
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        for pair in pairs:
            one, other = f"veth{2 * pair}", f"veth{2 * pair + 1}"
            _ip("-n", name, "link", "add", one, "type", "veth", "peer", "name", other)
            for end in (one, other):
                sysctl = ["sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1"]
                subprocess.run(["ip", "netns", "exec", name, *sysctl], check=True)
                _ip("-n", name, "link", "set", end, "mtu", str(_MTU_BYTES), "up")
        yield name
    finally:
        for process in _ip("netns", "pids", name).split():
            os.kill(int(process), signal.SIGKILL)
        _ip("netns", "del", name)


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def run_suite(suite: Suite, target: str, programs: Path, logs: Path) -> Outcome:
    """Run one suite; its output is left in `logs`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="p4cc-ptf-") as name, namespace() as network:
        scratch = Path(name)
        copy = scratch / suite.checkout.name
        shutil.copytree(suite.checkout, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        _write_programs(scratch / "bin", scratch, target)
        folder = copy / suite.folder
        script = suite.script
        if suite.text:
            script = "suite.sh"
            (folder / script).write_text(suite.text)
        (folder / "logs").mkdir(exist_ok=True)  # some clients write to it and expect it to exist
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(scratch / "bin"), str(programs), os.environ["PATH"]]),
            "PYTHONPATH": "",
        }
        log = logs / f"{suite.name.replace('/', '.')}.{target}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["ip", "netns", "exec", network, "bash", script],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                process.wait(_TIME_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return Outcome(failure=f"not done in {_TIME_LIMIT_S:g} s", seconds=time.monotonic() - began)
    outcome = Outcome(dict(VERDICT.findall(log.read_text(errors="replace"))), seconds=time.monotonic() - began)
    if not outcome.verdicts:
        outcome.failure = "no test was run"
    return outcome


def _write_programs(folder: Path, state: Path, target: str) -> None:
    folder.mkdir()
    ours = f"{Path(sys.executable).with_name('p4cc')} switch"
    switch = ours if target == "p4cc" else shutil.which("simple_switch_grpc")
    compiler = None if target == "p4cc" else shutil.which("p4c")
    for name, text in _SCRIPTS.items():
        if name == "p4c" and compiler:
            continue
        filled = text.format(state=state, switch=switch, python=sys.executable, tool=Path(__file__).resolve())
        path = folder / name
        path.write_text("#!/bin/bash\n" + textwrap.dedent(filled))
        path.chmod(0o755)


def as_p4c(arguments: Sequence[str]) -> None:
    """Compile with the built-in compiler and the options of p4c's driver, as far as suites need them."""
    words = list(arguments)
    options = {"-o": ".", "--p4runtime-files": ""}
    includes: list[str] = []
    defines: dict[str, str] = {}
    program = ""
    while words:
        word = words.pop(0)
        if word in options:
            options[word] = words.pop(0)
        elif word in ("--target", "-b", "--arch", "-a", "--std"):
            words.pop(0)
        elif word.startswith("-I"):
            includes.append(word[2:] or words.pop(0))
        elif word.startswith("-D"):
            macro, _, value = (word[2:] or words.pop(0)).partition("=")
            defines[macro] = value or "1"
        elif not word.startswith("-"):
            program = word
    compiled = compile_program(program, includes, defines)
    compiled.write(Path(options["-o"]) / f"{Path(program).stem}.json")
    for name in filter(None, options["--p4runtime-files"].split(",")):
        compiled.write(None, name)


@click.command()
@click.argument("checkouts", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", default="", metavar="TEXT", help="Suites whose name contains it.")
@click.option("--environment", default=".ptf", type=click.Path(path_type=Path), help="Virtual environment to use.")
@click.option("--logs", type=click.Path(path_type=Path), help="Where what the suites print goes; default: ptf-logs.")
def main(checkouts: tuple[Path, ...], only: str, environment: Path, logs: Path | None) -> None:
    """Run PTF suites on `p4cc switch`, and on BMv2 where it is installed."""
    try:
        suites = [s for s in find_suites([c.resolve() for c in checkouts]) if only in s.name]
        if not suites:
            raise UserError(f"{', '.join(map(str, checkouts))}: expected suites, scripts named runptf.sh")
        if os.geteuid():
            raise UserError("network namespaces need root")
        targets = _TARGETS if shutil.which("simple_switch_grpc") else _TARGETS[:1]
        logs = logs or Path("ptf-logs")
        logs.mkdir(parents=True, exist_ok=True)
        programs = make_environment(environment.resolve())
        good = _report(suites, targets, programs, logs)
    except UserError as error:
        click.echo(error, err=True)
        sys.exit(2)
    sys.exit(0 if good else 1)


def _report(suites: Sequence[Suite], targets: Sequence[str], programs: Path, logs: Path) -> bool:
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # remaining namespaces are removed then
    console = Console()
    table = Table("suite", *targets, "s", "failed on p4cc")
    good = True
    for suite in suites:
        outcomes = {target: run_suite(suite, target, programs, logs) for target in targets}
        ours, theirs = outcomes["p4cc"], outcomes.get("bmv2", Outcome())
        console.print(f"{suite.name}: {ours}", highlight=False)
        seconds = sum(outcome.seconds for outcome in outcomes.values())
        table.add_row(suite.name, *map(str, outcomes.values()), f"{seconds:.0f}", " ".join(ours.failed))
        good &= set(ours.failed) <= set(theirs.failed) and (not ours.failure or bool(theirs.failure))
    console.print(table)
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["--p4c"]:
        try:
            as_p4c(sys.argv[2:])
        except UserError as error:
            sys.exit(str(error))
    else:
        main()
