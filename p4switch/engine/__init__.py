"""P4 pipelines as native code: BMv2 JSON to C, tables, replication, the Python type `Switch`.

The extension module `_engine` (types `Switch` and `Fabric`) is built by the system's C compiler when it is first
asked for, and cached. `from p4switch.engine import Switch` does so; so does `load()`, which returns the module.
"""

import functools
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from p4switch import native

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

__all__ = ["Switch", "load"]

HERE = Path(__file__).parent
_NAME = "p4switch.engine._engine"


@functools.cache
def load() -> ModuleType:
    """The extension module `_engine`. Raises native.BuildError where there is no C compiler or no Python.h."""
    engine_c = HERE / "c"
    fabric_c = HERE.parent / "fabric" / "c"
    fabric_sources = sorted(fabric_c.glob("*.c"))
    library = native.build(
        "engine",
        [*sorted(engine_c.glob("*.c")), *fabric_sources],
        headers=[*engine_c.glob("*.h"), *fabric_c.glob("*.h")],
        flags=[f"-I{native.python_include()}", *(["-DP4_WITH_FABRIC"] if fabric_sources else [])],
    )
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(library))
    spec = importlib.util.spec_from_loader(_NAME, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_NAME] = module
    return module


def __getattr__(name: str) -> Any:
    if name == "Switch":
        return load().Switch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
