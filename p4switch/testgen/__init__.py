"""Generator of packet tests: concolic execution of the compiler's intermediate code by the architecture's rules.

Only this executor determines the expected packets. It uses the same compiler as the built-in switch, but no code of the
engine. It needs z3 (`pip install p4cc[testgen]`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from p4switch.errors import UserError
from p4switch.interpreter import deep_recursion
from p4switch.sources import SOURCE_DIRECTORY

if TYPE_CHECKING:
    from p4switch.testgen.code import Code
    from p4switch.testgen.search import Result

__all__ = ["generate", "write"]


def generate(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    seed: int = 0,
    assume: Sequence[str] = (),
    most: int | None = None,
    seconds: float = 60.0,
    arch: str | None = None,
    pipeline: int | None = None,
) -> tuple[Code, Result]:
    """Return tests for the program in file `path` that cover all statements, within `seconds` from now.

    `most` is the maximum number of tests. All packets satisfy the assumptions in `assume`
    (`testgen.assume`). `compile_program` describes `arch` and `pipeline`.

    Raises CompileError and UserError.
    """
    try:
        import z3  # noqa: F401
    except ImportError:
        raise UserError("generated tests need z3, which is not installed: pip install 'p4cc[testgen]'") from None
    from p4switch.compiler.frontend import parse_and_check
    from p4switch.compiler.passes import lowered
    from p4switch.testgen.assume import assumption
    from p4switch.testgen.code import Code
    from p4switch.testgen.search import Search

    began_s = time.monotonic()
    program = parse_and_check(path, include_dirs, defines, arch)
    program.pipeline = pipeline
    with deep_recursion():
        compiled = lowered(program)
        compiled.require("testgen")
        code = Code(compiled)
        given = assumption(" and ".join(f"({text})" for text in assume), code) if assume else None
        return code, Search(code, seed, given, most, seconds - (time.monotonic() - began_s)).run()


def write(
    folder: Path,
    program: Path,
    include: Sequence[Path],
    code: Code,
    result: Result,
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
    pipeline: int | None = None,
) -> list[Path]:
    """Write the tests as STF files, and a pytest module for them, into `folder`; return the STF files.

    Packets that violate assertions of the program are in separate files, `...-assert-N.stf`, which the module does not
    run.
    """
    from p4switch.output_file import write_files
    from p4switch.testgen.output import pytest_module, setup, stf

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {str(folder)!r}: {error.strerror}") from None
    contents: dict[Path, bytes] = {}
    digits = len(str(len(result.tests)))
    for number, test in enumerate(result.tests, start=1):
        new, if_zero = (code.locations(bits) for bits in (test.new & test.anyway, test.new & ~test.anyway))
        contents[folder / f"{program.stem}-{number:0{digits}}.stf"] = stf(test, new, if_zero).encode()
    files = list(contents)
    for number, (place, run) in enumerate(result.violations, start=1):
        lines = [f"# breaks the assertion at {Path(place.file).name}:{place.line}", *setup(run)]
        lines.append(f"packet {run.port} {run.packet.hex().upper()}")
        contents[folder / f"{program.stem}-assert-{number}.stf"] = ("\n".join(lines) + "\n").encode()
    folders = [_from(folder, i) for i in include if i != SOURCE_DIRECTORY]
    module = pytest_module(_from(folder, program), folders, defines or {}, [f.name for f in files], arch, pipeline)
    contents[folder / f"test_{program.stem.replace('-', '_')}.py"] = module.encode()
    write_files(contents)
    return files


def _from(folder: Path, path: Path) -> Path:
    return Path(os.path.relpath(path.absolute(), folder.absolute()))
