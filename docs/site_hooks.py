"""Hooks of the documentation site: pages of the repository's root become pages of the site, with their links.

README.md is the home page. Links are written for readers of the repository (``docs/tui.md`` in README.md, ``../assets/x.svg``
in a page of docs/) and turned into the site's here, so that ``mkdocs build --strict`` finds every one that leads nowhere. The
API's reference and the tutorial are pages made of the code and of the notebook.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PAGES = {**ROOT_PAGES, "tutorial.ipynb": "tutorial.md"}
_LINK = re.compile(r"(?<=\]\()(\.\./|docs/)?([^)#:\s]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, and the assets that pages show or link to."""
    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for path in sorted(ROOT.glob("assets/**/*")):
        if path.suffix in (".svg", ".png", ".md", ".csv", ".jsonl") and "held_out" not in path.parts:
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
    from notebook_page import notebook_page
    from reference_page import reference

    files.append(File.generated(config, "api-reference.md", content=reference()))
    files.append(File.generated(config, "tutorial.md", content=notebook_page(ROOT / "docs" / "tutorial.ipynb")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    if page.file.src_uri.startswith("assets/"):
        return markdown
    return _LINK.sub(lambda link: PAGES.get(link[2], link[2]), markdown)
