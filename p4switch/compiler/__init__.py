"""Compiler from P4-16 source to BMv2 JSON and P4Info, and to `bf-rt.json` if BfRuntime knows the architecture.

    compiled = compile_program("program.p4")
    compiled.json, compiled.p4info

A program for a chip may have several pipelines. Each is compiled separately (`compile_pipelines`).

Results are kept in `p4switch.cache`. Their key consists of the preprocessed text and the compiler's own source.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4switch import cache
from p4switch.architectures.architecture import ARCHITECTURES, extern_files
from p4switch.errors import UserError
from p4switch.interpreter import deep_recursion, uncollected
from p4switch.output_file import write_files

if TYPE_CHECKING:
    from p4switch import ir
    from p4switch.compiler.source import SourceMap

__all__ = ["Compiled", "compile_pipelines", "compile_program", "preprocess"]

_HERE = Path(__file__).parent
_SOURCES = ("architectures", "bfrt", "bits", "bmv2", "compiler", "engine", "ir", "p4runtime")


class Compiled:
    """Result of a compilation."""

    def __init__(
        self, json_text: str, p4info_bytes: bytes, warnings: Sequence[tuple[str, str]] = (), bf_rt_text: str = "null",
        program: ir.Program | None = None, pipelines: int = 1,
    ) -> None:
        self.pipelines = pipelines
        """Number of pipelines of the program, of which this is one."""
        self._program = program
        self._json_text = json_text
        self._p4info_bytes = p4info_bytes
        self._bf_rt_text = bf_rt_text
        self.named_warnings = tuple((name, text) for name, text in warnings)
        """Name (one of `warnings.NAMES`) and text of each warning.

        The text is `file:line:col: warning: text [name]`, followed by the source line.
        """

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings without their names."""
        return tuple(text for _, text in self.named_warnings)

    @functools.cached_property
    def json(self) -> dict[str, Any]:
        """The BMv2 JSON."""
        result: dict[str, Any] = json.loads(self._json_text)
        return result

    @functools.cached_property
    def program(self) -> ir.Program:
        """The program in the form that the engine takes; it is read from the JSON if the result is from the cache."""
        if self._program is not None:
            return self._program
        from p4switch.bmv2 import read

        return read(self.json)

    @functools.cached_property
    def p4info(self) -> Any:
        """The P4Info, a `p4.config.v1.P4Info` message."""
        from p4switch.p4runtime.messages import p4info_pb2

        return p4info_pb2.P4Info.FromString(self._p4info_bytes)

    @functools.cached_property
    def bf_rt(self) -> dict[str, Any]:
        """Return the content of `bf-rt.json`. Raises UserError for an architecture that BfRuntime does not know."""
        result: dict[str, Any] | None = json.loads(self._bf_rt_text)
        if result is None:
            raise UserError(
                f"a program for {self.p4info.pkg_info.arch} has no bf-rt.json: expected one for tna or t2na"
            )
        return result

    @property
    def json_bytes(self) -> bytes:
        """Return the BMv2 JSON as the bytes of a file."""
        return (json.dumps(self.json, indent=1) + "\n").encode()

    def write(
        self,
        json_path: str | Path | None = None,
        p4info_path: str | Path | None = None,
        bf_rt_path: str | Path | None = None,
    ) -> None:
        """Write the requested files, all or none.

        Parameters
        ----------
        json_path
            File for the BMv2 JSON.
        p4info_path
            File for P4Info: binary if its name ends in `.bin`, else text.
        bf_rt_path
            File for the `bf-rt.json` of a TNA or T2NA program.

        Raises
        ------
        UserError
            If a file cannot be written, or the program has no `bf-rt.json`.
        """
        contents: dict[Path, bytes] = {}
        if json_path is not None:
            contents[Path(json_path)] = self.json_bytes
        if p4info_path is not None:
            info = self._p4info_bytes if str(p4info_path).endswith(".bin") else self._p4info_text
            path = Path(p4info_path)
            contents[path] = contents.get(path, b"") + info  # options may name the same pipe, which gets both
        if bf_rt_path is not None:
            path = Path(bf_rt_path)
            contents[path] = contents.get(path, b"") + (json.dumps(self.bf_rt, indent=2) + "\n").encode()
        write_files(contents)

    @property
    def _p4info_text(self) -> bytes:
        from google.protobuf import text_format

        head = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"
        return (head + text_format.MessageToString(self.p4info)).encode()


@functools.cache
def _compiler_digest() -> str:
    """Return a digest of the compiler's own source, and of the packages that it uses."""
    files = sorted(f for folder in _SOURCES for kind in ("*.py", "*.p4") for f in (_HERE.parent / folder).rglob(kind))
    return cache.digest(*(part for f in files for part in (str(f.relative_to(_HERE.parent)), f.read_bytes())))


