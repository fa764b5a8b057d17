"""Reserve of memory for the end of a process whose address space is limited (`ulimit -v`)."""

from __future__ import annotations

import resource
from pathlib import Path

_SOURCE = Path(__file__).parent / "reserve.c"
_RESERVE_BYTES = 16 << 20  # of addresses: it is not touched


def library() -> Path:
    """Return the compiled reserve.

    Raises native.BuildError without a C compiler or Python.h.
    """
    from p4switch import native

    return native.build("memory reserve", [_SOURCE], flags=[f"-I{native.python_include()}"])


def keep_reserve() -> None:
    """Keep memory for the end of this process if its address space is limited.

    The first small allocation of Python that fails then succeeds nevertheless, and MemoryError is
    raised in the main thread, with memory for its handlers. Raises MemoryError if there is not even
    room for the reserve, and native.BuildError as `library` does.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes

    keep = ctypes.PyDLL(str(library())).keep_reserve
    keep.argtypes = [ctypes.c_size_t]
    if not keep(_RESERVE_BYTES):
        raise MemoryError
