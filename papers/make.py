"""Command that makes the figures of the papers: `make reproduce`, or `python -m papers.make [NAME...]`.

A paper's targets follow from its folder. There is one for each sweep, for each scenario that no
sweep of the same name covers, for each script in `studies/`, and for each figure of `figures.toml`.
The output is a folder in `reproduction/`, a CSV file there for a study, or a picture in the paper's
`figures/`. An output has its final name only when it is complete, and is not made again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from harness import papers
from p4switch.errors import UserError, suggest
from papers.figures import figures, table_of

OUT = Path("reproduction")
REFERENCE = "reference"  # the general sweeps, behind docs/reference-runs.md


class Target(NamedTuple):
    """Folder or file of `reproduction/`, and the Python arguments that make it."""

    path: Path
    arguments: tuple[str, ...]


def _p4cc(command: str, name: str) -> Target:
    main = "from p4cc.cli import main; main()"
    return Target(OUT / name, ("-c", main, command, name, "--out", str(OUT / name)))


def _study(paper: str, script: Path) -> Target:
    path = OUT / f"{paper}-{script.stem}.csv"
    return Target(path, ("-m", f"papers.{paper}.studies.{script.stem}", "--csv", str(path)))


def _figure(paper: str, folder: Path, name: str) -> Target:
    path = folder / "figures" / f"{name}.png"
    return Target(path, ("-m", "papers.figures", paper, name, "--out", str(path)))


def targets() -> dict[str, list[Target]]:
    """Return the targets of each paper by the name of its folder, and those of the reference runs."""
    sweeps, scenarios = papers.files("sweeps"), papers.files("scenarios")
    by_paper = {REFERENCE: [_p4cc("sweep", name) for name, path in sweeps.items() if not papers.paper_of(path)]}
    for paper, folder in papers.folders().items():
        by_paper[paper] = [
            *(_p4cc("sweep", name) for name, path in sweeps.items() if papers.paper_of(path) == paper),
            *(_p4cc("run", name) for name, path in scenarios.items()
              if papers.paper_of(path) == paper and name not in sweeps),
            *(_study(paper, script) for script in sorted((folder / "studies").glob("[!_]*.py"))),
            *(_figure(paper, folder, name) for name, figure in figures(paper).items()
              if table_of(paper, figure).exists()),
        ]
    return by_paper


def chosen(names: Sequence[str], known: Mapping[str, Sequence[Target]]) -> list[Target]:
    """Return the targets that these names of papers and targets select; without names, all targets.

    Raises
    ------
    UserError
        For a name that is neither a paper's nor a target's.
    """
    by_name = {target.path.name: target for of_paper in known.values() for target in of_paper}
    selected: list[Target] = []
    for name in names or known:
        if name in known:
            selected += known[name]
        elif name in by_name:
            selected.append(by_name[name])
        else:
            raise UserError(f"no paper and no target {name!r}; {suggest(name, [*known, *by_name])}")
    return selected


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "only_list", is_flag=True, help="Show the targets and make none.")
def main(names: tuple[str, ...], only_list: bool) -> None:
    """Make the targets of papers (dart), or single targets (smartt-fig6), in reproduction/."""
    try:
        selected = chosen(names, targets())
    except UserError as error:
        raise click.ClickException(str(error)) from None
    for target in selected:
        if only_list:
            click.echo(target.path)
        elif not target.path.exists():
            click.echo(f"making {target.path}")
            OUT.mkdir(exist_ok=True)
            if subprocess.run([sys.executable, *target.arguments], check=False).returncode:
                raise click.ClickException(f"{target.path} could not be made")


if __name__ == "__main__":
    main()
