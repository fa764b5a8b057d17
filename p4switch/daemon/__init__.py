"""The built-in switch as a process: `p4cc switch`, compatible with simple_switch_grpc.

The process has raw frames on network interfaces, the engine's pipeline, the fabric's traffic manager in real time, and
a P4Runtime server. `load()` returns the extension module `_live`.
"""
import functools
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from p4switch import engine, native, traffic

_C = Path(__file__).parent / "c"
_NAME = "p4switch.daemon._live"


@functools.cache
def load() -> ModuleType:
    """Return the extension module `_live` (types Switch and Live).

    Raises native.BuildError.
    """
    sources = [path for path in sorted(engine.C_FOLDER.glob("*.c")) if path.name != "py_module.c"]
    library = native.build(
        "daemon",
        [*sources, *traffic.SOURCES, *traffic.PYTHON_SOURCES, *sorted(_C.glob("*.c"))],
        headers=[*engine.C_FOLDER.glob("*.h"), *traffic.HEADERS, *_C.glob("*.h")],
        flags=[f"-I{native.python_include()}", "-D_GNU_SOURCE", "-pthread", engine.abi_flag()],
    )
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(library))
    spec = importlib.util.spec_from_loader(_NAME, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_NAME] = module
    return module
