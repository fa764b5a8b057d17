"""Reserve of memory for the end of a process whose address space is limited (`ulimit -v`)."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

_SOURCE = Path(__file__).parent / "reserve.c"
_RESERVE_BYTES = 16 << 20  # size in the address space; the memory is not touched
_free: Callable[[], None] | None = None  # once the library is loaded


def library() -> Path:
    """Return the compiled reserve.

    Raises native.BuildError if the C compiler or Python.h is missing, or the compiler has no memory.
    """
    from p4switch import native

    return native.build("memory reserve", [_SOURCE], flags=[f"-I{native.python_include()}"])


def keep_reserve() -> None:
    """Keep memory for the end of this process if its address space is limited.

    The first small allocation of Python that fails then succeeds nevertheless, and MemoryError is
    raised in the main thread, with memory for its handlers. There is no reserve if it cannot be
    compiled; what needs the compiler reports this. Raises MemoryError if there is not even room for
    the reserve, or OSError if its library cannot be mapped.
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
    """Release the reserve for a clean-up after any error, which no MemoryError of its own interrupts then."""
    if _free is not None:
        _free()
