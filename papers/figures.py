"""Figures of the papers: our numbers in `measured/`, together with the papers' numbers.

    python -m papers.figures PAPER NAME --out FILE

A paper's `figures.toml` has a table for each of its figures. A bar is the mean of the rows of a
group and a series, with a line from their minimum to their maximum. The pictures are in `figures/`;
`python -m papers.make` makes missing ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from harness import papers
from harness.plan.scenario import read
from p4switch.errors import UserError, lookup, validate
from p4switch.tables import Table
from reports.claims import Number, number
from reports.plots import PAPER, colour, draw_paper, plain_logarithmic, styled

_OURS = "p4cc"  # name of the only series
_UPRIGHT = 95  # if the names of all places have more characters than this together, they are rotated


class PapersNumber(Table):
    """Number of a paper, and the bars to which it applies: those of a group, of a series, or of both."""

    group: str = ""
    series: str = ""
    number: Any  # a number, [least, most], or a table with one of these

    def is_of(self, group: str, series: str) -> bool:
        """Return whether the number belongs to a bar."""
        return self.group in ("", group) and self.series in ("", series)


class PapersFigure(Table):
    """Figure of a paper."""

    caption: str  # title of the picture
    claims: list[str]
    table: str  # table of `measured/`
    where: dict[str, list[Any]] = {}  # values of columns in the rows that are drawn
    group: str = ""  # column of the places on the horizontal axis
    group_title: str = ""  # title of the groups, if their names do not explain them
    series: str = ""  # column of the colours
    # Columns of the values. Without `group` each is a group of its own.
    values: list[str]
    names: dict[str, str] = {}  # names of groups and series that differ from those in the table
    # Series whose mean divides the values of the others, in the same group (and for the same seed,
    # if rows have one).
    over: str = ""
    label: str  # label of the vertical axis
    logarithmic: bool = False
    paper_name: str = "paper"
    paper: list[PapersNumber] = []  # the paper's numbers
    paper_columns: list[str] = []  # columns that have the paper's numbers


class Bar(NamedTuple):
    """Values of a series in a group, and the paper's number."""

    group: str
    series: str
    values: list[float]
    paper: Number | None


def figures(paper: str) -> dict[str, PapersFigure]:
    """Return the figures of a paper by name; none if it has no `figures.toml`."""
    file = papers.PAPERS / paper / "figures.toml"
    tables: Mapping[str, Any] = read(file) if file.exists() else {}
    return {name: validate(PapersFigure, table, f"{paper}: {name}") for name, table in tables.items()}


def table_of(paper: str, figure: PapersFigure) -> Path:
    """Return the file of a figure's table, which is in a checkout but not in an installed package."""
    return papers.PAPERS / paper / "measured" / f"{figure.table}.csv"


def bars(figure: PapersFigure, rows: pd.DataFrame) -> list[Bar]:
    """Return the bars of a figure, in the order of the table.

    Raises
    ------
    UserError
        For a number of the paper that belongs to no bar, since it would not be drawn.
    """
    for column, wanted in figure.where.items():
        rows = rows[rows[column].isin(wanted)]
    if figure.over:
        rows = _divided(rows, figure)
    columns = {column: [column] for column in figure.values} if not figure.group else {"": figure.values}
    found, used = [], set()
    for column, values in columns.items():
        groups = rows[figure.group] if figure.group else pd.Series(column, rows.index)
        of_series = rows[figure.series] if figure.series else pd.Series(_OURS, rows.index)
        for (group, series), own in rows.groupby([groups, of_series], sort=False):
            known = own[figure.paper_columns].to_numpy(float)
            paper = Number(float(known.min()), float(known.max())) if known.size else None
            for place, one in enumerate(figure.paper):
                if one.is_of(str(group), str(series)):
                    used.add(place)
                    paper = number(one.number)
            found.append(Bar(str(group), str(series), own[values].to_numpy(float).ravel().tolist(), paper))
    for place, one in enumerate(figure.paper):
        if place not in used:
            where = f"group {one.group!r} and series {one.series!r}"
            raise UserError(f"paper[{place}]: expected a bar of the table {figure.table} (got {where})")
    return found


def _divided(rows: pd.DataFrame, figure: PapersFigure) -> pd.DataFrame:
    """Return the rows of other series, with values divided by those of the series `over`."""
    keys = [key for key in (figure.group, "seed") if key in rows]
    is_base = rows[figure.series] == figure.over
    base = rows[is_base].groupby(keys)[figure.values].mean()
    others = rows[~is_base].set_index(keys)
    others[figure.values] = others[figure.values] / base.loc[others.index].to_numpy()
    return others.reset_index()


def digest(figure: PapersFigure, found: list[Bar]) -> str:
    """Return a digest of the contents of a figure's picture, which is stored in the picture."""
    return hashlib.sha256(repr((figure, found)).encode()).hexdigest()


def read_bars(paper: str, figure: PapersFigure) -> list[Bar]:
    """Return the bars of a paper's figure from its table."""
    return bars(figure, pd.read_csv(table_of(paper, figure), dtype={figure.group: str, figure.series: str}))


def drawn(figure: PapersFigure, found: list[Bar]) -> Figure:
    """Return the picture of a figure."""
    groups = list(dict.fromkeys(bar.group for bar in found))
    series = list(dict.fromkeys(bar.series for bar in found))
    with styled():
        picture = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = picture.subplots()
        width = 0.8 / len(series)
        for bar in found:
            index = series.index(bar.series)
            place = groups.index(bar.group) + (index - (len(series) - 1) / 2) * width
            _draw(axes, bar, place, 0.9 * width, colour(index))
        names = [figure.names.get(group, group) for group in groups]
        turned = len(names) * max(map(len, names)) > _UPRIGHT
        axes.set_xticks(np.arange(len(groups)), names, rotation=30 if turned else 0, ha="right" if turned else "center")
        axes.grid(visible=False, axis="x")
        axes.set(xlabel=figure.group_title, ylabel=figure.label)
        axes.set_title(figure.caption, fontsize="small")
        if figure.logarithmic:
            axes.set_yscale("log")
            plain_logarithmic(axes.yaxis)
        shown = [Line2D([], [], marker="s", ls="none", color=colour(i), label=figure.names.get(name, name))
                 for i, name in enumerate(series)]
        if any(bar.paper for bar in found):
            shown.append(Line2D([], [], marker="D", label=figure.paper_name, **PAPER))
        picture.legend(handles=shown, loc="outside upper center", ncols=4, fontsize="small")
    return picture


def _draw(axes: Axes, bar: Bar, place: float, width: float, shade: str) -> None:
    mean, least, most = float(np.mean(bar.values)), min(bar.values), max(bar.values)
    axes.bar(place, mean, width, color=shade)
    axes.vlines(place, least, most, color="0.5")
    draw_paper(axes, place, bar.paper, fill="white")


def draw(paper: str, name: str, file: Path) -> None:
    """Write the picture of a figure of a paper.

    Raises
    ------
    UserError
        If the paper has no figure of this name.
    """
    figure = lookup(f"figure of {paper}", name, figures(paper))
    found = read_bars(paper, figure)
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn(figure, found).savefig(file, dpi=120, metadata={"Source": digest(figure, found)})


@click.command()
@click.argument("paper", type=click.Choice(list(papers.folders())))
@click.argument("name")
@click.option("--out", "file", type=click.Path(path_type=Path), required=True, help="Picture (.png or .svg).")
def main(paper: str, name: str, file: Path) -> None:
    """Draw a figure of a paper."""
    try:
        draw(paper, name, file)
    except UserError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
