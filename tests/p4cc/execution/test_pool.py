"""Processes that make a sweep's runs, and who else can connect to them."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from harness.errors import CheckError
from p4cc.execution import pool
from p4cc.execution.pool import Cluster, distribute
from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.errors import UserError
from tests.harness.worlds.work import double, fall, listening, refuse
from tests.p4cc.commands.test_commands import call

HANG = """
import time
from contextlib import closing
from p4cc.execution.pool import distribute
if __name__ == "__main__":
    with closing(distribute(time.sleep, [0, 600], 2)) as done:
        for _ in done:
            print("ready", flush=True)
"""


def test_processes_do_the_work() -> None:
    assert sorted(distribute(double, [3, 4, 5], 2)) == [(0, 6), (1, 8), (2, 10)]


def test_nobody_else_reaches_the_processes() -> None:
    assert list(distribute(listening, [0], 1)) == [(0, [])]


def test_what_goes_wrong_is_passed_on() -> None:
    with pytest.raises(UserError, match="refused"):
        list(distribute(refuse, [0], 1))


def test_of_a_process_that_dies_the_work_is_named() -> None:
    with pytest.raises(CheckError, match=r"^b-seed2: process \d+ was ended by SIGKILL before it was done; .*memory\?$"):
        list(distribute(fall, [5, 0, 7], 1, ["a-seed1", "b-seed2", "c-seed3"]))


@pytest.mark.parametrize(
    ("codes", "taken", "told"),
    [
        ([-9, -15], {7: "a", 8: "b"}, "a: process 7 was ended by SIGKILL before it was done; was there enough memory?"),
        ([-15, 1], {7: "a", 8: "b"}, "b: process 8 ended with status 1 before it was done; was there enough memory?"),
        ([-15, -9], {7: "a"}, "process 8 was ended by SIGKILL while it had no run; was there enough memory?"),
        ([-15, -15], {0: "c"}, "a process was ended before its work was done; no run had begun"),
        ([-15, -15], {0: "c", 7: "a"}, "a process was ended before its work was done; a had begun"),
    ],
)
def test_the_process_that_died_first_is_told(codes: list[int], taken: dict[int, str], told: str) -> None:
    started: Any = [SimpleNamespace(pid=7 + i, exitcode=code) for i, code in enumerate(codes)]
    assert pool._death(started, taken) == told


def test_closed_early_it_ends_its_processes() -> None:
    before = set(psutil.Process().children(recursive=True))
    with closing(distribute(time.sleep, [0, 600, 600], 2)) as done:
        assert next(iter(done)) == (0, None)
    left = set(psutil.Process().children(recursive=True)) - before
    assert [process for process in left if "spawn_main" in " ".join(process.cmdline())] == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_it(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "hang.py").write_text(HANG)
    with (
        (tmp_path / "errors").open("w") as errors,
        subprocess.Popen([sys.executable, "hang.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors) as own,
    ):
        assert own.stdout is not None
        assert own.stdout.readline() == b"ready\n"
        children = psutil.Process(own.pid).children(recursive=True)
        own.send_signal(number)
        own.wait(60)
        assert psutil.wait_procs(children, timeout=30)[1] == []


def test_a_refused_program_reads_the_same_from_another_process(tmp_path: Path) -> None:
    (tmp_path / "bad.p4").write_text("control c() { apply { x = 1; } }")
    with pytest.raises(CompileError) as raised:
        compile_program(tmp_path / "bad.p4")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler tcp://127.0.0.1:1: expected tls://HOST:PORT"),
        (["--scheduler", "tls://127.0.0.1:1"], "--tls-ca: missing; expected a file in PEM format"),
        (["--scheduler", "tls://127.0.0.1:1", "--tls-ca", "no.pem"], "--tls-ca: no file 'no.pem'"),
        (["--tls-key", "no.pem"], "--tls-key: expected --scheduler with it"),
        (["--jobs", "2", "--scheduler", "tls://127.0.0.1:1"], "--jobs: a cluster has workers of its own"),
    ],
)
def test_a_cluster_without_tls_is_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    status, _, err = call(capsys, "sweep", "incast-delay", *options)
    assert (status, len(err.splitlines())) == (2, 1)
    assert err.startswith(f"p4cc: error: {message}")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a certificate authority and a key that it signed, and those of a stranger."""
    folder = tmp_path_factory.mktemp("keys")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    for name in ("own", "strange"):
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl("req", "-x509", *new, "-keyout", f"{name}-ca.key", "-out", f"{name}-ca.pem", "-subj", "/CN=ca")
        openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=p4cc")
        signed = ["-CA", f"{name}-ca.pem", "-CAkey", f"{name}-ca.key", "-CAcreateserial"]
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    return folder


def test_a_cluster_is_reached_by_tls_and_by_its_own_alone(keys: Path) -> None:
    from distributed import LocalCluster
    from distributed.security import Security

    names = {"tls_ca_file": "own-ca.pem"}
    for role in ("client", "scheduler", "worker"):
        names |= {f"tls_{role}_cert": "own.pem", f"tls_{role}_key": "own.key"}
    make: Any = Security  # not annotated
    security = make(require_encryption=True, **{name: str(keys / file) for name, file in names.items()})
    cluster: Any = LocalCluster
    with cluster(
        n_workers=1, processes=False, protocol="tls://", security=security, dashboard_address=None, silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        own = Cluster(address, keys / "own-ca.pem", keys / "own.pem", keys / "own.key")
        assert sorted(distribute(double, [3, 4], own)) == [(0, 6), (1, 8)]
        for ca, name in (("strange", "strange"), ("own", "strange"), ("strange", "own")):
            other = Cluster(address, keys / f"{ca}-ca.pem", keys / f"{name}.pem", keys / f"{name}.key")
            with pytest.raises(UserError, match=f"--scheduler {address}: "):
                list(distribute(double, [3], other))
