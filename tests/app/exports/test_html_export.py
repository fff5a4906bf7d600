"""The report and the page of answers: files that load nothing, in which nothing a model says becomes markup or runs."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from app.commands.results.export_command import ExportArguments, export
from app.exports.html_markup import notes_markup, table_markup
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.vocabulary import Estimate, Media, Table
from tests.support.media import sound
from tests.support.runs import instances, make_run, says
from tests.support.saved_page import SavedContents, read_saved_page

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
def answers(pages: dict[str, str]) -> SavedContents:
    return read_saved_page(pages["samples"])


@pytest.fixture
def report(pages: dict[str, str]) -> str:
    return pages["report"]


def test_no_request_can_leave_the_report(report: str) -> None:
    page = Page(report)
    for tag, attributes in page.elements:
        for attribute, value in attributes.items():
            assert not re.match(r"(?i)\s*(https?:|//|javascript:|file:|ftp:)", value or ""), (tag, attribute)
            assert not attribute.startswith("on"), "no handler in the markup"
            if attribute in ("src", "action", "srcset", "poster"):
                assert (value or "").startswith("data:image/")
    assert not {"link", "iframe", "object", "embed", "base", "script"} & {tag for tag, _ in page.elements}
    assert "url(" not in page.texts["style"][0]
    assert "@import" not in page.texts["style"][0]


def test_the_report_links_its_example_to_the_page_of_answers(report: str, answers: SavedContents) -> None:
    (address,) = [attributes["href"] for tag, attributes in Page(report).elements if tag == "a"]
    match = re.fullmatch(r"samples\.html#instance=(\d+)", str(address))
    assert match is not None
    instance = answers.instances[int(match[1])]
    assert instance["answers"][0]["outcome"] == "wrong"
    assert instance["id"] == answers.rows[int(match[1])]["id"]


def test_the_policy_allows_the_reports_own_style_and_nothing_else(report: str) -> None:
    page = Page(report)
    (policy,) = [a["content"] for tag, a in page.elements if tag == "meta" and a.get("http-equiv")]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(page.texts["style"][0].encode()).digest()).decode()
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert report.index("Content-Security-Policy") < report.index("<style")


def test_hostile_answers_stay_text(pages: dict[str, str], answers: SavedContents) -> None:
    page = Page(pages["samples"])
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [attributes.get("type") for attributes in scripts].count("module") == 1
    assert {attributes.get("type") for attributes in scripts} == {"application/json", "text/plain", "module"}
    assert "img" not in {tag for tag, _ in page.elements}
    texts = {answer["answer"] for item in answers.instances for answer in item["answers"]}
    assert texts == {clean(f"{text} 12", newlines=True) for text in HOSTILE}


def test_each_instance_stands_once_with_every_runs_answer_and_each_medium_once(answers: SavedContents) -> None:
    assert [run["label"] for run in answers.head["runs"]] == ["policy:always-image", "policy:always-text"]
    assert answers.head["instances"] == 6 * len(HOSTILE)
    assert all(len(item["answers"]) == 2 and None not in item["answers"] for item in answers.instances)
    media = [medium for item in answers.instances for medium in item["media"]]
    assert {medium["facts"] for medium in media} == {
        "image, png, 2.9 kB, 900 x 600 pixels",
        "audio, wav, 24 kB",
        "video, not there",
    }
    assert {medium["preview"] for medium in media} == {"media-0", "media-1", None}
    assert {medium["original"] for medium in media} == {None}
    assert all(uri.startswith("data:image/webp;base64,") and len(uri) < 3000 for uri in answers.media.values())
    assert set(answers.media) == {"media-0", "media-1"}


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
def test_any_text_in_a_table_comes_back_as_it_was(text: str) -> None:
    cells = (text, Estimate(None, reason=text), 3)
    table = Table("t", text, (text, "b", "c"), ((text, cells),), (text,))
    page = Page(table_markup(table) + notes_markup(table))
    result = clean(text, newlines=True)
    assert {tag for tag, _ in page.elements} == {"div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert page.texts["td"][1:] == [result, "n/a", "3"]
    assert [a["title"] for tag, a in page.elements if tag == "td" and "title" in a] == [result]
