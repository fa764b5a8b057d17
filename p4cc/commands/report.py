"""`p4cc report`: compares runs that were made before."""

from __future__ import annotations

import re
from pathlib import Path

import click

from p4cc.commands._extensions import extension_option, load_extensions
from p4switch.errors import UserError
from p4switch.output_file import check_folder, check_writable

_PAGE, _FIGURES = Path("report.html"), Path("figures")
_UNITS_IN = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
_WIDTH = re.compile(r"(\d+(?:\.\d+)?) ?(in|cm|mm|pt)")
_WIDEST_IN = 40.0


def _inches(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Return a length with its unit in inches."""
    if text is None:
        return None
    match = _WIDTH.fullmatch(text.strip())
    width_in = float(match[1]) * _UNITS_IN[match[2]] if match else 0.0
    if not 0 < width_in <= _WIDEST_IN:
        raise UserError(f"--width: expected a width with its unit (in, cm, mm or pt), as in 3.3in, got {text!r}")
    return width_in


@click.command()
@click.argument("run_dirs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN_DIR...")
@click.option("--out", type=click.Path(path_type=Path), help="Default: report.html, or the folder figures.")
@click.option(
    "--format",
    "extension",
    type=click.Choice(["html", "pdf", "svg", "png"]),
    default="html",
    show_default=True,
    help="A page, or for a paper a file for each figure with a CSV file of its data.",
)
@click.option("--style", type=click.Choice(["ieee", "acm"]), help="Style of figures for a paper. Default: ieee.")
@click.option("--width", callback=_inches, metavar="WIDTH", help="Width, such as 84mm. Default: the style's.")
@extension_option
def command(
    run_dirs: tuple[Path, ...],
    out: Path | None,
    extension: str,
    style: str | None,
    width: float | None,
    own_files: tuple[Path, ...],
) -> None:
    """Compare runs that were made before.

    Writes one HTML page, or figures for a paper. A RUN_DIR is a folder written by `p4cc run`, or a single run inside
    one.
    """
    page = extension == "html"
    if page:
        for option, given in {"--style": style is not None, "--width": width is not None}.items():
            if given:
                raise UserError(f"{option}: a page has none; expected --format pdf, svg or png with it")
        check_writable(out or _PAGE, "--out")
    else:
        check_folder(out or _FIGURES, "--out")

    from harness.measure.output_folder import new_folder
    from reports import damage_named, load_all, write_report
    from reports.export import STYLES, write_figures

    results = [result for folder in run_dirs for result in load_all(folder)]
    with damage_named(results):
        load_extensions(own_files, results)
        if page:
            write_report(results, out or _PAGE)
        else:
            with new_folder(out or _FIGURES) as folder:
                written = list(write_figures(results, folder, extension, STYLES[style or "ieee"], width))
    what = f"{out or _PAGE}" if page else f"{len(written)} figures in {out or _FIGURES}"
    click.echo(f"{len(results)} run{'s' if len(results) > 1 else ''}: {what}")
