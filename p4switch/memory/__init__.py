"""Reserve of memory for the clean-up of a process whose address space is limited (`ulimit -v`)."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

_SOURCE = Path(__file__).parent / "reserve.c"
_RESERVE_BYTES = 16 << 20  # size in the address space; the memory is not touched
_free: Callable[[], None] | None = None  # function of the library, once it is loaded


def library() -> Path:
    """Return the compiled reserve.

    Raises native.BuildError if the C compiler or Python.h is missing, or the compiler has no memory.
    """
    from p4switch import native

    return native.build("memory reserve", [_SOURCE], flags=[f"-I{native.python_include()}"])


def keep_reserve() -> None:
    """Reserve memory for the clean-up of this process if its address space is limited.

    When a small allocation of Python fails for the first time, the reserve is released and the
    allocation succeeds. MemoryError is then raised in the main thread, whose handlers can use the
    released memory. If the library cannot be compiled, there is no reserve, and the next step that
    needs the compiler reports the error. Raises MemoryError if there is no room for the reserve, or
    OSError if its library cannot be mapped.
    """
    global _free
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes

    from p4switch import native

    try:
        path = library()
    except native.BuildError:
        return
    loaded = ctypes.PyDLL(str(path))
    loaded.keep_reserve.argtypes = [ctypes.c_size_t]
    loaded.free_reserve.restype = None
    _free = loaded.free_reserve
    if not loaded.keep_reserve(_RESERVE_BYTES):
        raise MemoryError


def free_reserve() -> None:
    """Release the reserve for a clean-up after any error, so that no MemoryError interrupts the clean-up."""
    if _free is not None:
        _free()
