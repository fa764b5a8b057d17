"""P4 pipelines as native code: programs to C, tables, replication, the Python type `Switch`.

    from p4switch.engine import build, load
    switch = load().Switch(str(build(compile_program("program.p4").program)))

`build` turns a program into a shared library, and `load` returns the extension module `_engine` with the types `Switch`
and `Fabric`. Both need the system's C compiler and cache their results by content.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from p4switch import cache, native, traffic
from p4switch.ir.errors import ProgramError

if TYPE_CHECKING:
    from p4switch import ir
    from p4switch.engine._engine import Switch
    from p4switch.engine.codegen import Generated
    from p4switch.engine.control import Control
    from p4switch.engine.program import Program

__all__ = ["ProgramError", "Switch", "Traced", "build", "build_traced", "generated", "load", "pipe_seed"]

HERE = Path(__file__).parent
C_FOLDER = HERE / "c"
# Files that generated pipelines include in addition to those of their architecture. Their digest is
# the version of the interface between library and extension.
_HEADERS = (
    "actions.h", "allocate.h", "apply.h", "hash.h", "packet.h", "packets.h", "runtime.h", "switch.h", "trace.h",
    "wide.h",
)  # fmt: skip
PIPELINE_HEADERS = tuple(C_FOLDER / name for name in _HEADERS)
# Files of the engine that do not need Python.
_RUNTIME = (
    "process.c", "switch.c", "table.c", "values.c", "keys.c", "places.c", "aims.c", "profiles.c", "value_sets.c",
)  # fmt: skip
RUNTIME_SOURCES = tuple(C_FOLDER / name for name in _RUNTIME)
_TRACED = ("-DP4_TRACE", "-O1")  # -O2 takes three times as long to compile and does not speed up tracing
_NAME = "p4switch.engine._engine"
_PIPE_SEED_SHIFT = 56  # lowest bit of a seed above those that scenarios use


@functools.cache
def abi_flag() -> str:
    """Return the compiler's option that defines P4_ABI. It has to be the same for a library and the extension."""
    digest = cache.digest(*(path.read_bytes() for path in PIPELINE_HEADERS))
    return f"-DP4_ABI=0x{digest[:16]}ull"


@functools.cache
def load() -> ModuleType:
    """Return the extension module `_engine`.

    Raises native.BuildError without a C compiler or Python.h.
    """
    fabric_c = HERE.parent / "fabric" / "c"
    fabric_sources = [*sorted(fabric_c.glob("*.c")), *traffic.SOURCES, *traffic.PYTHON_SOURCES]
    library = native.build(
        "engine",
        [*sorted(C_FOLDER.glob("*.c")), *fabric_sources],
        headers=[*C_FOLDER.glob("*.h"), *fabric_c.glob("*.h"), *traffic.HEADERS],
        flags=[f"-I{native.python_include()}", abi_flag(), "-DP4_WITH_FABRIC"],
    )
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(library))
    spec = importlib.util.spec_from_loader(_NAME, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_NAME] = module
    return module


def generated(program: ir.Program, *, traced: bool = False) -> Generated:
    """Return the C source of a program's pipeline. Raises ProgramError for an unsupported feature.

    traced: the source will be built with -DP4_TRACE.
    """
    from p4switch.engine.codegen import generate

    return generate(program, traced=traced)


def build(program: ir.Program) -> Path:
    """Return the shared library of a program's pipeline, which is cached by content.

    Raises ProgramError and native.BuildError.
    """
    return _build(generated(program))


@dataclass(frozen=True)
class Traced:
    """Pipeline that reports packet events, with the data by which `p4switch.trace` decodes them."""

    library: Path
    program: Program
    control: Control


def build_traced(program: ir.Program) -> Traced:
    """Return the library of a traced pipeline.

    It reports packet events to its environment (p4_env.trace) and counts how often packets pass
    each point. This makes it slower.
    """
    pipeline = generated(program, traced=True)
    return Traced(_build(pipeline, *_TRACED), pipeline.program, pipeline.control)


def pipe_seed(seed: int, pipe: int) -> int:
    """Return the seed of a pipe, derived from the switch's seed, so that pipes draw different random numbers."""
    return seed ^ pipe << _PIPE_SEED_SHIFT


def _build(pipeline: Generated, *more: str) -> Path:
    # Compilers clear a packet by a slow instruction. Calling memset makes whole pipelines an eighth faster.
    flags = [abi_flag(), "-Wno-unused", "-fno-builtin-memset", *more]
    headers = [*PIPELINE_HEADERS, *pipeline.program.path.headers]
    return native.build_text(pipeline.program.nodes.name, pipeline.text, headers=headers, flags=flags)


def __getattr__(name: str) -> Any:
    if name == "Switch":
        return load().Switch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