def preprocess(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
) -> SourceMap:
    """Return the preprocessed text of a program, as `compile_program` compiles it.

    Parameters
    ----------
    path, include_dirs, defines, arch
        As for `compile_program`.

    Returns
    -------
    SourceMap
        The text, with the file and line from which each part comes.

    Raises
    ------
    UserError
        If a file cannot be read, or there is no such architecture.
    """
    from p4switch.compiler.includes import preprocessor

    architecture = None if arch is None else ARCHITECTURES.find(arch)
    return preprocessor([*map(Path, include_dirs)], defines or {}, architecture).run(Path(path))


def compile_program(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
    pipeline: int | None = None,
) -> Compiled:
    """Compile a P4-16 program.

    Parameters
    ----------
    path
        File of the program.
    include_dirs
        Folders that are searched for include files, before those of the architectures (`core.p4` ...).
    defines
        Texts of macros by name.
    arch
        Name of the architecture. Default: the architecture that has the package of `main`.
    pipeline
        Number of a pipeline of the program, from 0. Default: the only pipeline.

    Returns
    -------
    Compiled
        BMv2 JSON, P4Info and warnings, from the cache if the same text was compiled before.

    Raises
    ------
    CompileError
        With all errors found in the program.
    UserError
        If a file cannot be read, or there is no such architecture.
    """
    # Only the preprocessor is imported unless the program has to be compiled, because the imports
    # take most of the time.
    source = preprocess(path, include_dirs, defines, arch)
    externs = [file.read_bytes() for file in extern_files()]
    chosen = arch or "", str(pipeline)
    key = cache.digest(_compiler_digest(), *externs, str(path), *chosen, source.text, _positions(source))

    compiled: list[Compiled] = []

    def produce(target: Path) -> None:
        result = _compile(path, include_dirs, defines, arch, pipeline)
        compiled.append(result)
        texts = result._json_text, json.dumps(result.named_warnings), result._bf_rt_text, str(result.pipelines)
        parts = [texts[0].encode(), result._p4info_bytes, *(text.encode() for text in texts[1:])]
        head = " ".join(str(len(p)) for p in parts)
        target.write_bytes(head.encode() + b"\n" + b"".join(parts))

    kept = cache.cached("p4", key, ".bin", produce)
    if compiled:
        return compiled[0]
    head, _, rest = kept.read_bytes().partition(b"\n")
    ends = [0, *itertools.accumulate(map(int, head.split()))]
    json_text, p4info, warnings, bf_rt, count = (rest[start:end] for start, end in itertools.pairwise(ends))
    return Compiled(json_text.decode(), p4info, json.loads(warnings), bf_rt.decode(), pipelines=int(count))


def compile_pipelines(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
) -> list[Compiled]:
    """Compile each pipeline of a P4-16 program.

    Parameters
    ----------
    path, include_dirs, defines, arch
        As for `compile_program`.

    Returns
    -------
    list
        The results, one for each pipeline in order; programs of most architectures have one.

    Raises
    ------
    CompileError, UserError
        As `compile_program`.
    """
    first = compile_program(path, include_dirs, defines, arch, 0)
    others = range(1, first.pipelines)
    return [first, *(compile_program(path, include_dirs, defines, arch, number) for number in others)]


def _positions(source: SourceMap) -> str:
    """Return the origins of the pieces of the text. The source information of the result depends on them."""
    pieces = [f"{p.start} {p.file.path} {p.offset}" for p in source.pieces]
    files = {id(p.file): p.file for p in source.pieces}
    return "\n".join([*pieces, *(str(file.line_starts) for file in files.values())])


def _compile(
    path: str | Path,
    include_dirs: Sequence[str | Path],
    defines: Mapping[str, str] | None,
    arch: str | None = None,
    pipeline: int | None = None,
) -> Compiled:
    from p4switch.bfrt import schema
    from p4switch.bmv2.writer import to_json
    from p4switch.compiler.frontend import parse_and_check
    from p4switch.compiler.p4info import build_p4info
    from p4switch.compiler.passes import for_bmv2, lowered

    with uncollected(), deep_recursion():
        program = parse_and_check(path, include_dirs, defines, arch)
        program.pipeline = pipeline
        result = lowered(program)
        p4info = build_p4info(result)
        bmv2_program = for_bmv2(result)
        bmv2 = json.dumps(to_json(bmv2_program))
        bf_rt = json.dumps(schema.build(result, p4info))
    warnings = [(w.name, str(w)) for w in program.warnings]
    return Compiled(bmv2, p4info.SerializeToString(deterministic=True), warnings, bf_rt, bmv2_program, result.pipelines)
