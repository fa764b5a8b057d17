"""Pages of results with hostile texts: they have the same kinds of elements and attributes as others, and no script."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

from harness.measure.results import load_all
from reports.sweep_page import Entry, write_sweep
from tools.attack import hostile
from tools.attack.attack import Attack, Finding
from tools.attack.calling import call
from tools.attack.kinds.results import RUN

_LINKS = ("href", "src", "xlink:href", "action", "data", "poster", "srcset")
_INSIDE = ("#", "data:image/png;base64,")


class _Page(HTMLParser):
    """Contents of a page: elements with the names of their attributes, targets of links, scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.parts: set[str] = set()
        self.links: set[str] = set()
        self.scripts: set[str] = set()
        self._in: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.add(tag)
        self.parts |= {f"{tag} {name}" for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in _LINKS}
        self._in = tag if tag == "style" or (tag == "script" and not dict(attrs).get("type")) else None

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def handle_data(self, data: str) -> None:
        if self._in is not None:
            self.scripts.add(data)


class Pages(Attack):
    units = "pages"
    short_turns = 80
    memory_bytes = 6 << 30

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        os.environ["P4CC_NATIVE"] = "0"
        os.chdir(folder)
        for arguments in ([*RUN, "--trace", "0", "--out", "good"], ["replay", "good", "--out", "replay.html"]):
            if (run := call(arguments)).status != 0:
                raise Finding(f"{run.command}: {run.err}")
        self._swept("good", "a sweep", "a variant", "5")
        good = [_Page(Path(name).read_text()) for name in ("good/report.html", "replay.html", "swept/sweep.html")]
        self._parts = {"p class", "a", "a href", "nav", "ul", "li", "details"}.union(*(page.parts for page in good))
        self._scripts = set().union(*(page.scripts for page in good))
        self._links = set().union(*(page.links for page in good))

    def attempt(self, rng: random.Random) -> int:
        shutil.rmtree("runs", ignore_errors=True)
        shutil.copytree("good", "runs")
        (run,) = (path.parent for path in Path("runs").glob("*/summary.json"))

        def text(rng: random.Random) -> str:
            return rng.choice(hostile.TEXTS)

        done = []
        for _ in range(rng.choice((1, 2, 4))):
            file = rng.choice(("summary.json", "summary.json", "provenance.json", "scenario.toml", "table"))
            if file == "table":
                done.append(hostile.change_table(rng.choice(sorted(run.glob("*.parquet"))), rng, hostile.TEXTS))
            else:
                change = hostile.change_toml if file == "scenario.toml" else hostile.change_json
                done.append(change(run / file, rng, text))
        try:
            count = sum(self._page([name, "runs", "--out", "out.html"]) for name in ("report", "replay"))
            if rng.random() < 0.3:
                self._swept("good", text(rng), text(rng), text(rng))
                self._look(Path("swept/sweep.html"))
                count += 1
        except Finding as finding:
            raise Finding(f"{'; '.join(done)}: {finding}") from None
        return count

    def _page(self, command: list[str]) -> int:
        """Return the number of pages that were written; 0 if the folder is refused."""
        called = call(command)
        called.expect_one_line((0, 2))
        if called.status == 2:
            return 0
        self._look(Path("out.html"))
        return 1

    def _look(self, path: Path) -> None:
        page = _Page(path.read_text())
        if more := page.parts - self._parts:
            raise Finding(f"{path}: {sorted(more)}", {path.name: path.read_bytes()})
        if more := {link for link in page.links - self._links if not link.startswith(_INSIDE)}:
            raise Finding(f"{path}: a link to {sorted(more)}", {path.name: path.read_bytes()})
        if any(hostile.MARK in script for script in page.scripts - self._scripts):
            raise Finding(f"{path}: another script", {path.name: path.read_bytes()})

    @staticmethod
    def _swept(folder: str, title: str, variant: str, value: str) -> None:
        shutil.rmtree("swept", ignore_errors=True)
        Path("swept").mkdir()
        (result,) = load_all(Path(folder))
        entries = [Entry({"workload.x": each}, variant, result) for each in (value, "7")]
        write_sweep(Path("swept"), title, ["workload.x"], entries)
