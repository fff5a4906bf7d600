"""The documentation as a whole: links resolve, the README reaches every page, one command draws the pictures."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, fences, links
from tests.support.tui_stage import SIZES
from tests.tui.pictures import SHOTS

README_LINES = 100
PATHS = ("docs/your-own-documents.md", "docs/paper.md", "docs/new-model.md")
"""The pages that are read from front to back."""
WORDS = 2000
"""Words, those of tables and commands included, that are read and tried in half an hour."""
REFERENCE = "*Reference. New here? [Three paths](pages.md).*"


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


@pytest.mark.parametrize("page", PATHS)
def test_a_path_is_read_in_half_an_hour(page: str) -> None:
    assert len((ROOT / page).read_text("utf-8").split()) <= WORDS


@pytest.mark.parametrize("page", ["README.md", "docs/pages.md"])
def test_the_paths_come_before_every_other_page(page: str) -> None:
    others = [link.file for link in links(page) if link.file.startswith("docs/") and link.file != "docs/pages.md"]
    assert others[: len(PATHS)] == list(PATHS)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_every_other_page_says_first_that_it_is_reference(page: str) -> None:
    first = (ROOT / page).read_text("utf-8").split("\n\n")[1]
    assert (first == REFERENCE) == (page not in (*PATHS, "docs/pages.md"))


def test_the_site_lists_every_page() -> None:
    """Before the reference come the paths, and no page is left out or listed in vain."""
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1], re.MULTILINE)
    made = {"index.md", "contributing.md", "changelog.md", "tutorial.md", "api-reference.md"}
    assert listed[:5] == ["index.md", "pages.md", *(page.removeprefix("docs/") for page in PATHS)]
    assert set(listed) - made == {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}


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
