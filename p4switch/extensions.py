"""Python files of the user that register protocols and other objects by name when they are loaded.

A reference names such a file, and the object in it if it defines several: `./aimd.py`, `./aimd.py:aimd`, or
`./aimd.py:aimd+x` with a mechanism. A file may import modules in its own folder.

A file is code, so it is loaded only if the user has named it: on the command line, in Python, or in a scenario or sweep
that is run. The cache keeps a note of each such file with its path and content. A result folder
also names files, and it may come from someone else. Such a file is loaded only if it has a note.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from p4switch import cache
from p4switch.errors import UserError, raised_at, suggest
from p4switch.registry import Registry, forget
from p4switch.regular_file import read_regular

_REFERENCE = re.compile(r"(?P<file>.+?\.py)(?::(?P<name>[^:+]+))?(?P<added>\+.+)?")
_loaded: dict[Path, str] = {}  # digest of the text
_MOST_BYTES = 16 << 20
_NOTES = "extensions"  # kind of the cache's notes, one for each path and content that the user has named


class Reference(NamedTuple):
    """Reference to a file and to the object in it.

    `name` is None if the file defines only one object. `added` is the part from the first `+` on,
    which names mechanisms; it is empty if there are none.
    """

    file: Path
    name: str | None
    added: str

    def __str__(self) -> str:
        return f"{self.file}{':' + self.name if self.name else ''}{self.added}"


def reference(text: str, folder: Path) -> Reference | None:
    """Return `text` as a reference, relative to `folder`; None if it is a plain name."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return None
    file = (folder / Path(match["file"]).expanduser()).resolve()
    return Reference(file, match["name"], match["added"] or "")


def readable(value: object) -> object:
    """Return a reference without its path, and any other text unchanged."""
    parsed = reference(value, Path()) if isinstance(value, str) else None
    return value if parsed is None else (parsed.name or parsed.file.stem) + parsed.added


def name_of(registry: Registry[Any], wanted: Reference) -> str:
    """Return the name of the object that a reference denotes, after loading its file.

    Raises UserError if the file cannot be loaded or registers no such object.
    """
    load(wanted.file)
    names = registry.names_from(str(wanted.file))
    if wanted.name is None and len(names) == 1:
        return names[0] + wanted.added
    if not names:
        raise UserError(f"{wanted.file} registers no {registry.kind}")
    if wanted.name is None:
        raise UserError(f"{wanted.file}: expected {wanted.file.name}:NAME; it has {registry.kind}s {', '.join(names)}")
    if wanted.name not in names:
        raise UserError(f"{wanted.file} registers no {registry.kind} {wanted.name!r}; {suggest(wanted.name, names)}")
    return wanted.name + wanted.added


def named(registry: Registry[Any], text: str, folder: Path) -> str:
    """Return the registered name that a plain name or a reference denotes.

    Raises UserError if the file cannot be loaded or registers no such object.
    """
    wanted = reference(text, folder)
    return text if wanted is None else name_of(registry, wanted)


class _Source(SourceFileLoader):
    """Loader of the text whose digest was computed, without bytecode.

    Python would reuse bytecode of a file of the same length written within the same second.
    """

    def __init__(self, name: str, file: Path, text: bytes) -> None:
        super().__init__(name, str(file))
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._text, self.path)
        return code


def load(file: Path) -> None:
    """Load a file that the user named, so that it registers its definitions.

    A file that is already loaded is loaded again only if its text has changed.

    Raises UserError if the file cannot be read, and for an error in it.
    """
    file, text = _read(file)
    _load(file, text)
    # Without a writable cache, reports of results do not load the file, and lack its figures.
    with contextlib.suppress(UserError):
        cache.cached(_NOTES, _note(file, text), ".txt", lambda note: _write_note(note, file))


def load_known(file: Path) -> None:
    """Load a file that a result folder names, if it is unchanged since the user last named it directly.

    Raises UserError for any other file, which is not executed.
    """
    file, text = _read(file)
    if _loaded.get(file) != hashlib.sha256(text).hexdigest() and not cache.has(_NOTES, _note(file, text)):
        raise UserError(f"{file}: only the results name it; expected it with --extension, or extensions= in Python")
    _load(file, text)


def _read(file: Path) -> tuple[Path, bytes]:
    """Return the absolute path and the content.

    Raises UserError if it is missing, cannot be read or is too large.
    """
    try:
        file = file.resolve()
        return file, read_regular(file, _MOST_BYTES)
    except FileNotFoundError:
        raise UserError(f"no Python file {str(file)!r}") from None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except (ValueError, RuntimeError):  # a null character in the name; symbolic links in a loop
        raise UserError(f"no Python file {str(file)!r}") from None


def _note(file: Path, text: bytes) -> str:
    return cache.digest(str(os.geteuid()), os.fsencode(file), text)  # several users may share a cache


def _write_note(note: Path, file: Path) -> None:
    note.write_bytes(os.fsencode(file) + b"\n")


def _load(file: Path, text: bytes) -> None:
    digest = hashlib.sha256(text).hexdigest()
    if _loaded.get(file) == digest:
        return
    forget(str(file))
    _loaded.pop(file, None)
    try:
        _execute(file, text)
    except UserError as error:
        forget(str(file))
        raise UserError(f"{file}: {error}") from None
    except (Exception, SystemExit) as error:
        forget(str(file))
        raise UserError(f"{file} cannot be loaded: {raised_at(error)}") from None
    _loaded[file] = digest


def _execute(file: Path, text: bytes) -> None:
    """Execute a file as a module.

    The module has the name of the file, so that other files in the folder can import it. If another
    module has that name, it gets a unique name instead.
    """
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    importlib.invalidate_caches()
    name = file.stem if file.stem.isidentifier() and _found(file.stem) == file else f"_{_digest(file)}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_Source(name, file, text))
    assert spec is not None
    assert spec.loader is not None
    before: ModuleType | None = sys.modules.get(name)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise


def _found(name: str) -> Path | None:
    """Return the file that `import name` would execute."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:
        return None
    return Path(spec.origin).resolve() if spec and spec.origin else None


def _digest(file: Path) -> str:
    return hashlib.sha256(str(file).encode()).hexdigest()[:8]
