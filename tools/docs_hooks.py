"""What mkdocs adds to the documentation: the README as its first page, pages made from the code, the decisions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from harness.reference.pages import pages

ROOT = Path(__file__).parents[1]
FROM_ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_config(config: Any) -> Any:
    """The decision records, in order, as the last part of the navigation."""
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{path.name}" for path in records]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """All that is generated, beside what lies in `docs/`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = {"index.md": re.sub(r"\]\(docs/", "](", readme), **pages()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_build(config: Any) -> None:
    """Raises PluginError for a page that would load anything from elsewhere."""
    for page in Path(config.site_dir).rglob("*.html"):
        if found := FROM_ELSEWHERE.search(page.read_text(encoding="utf-8")):
            raise PluginError(f"{page}: loads from elsewhere: {found.group()}")
