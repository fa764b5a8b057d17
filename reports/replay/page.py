"""Page of a replay in one file, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import jinja2

from harness.measure.results import Result
from harness.plan.how import TRACE_LINES
from p4switch.errors import UserError
from reports.replay.pack import packed
from reports.replay.recorded import Recorded, cells, is_recorded

MOST_BYTES = 20_000_000
_MOST_CELLS = 8_000_000  # numbers over time, before compression
_SMALL_CELLS = 400_000
_SMALL_BYTES = 500_000
_SMALL_TRACE_BYTES = 10_000_000
_MOST_OF_TRACE = 0.75  # share of a page's bytes, including flows
_HERE = Path(__file__).parent
_CARRIER = "mpld3"  # the package that contains d3's file
_D3 = Path("js/d3.v5.min.js")


def recorded_page(result: Result) -> bytes:
    """Return the page of one run, of at most 20 MB.

    If it is larger, later packets are left out first, then intervals are joined. Raises UserError,
    also if flows alone take more.
    """
    recorded = Recorded(result)
    title = recorded.head(1)["title"]
    room = (MOST_BYTES - len(shell(b"", title))) * 3 // 4 - 4  # base64 encodes three bytes as four
    if len(packed({}, recorded.flows())) > room:
        raise UserError(f"{str(result.folder)!r}: its flows alone take over {MOST_BYTES / 1e6:.0f} MB; expected fewer")
    while recorded.trace is not None and recorded.trace.packets:
        fixed = {**recorded.flows(), **recorded.trace.arrays}
        if len(packed({"texts": recorded.trace.texts}, fixed)) <= room * _MOST_OF_TRACE:
            break
        recorded.trace = recorded.trace.cut(len(recorded.trace.packets) // 2)
    joined = 1
    while cells(result) > joined * _MOST_CELLS:
        joined *= 2
    while len(data := packed(recorded.head(joined), recorded.arrays(joined))) > room:
        if joined > 1 << 20:
            raise UserError(
                f"{str(result.folder)!r}: its flows, and one interval of its links and rates, take over "
                f"{MOST_BYTES / 1e6:.0f} MB; expected fewer"
            )
        joined *= 2
    return shell(data, title)


@dataclass(frozen=True)
class Small:
    """Part of a report's page that shows a run.

    `remark` says which data are missing and why; it is empty if all are there.
    """

    data: bytes
    remark: str


def small_data(result: Result) -> Small | None:
    """Return the data of a small page; None if it is too large, nothing was recorded, or d3 is missing.

    Raises UserError for a network that cannot be built any more, and for a damaged trace.
    """
    if importlib.util.find_spec(_CARRIER) is None or not is_recorded(result) or cells(result) > _SMALL_CELLS:
        return None
    trace = result.folder / TRACE_LINES
    there = os.path.lexists(trace)
    for traced in (True, False) if there else (False,):
        if traced and trace.lstat().st_size > _SMALL_TRACE_BYTES:
            continue
        recorded = Recorded(result, traced)
        data = packed(recorded.head(1), recorded.arrays(1))
        if len(data) <= _SMALL_BYTES:
            large = there and not traced
            return Small(data, "without the packets of its trace, which is too large for a report" if large else "")
    return None


def shell(data: bytes, title: str) -> bytes:
    """Return the page.

    `data` is the output of `packed`. If it is empty, the page requests data repeatedly from its
    server.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_HERE, _HERE.parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("replay.html.j2")
    return template.render(title=title, data=base64.b64encode(data).decode(), d3=_d3()).encode()


def _d3() -> str:
    """Return the drawing library.

    Raises UserError, and ModuleNotFoundError that names the package with the library.
    """
    spec = importlib.util.find_spec(_CARRIER)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {_CARRIER!r}", name=_CARRIER)
    path = Path(spec.submodule_search_locations[0]) / _D3
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected d3 in the package {_CARRIER}")
    return path.read_text(encoding="utf-8")
