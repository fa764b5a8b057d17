"""The folder of several runs: its path, and what is kept when a report fails or a signal arrives."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from pathlib import Path

import click

from harness.measure import provenance
from harness.measure.output_folder import machine_error, unused
from p4switch import interruption
from p4switch.errors import UserError

ERROR_FILE = "report-error.txt"
# Reports on several runs, beside the runs. A resumed command removes them or writes them anew.
REPORTS = (ERROR_FILE, "report.html", "plots", "sweep.html", "runs.csv", "fct.csv", "coverage")


def attempt(write_report: Callable[[], None], folder: Path) -> list[str]:
    """Write a report on the results in `folder`, and return the errors; the results are always kept.

    Each error is one line. An error that the machine or the user caused, such as a full disk, is
    reported by its reason; for a defect, `report-error.txt` has the traceback. A signal ends only
    the report, because the runs are done; mpiexec may send a signal long after a rank has died.
    """
    prefix = "the results are kept, but there is no report"
    try:
        write_report()
    except KeyboardInterrupt:
        interruption.heard()
        return [f"{prefix}: interrupted"]
    except UserError as error:
        return [f"{prefix}: {error}"]
    except Exception as error:
        if (machine_reason := machine_error(error)) is not None:
            return [f"{prefix}: {machine_reason}"]
        with contextlib.suppress(OSError):
            (folder / ERROR_FILE).write_text(traceback.format_exc(), encoding="utf-8")
        reason = next(iter(str(error).splitlines()), "")
        return [f"{prefix}: {type(error).__name__}: {reason} (see {ERROR_FILE})"]
    return []


def tell_kept(done: int, wanted: int, folder: Path) -> None:
    """Print the number of kept runs in `folder` after Ctrl-C or a crash, and the command that makes the rest."""
    rest = provenance.command_line("--resume", str(folder))
    click.echo(f"{done} of {wanted} runs are kept; to make the others: {rest}", err=True)


def where_to(out: Path | None, default: Path, resume: Path | None) -> Path:
    """Return the folder to write, which is `resume` if that is given.

    Raises UserError if two are given.
    """
    if resume is None:
        return out or unused(default)
    if out is not None and out.absolute() != resume.absolute():
        raise UserError(f"--out {out}: with --resume {resume} the others are written there; expected one of the two")
    return resume
