"""Tasks on samples, by keys that are counted: differing answers and their picture, blind labels; and how a sample is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widgets import Static

from app.compare.differences.instance_comparison import flips, text_changes
from app.store.run_store import RunStore
from app.tui.screens.compare_screen import CompareScreen
from app.tui.screens.comparison_overview import Overview
from app.tui.screens.flips_screen import SideBySideScreen
from app.tui.screens.label_screen import LabelScreen
from app.tui.screens.zoom_screen import ZoomScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.block_picture import BlockPicture
from app.tui.widgets.sibling_strip import SiblingStrip
from app.tui.widgets.terminal_picture import Picture
from benchmarks.vocabulary import Mark, Media, Text
from tests.support.runs import instances, says
from tests.support.tui_computed import build, mixed, open_samples, until_computed
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot
from tests.tui.test_hostile import LITERAL, PAYLOAD, STORED, assert_harmless
from tests.tui.test_samples import mixed as mixed_media


class Keys:
    """A user who presses keys one by one, looks at the results of each, and counts."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        self._pilot = pilot
        self.count = 0

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self._pilot.press(key)
            self.count += 1
            await until_computed(self._pilot)


# --- the tasks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", BOTH)
def test_finding_all_answers_that_differ_and_seeing_the_picture(size: tuple[int, int], stage: Stage) -> None:
    data, picture = build(stage)
    asked = instances(6, picture=picture)
    for name, shift in (("model-4bit", 1), ("model-8bit", 0)):
        stage.run(name, asked=asked, answering=mixed(shift), data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "model-8bit" in screen_text(app))
        keys = Keys(pilot)
        await keys.press("space", "j", "space", "c", "c")
        compare = app.screen
        assert isinstance(compare, CompareScreen)
        assert compare.computed is not None
        overview, pair = compare.query_one(Overview), compare.computed.comparison.pairs[0]
        differing = {change.instance for change in (*flips(pair), *text_changes(pair))}
        await until(pilot, lambda: {change.instance for change in overview.changes} == differing)
        assert differing
        if size[0] < 100:  # the narrow list opens its answer on Enter
            await keys.press("enter")
            assert isinstance(app.screen, SideBySideScreen)
        await until(pilot, lambda: "▀▀▀" in screen_text(app))
        assert keys.count == (6 if size[0] < 100 else 5)
        await keys.press("z")
        await until(pilot, lambda: isinstance(app.screen, ZoomScreen) and "▀▀▀" in screen_text(app))

    drive(stage.app(), script, size)


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_labelling_ten_answers_blind(size: tuple[int, int], stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.tui.screens.label_screen.default_annotator", lambda: "ann")
    run = stage.run("some-model-4bit", asked=instances(4), answering=mixed(0), model="policy:always-image")
    hidden = ("some-model", "policy:", "4-bit", "aligned", "image-correct", "both-wrong", "match@")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        keys = Keys(pilot)
        await keys.press("6", "enter")
        screen = app.screen
        assert isinstance(screen, LabelScreen)
        for number in range(10):
            await until(pilot, lambda: screen.session is not None and screen._text.displayed)
            text = screen_text(app)
            assert not [word for word in hidden if word in text], text
            assert " 1 IMAGE  2 TEXT  3 BOTH  4 NEITHER  5 ABSTAIN " in text.splitlines()[-1]
            await keys.press(str(1 + number % 5))
            await until(pilot, lambda number=number: f"{number + 1} of 24 labelled" in screen_text(app))  # type: ignore[misc]
        assert keys.count == 12
        await keys.press("u")
        await until(pilot, lambda: "9 of 24 labelled" in screen_text(app))

    drive(stage.app(), script, size)
    with RunStore.read(run) as store:
        labels = [
            record.verdicts["human:ann@1"].label for record in store.records() if "human:ann@1" in record.verdicts
        ]
    assert sorted(map(str, labels)) == sorted(2 * ["IMAGE", "TEXT", "BOTH", "NEITHER"] + ["ABSTAIN"])


# --- one sample ----------------------------------------------------------------------------------


def test_a_sample_is_read_from_question_to_reason(stage: Stage) -> None:
    data, picture = build(stage)
    asked = instances(2, picture=picture, question="How many trams run on line 4?")
    folder = stage.run("trams", asked=asked, answering=says("15"), data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        assert "question" in screen_text(app).splitlines()[2], "the list's column"
        assert all("4?" in line[:60] for line in screen_text(app).splitlines()[3:15]), "it keeps the question's end"
        await pilot.press("j", "tab")
        await until(pilot, lambda: "▀▀▀" in screen_text(app) and screen.detail and screen.detail.row.ordinal == 1)
        await pilot.pause()
        assert screen.view.has_focus
        text = "\n".join(line[60:] for line in screen_text(app).splitlines())
        places = [
            text.index(part) for part in ("on line 4?", "▀▀▀", "image says  12", "Answer\n"[:6], "✗ TEXT  match@")
        ]
        assert places == sorted(places)
        await pilot.press("j")
        await until(pilot, lambda: screen.detail and screen.detail.row.ordinal == 2)
        await pilot.press("tab")
        assert screen.table.has_focus

    drive(stage.app(), script)


def test_siblings_are_a_line_of_labels_for_keys_and_mouse(stage: Stage) -> None:
    folder = stage.run("trams", answering=lambda item: says("12" if item.condition == "aligned" else "15")(item))
    with RunStore.read(folder) as store:
        outcomes = [row.outcome for row in store.sample_rows(range(6), ["match@4"])]
    assert {"right", "wrong"} == set(outcomes)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        strip = screen.query_one(SiblingStrip)
        shown = str(strip.render())
        glyphs = {"✓": "right", "✗": "wrong"}
        assert [glyphs[cell] for cell in shown if cell in glyphs] == outcomes
        assert screen.detail is not None
        assert all(row.condition in shown for row in screen.detail.siblings)
        colours = {str(span.style).partition(" ")[0] for span in strip.render().spans if "$" in str(span.style)}
        assert {"$right", "$wrong"} <= colours
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: screen.detail and screen.detail.row.ordinal == 1)
        assert screen.table.cursor == 1
        await pilot.press("left_square_bracket", "left_square_bracket")
        await until(pilot, lambda: screen.detail and screen.detail.row.ordinal == 5)
        await pilot.click(SiblingStrip, offset=(2, 0))
        await until(pilot, lambda: screen.detail and screen.detail.row.ordinal == 0)
        await pilot.resize_terminal(80, 24)
        await pilot.press("tab")
        await until(pilot, lambda: "img-cor" in str(strip.render()))

    drive(stage.app(), script)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param((40, 10), id="40x10"),
        pytest.param((80, 24), id="80x24", marks=pytest.mark.slow),
        pytest.param((200, 50), id="200x50", marks=pytest.mark.slow),
    ],
)
def test_a_list_or_an_answer_at_any_size(size: tuple[int, int], stage: Stage) -> None:
    data, picture = build(stage)
    folder = stage.run("trams", asked=instances(2, picture=picture), answering=says("12"), data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        await pilot.press("enter")
        await until(pilot, lambda: "▀▀" in screen_text(app))
        assert bool(screen.table.display) == (size[0] >= 100)
        await pilot.press("escape")
        assert screen.table.has_focus
        assert screen.table.region.area
        for key in ("z", "z", "o", "escape", "slash", "escape", "6"):
            await pilot.press(key)
            await pilot.pause()

    drive(stage.app(), script, size)


# --- zoom ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", BOTH)
def test_zoom_draws_a_picture_as_large_as_the_terminal_allows(
    size: tuple[int, int], stage: Stage, snapshot: Snapshot
) -> None:
    data, picture = build(stage)
    folder = stage.run("trams", asked=instances(1, picture=picture), data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        await pilot.press("z")
        await until(pilot, lambda: isinstance(app.screen, ZoomScreen) and app.screen.query(BlockPicture))
        await pilot.pause()
        drawn = app.screen.query_one(BlockPicture).size
        height = size[1] - (4 if size[0] >= 100 else 3)  # title, caption and footer, of two lines where it is wide
        assert drawn == Size(2 * height, height), "the chart is square, and a cell twice as high as wide"
        await snapshot(app, "zoom")
        await pilot.press("z")
        assert app.screen is screen
        await pilot.press("z", "escape")
        assert app.screen is screen

    drive(stage.app(), script, size)


def test_zoom_goes_through_all_media_with_their_captions(stage: Stage, tmp_path: Path) -> None:
    asked, _ = mixed_media(tmp_path / "build")
    folder = stage.run("mixed", asked=asked, data=tmp_path / "build")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, folder)
        await pilot.press("z")
        for caption in ("audio, wav", "video, mp4", "3D model, npz", "truncated or damaged", "audio, wav"):
            await until(pilot, lambda caption=caption: caption in screen_text(app))  # type: ignore[misc]
            await pilot.press("n")
        await pilot.press("N")
        await until(pilot, lambda: "1 of 4" in screen_text(app))

    drive(stage.app(), script)


# --- hostile text --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_hostile_questions_ids_and_captions_are_only_text(size: tuple[int, int], stage: Stage) -> None:
    data, picture = build(stage)
    marked = Media(picture.sha256, picture.suffix, marks=(Mark(STORED, (0, 0, 9, 9)),))
    asked = [
        replace(
            instance, id=f"{instance.id} {number} {STORED}", question=STORED, parts=(marked, Text("?")), condition=name
        )
        for number, (instance, name) in enumerate(
            zip(instances(1), ("aligned", "aligned", *6 * ["both-wrong"]), strict=False)
        )
    ]
    folder = stage.run("hostile", asked=asked, answering=says(PAYLOAD), data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        for key in ("right_square_bracket", "enter", "t", "z"):
            await pilot.press(key)
            await pilot.pause()
            assert "[@click" in screen_text(app)
            assert_harmless(app)
        caption = app.screen.query_one(Picture)
        await until(pilot, lambda: caption.query(Static))
        assert LITERAL in str(caption.query_one(Static).content)
        assert_harmless(app)
        await pilot.press("escape")
        assert app.screen is screen

    drive(stage.app(), script, size)
