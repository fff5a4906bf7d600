"""The report and the sample browser: pages that load nothing, and in which nothing a model says becomes markup or runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.commands.export import ExportArguments, export
from app.exports.sample_browser import _json, _table
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.vocabulary import Estimate, Media, Table
from tests.support.media import sound
from tests.support.runs import instances, make_run, says

HOSTILE = (
    "</script><script>alert(1)</script>",
    "</td></tr></table><img src=x onerror=alert(2)>",
    "javascript:alert(3)",
    "<!--<script>",
    "]]>&lt;b&gt; \" ' `",
    "x\u2028\u202e\x00\x1b[31m",
    "http://example.invalid/x.png <a href='http://example.invalid'>x</a>",
)


class Page(HTMLParser):
    """Parser of a page as a browser reads it: its elements with their attributes, and their text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "input"):
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The texts of the written pages, by the files' names without suffix."""
    home = tmp_path_factory.mktemp("html")
    workspace = Workspace(home / "workspace")
    build = home / "build"
    (build / "media").mkdir(parents=True)
    picture = build / "media" / "picture.png"
    Image.new("RGB", (900, 600), "#c1440e").save(picture)
    media = Media(hashlib.sha256(picture.read_bytes()).hexdigest(), ".png")
    picture.rename(build / "media" / media.name)
    heard = Media(hashlib.sha256(data := sound(1.5)).hexdigest(), ".wav", "audio")
    (build / "media" / heard.name).write_bytes(data)
    asked = instances(len(HOSTILE), picture=media)
    asked[-1] = replace(asked[-1], parts=(heard, Media("f" * 64, ".mp4", "video"), *asked[-1].parts))
    for name in ("one", "two"):
        make_run(
            workspace, name, asked, lambda i: says(HOSTILE[int(i.group[-4:])] + " 12")(i),
            model="policy:always-image" if name == "one" else "policy:always-text", data=build,
        )  # fmt: skip
    export(
        workspace,
        ["one", "two"],
        ExportArguments(formats=["html"], out=home / "out", judge=None, canonical=False, width="page", metric=None),
    )
    return {path.stem: path.read_text("utf-8") for path in (home / "out").glob("*.html")}


@pytest.fixture
def browser(pages: dict[str, str]) -> str:
    return pages["samples"]


@pytest.fixture
def report(pages: dict[str, str]) -> str:
    return pages["report"]


def data_of(page: Page) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(page.texts["script"][0])
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "samples"])
def test_no_request_can_leave_the_page(name: str, pages: dict[str, str]) -> None:
    page = Page(pages[name])
    for tag, attributes in page.elements:
        for attribute, value in attributes.items():
            assert not re.match(r"(?i)\s*(https?:|//|javascript:|file:|ftp:)", value or ""), (tag, attribute)
            assert not attribute.startswith("on"), "no handler in the markup"
            if attribute in ("src", "href", "action", "srcset", "poster"):
                assert (value or "").startswith("data:image/")
    assert not {"link", "iframe", "object", "embed", "base", "a"} & {tag for tag, _ in page.elements}
    assert "url(" not in page.texts["style"][0]
    assert "@import" not in page.texts["style"][0]
    scripts = page.texts.get("script", [])
    assert len(scripts) == (2 if name == "samples" else 0)
    assert not re.search(r"fetch|XMLHttpRequest|WebSocket|innerHTML|eval\(|import\(", "".join(scripts[1:]))


@pytest.mark.parametrize("name", ["report", "samples"])
def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(name: str, pages: dict[str, str]) -> None:
    page = Page(pages[name])
    (policy,) = [a["content"] for tag, a in page.elements if tag == "meta" and a.get("http-equiv")]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy
    allowed = {"style-src": page.texts["style"][0]}
    if name == "samples":
        allowed["script-src"] = page.texts["script"][1]
    assert {rule for rule in rules if rule.endswith("-src")} == {"default-src", "img-src", *allowed}
    for rule, text in allowed.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert pages[name].index("Content-Security-Policy") < pages[name].index("<style")


def test_hostile_answers_stay_text(browser: str) -> None:
    page = Page(browser)
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not [
        a for tag, a in page.elements if tag == "img" and not str(a["src"]).startswith("data:image/svg+xml;base64,")
    ]
    message = {answer["text"] for item in data_of(page)["instances"] for answer in item["answers"]}
    assert message == {clean(f"{text} 12", newlines=True) for text in HOSTILE}


def test_each_instance_stands_once_with_every_runs_answer_and_each_medium_once(browser: str) -> None:
    data = data_of(Page(browser))
    assert data["runs"] == ["policy:always-image", "policy:always-text"]
    assert len(data["instances"]) == 6 * len(HOSTILE)
    assert all([answer["run"] for answer in item["answers"]] == [0, 1] for item in data["instances"])
    assert {item["facts"] for item in data["media"].values()} == {
        "image, png, 2.9 kB, 900 x 600 pixels",
        "audio, wav, 24.0 kB, 1.5 s, 8000 Hz, mono",
        "video, not there",
    }
    pictures = [item["picture"] for item in data["media"].values() if item["picture"]]
    assert len(pictures) == 2
    assert all(picture.startswith("data:image/webp;base64,") and len(picture) < 3000 for picture in pictures)
    shown = {part["media"] for item in data["instances"] for part in item["parts"] if "media" in part}
    assert shown == set(data["media"])


def test_the_tables_and_the_figure_are_there(report: str) -> None:
    page = Page(report)
    assert "Main results" in page.texts["h4"]
    assert "What was run" in page.texts["h4"]
    pictures = [a["alt"] for tag, a in page.elements if tag == "img" and "svg" in str(a["src"])]
    assert pictures == [
        "Label proportions by condition",
        "Abstentions under conflict, and needless ones",
        "Risk against coverage",
        "Utility by cost ratio",
        "Aligned against peak memory",
    ]
    assert "Qwen3-VL-4B (paper)" in page.texts["th"]


@settings(max_examples=50)
@given(st.text() | st.sampled_from(HOSTILE))
def test_any_text_in_a_table_or_in_the_data_comes_back_as_it_was(text: str) -> None:
    cells = (text, Estimate(None, reason=text), 3)
    page = Page(_table(Table("t", text, (text, "b", "c"), ((text, cells),), (text,)), opened=True))
    result = clean(text, newlines=True)
    parsed = {"details", "summary", "h2", "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert {tag for tag, _ in page.elements} == parsed
    assert page.texts["h2"] == [result]
    assert page.texts["td"][1:] == [result, "n/a", "3"]
    assert [a["title"] for tag, a in page.elements if tag == "td" and "title" in a] == [result]
    whole = _json([result])
    assert not set(whole) & set("<>&")
    assert json.loads(whole) == [result]
