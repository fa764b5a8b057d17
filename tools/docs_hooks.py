"""Hooks of mkdocs: the README as the first page, the papers, pages made from the code, the decisions.

Links between pages follow the files' places in the repository, so that they work there, too. The
site has the same pages below its own root.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from harness import papers
from p4cc._site_pages import pages

ROOT = Path(__file__).parents[1]
FROM_ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """Append the decision records, in order, as the last part of the navigation."""
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{path.name}" for path in records]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the README, the papers' pages and figures, and the generated pages to those of `docs/`."""
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / "README.md")))
    for path in sorted([*papers.PAPERS.rglob("*.md"), *papers.PAPERS.glob("*/figures/*")]):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    source = Path(page.file.abs_src_path) if page.file.abs_src_path else None
    if source is None or not source.is_relative_to(ROOT):
        return markdown
    here = source.parent.relative_to(ROOT).as_posix()
    below = posixpath.dirname(page.file.src_uri)

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[1]))
        target = "index.md" if target == "README.md" else target.removeprefix("docs/")
        return f"]({posixpath.relpath(target, below or '.')}{link[2] or ''})"

    return LINK.sub(on_site, markdown)


def on_post_build(config: Any) -> None:
    """Raise `PluginError` for a page that would load anything from elsewhere."""
    for page in Path(config.site_dir).rglob("*.html"):
        if match := FROM_ELSEWHERE.search(page.read_text(encoding="utf-8")):
            raise PluginError(f"{page}: loads from elsewhere: {match.group()}")
