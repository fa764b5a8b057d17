"""The page: everything in one file, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import importlib.util
from pathlib import Path

import jinja2

from harness.measure.results import Result
from harness.replay.pack import packed
from harness.replay.recorded import Recorded
from p4switch.errors import UserError

MOST_BYTES = 20_000_000
_MOST_CELLS = 8_000_000  # numbers over time, before they are compressed
_HERE = Path(__file__).parent
_CARRIER = "mpld3"  # the package that has d3's file
_D3 = Path("js/d3.v5.min.js")


def recorded_page(result: Result) -> bytes:
    """The page of one run, of at most 20 MB: intervals are joined until that is so. Raises UserError."""
    recorded = Recorded(result)
    head = recorded.head()
    room = MOST_BYTES - len(page(b"", head["title"]))
    joined = 1
    while recorded.cells() > joined * _MOST_CELLS:
        joined *= 2
    while True:
        data = packed({**head, "joined": joined}, recorded.arrays(joined))
        if len(data) * 4 // 3 + 4 <= room:
            return page(data, head["title"])
        if joined > 1 << 20:
            raise UserError(f"{str(result.folder)!r}: its flows alone take over {MOST_BYTES / 1e6:.0f} MB")
        joined *= 2


def page(data: bytes, title: str) -> bytes:
    """`data`: what `packed` gives; empty: the page asks where it came from for it, again and again."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_HERE, _HERE.parent / "report"]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("replay.html.j2")
    return template.render(title=title, data=base64.b64encode(data).decode(), d3=_d3()).encode()


def _d3() -> str:
    """The library that draws. Raises ModuleNotFoundError, which names what brings it, and UserError."""
    found = importlib.util.find_spec(_CARRIER)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {_CARRIER!r}", name=_CARRIER)
    path = Path(found.submodule_search_locations[0]) / _D3
    if not path.is_file():
        raise UserError(f"{path}: no such file; expected d3 in the package {_CARRIER}")
    return path.read_text(encoding="utf-8")
