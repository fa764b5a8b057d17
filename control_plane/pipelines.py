"""P4 programs that are ready to run: compiled, as native code, and prepared for the controller."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from control_plane import controller
from control_plane.load_balancing import DEFAULT, LoadBalancer
from control_plane.programs.entries import BfRuntimeScript
from p4switch import processes
from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.compiler import Compiled, compile_program, preprocess
from p4switch.compiler.frontend import declared_architecture
from p4switch.engine import Traced, build, build_traced, load
from p4switch.errors import UserError
from p4switch.ir.graph import draws
from p4switch.p4runtime.messages import Message, parse_p4info
from p4switch.sources import SOURCE_DIRECTORY

if TYPE_CHECKING:
    from p4switch.engine import Switch

P4C = "p4c-bm2-ss"
BMV2_ARCHITECTURE = "v1model"  # architecture of p4c's output, and of the BMv2 switch that runs it
LOSS = "LOSS_PPM"  # macro of include/switch.p4: lost packets in a million
_BALANCED = "LOAD_BALANCER"  # macro that names the load balancer's file
_P4C_TIMEOUT_S = 120


@dataclass(frozen=True)
class Build:
    """Input of a compilation: P4 file, include folders, macros, and the requested architecture.

    `pipeline` is the number of one of several pipelines of the program; None: it has only one.
    `digest` is the digest of the file and its includes, which may be edited between two runs of a
    process. Raises UserError if a file cannot be read or preprocessed.
    """

    source: Path
    include_dirs: tuple[Path, ...] = (SOURCE_DIRECTORY,)
    defines: tuple[tuple[str, str], ...] = ()
    architecture: str | None = None
    pipeline: int | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            text = preprocess(self.source, self.include_dirs, dict(self.defines))
            files = dict.fromkeys((piece.file.path, piece.file.text) for piece in text.pieces)
            object.__setattr__(self, "digest", hashlib.sha256(repr((text.text, *files)).encode()).hexdigest())

    @classmethod
    def of(
        cls,
        source: Path,
        load_balancer: LoadBalancer,
        defines: Mapping[str, str],
        include_dirs: Sequence[Path] = (SOURCE_DIRECTORY,),
        architecture: str | None = None,
    ) -> Build:
        """Return the build of a program with a load balancer; the default load balancer adds nothing."""
        folders, macros = [*include_dirs], dict(defines)
        if load_balancer.name != DEFAULT:
            folders.append(load_balancer.source.parent)
            macros[_BALANCED] = load_balancer.name
        return cls(source, tuple(folders), tuple(sorted(macros.items())), architecture)


@dataclass(frozen=True)
class Pipeline:
    """A compiled program; any number of switches may run it."""

    program: controller.Program
    library: Path
    draws: bool
    """Whether the program draws random numbers, to mark packets, for example."""
    traced: Traced | None = None
    """Reader of its switches' reports, if they send any."""

    def switch(self, device_id: int, seed: int) -> Switch:
        """Return a fresh instance whose clock ticks in nanoseconds."""
        switch: Switch = load().Switch(str(self.library), device_id=device_id, seed=seed, tick_ns=1)
        return switch


@lru_cache(maxsize=8)
def pipeline(what: Build, trace: bool = False, compiler: str = "builtin") -> Pipeline:
    """Return a compiled program, cached.

    Raises UserError (a CompileError for errors in the program).

    With `trace` it reports its actions on each packet, and counts the statements that packets
    reach. Both cost time.
    """
    program = compiled(what, compiler)
    if _BALANCED in dict(what.defines) and all(action.preamble.alias != "balance" for action in program.p4info.actions):
        raise UserError(
            f"switch.load_balancing: {what.source} does not use a load balancer; expected a program that "
            "includes include/forwarding.p4"
        )
    if LOSS in dict(what.defines) and all(counter.preamble.alias != "lost_in" for counter in program.p4info.counters):
        raise UserError(
            f"switch.loss: {what.source} does not drop packets at random; "
            "expected a program that includes include/switch.p4"
        )
    scripted = partial(_scripted, what)
    known = controller.Program.of(program, scripted)
    if not trace:
        return Pipeline(known, build(program.program), draws(program.program))
    traced = build_traced(program.program)
    return Pipeline(known, traced.library, draws(program.program), traced)


