"""`p4cc stf`: packet tests in the format of p4c's corpus."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from p4switch.errors import UserError
from p4switch.output_file import check_folder, check_writable, write_files
from p4switch.sources import arch_option, define_option, include_option, pipeline_option

if TYPE_CHECKING:
    from p4switch.stf import Result
    from p4switch.trace.show import Form

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=_FILE, metavar="PATH...")
@click.option("--switch", type=click.Choice(["builtin", "bmv2"]), default="builtin", show_default=True)
@click.option("--p4", "program", type=_FILE, metavar="FILE.p4", help="Program of all tests.")
@include_option
@define_option
@arch_option
@pipeline_option
@click.option("-v", "--verbose", is_flag=True, help="Show the trace of every packet, not only of failing tests.")
@click.option(
    "--trace", "form", type=click.Choice(["text", "json", "log"]), default="text", show_default=True,
    help="Format of traces; log has simple_switch's lines.",
)  # fmt: skip
@click.option(
    "--coverage", type=_FILE, metavar="FOLDER", help="Write the coverage by packets: index.html, coverage.info (lcov)."
)
@click.option("--junit", "junit_file", type=_FILE, metavar="FILE.xml", help="Results in JUnit's format.")
@click.option(
    "-j",
    "jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="one a core",
    help="Tests at a time.",
)
def command(
    paths: tuple[Path, ...],
    switch: str,
    program: Path | None,
    include: tuple[Path, ...],
    define: dict[str, str],
    arch: str | None,
    pipeline: int | None,
    verbose: bool,
    form: Form,
    coverage: Path | None,
    junit_file: Path | None,
    jobs: int,
) -> None:
    """Run packet tests in p4c's STF format.

    PATH is a .stf file with its .p4 file beside it, or a folder of them. The last line reads: N
    passed, M failed.
    """
    if switch == "bmv2" and (verbose or coverage):
        raise UserError(f"{'-v' if verbose else '--coverage'}: BMv2 does not report this; expected --switch builtin")
    if junit_file is not None:
        check_writable(junit_file, "--junit")
    if coverage is not None:
        check_folder(coverage, "--coverage")

    from p4switch.coverage import Coverage
    from p4switch.stf.many import Options, junit, run_folder
    from p4switch.trace.show import show

    results: list[Result] = []
    total = Coverage()

    def each(result: Result) -> None:
        for line, trace in result.outcome.traces.items():
            if form == "text":
                click.echo(f"{result.test}:{line}: what happened to this packet:")
            show(trace, form)
        total.merge(result.outcome.coverage)
        results.append(result)

    given = tuple(define.items())
    measured = coverage is not None
    options = Options(switch, program, include, given, verbose, measured, arch, pipeline)
    passed = run_folder(paths, jobs, options=options, each=each)
    if junit_file is not None:
        write_files({junit_file: junit(results)})
    if coverage is not None:
        tell_coverage(total, coverage)
    sys.exit(0 if passed else 1)


def tell_coverage(coverage: object, folder: Path) -> None:
    """Print the table of coverage, the missed lines, and the path of the complete report."""
    from rich.console import Console

    from p4switch.coverage import Coverage, missed_lines, table, write

    assert isinstance(coverage, Coverage)
    Console().print(table(coverage))
    for line in missed_lines(coverage):
        click.echo(f"not reached: {line}")
    write(coverage, folder)
    click.echo(f"{folder / 'index.html'}, {folder / 'coverage.info'}")
