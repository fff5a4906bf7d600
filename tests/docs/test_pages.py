"""The documentation as a whole: links resolve, the README reaches every page, one command draws the pictures."""

from __future__ import annotations

import subprocess

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, fences, links
from tests.support.tui_stage import SIZES
from tests.tui.pictures import SHOTS

README_LINES = 100


@pytest.mark.parametrize("page", PAGES)
def test_page_links_resolve(page: str) -> None:
    broken = []
    for link in links(page):
        if link.is_web:
            continue
        if not (ROOT / link.file).exists():
            broken.append(f"{link.target}: no such file")
        elif link.anchor and link.file.endswith(".md") and link.anchor not in anchors(link.file):
            broken.append(f"{link.target}: no such heading")
    assert not broken


def test_every_page_is_linked_from_the_readme() -> None:
    reached, waiting = {"README.md"}, ["README.md"]
    while waiting:
        for link in links(waiting.pop()):
            if not link.is_web and link.file.endswith(".md") and link.file not in reached:
                reached.add(link.file)
                if link.file in PAGES:
                    waiting.append(link.file)
    assert set(PAGES) <= reached


def test_one_page_lists_all_pages() -> None:
    """The README links to it, and no page of docs/ is reached by a detour only."""
    listed = {link.file for link in links("docs/pages.md") if not link.is_web}
    assert {page for page in PAGES if page.startswith("docs/")} - {"docs/pages.md"} <= listed
    assert "docs/pages.md" in {link.file for link in links("README.md")}


def test_the_readme_leads_with_the_three_ways_in_of_help() -> None:
    from tests.app.cli.test_help import STARTS

    text = (ROOT / "README.md").read_text("utf-8")
    places = [text.index(start) for start in STARTS]
    assert places == sorted(places)
    assert places[-1] < text.index("```")


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES


@pytest.mark.parametrize("page", PAGES)
def test_code_block_has_a_language(page: str) -> None:
    """A block without a language is a drawing or a row, never a command: those would not be run."""
    unsaid = [f"{page}:{line}" for line, _, text in fences(page, "") if "rashomon " in text]
    assert not unsaid


def test_one_command_draws_all_pictures() -> None:
    """``make pictures`` writes what is committed, and nothing else is committed."""
    drawn = {f"{shot.name}-{size}.svg" for shot in SHOTS for size in SIZES}
    assert {path.name for path in (ROOT / "assets" / "screens").iterdir()} == drawn
    steps = subprocess.run(["make", "-n", "pictures"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tests.tui.pictures" in steps
    assert "tests.support.pictures" in steps


def test_every_stored_picture_is_used() -> None:
    linked = {link.file for page in PAGES for link in links(page)}
    stored = {f"assets/pictures/{path.name}" for path in (ROOT / "assets" / "pictures").iterdir()}
    assert stored <= linked
