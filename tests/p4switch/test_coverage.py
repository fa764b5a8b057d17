"""The table of the code that packets reached, on a terminal."""

from __future__ import annotations

from rich.console import Console

from p4switch.coverage import Coverage, Item, table


def test_files_of_several_folders_can_be_told_apart() -> None:
    coverage = Coverage()
    for file in ("include/forwarding.p4", "load_balancing/ecmp.p4"):
        for kind in ("state", "transition", "hit", "action", "branch", "statement"):
            for line in range(100):
                coverage.counts[Item(f"/somewhere/{file}", line, 1, kind, "x", "y")] = line % 2
    console = Console(width=80)
    with console.capture() as told:
        console.print(table(coverage))
    rows = [line.split() for line in told.get().splitlines()]
    shares = ["50/100"] * 6
    assert ["include/forwarding.p4", *shares, "50.0%"] in rows
    assert ["load_balancing/ecmp.p4", *shares, "50.0%"] in rows
    assert ["all", *["100/200"] * 6, "50.0%"] in rows
