"""Cache of build products, addressed by the digest of all their inputs.

The files are in `$P4CC_CACHE`, by default `~/.cache/p4cc`:

    <kind>/<digest of the inputs>/<digest of the file><suffix>

A file is complete as soon as its name exists, because it is written under another name and then renamed; so processes
may share the cache without locks. The digest in the name is checked before the file is used. A file that was damaged by
a full disk, a power cut or a copy is built again.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from p4switch.errors import UserError

_OWN = re.compile(r"[0-9a-f]{40}(\.\w+)?")


def root() -> Path:
    """Return the folder of the cache."""
    folder = os.environ.get("P4CC_CACHE")
    return Path(folder) if folder else Path.home() / ".cache" / "p4cc"


def digest(*parts: str | bytes) -> str:
    """Return the digest of a sequence of parts.

    Sequences that differ only in where one part ends and the next begins have different digests.
    """
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:40]


def cached(kind: str, key: str, suffix: str, produce: Callable[[Path], None]) -> Path:
    """Return the cached file of `kind` for `key`.

    If the file is missing, `produce` is called with a path and writes the file there. Exceptions of
    `produce` are passed on, and then nothing is stored. Raises UserError if the cache is not
    writable.
    """
    folder = root() / kind / key
    try:
        for path in sorted(folder.glob(f"*{suffix}")):
            if is_sound(path):
                return path
            _remove(path)
        if folder.is_file():  # written by an earlier version
            _remove(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{key[:8]}-", dir=folder.parent) as beside:
            scratch = Path(beside) / (key + suffix)
            produce(scratch)
            target = folder / (digest(scratch.read_bytes()) + suffix)
            folder.mkdir(exist_ok=True)
            os.replace(scratch, target)
    except OSError as error:
        raise UserError(
            f"cache folder {folder.parent}: {error.strerror or error}; P4CC_CACHE names a folder that can be written to"
        ) from error
    return target


def has(kind: str, key: str) -> bool:
    """Return whether this user has built an undamaged file of `kind` for `key`.

    Several users may share a cache; each has records of its own.
    """
    try:
        return any(path.lstat().st_uid == os.geteuid() and is_sound(path) for path in (root() / kind / key).iterdir())
    except OSError:
        return False


def is_sound(path: Path) -> bool:
    """Return whether a file of the cache is unchanged.

    Raises OSError if the file cannot be read.
    """
    try:
        return path.is_file() and path.name.partition(".")[0] == digest(path.read_bytes())
    except FileNotFoundError:  # another process has found it damaged
        return False


def _remove(path: Path) -> None:
    """Remove the file or folder at a path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def damaged() -> list[Path]:
    """Return the damaged files of the cache, which are built again when they are needed.

    Raises OSError if a file cannot be read.
    """
    return [path for path in sorted(root().glob("*/*/*")) if _OWN.fullmatch(path.name) and not is_sound(path)]
