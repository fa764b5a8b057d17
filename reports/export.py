"""Figures for a paper: one file each, as wide as a column, with embedded fonts and data as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

from harness.measure.results import Result
from p4switch.errors import UserError
from reports.figure_data import figure_table
from reports.figures import figures
from reports.groups import compare
from reports.plots import STYLE, for_paper

_COLUMN_IN = 6.0  # figures that p4cc draws wider than this take the page's width
_DPI = 600  # resolution of PNGs, and of rasterized parts of other formats
_NO_DATE = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


@dataclass(frozen=True)
class PaperStyle:
    """Publisher's style of figures: a matplotlib style in this folder, and the widths of column and page."""

    name: str
    width_in: float
    page_width_in: float

    @property
    def file(self) -> Path:
        return STYLE.with_name(f"{self.name}.mplstyle")


STYLES = {style.name: style for style in (PaperStyle("ieee", 3.5, 7.16), PaperStyle("acm", 3.33, 7.0))}


def write_figures(
    results: Sequence[Result], folder: Path, extension: str, style: PaperStyle, width_in: float | None = None
) -> Iterator[Path]:
    """Write SCENARIO-FIGURE.EXTENSION and SCENARIO-FIGURE.csv into `folder`; yield the figures' paths.

    A figure is as wide as a column, and a heat map of links as wide as the page; `width_in`, in
    inches, overrides both. Figures keep their proportions. Only a heat map that is narrower than
    the page keeps its height. Raises UserError if the folder does not exist.
    """
    if not folder.is_dir():
        raise UserError(f"no folder {str(folder)!r}; expected one for the figures")
    for comparison in compare(results):
        for name, figure in figures(comparison).items():
            target = folder / f"{comparison.scenario}-{name}.{extension}"
            with for_paper(style.file):
                plot = figure.plot(comparison)
                width, height = plot.get_size_inches()
                of_page = width > _COLUMN_IN
                natural = style.page_width_in if of_page else style.width_in
                wanted = natural if width_in is None else width_in
                plot.set_size_inches(wanted, height / width * (max(wanted, natural) if of_page else wanted))
                with mpl.rc_context(fname=style.file):
                    plot.savefig(target, dpi=_DPI, metadata=_NO_DATE[extension])
            figure_table(plot).to_csv(target.with_suffix(".csv"), index=False)
            yield target
