"""Compilation of the hosts with mypyc, whose result replaces the sources on import. See docs/decisions/.

The copy lies in `$P4CC_CACHE` (default `~/.cache/p4cc`), in a folder named by the digest of all
sources, the compiler and the Python version, so it is never stale. Modules off the hot path stay
Python there. A file in the folder has the digests of all others, so that a damaged copy is detected
before it is loaded, and is built again. The object of each unit is cached beside it, so that only
an edited protocol is compiled (`compile_hosts.py`).

A wheel may contain the compiled hosts (`setup.py`), beside the sources. They are used if Python,
the machine and the sources are those for which they were built.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import host_agents
from host_agents.errors import NativeBuildError
from p4switch.processes import run

SOURCES = Path(__file__).parent
COMPILED = (
    "packets.py",
    "headers.py",
    "wire.py",
    "bits.py",
    "fifo.py",
    "timers.py",
    "port.py",
    "frames.py",
    "outlet.py",
    "transport.py",
    "members.py",
    "messages.py",
    "template.py",
    "limiter.py",
    "address_set.py",
    "draws.py",
    "pcie.py",
    "pull_pacer.py",
    "sender.py",
    "receiver.py",
    "datagram.py",
    "go_back_n.py",
    "sleek.py",
    "selective_repeat.py",
    "sending.py",
    "qp.py",
    "nic.py",
)
COMPILED_FOLDERS = ("cc", "lb", "collective")
# No contraction and no -march: floats must be bit-identical to the interpreter's on every machine.
# All code is in one library that is not interposed, so calls within it need no table.
FLAGS = (
    "-O3",
    "-ffp-contract=off",
    "-fno-strict-overflow",
    "-fno-semantic-interposition",
    "-fvisibility=hidden",
    "-DNDEBUG",
)
BUILD_CPU_S = 900  # limit of each compiling process in CPU time, because wall-clock time grows on a busy machine
BUILD_WALL_S = 4 * 3600  # limit for a process that uses no CPU time
_DIGESTS = "sha256"
_FULL = os.strerror(errno.ENOSPC)
_MADE_FOR = "made-for"  # file with the Python, machine and sources for which the hosts in a wheel were compiled

_COMPILE = SOURCES / "compile_hosts.py"
_SHIPPED = SOURCES / "_compiled"  # compiled hosts of a wheel


def active() -> bool:
    """Return whether the compiled hosts are in place."""
    return host_agents.__path__[0] != str(SOURCES)


def in_use() -> list[str]:
    """Return the names of compilable modules that are already imported, compiled or not."""
    return sorted(name for name in sys.modules if name.startswith("host_agents.") and _is_compiled(name))


def activate() -> bool:
    """Put the compiled hosts in place; see `host_agents.use_native`."""
    if os.environ.get("P4CC_NATIVE") == "0":
        return False
    if active():
        return True
    if loaded := in_use():
        raise NativeBuildError(f"use_native() comes too late: {loaded[0]} is imported already")
    folder = build()
    host_agents.__path__ = [str(folder / "host_agents")]
    _load_shared_library(folder)
    return True


def _root() -> Path:
    return Path(os.environ.get("P4CC_CACHE") or Path.home() / ".cache" / "p4cc") / "hosts"


def build() -> Path:
    """Return the folder with the compiled hosts.

    They are built if neither the wheel nor the cache has them. Raises NativeBuildError if the hosts
    cannot be compiled or stored.
    """
    if _is_shipped():
        return _SHIPPED
    root = _root()
    folder = root / _digest()
    if _is_sound(folder):
        return folder
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None and shutil.which("cc") is None:
        raise NativeBuildError("the hosts need a C compiler: install gcc (or set P4CC_NATIVE=0 to run them in Python)")
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        raise NativeBuildError(
            f"the hosts need Python's C headers ({include}/Python.h): install python3-dev (or set P4CC_NATIVE=0)"
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = os.open(root, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # if another process is building the same, its result is used
            return folder if _is_sound(folder) else _build_in(root, folder, compiler)
        finally:
            os.close(lock)
    except OSError as error:
        raise NativeBuildError(f"folder {root}: {_reason(error)}; P4CC_CACHE names another folder") from None


def ship(package: Path) -> None:
    """Copy the compiled hosts into a package for a wheel.

    Raises NativeBuildError if the hosts cannot be compiled.
    """
    shipped = package / _SHIPPED.name
    shutil.rmtree(shipped, ignore_errors=True)
    shutil.copytree(build(), shipped, ignore=shutil.ignore_patterns("__pycache__"))
    (shipped / _MADE_FOR).write_text(_made_for())


def _is_shipped() -> bool:
    try:
        return (_SHIPPED / _MADE_FOR).read_text() == _made_for() and _is_sound(_SHIPPED)
    except OSError:
        return False


def _made_for() -> str:
    return f"{sys.implementation.cache_tag} {platform.machine()} librt {_version('librt')} {_digest_of_sources()}\n"


def _build_in(root: Path, folder: Path, compiler: str) -> Path:
    work = Path(tempfile.mkdtemp(prefix="build-", dir=root))
    try:
        _compile(work, compiler if shutil.which(compiler) else "cc")
        (work / _DIGESTS).write_text("".join(f"{digest} {name}\n" for name, digest in _digests(work)))
        if folder.is_dir():
            folder.rename(work / "damaged")
        work.rename(folder)
        shutil.rmtree(folder / "damaged", ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _reason(error: OSError) -> str:
    """Return the reason in a few words; `shutil.Error` lists (from, to, the error's text)."""
    if isinstance(error, shutil.Error):
        return re.sub(r"^\[Errno \d+\] |: '.*", "", str(error.args[0][0][2]))
    return error.strerror or str(error)


def _digests(folder: Path) -> list[tuple[str, str]]:
    """Return (name, digest) of the loadable files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".so"))
    return [(str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def _is_sound(folder: Path) -> bool:
    """Return whether a folder is complete and unchanged."""
    try:
        lines = (folder / _DIGESTS).read_text().splitlines()
        return lines == [f"{digest} {name}" for name, digest in _digests(folder)]
    except (OSError, UnicodeDecodeError):
        return False


def _compile(work: Path, compiler: str) -> None:
    package = work / "host_agents"
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__", "*.so", _SHIPPED.name))
    # An empty package for the type checker, since the running one is already imported.
    modules = [f"host_agents/{name}" for name in COMPILED]
    for name in COMPILED_FOLDERS:
        modules += [f"host_agents/{name}/{path.name}" for path in sorted((package / name).glob("*.py"))]
    # Modules of p4cc that the hosts import. The folder of an installed p4cc is site-packages, which
    # mypy refuses as MYPYPATH.
    beside = work / "p4switch"
    beside.symlink_to(SOURCES.parent / "p4switch")
    environment = dict(os.environ, CFLAGS=" ".join(FLAGS), CC=compiler, PYTHONPATH="", MYPYPATH="")
    try:
        script = [str(_COMPILE), str(_root().resolve() / "objects" / _tools())]
        done = run(
            [sys.executable, "-I", *script, *modules],
            timeout_s=BUILD_WALL_S, cpu_s=BUILD_CPU_S, folder=work, environment=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NativeBuildError(f"compiling the hosts took over {BUILD_WALL_S} s") from None
    if done.returncode == -signal.SIGXCPU:
        raise NativeBuildError(f"compiling the hosts took over {BUILD_CPU_S} s of CPU time")
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        if any(_FULL in line for line in lines):
            folders = " or ".join(sorted({str(work.parent), os.environ.get("TMPDIR") or "/tmp"}))
            raise NativeBuildError(f"compiling the hosts failed: {_FULL} in {folders}")
        raise NativeBuildError("compiling the hosts failed: " + (lines[-1] if lines else "no output"))
    beside.unlink()
    shutil.rmtree(work / "build", ignore_errors=True)
    shutil.rmtree(work / ".mypy_cache", ignore_errors=True)


def _digest() -> str:
    return f"{_tools()}-{_digest_of_sources()}"


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.py")):
        if _SHIPPED not in path.parents:
            digest.update(f"{path.relative_to(SOURCES)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _tools() -> str:
    """Return the digest of all inputs besides the sources."""
    digest = hashlib.sha256()
    for text in (*FLAGS, sys.version, platform.machine(), _compiler_version(), _version("mypy"), _version("librt")):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:12]


def _compiler_version() -> str:
    try:
        done = subprocess.run(["cc", "--version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return ""
    return done.stdout


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise NativeBuildError(
            f"the hosts need the Python package {package} to be compiled: install {package}"
        ) from None


def _is_compiled(module: str) -> bool:
    parts = module.split(".")[1:]
    return f"{parts[0]}.py" in COMPILED or (parts[0] in COMPILED_FOLDERS and len(parts) > 1)


def _load_shared_library(folder: Path) -> None:
    """Load the library with all the code, which the modules beside it import by name."""
    (path,) = folder.glob("p4cc_hosts__mypyc*.so")
    name = "p4cc_hosts__mypyc"
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
