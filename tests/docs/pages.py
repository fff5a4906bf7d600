"""Contents of the documentation: commands with their output, displayed files, links and anchors."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    path.relative_to(ROOT).as_posix()
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
    if path.name != "CHANGELOG.md"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command as printed on a page; ``output`` is the output printed under it, or None."""

    page: str
    line: int
    text: str
    output: str | None = None

    @property
    def words(self) -> list[str]:
        """The words, split as by a shell, without comments."""
        return shlex.split(self.text, comments=True)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Link:
    """The target of a link or a picture on a page."""

    page: str
    target: str

    @property
    def is_web(self) -> bool:
        return re.match(r"[a-z]+:", self.target) is not None

    @property
    def file(self) -> str:
        """The file it leads to, from the project's root."""
        path = self.target.partition("#")[0]
        return ((ROOT / self.page).parent / path).resolve().relative_to(ROOT).as_posix() if path else self.page

    @property
    def anchor(self) -> str:
        return self.target.partition("#")[2]


@cache
def tokens(page: str) -> tuple[Token, ...]:
    """The page, parsed as GitHub does."""
    parsed = MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text("utf-8"))
    return tuple(parsed)


def fences(page: str, *languages: str) -> Iterator[tuple[int, str, str]]:
    """The page's fenced blocks in one of ``languages``: the line that opens each, its language and its text."""
    for token in tokens(page):
        if token.type == "fence" and token.map and (token.info.split() or [""])[0] in languages:
            yield token.map[0] + 1, token.info, token.content


def commands(page: str) -> Iterator[Command]:
    """The commands of the ``sh`` blocks, one a line or between ``&&``, and of the ``console`` blocks, after ``$ ``."""
    for start, language, text in fences(page, "sh", "console"):
        if language == "sh example":  # of CONTRIBUTING.md, which tests/test_contributing.py follows
            continue
        blocks: list[tuple[int, str, list[str]]] = []
        for number, line in enumerate(text.replace("\\\n", " ").splitlines(), start + 1):
            if language.startswith("sh") or line.startswith("$ "):
                blocks.append((number, re.sub(r"^\w*\$ +", "", line), []))
            elif blocks:
                blocks[-1][2].append(line)
        for number, line, output in blocks:
            printed = "\n".join(output) + "\n" if language == "console" and output else None
            for text in line.split(" && "):
                if shlex.split(text, comments=True):
                    yield Command(page, number, text.strip(), printed)


def mentions(page: str) -> Iterator[Command]:
    """Yield the complete commands within the text: code spans that begin with ``rashomon`` and have no ellipsis."""
    for token in tokens(page):
        for child in token.children or ():
            text = child.content
            if child.type == "code_inline" and text.startswith("rashomon ") and not re.search(r"\.\.\.|\[", text):
                yield Command(page, token.map[0] + 1 if token.map else 0, text)


def files(page: str) -> Iterator[tuple[str, str]]:
    """Yield the files that a page prints in full: blocks whose first line is a comment with the file's name."""
    for _, _, text in fences(page, "toml"):
        if named := re.match(r"# (\S+\.toml)\n", text):
            yield named[1], text


def links(page: str) -> Iterator[Link]:
    """All links and pictures."""
    for token in tokens(page):
        for child in token.children or ():
            target = child.attrs.get("href") or child.attrs.get("src")
            if target:
                yield Link(page, str(target))


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors that GitHub makes of the page's headings."""
    slugs: list[str] = []
    for before, token in zip(tokens(page), tokens(page)[1:], strict=False):
        if before.type == "heading_open":
            text = "".join(child.content for child in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            slugs.append(slug if slug not in slugs else f"{slug}-{slugs.count(slug)}")
    return frozenset(slugs)
