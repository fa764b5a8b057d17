"""Compilation of C sources to shared libraries and programs, cached by content.

The compiler is `$CC` if set, else `cc`, `gcc` or `clang`, whichever is found first.
"""

import errno
import functools
import os
import shlex
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from p4switch import cache, processes
from p4switch.errors import UserError

# No -march=native and no contraction of floating point: every build computes the same bits.
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-ffp-contract=off", "-fno-semantic-interposition", "-Wall")
# These flags optimise less, because compilers take twice as long for -O2 with these checks.
SANITIZE = ("-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
_FULL = os.strerror(errno.ENOSPC)
_OUT_OF_TIME = str(signal.strsignal(signal.SIGXCPU))  # a compiler's text for a process that ran out of time
_CPU_S = 300  # limit of a compiler's CPU time, which does not depend on other work on the machine
_WALL_S = 3600


class BuildError(UserError):
    """The C compiler is missing or fails."""


@functools.cache
def compiler() -> tuple[str, ...]:
    """Return the command of the C compiler.

    Raises BuildError if there is none.
    """
    if command := os.environ.get("CC"):
        words = tuple(shlex.split(command))
        if words and shutil.which(words[0]):
            return words
        raise BuildError(f"CC={command}: no such C compiler; expected the command of one, such as gcc")
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return (path,)
    raise BuildError("no C compiler found (cc, gcc or clang); on Debian and Ubuntu: apt-get install gcc libc6-dev")


@functools.cache
def compiler_version() -> str:
    """Return the compiler's version, with the machine it compiles for."""
    output = _run([*compiler(), "-v"], "C compiler")
    return output.strip()


def python_include() -> Path:
    """Return the folder of Python.h.

    Raises BuildError if it is not installed.
    """
    folder = Path(sysconfig.get_path("include"))
    if not (folder / "Python.h").exists():
        raise BuildError(f"{folder}/Python.h is missing; on Debian and Ubuntu: apt-get install python3-dev")
    return folder


def build(
    name: str,
    sources: Sequence[Path],
    *,
    headers: Iterable[Path] = (),
    flags: Sequence[str] = (),
    suffix: str = ".so",
) -> Path:
    """Compile and link `sources`; the result is cached under the digest of all inputs.

    `headers` are the files the sources include: they are part of the digest, and their folders are searched.
    With suffix ".so" the result is a shared library, otherwise a program. `name` is for messages.
    Raises BuildError if the compiler is missing or fails.
    """
    headers = sorted(headers)
    kind = ("-shared",) if suffix == ".so" else ()
    options = (*FLAGS, *kind, *flags, *(f"-I{folder}" for folder in sorted({str(h.parent) for h in headers})))
    contents = [part for path in (*sources, *headers) for part in (path.name, path.read_bytes())]
    key = cache.digest(*compiler(), compiler_version(), " ".join((*FLAGS, *kind, *flags)), *contents)

    def produce(target: Path) -> None:
        # The file is linked outside the cache, because linkers do not report clearly that the
        # cache's disk is full.
        with tempfile.TemporaryDirectory(prefix="p4cc-") as beside:
            built = Path(beside) / target.name
            _run([*compiler(), *options, *map(str, sources), "-o", str(built), "-lm"], name)
            shutil.copy(built, target)

    return cache.cached("native", key, suffix, produce)


def build_text(name: str, text: str, *, headers: Iterable[Path] = (), sources: Sequence[Path] = (),
               flags: Sequence[str] = (), suffix: str = ".so") -> Path:
    """Compile C source in a string, with further `sources`, like `build`.

    The cache keeps the source, too, for debuggers.
    """
    source = cache.cached("c", cache.digest(text), ".c", lambda path: _write(path, text))
    return build(name, [source, *sources], headers=headers, flags=flags, suffix=suffix)


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _run(command: Sequence[str], name: str) -> str:
    """Run the compiler and return its output."""
    try:
        done = processes.run(command, timeout_s=_WALL_S, cpu_s=_CPU_S, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{name}: the C compiler took over {_WALL_S} s") from error
    except OSError as error:
        raise BuildError(f"{command[0]}: {error.strerror}; expected a C compiler") from error
    if done.returncode == -signal.SIGXCPU or (done.returncode and _OUT_OF_TIME in done.stdout):
        raise BuildError(f"{name}: the C compiler took over {_CPU_S} s of CPU time")
    if done.returncode:
        output = done.stdout.splitlines()
        lines = [line for line in output if _FULL in line]
        lines += [line for line in output if "error" in line or "fatal" in line]
        reason = (lines or output or [f"status {done.returncode}"])[0]
        if "stdio.h" in reason or "stdint.h" in reason or "stddef.h" in reason:
            reason += "; on Debian and Ubuntu: apt-get install libc6-dev"
        raise BuildError(f"{name}: the C compiler failed: {reason}")
    return done.stdout
