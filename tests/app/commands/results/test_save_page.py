"""`rashomon view --save`: what is written, what is refused, and what is printed before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command import Rashomon
from tests.support.saved_page import read_saved_page

ASKED = ("batch", "--benchmark", "cmc-bench", "--limit", "3", "--display", "none", "--model")
RUNS = ("always-image", "always-text")


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with two runs on charts whose licence lets nobody pass them on."""
    folder = tmp_path_factory.mktemp("viewed")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    rashomon = Rashomon(folder)
    for name in RUNS:
        rashomon.run(*ASKED, f"policy:{name}", "--name", name)
    return rashomon


def test_the_size_is_printed_before_the_file_is_written(home: Rashomon, tmp_path: Path) -> None:
    file = tmp_path / "new" / "page.html"
    first, second = home.run("view", *RUNS, "--save", file).stdout.splitlines()
    assert first.startswith("page.html: about ")
    assert first.endswith(", with 24 instances of 2 runs and thumbnails")
    assert second.startswith(f"wrote {file}: ")
    saved = read_saved_page(file.read_text("utf-8"))
    assert [run["name"] for run in saved.head["runs"]] == list(RUNS)
    assert saved.media
    assert str(home.home) not in file.read_text("utf-8")


def test_without_runs_the_newest_are_saved_and_without_media_none(home: Rashomon, tmp_path: Path) -> None:
    home.run("view", "--save", tmp_path / "page.html", "--media", "none")
    saved = read_saved_page((tmp_path / "page.html").read_text("utf-8"))
    assert {run["name"] for run in saved.head["runs"]} == set(RUNS)
    assert not saved.media


def test_full_media_need_a_licence(home: Rashomon, tmp_path: Path) -> None:
    result = home.run("view", *RUNS, "--save", tmp_path / "page.html", "--media", "full", code=2)
    assert "no licence that lets you pass them on is known for chartqa (GPL-3.0" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_page_is_replaced_and_nothing_else(home: Rashomon, tmp_path: Path) -> None:
    file, link, other = tmp_path / "page.html", tmp_path / "link.html", tmp_path / "notes.txt"
    home.run("view", RUNS[0], "--save", file)
    link.symlink_to(file)
    home.run("view", RUNS[1], "--save", link)
    assert link.is_symlink()
    assert read_saved_page(file.read_text("utf-8")).head["runs"][0]["name"] == RUNS[1]
    other.write_text("mine")
    result = home.run("view", RUNS[0], "--save", other, code=2)
    assert f"{other} exists and is not a page" in result.stderr
    assert other.read_text() == "mine"
    assert home.run("view", RUNS[0], "--save", tmp_path, code=2).stderr
    assert sorted(tmp_path.iterdir()) == [link, other, file]


def test_options_of_the_served_page_are_refused(home: Rashomon, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert "belongs to --save" in home.run("view", RUNS[0], "--media", "none", code=2).stderr
    assert "leave out --save" in home.run("view", RUNS[0], "--save", file, "--port", "5000", code=2).stderr


def test_a_received_bundle_is_saved_as_the_runs_it_was_made_of(home: Rashomon, tmp_path: Path) -> None:
    home.run("bundle", *RUNS, "--media", "all", "--out", tmp_path / "b.zip")
    home.run("view", *RUNS, "--save", tmp_path / "here.html")
    home.run("view", *(f"{tmp_path / 'b.zip'}:{run}" for run in RUNS), "--save", tmp_path / "there.html")
    assert (tmp_path / "here.html").read_bytes() == (tmp_path / "there.html").read_bytes()


def test_a_bundle_with_thumbnails_has_these_as_pictures(home: Rashomon, tmp_path: Path) -> None:
    home.run("bundle", RUNS[0], "--media", "thumbnails", "--out", tmp_path / "b.zip")
    home.run("view", f"{tmp_path / 'b.zip'}:{RUNS[0]}", "--save", tmp_path / "page.html")
    saved = read_saved_page((tmp_path / "page.html").read_text("utf-8"))
    pictures = {medium["preview"] for item in saved.instances for medium in item["media"]}
    assert pictures == set(saved.media)
