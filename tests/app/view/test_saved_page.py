"""The page saved as one file: the same contents, equal bytes for equal runs, and no text that is anything else."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.json_output.json_envelope import plain
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from app.view.contents.page_contents import Contents
from app.view.saved.saved_page import MediaChoice, estimated_size, saved_page
from benchmarks.vocabulary import Media
from tests.support.hostile_texts import HOSTILE
from tests.support.media import sound
from tests.support.runs import instances, make_run, says
from tests.support.saved_page import add_picture, make_hostile_runs, read_saved_page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_hostile_runs(tmp_path_factory.mktemp("hostile"))


def contents_of(workspace: Workspace) -> Contents:
    folders = [workspace.runs_folder / name for name in sorted(workspace.run_names())]
    return Contents(workspace, folders, saved=True)


def text_of(workspace: Workspace, media: MediaChoice = "thumbnails", *, canonical: bool = False) -> str:
    return "".join(saved_page(contents_of(workspace), media, canonical=canonical))


class Elements(HTMLParser):
    """The elements of a page as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_hostile_texts_add_nothing_to_the_markup(hostile: Workspace, tmp_path: Path) -> None:
    harmless = Workspace(tmp_path / "harmless")
    for name in ("a", "b"):
        make_run(harmless, name, instances(2), says("12"))
    elements, expected = (Elements(text_of(workspace, "none")).elements for workspace in (hostile, harmless))
    assert elements == expected


def test_hostile_texts_stay_as_they_are(hostile: Workspace) -> None:
    saved = read_saved_page(text_of(hostile))
    cleaned = [clean(text, newlines=True) for text in HOSTILE]
    assert [item["question"] for item in saved.instances[::2]] == cleaned
    assert [item["answers"][0]["answer"] for item in saved.instances[::2]] == [f"{text} 12" for text in cleaned]
    assert [item["answers"][1]["error"] for item in saved.instances[1::2]] == cleaned
    assert [item["strata"]["kind"] for item in saved.instances[::2]] == [clean(text) for text in HOSTILE]
    assert {run["note"] for run in saved.head["runs"]} == {clean(HOSTILE[0]), clean(HOSTILE[1])}


def test_the_file_has_what_the_page_has(hostile: Workspace) -> None:
    contents = contents_of(hostile)
    saved = read_saved_page(text_of(hostile))
    head = plain(contents.head())
    assert saved.head == head | {"revision": 0, "runs": [run | {"writable": False} for run in head["runs"]]}
    assert saved.index == plain(contents.index()) | {"revision": 0}
    assert saved.overview == plain(contents.overview()) | {"revision": 0}
    assert saved.rows == plain(contents.rows(range(head["instances"])))
    for number, instance in enumerate(saved.instances):
        assert instance | {"media": []} == plain(contents.instance(number)) | {"media": []}


def test_equal_runs_are_equal_bytes(hostile: Workspace, tmp_path: Path) -> None:
    text = text_of(hostile)
    assert text == text_of(hostile)
    shutil.copytree(hostile.path.parent, tmp_path / "moved")
    assert text_of(Workspace(tmp_path / "moved" / "workspace"), "none") == text_of(hostile, "none")
    assert str(hostile.path.parent) not in text


def test_a_canonical_page_has_no_times(tmp_path: Path) -> None:
    texts = []
    for seconds in (0.5, 3.0):
        workspace = Workspace(tmp_path / str(seconds))
        for name in ("a", "b"):
            make_run(workspace, name, instances(2), says("12", int(seconds * 10**9), seconds))
        texts.append(text_of(workspace, canonical=True))
        assert read_saved_page(texts[-1]).instances[0]["answers"][0]["seconds"] is None
    assert texts[0] == texts[1]


def test_more_instances_than_a_block_are_in_order(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    make_run(workspace, "long", instances(70), says("12"))
    text = text_of(workspace)
    saved = read_saved_page(text)
    assert saved.head["instances"] == len(saved.instances) == 420
    assert 0.8 < estimated_size(contents_of(workspace), "thumbnails") / len(text.encode()) < 1.25


def test_a_page_without_instances_is_saved(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    make_run(workspace, "empty", [], says("12"))
    assert read_saved_page(text_of(workspace)).instances == []
    assert estimated_size(contents_of(workspace), "full") > 10_000


# --- media ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_media(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A run with a picture, a sound, and a medium that is missing."""
    home = tmp_path_factory.mktemp("media")
    workspace = Workspace(home / "workspace")
    picture = add_picture(home / "build")
    heard = Media(hashlib.sha256(data := sound(1.5)).hexdigest(), ".wav", "audio")
    (home / "build" / "media" / heard.name).write_bytes(data)
    first, second, third, *_ = instances(1, picture=picture)
    items = [
        replace(first, parts=(heard, *first.parts)),
        replace(second, parts=(Media("f" * 64, ".mp4", "video"), *second.parts)),
        third,
    ]
    make_run(workspace, "media", items, says("12"), data=home / "build")
    return workspace


def media_of(text: str) -> list[list[tuple[str, str | None, str | None]]]:
    return [
        [(medium["modality"], medium["original"], medium["preview"]) for medium in item["media"]]
        for item in read_saved_page(text).instances
    ]


def test_thumbnails_are_in_the_file_once_each(with_media: Workspace) -> None:
    text = text_of(with_media)
    assert media_of(text) == [
        [("audio", None, "media-0"), ("image", None, "media-1")],
        [("video", None, None), ("image", None, "media-1")],
        [("image", None, "media-1")],
    ]
    saved = read_saved_page(text)
    assert {uri.partition(",")[0] for uri in saved.media.values()} == {"data:image/webp;base64"}
    assert saved.instances[1]["media"][0]["facts"] == "video, not there"


def test_full_media_are_the_files_themselves(with_media: Workspace) -> None:
    text = text_of(with_media, "full")
    saved = read_saved_page(text)
    assert media_of(text)[0] == [("audio", "media-0", "media-1"), ("image", "media-2", "media-2")]
    kinds = {name: uri.partition(";")[0].removeprefix("data:") for name, uri in saved.media.items()}
    assert kinds == {"media-0": "audio/wav", "media-1": "image/webp", "media-2": "image/png"}
    folder = with_media.path.parent / "build" / "media"
    for name in ("media-0", "media-2"):
        data = base64.b64decode(saved.media[name].partition(",")[2])
        assert data in {path.read_bytes() for path in folder.iterdir()}


def test_a_file_without_media_has_none(with_media: Workspace) -> None:
    text = text_of(with_media, "none")
    assert "data:image" not in re.sub(r'<script type="module">.*', "", text, flags=re.DOTALL)
    assert {medium for item in media_of(text) for medium in item} == {
        ("audio", None, None),
        ("image", None, None),
        ("video", None, None),
    }


def test_a_medium_that_has_changed_is_left_out(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    picture = add_picture(tmp_path / "build")
    make_run(workspace, "changed", instances(1, picture=picture), says("12"), data=tmp_path / "build")
    (tmp_path / "build" / "media" / picture.name).write_bytes(b"something else")
    for choice in ("thumbnails", "full"):
        saved = read_saved_page(text_of(workspace, choice))
        assert not saved.media
        assert "is not the one that was built" in saved.instances[0]["media"][0]["facts"]
