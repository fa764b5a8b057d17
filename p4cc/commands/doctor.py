"""`p4cc doctor`: what is installed, what works, and what to install."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from harness.errors import CheckError
from harness.worlds.mininet import package
from p4switch import cache, native
from p4switch.errors import UserError

_AF_XDP = 44


@dataclass(frozen=True)
class Finding:
    """State of one requirement.

    `fix` says what to do if it is missing.
    """

    name: str
    ok: bool
    detail: str
    needed_for: str
    required: bool = True
    fix: str = ""


def _python() -> Finding:
    ok = (3, 10) <= sys.version_info < (3, 14)
    return Finding("Python", ok, platform.python_version(), "everything", fix="use Python 3.10 to 3.13")


def _compiler() -> Finding:
    try:
        return Finding("C compiler", True, " ".join(native.compiler()), "P4 pipelines and compiled hosts")
    except UserError as error:
        return Finding(
            "C compiler", False, str(error), "P4 pipelines and compiled hosts", fix="apt-get install gcc libc6-dev"
        )


def _headers() -> Finding:
    try:
        return Finding("Python headers", True, str(native.python_include()), "P4 pipelines and compiled hosts")
    except UserError as error:
        return Finding(
            "Python headers", False, str(error), "P4 pipelines and compiled hosts", fix="apt-get install python3-dev"
        )


def _mypyc() -> Finding:
    try:
        detail = f"mypy {importlib.metadata.version('mypy')}, librt {importlib.metadata.version('librt')}"
    except importlib.metadata.PackageNotFoundError as error:
        return Finding(
            "mypyc", False, f"{error.name} is missing", "compiled hosts", fix="install p4cc with its dependencies"
        )
    return Finding("mypyc", True, detail, "compiled hosts")


def _cache() -> Finding:
    root = cache.root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
        damaged = cache.damaged()
    except OSError as error:
        return Finding(
            "cache folder",
            False,
            f"{root}: {error.strerror}",
            "build products",
            fix="set P4CC_CACHE to a folder that can be written to",
        )
    remark = f"; {len(damaged)} damaged, which will be made anew" if damaged else ""
    return Finding("cache folder", True, f"{root}{remark}", "build products")


def _tool(name: str, needed_for: str, fix: str) -> Callable[[], Finding]:
    """Return a check for a program and the version that it reports."""

    def find() -> Finding:
        path = shutil.which(name)
        if path is None:
            return Finding(name, False, "not found", needed_for, required=False, fix=fix)
        version = _version(path)
        detail = f"{path}, {version or 'which does not run'}"
        return Finding(name, version is not None, detail, needed_for, required=False, fix=fix)

    return find


def _version(path: str) -> str | None:
    """Return the version that a program reports, in one line; None if it does not run."""
    try:
        finished = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if finished.returncode:
        return None
    lines = (line.strip() for line in (finished.stdout + finished.stderr).splitlines())
    return next((line for line in lines if re.search(r"\d\.\d", line)), "unknown version")


def _mininet() -> Finding:
    reason = package.missing()
    detail = "can be used" if reason is None else "cannot be used"
    return Finding("Mininet world", reason is None, detail, "--world mininet", required=False, fix=reason or "")


def _xdp() -> Finding:
    needed_for = "sending at less cost (p4cc switch; without it, by AF_PACKET)"
    try:
        socket.socket(_AF_XDP, socket.SOCK_RAW, 0).close()
    except OSError as error:
        fix = "be root" if isinstance(error, PermissionError) else "use a kernel with CONFIG_XDP_SOCKETS"
        return Finding("AF_XDP", False, str(error.strerror), needed_for, required=False, fix=fix)
    return Finding("AF_XDP", True, "can be used", needed_for, required=False)


def _programs() -> Finding:
    from p4switch.sources import SOURCE_DIRECTORY

    names = sorted(path.name for path in Path(SOURCE_DIRECTORY).glob("*.p4"))
    return Finding(
        "P4 programs", bool(names), ", ".join(names) or f"none in {SOURCE_DIRECTORY}", "runs", fix="install p4cc anew"
    )


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _compiler,
    _headers,
    _mypyc,
    _cache,
    _programs,
    _tool("mn", "runs in Mininet (--world mininet)", "apt-get install mininet"),
    _mininet,
    _xdp,
    _tool("tshark", "reading captures (--pcap)", "apt-get install tshark"),
    _tool("simple_switch_grpc", "runs on BMv2 (--switch bmv2)", "install p4lang-bmv2, as vagrant/provision.sh does"),
    _tool("simple_switch", "packet tests on BMv2 (p4cc stf)", "install p4lang-bmv2, as vagrant/provision.sh does"),
    _tool("p4c-bm2-ss", "tests that compare compilers", "install p4lang-p4c, as vagrant/provision.sh does"),
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Show what is installed, what works and what to install. Status 1 if a requirement is missing."""
    findings = [check() for check in CHECKS]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = "ok" if finding.ok else "MISSING" if finding.required else "absent"
            click.echo(f"{mark:8} {finding.name}: {finding.detail}")
            if not finding.ok:
                click.echo(f"{'':8} needed for {finding.needed_for}; {finding.fix}")
    missing = [finding.name for finding in findings if finding.required and not finding.ok]
    if missing:
        raise CheckError(f"missing: {', '.join(missing)}")
