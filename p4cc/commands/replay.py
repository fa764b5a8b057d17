"""`p4cc replay`: a page that plays a run."""

from __future__ import annotations

from pathlib import Path

import click

from p4cc.commands._extensions import extension_option, load_extensions
from p4switch.errors import UserError
from p4switch.output_file import check_writable, write_files
from p4switch.printable import tell

_PAGE = Path("replay.html")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--run", "name", metavar="NAME", help="Which of several runs in the folder, as dcqcn-seed1.")
@click.option("--out", type=click.Path(path_type=Path), default=_PAGE, show_default=True)
@extension_option
def command(folder: Path, name: str | None, out: Path, own_files: tuple[Path, ...]) -> None:
    """Watch a run that was made before.

    Writes one HTML page that shows the network over time: links, queues, flows, and the packets of
    a traced flow (`p4cc run --trace`). FOLDER is one written by `p4cc run`, or a single run inside
    one.
    """
    check_writable(out, "--out")

    from harness.measure.results import damaged, load_all
    from reports.replay import choose, recorded_page

    result = choose(load_all(folder), folder, name)
    load_extensions(own_files, [result])
    try:
        page = recorded_page(result)
    except (UserError, ModuleNotFoundError):
        raise
    except Exception as error:  # a file that does not have the form that a run writes
        raise damaged(result, error) from None
    write_files({out: page})
    tell(f"{out}: {result.folder.name}, {len(page) / 1e6:.1f} MB")
