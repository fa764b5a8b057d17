"""Coverage reports for a terminal, a browser, and tools that read lcov's format."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, PackageLoader
from rich.box import SIMPLE
from rich.table import Table

from p4switch.coverage.model import KINDS, Coverage, Item, Share
from p4switch.output_file import write_files

_COLUMNS = {
    "states": ("state",), "transitions": ("transition",), "tables": ("hit", "miss", "entry"), "actions": ("action",),
    "branches": ("branch",), "statements": ("statement",),
}  # fmt: skip
_LONG = 8
_FUNCTIONS = ("state", "action")
_BRANCHES = ("branch", "transition", "hit", "miss")


def _cell(share: Share) -> str:
    if not share.all:
        return ""
    color = "green" if share.reached == share.all else "yellow" if share.reached else "red"
    return f"[{color}]{share.reached}/{share.all}"


def table(coverage: Coverage) -> Table:
    """Return a table with the reached items and all items of each file, and a row with the sums.

    File names are relative to the common folder.
    """
    grid = Table("file", *map(_heading, _COLUMNS), "", box=SIMPLE, padding=0)
    grid.columns[0].overflow = "fold"
    for column in grid.columns[1:]:
        column.justify, column.no_wrap = "right", True
    rows: list[tuple[str, str | None]] = [*_short_names(coverage.files)]
    for name, file in [*rows, ("all", None)]:
        if name == "all":
            grid.add_section()
        whole = coverage.summary(KINDS, file)
        cells = [_cell(coverage.summary(kinds, file)) for kinds in _COLUMNS.values()]
        grid.add_row(name, *cells, f"{whole.percent:.1f}%")
    return grid


def _heading(column: str) -> str:
    """Return a heading. A long one is split in two lines to leave room for the file names."""
    half = len(column) // 2
    return f"{column[:half]}-\n{column[half:]}" if len(column) > _LONG else column


def _short_names(files: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the displayed name of each file, and the file."""
    paths = {file: Path(file).resolve() for file in files if file}
    top = os.path.commonpath([path.parent for path in paths.values()]) if paths else ""
    for file in files:
        yield str(paths[file].relative_to(top)) if file else "(no source)", file


def missed_lines(coverage: Coverage) -> list[str]:
    """Return a line FILE:LINE ITEM for each missed item, in the order of the source."""
    return [str(item) for item in coverage.missed()]


def _by_line(coverage: Coverage) -> dict[str, dict[int, list[tuple[Item, int]]]]:
    files: dict[str, dict[int, list[tuple[Item, int]]]] = defaultdict(lambda: defaultdict(list))
    for item, count in coverage.items():
        if item.file:
            files[item.file][item.line].append((item, count))
    return files


def lcov(coverage: Coverage) -> str:
    """Return an lcov tracefile.

    Functions are states and tables' actions; branches include transitions, hits and misses.
    """
    out: list[str] = []
    for file, lines in sorted(_by_line(coverage).items()):
        out += ["TN:", f"SF:{Path(file).resolve()}"]
        everything = [pair for line in sorted(lines) for pair in lines[line]]
        functions = [(item, count) for item, count in everything if item.kind in _FUNCTIONS]
        branches = [(item, count) for item, count in everything if item.kind in _BRANCHES]
        names = {item: f"{item.name}.{item.detail}" if item.detail else item.name for item, _ in functions}
        often = Counter(names.values())  # lcov identifies functions by name, and two parsers may have a state "start"
        names = {item: name if often[name] == 1 else f"{name}:{item.line}" for item, name in names.items()}
        out += [f"FN:{item.line},{names[item]}" for item, _ in functions]
        out += [f"FNDA:{count},{names[item]}" for item, count in functions]
        out += [f"FNF:{len(functions)}", f"FNH:{sum(count > 0 for _, count in functions)}"]
        numbers: dict[int, int] = defaultdict(int)
        for item, count in branches:
            out.append(f"BRDA:{item.line},0,{numbers[item.line]},{count}")
            numbers[item.line] += 1
        out += [f"BRF:{len(branches)}", f"BRH:{sum(count > 0 for _, count in branches)}"]
        counts = {line: max(count for _, count in lines[line]) for line in sorted(lines)}
        out += [f"DA:{line},{count}" for line, count in counts.items()]
        out += [f"LF:{len(counts)}", f"LH:{sum(map(bool, counts.values()))}", "end_of_record"]
    return "\n".join(out) + "\n" if out else ""


def html(coverage: Coverage) -> str:
    """Return an HTML page: a table of the files, then each file's source with coloured lines."""
    files = []
    for number, (file, lines) in enumerate(sorted(_by_line(coverage).items())):
        try:
            text = Path(file).read_text(errors="replace").splitlines()
        except OSError:
            text = [""] * max(lines)
        rows = []
        for line, source in enumerate(text, start=1):
            items = lines.get(line, [])
            missed = [str(item).partition(": ")[2] for item, count in items if not count]
            state = "" if not items else "none" if len(missed) == len(items) else "part" if missed else "full"
            rows.append({"number": line, "source": source, "state": state, "missed": missed,
                         "count": max((count for _, count in items), default=None)})  # fmt: skip
        shares = [coverage.summary(kinds, file) for kinds in _COLUMNS.values()]
        files.append({"id": f"f{number}", "name": file, "rows": rows, "shares": shares,
                      "percent": coverage.summary(KINDS, file).percent})  # fmt: skip
    environment = Environment(loader=PackageLoader("p4switch.coverage", "."), autoescape=True)
    template = environment.get_template("report.html.j2")
    return template.render(files=files, titles=list(_COLUMNS), whole=coverage.summary().percent)


def write(coverage: Coverage, folder: Path) -> None:
    """Write index.html and coverage.info (lcov) into a folder, which is created if necessary.

    Raises UserError if a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_files({folder / "index.html": html(coverage).encode(), folder / "coverage.info": lcov(coverage).encode()})
