"""P4 pipelines as native code: BMv2 JSON to C, tables, replication, the Python type `Switch`.

    from p4switch.engine import build, load
    switch = load().Switch(str(build(json)))

`build` turns a BMv2 JSON into a shared library, `load` returns the extension module `_engine` with the types `Switch`
and `Fabric`. Both need the system's C compiler and cache what they make, by content.
"""

import functools
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from p4switch import cache, native, traffic
from p4switch.engine.schema import JsonError

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

__all__ = ["JsonError", "Switch", "build", "load", "source"]

HERE = Path(__file__).parent
C_FOLDER = HERE / "c"
# What generated pipelines include; the digest of these is the version of what library and extension share.
PIPELINE_HEADERS = tuple(C_FOLDER / name for name in ("hash.h", "pipeline.h", "runtime.h", "switch.h", "wide.h"))
# The engine without Python.
RUNTIME_SOURCES = tuple(C_FOLDER / name for name in ("process.c", "switch.c", "table.c"))
_NAME = "p4switch.engine._engine"


@functools.cache
def abi_flag() -> str:
    """Defines P4_ABI: a library and the extension work together if theirs are the same."""
    digest = cache.digest(*(path.read_bytes() for path in PIPELINE_HEADERS))
    return f"-DP4_ABI=0x{digest[:16]}ull"


@functools.cache
def load() -> ModuleType:
    """The extension module `_engine`. Raises native.BuildError where there is no C compiler or no Python.h."""
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


def source(document: Mapping[str, Any]) -> str:
    """C source of the pipeline that a BMv2 JSON describes. Raises JsonError."""
    from p4switch.engine.codegen import generate

    return generate(document)


def build(document: Mapping[str, Any], *, trace: bool = False) -> Path:
    """The shared library of the pipeline that a BMv2 JSON describes, for `Switch`; cached by content.

    With `trace` the pipeline tells its environment what it does with each packet (p4_env.trace), which costs time.
    Raises JsonError, native.BuildError.
    """
    flags = [abi_flag(), "-Wno-unused-label", *(["-DP4_TRACE"] if trace else [])]
    text = source(document)
    return native.build_text(str(document.get("program", "program")), text, headers=PIPELINE_HEADERS, flags=flags)


def __getattr__(name: str) -> Any:
    if name == "Switch":
        return load().Switch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
