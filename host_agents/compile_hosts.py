"""Compilation of the hosts by a process of `host_agents.native`, in a folder with a copy of their sources.

    python compile_hosts.py OBJECTS MODULE...

mypyc translates all modules to C as one group, so they call each other directly, and all subclasses
are known. Then gcc compiles each protocol and load balancer separately, and all other modules as
one unit, so that it can inline across them. Objects are cached in the folder OBJECTS by the digest
of their inputs: the C of a unit, and the declarations of mypyc's headers that it uses. So only
edited units are compiled, unless the edit adds a new literal, such as a string, since mypyc numbers
all literals.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mypyc.build import mypycify
from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.sysconfig import customize_compiler

GROUP = "p4cc_hosts"
_C = Path("build")  # mypyc's output
_WORD = re.compile(r"[A-Za-z_]\w*")
_LITERALS = re.compile(r"CPyStatics\[\d+\];")  # the number of a literal has no effect
_INNERMOST = re.compile(r"\{[^{}]*\}")
_ALONE = re.compile(r"__native_host_agents___(cc|lb)___(?!base$)")  # compiled separately
_DECLARED = re.compile(r"([A-Za-z_]\w*)\s*[(\[;=]")


def declarations(header: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each declaration of a header; the name is "" if it has none.

    Preprocessor directives have no name.
    """
    depth = 0
    lines: list[str] = []
    for line in _LITERALS.sub("CPyStatics[];", header).splitlines():
        if line.startswith("#") and not lines:
            yield "", line
            continue
        lines.append(line)
        depth += line.count("{") - line.count("}")
        if not depth and line.endswith(";"):
            text = "\n".join(lines)
            lines = []
            yield _name(text), text
    yield "", "\n".join(lines)


def _name(declaration: str) -> str:
    outside = declaration
    while (less := _INNERMOST.sub("", outside)) != outside:
        outside = less
    match = None if "(*" in outside else _DECLARED.search(outside)
    return match[1] if match else ""


def used(text: str, known: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the declarations that a C text uses, transitively, and those without a name."""
    needed = list(known.get("", ()))
    words: set[str] = set()
    new = {word for part in (text, *needed) for word in _WORD.findall(part)}
    while new:
        words |= new
        more = [declaration for word in sorted(new) for declaration in known.get(word, ())]
        needed += more
        new = {word for declaration in more for word in _WORD.findall(declaration)} - words
    return needed


class Objects:
    """Compiler of C with a cache by the digest of the inputs, one for each set of tools.

    The digest includes the options of the tools, but not the paths of the tools and their headers.
    """

    def __init__(self, folder: Path, compiler: Any, headers: Path) -> None:
        self._folder = folder
        self._compiler = compiler
        self._headers = headers
        self._known: dict[str, list[str]] = {}
        for header in sorted(headers.glob("*.h")):
            for name, text in declarations(header.read_text(encoding="utf-8")):
                self._known.setdefault(name, []).append(text)

    def of(
        self, unit: str, sources: Sequence[Path], include_dirs: Sequence[str] = (), flags: Sequence[str] = ()
    ) -> str:
        """Return the object of some C files that are compiled together."""
        text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
        parts = [*self._compiler.compiler_so, *flags, text]
        parts += used(text, self._known) if '#include "__native' in text else []
        key = _digest("\0".join(parts).encode())
        for kept in self._folder.glob(f"{key}-*.o"):
            if kept.stem == f"{key}-{_digest(kept.read_bytes())}":  # undamaged
                return str(kept)
        whole = self._headers / f"unit-{unit}.c"
        names = [source.relative_to(self._headers).as_posix() for source in sources]
        whole.write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
        (output,) = self._compiler.compile([str(whole)], include_dirs=list(include_dirs), extra_postargs=list(flags))
        data = Path(output).read_bytes()
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as scratch:
            scratch.write(data)
        return str(Path(scratch.name).rename(self._folder / f"{key}-{_digest(data)}.o"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]


def main(folder: Path, modules: Sequence[str]) -> None:
    """Build the extension modules in the working directory."""
    extensions = mypycify(
        ["--strict", *modules],
        opt_level="3",
        debug_level="0",
        group_name=GROUP,
        multi_file=True,
        target_dir=str(_C),
    )
    compiler = new_compiler()
    customize_compiler(compiler)
    folder.mkdir(parents=True, exist_ok=True)
    objects = Objects(folder, compiler, _C)
    for extension in extensions:
        linked = _objects_of(extension, objects)
        target = Path(*extension.name.split(".")).with_suffix(str(sysconfig.get_config_var("EXT_SUFFIX")))
        compiler.link_shared_object(linked, str(target))


def _objects_of(extension: Any, objects: Objects) -> list[str]:
    """Compile an extension's units, several at a time, each in a process of its own."""
    include_dirs = [sysconfig.get_path("include"), str(_C), *extension.include_dirs]
    units: dict[str, list[Path]] = {}
    for source in map(Path, extension.sources):
        units.setdefault(source.stem if _ALONE.match(source.stem) else extension.name, []).append(source)
    # The largest unit first, since it takes as long as all protocols together.
    names = sorted(units, key=lambda unit: -sum(path.stat().st_size for path in units[unit]))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        flags = extension.extra_compile_args
        futures = [pool.submit(objects.of, name, units[name], include_dirs, flags) for name in names]
        return [each.result() for each in futures]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
