"""Build products, addressed by the digest of everything that went into them.

They live under `$P4CC_CACHE`, by default `~/.cache/p4cc`. A file is complete as soon as its name exists: it is
written beside its place and renamed into it, so processes may share the cache without locks.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from p4switch.errors import UserError


def root() -> Path:
    """The folder of the cache."""
    folder = os.environ.get("P4CC_CACHE")
    return Path(folder) if folder else Path.home() / ".cache" / "p4cc"


def digest(*parts: str | bytes) -> str:
    """A name for the sequence `parts`; where one part ends and the next begins counts."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:40]


def cached(kind: str, key: str, suffix: str, produce: Callable[[Path], None]) -> Path:
    """The file `kind/key+suffix`; `produce` is called with a path to write it to if it does not exist yet.

    What `produce` raises is passed on, and nothing is kept then.
    """
    target = root() / kind / (key + suffix)
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{key[:8]}-", dir=target.parent) as folder:
            scratch = Path(folder) / target.name
            produce(scratch)
            os.replace(scratch, target)
    except OSError as error:
        raise UserError(
            f"cache folder {target.parent}: {error.strerror or error}; P4CC_CACHE names a folder that can be written to"
        ) from error
    return target
