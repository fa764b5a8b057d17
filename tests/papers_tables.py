"""Tables of claims at the top of the papers' pages, for tests."""

from __future__ import annotations

from typing import NamedTuple

from harness import papers


class ClaimRow(NamedTuple):
    """Row of a table of claims: its cells by the title of their column."""

    cells: dict[str, str]

    @property
    def claim(self) -> str:
        return self.cells["id"]

    @property
    def verdict(self) -> str:
        return self.cells["verdict"].strip("*")


def claim_rows(paper: str) -> list[ClaimRow]:
    """Return the rows of the first table of a paper's page, which states how far each claim holds."""
    page = (papers.PAPERS / paper / "README.md").read_text(encoding="utf-8")
    table = [line for line in page.partition("\n| id |")[2].partition("\n\n")[0].splitlines() if line]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in ["id |" + table[0], *table[1:]]]
    return [ClaimRow(dict(zip(head, row, strict=True))) for row in rows]
