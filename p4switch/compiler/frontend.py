"""Front end: from a P4-16 file to a checked program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4switch.architectures.architecture import ARCHITECTURES, Architecture, architecture_with
from p4switch.compiler import ast
from p4switch.compiler.ast import Program
from p4switch.compiler.casts import insert_casts
from p4switch.compiler.desugar import desugar
from p4switch.compiler.diagnostics import CompileError, Reporter
from p4switch.compiler.facts import Facts
from p4switch.compiler.includes import preprocessor
from p4switch.compiler.lexer import tokenize
from p4switch.compiler.names import resolve
from p4switch.compiler.parser import Parser
from p4switch.compiler.semantics import check
from p4switch.compiler.warnings import warn
from p4switch.interpreter import deep_recursion


@dataclass(frozen=True)
class Step:
    """Step of the front end after parsing. `help` is a line that describes it."""

    name: str
    help: str
    run: Callable[[Program, Reporter], None]


STEPS = (
    Step("names", "uses of names get their declarations", lambda program, _: resolve(program)),
    Step("check", "expressions get types, and constants values; what is not allowed is an error", check),
    Step("desugar", "short forms are written out: one key set a key, instances of applied types", desugar),
    Step("casts", "constants become literals, implicit conversions casts", insert_casts),
    Step("warn", "what is allowed and probably not meant is a warning", warn),
)


def listed() -> list[tuple[str, str]]:
    """Return the names of all steps in order, each with a line that describes it."""
    return [("parse", "the text becomes a syntax tree"), *((step.name, step.help) for step in STEPS)]


def parse(
    path: Path,
    include_dirs: Sequence[Path],
    defines: Mapping[str, str],
    architecture: Architecture | None = None,
) -> tuple[Program, Reporter]:
    """Read, preprocess and parse a file; errors go to the reporter.

    Raises the exceptions of `parse_and_check` for errors before parsing.
    """
    reading = preprocessor(include_dirs, defines, architecture)
    source = reading.run(path)
    reporter = Reporter(source)
    reporter.warnings.extend(reading.warnings)
    tokens = tokenize(source.text)
    declarations = Parser(source.text, tokens, reporter.error).program()
    return Program(str(path), declarations, source, Facts()), reporter


def declared_architecture(path: Path, include_dirs: Sequence[Path], defines: Mapping[str, str]) -> Architecture | None:
    """Return the architecture that has the package of `main`; None for a program that cannot be parsed.

    Raises UserError for a file that cannot be read.
    """
    try:
        with deep_recursion():
            program, reporter = parse(path, include_dirs, defines)
    except CompileError:
        return None
    return None if reporter.failed else _architecture(program)


def _architecture(program: Program) -> Architecture | None:
    """Return the architecture that has the package of `main`. The program may be parsed only."""
    main = next((d for d in program.declarations if isinstance(d, ast.Instantiation) and d.name == "main"), None)
    decls = {d.name: d for d in program.declarations if isinstance(d, ast.PackageDecl | ast.TypedefDecl)}
    written = None if main is None else main.type_expr
    while isinstance(written, ast.NamedTypeExpr):
        decl = decls.pop(written.name, None)
        if isinstance(decl, ast.PackageDecl):
            return architecture_with(decl)
        written = None if decl is None else decl.type_expr
    return None


def parse_and_check(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
) -> Program:
    """Read, preprocess, parse and check the program in file `path`.

    `include_dirs` are searched for include files before the folders of the architectures (`core.p4` ...).
    `defines` maps macro names to their text. `arch` names the architecture, by default the one that has
    the package of `main`. Warnings are in `Program.warnings`.

    Raises `CompileError` with all errors found, and `UserError` for a file that cannot be read or an unknown
    architecture.
    """
    chosen = None if arch is None else ARCHITECTURES.find(arch)
    with deep_recursion():
        program, reporter = parse(Path(path), [Path(d) for d in include_dirs], defines or {}, chosen)
        reporter.stop_on_errors()
        program.architecture = _architecture(program) if chosen is None else chosen
        for step in STEPS:
            step.run(program, reporter)
            reporter.stop_on_errors()
        program.warnings = reporter.warnings
    return program