def _scripted(what: Build, entry: BfRuntimeScript) -> list[Message]:
    """Return the updates for the entries that a script writes into a pipe."""
    first = what if what.pipeline is None else replace(what, pipeline=0)
    modules = tuple(file.read_bytes() for file in (entry.path, *sorted(entry.path.parent.glob("*.py"))))
    return _of_script(first, entry.path, modules, entry.switch, entry.pipes)[entry.pipe]


@lru_cache(maxsize=4096)
def _of_script(
    what: Build, script: Path, modules: tuple[bytes, ...], switch: str, pipes: tuple[int, ...]
) -> dict[int, list[Message]]:
    """Run a script once for a switch and return its updates by pipe (`bfrt_script.updates`).

    `modules` has the contents of the script and of the modules beside it, which may be edited
    between two runs of a process.
    """
    from control_plane import bfrt_script  # imported here, because only scripts need BfRuntime's server and gRPC

    builds = pipelines_in(what, several=what.pipeline is not None)
    programs = {pipe: compiled(builds[place % len(builds)]) for place, pipe in enumerate(pipes)}
    return bfrt_script.updates(programs, what.source.stem, script, switch)


@lru_cache(maxsize=32)
def compiled(what: Build, compiler: str = "builtin") -> Compiled:
    """Return a program compiled by the built-in compiler or p4c.

    Raises UserError if the program cannot be compiled, or if p4c is missing.
    """
    if compiler == "p4c":
        return _p4c(what)
    return compile_program(what.source, what.include_dirs, dict(what.defines), what.architecture, what.pipeline)


def pipelines_in(what: Build, *, several: bool) -> list[Build]:
    """Return the build of each pipeline of a program.

    Without `several` the program must have exactly one. Raises UserError (a CompileError for errors
    in the program).
    """
    if not several:
        return [what]
    return [replace(what, pipeline=number) for number in range(compiled(replace(what, pipeline=0)).pipelines)]


@lru_cache(maxsize=32)
def architecture(what: Build, key: str = "switch.architecture") -> Architecture | None:
    """Return the architecture that a program is compiled for.

    None if it is known only after compilation. Raises UserError, which begins with the scenario's
    `key` if there is no such architecture.
    """
    if what.architecture is not None:
        try:
            return ARCHITECTURES.find(what.architecture)
        except UserError as error:
            raise UserError(f"{key}: {error}") from None
    return declared_architecture(what.source, what.include_dirs, dict(what.defines))


def _p4c(what: Build) -> Compiled:
    if what.architecture not in (None, BMV2_ARCHITECTURE):
        raise UserError(
            f"switch.architecture: {P4C} compiles for {BMV2_ARCHITECTURE} only, not for {what.architecture}; expected "
            "the built-in compiler"
        )
    if shutil.which(P4C) is None:
        raise UserError(f"{P4C} is not in PATH: install p4c (package p4lang-p4c), or use the built-in compiler")
    with tempfile.TemporaryDirectory(prefix="p4cc-p4c-") as directory:
        config, p4info = Path(directory, "program.json"), Path(directory, "p4info.txtpb")
        command = [P4C, str(what.source), "-o", str(config), "--p4runtime-files", str(p4info)]
        command += [part for folder in what.include_dirs for part in ("-I", str(folder))]
        command += [f"-D{name}={text}" for name, text in what.defines]
        try:
            done = processes.run(command, timeout_s=_P4C_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{P4C}: {error}") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or [f"exit status {done.returncode}"]
            raise UserError(f"{P4C}: {lines[0]}")
        return Compiled(config.read_text(), parse_p4info(p4info.read_text()).SerializeToString(deterministic=True))
