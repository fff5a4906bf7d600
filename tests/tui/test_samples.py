"""The samples of a run, and labels by people, by keys."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from app.report.samples.sample_media import MediaPreview, preview_media
from app.report.tables.judge_selection import resolve_judge
from app.store.run_store import RunStore
from app.tui.screens.label_screen import LabelScreen
from app.tui.screens.samples_screen import SamplesScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.block_picture import BlockPicture
from app.tui.widgets.sample_view import SampleView
from app.tui.widgets.terminal_picture import Picture
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.vocabulary import Generation, Instance, Media, Record, Text, Verdict
from tests.support.media import cloud, sound, video
from tests.support.runs import instances
from tests.support.tui_computed import open_samples
from tests.support.tui_stage import BOTH, SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot

ANSWERS = ("12", "<think>It says 15 there.</think>The text is right: 15.", "18 and more", "")


def answering(instance: Instance) -> Generation:
    """12, 15 after some reasoning, 18 cut at the limit, nothing, by turns; the last example's first is an error."""
    number = int(instance.group[-4:])
    reason = "length" if number % 4 == 2 else "stop"
    if instance.id == "factual-0003/aligned":
        return Generation(f"{instance.id}#0", "", "error", error="the machine was out of memory")
    return Generation(f"{instance.id}#0", ANSWERS[number % 4], reason, (1, 2), 30, 2, 0.1, 0.5, 10**9)  # type: ignore[arg-type]


def make(stage: Stage, **options: Any) -> Path:
    """Return a finished run of 24 samples, two of which a second judge labels in another way."""
    folder = stage.run("trams", answering=answering, **options)
    with RunStore.open(folder) as store:
        verdicts = []
        for instance in ("factual-0000/aligned", "factual-0001/both-wrong"):
            generation, condition = store.answer_of(instance) or (0, "")
            verdicts.append(
                (generation, condition, Verdict("gpt@1", "labelled", "ABSTAIN", "doubt", '{"label": "ABSTAIN"}'))
            )
        store.add_verdicts(verdicts)
    return folder


async def typed(pilot: Pilot[Any], screen: SamplesScreen, query: str) -> None:
    """Choose by ``query``, by keys."""
    await pilot.press("slash")
    screen.query_one("#filter", Input).value = query
    await pilot.press("enter")
    await until(pilot, lambda: screen.query_text == query and not screen._loading and not screen._stale)
    await pilot.pause()


def record(folder: Path, instance: str) -> Record:
    with RunStore.read(folder) as store:
        return next(store.records(only=instance))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_list_and_a_sample(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    folder = make(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, folder)
        await snapshot(app, "samples-list")
        await pilot.press("enter")
        await pilot.pause()
        await snapshot(app, "samples-sample")
        await pilot.press("escape", "slash")
        await pilot.pause()
        await snapshot(app, "samples-filter")

    drive(stage.app(), script, size)


@pytest.mark.slow
def test_choosing_samples_by_what_is_typed(stage: Stage) -> None:
    folder = make(stage)
    with RunStore.open(folder) as store:
        judge = resolve_judge([store], None)
        generation, condition = store.answer_of("factual-0000/text-correct") or (0, "")
        store.add_verdicts([(generation, condition, Verdict(judge, "undecided", reason="it names both"))])

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        for query, count in (
            ("is:wrong", None),
            ("is:error", 1),
            ("is:unparsed", 5),
            ("is:undecided", 1),
            ("is:truncated", 6),
            ("is:cut", 6),
            ("is:disagree", 2),
            ("condition:aligned", 4),
            ('"text is RIGHT"', 6),
            ("label:both is:right", None),
            ("nowhere", 0),
        ):
            await typed(pilot, screen, query)
            if count is not None:
                assert len(screen.listing.ordinals) == count, query
            assert screen.table.row_count == len(screen.listing.ordinals)
        assert "no answer matches" in screen_text(app)
        await pilot.press("slash", "end", "ctrl+u", *"colour:r")
        await pilot.pause()
        assert "no key 'colour'" in screen_text(app)
        await pilot.press("enter", "escape")
        assert screen.query_text == "nowhere", "what is wrong is not taken"

    drive(stage.app(), script)


def test_going_from_one_mismatch_to_the_next_and_among_siblings(stage: Stage) -> None:
    folder = make(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        with RunStore.read(folder) as store:
            wanted = [
                place
                for place, record in enumerate(store.records())
                if len({v.label for v in record.verdicts.values()}) > 1
                or (
                    record.outcome("match@4") == "labelled"
                    and (
                        record.verdicts["match@4"].label not in store.meta("correct")[record.instance.condition]
                        or record.verdicts["match@4"].behaviour
                        == "invents"  # accurate in the paper, and no right answer
                    )
                )
            ]
        assert wanted[0] == 0
        for place in wanted[1:4]:
            await pilot.press("n")
            await until(pilot, lambda place=place: screen.table.cursor == place)  # type: ignore[misc]
        await pilot.press("N")
        await until(pilot, lambda: screen.table.cursor == wanted[2])
        await until(pilot, lambda: screen.detail and screen.detail.row.ordinal == wanted[2])
        before = screen.detail
        assert before is not None
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: screen.detail is not before)
        assert screen.detail is not None
        assert screen.detail.record.instance.group == before.record.instance.group
        assert screen.detail.row.ordinal != before.row.ordinal
        await pilot.press("G", "n")
        await until(pilot, lambda: "no wrong or disputed answer after this one" in screen_text(app))

    drive(stage.app(), script)


@pytest.mark.slow
def test_overriding_a_label_and_undoing_it(stage: Stage) -> None:
    folder = make(stage)
    judged = record(folder, "factual-0000/aligned").verdicts

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        await pilot.press("o", "4", "enter", "enter")
        await pilot.pause()
        assert "an override needs a reason" in screen_text(app)
        await pilot.press(*"seen", "enter", "ctrl+u", *"ann", "enter")
        await until(pilot, lambda: "override:ann@1" in record(folder, "factual-0000/aligned").verdicts)
        now = record(folder, "factual-0000/aligned").verdicts
        assert {judge: now[judge] for judge in judged} == judged, "what the judges said stays"
        assert (now["override:ann@1"].label, now["override:ann@1"].reason) == ("NEITHER", "seen")
        await until(pilot, lambda: "NEITHER *" in screen_text(app))
        await typed(pilot, screen, "is:overridden")
        assert len(screen.listing.ordinals) == 1
        await typed(pilot, screen, "is:wrong condition:aligned")
        assert 0 in screen.listing.ordinals, "an override decides what is wrong"
        await typed(pilot, screen, "judge:match is:wrong condition:aligned")
        assert 0 not in screen.listing.ordinals, "unless the judge's own labels are asked for"
        await pilot.press("u")
        await until(pilot, lambda: record(folder, "factual-0000/aligned").verdicts == judged)

    drive(stage.app(), script)


def test_copying_and_opening_outside(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = tmp_path / "build"
    (build / "media").mkdir(parents=True)
    media = Media("a" * 64, ".png")
    (build / "media" / media.name).write_bytes(b"no picture")
    folder = make(stage, asked=instances(4, picture=media), data=build)
    begun: list[list[str]] = []
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: begun.append(command))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, folder)
        await pilot.press("y")
        assert app.clipboard == "12"
        await pilot.press("Y")
        assert json.loads(app.clipboard)["id"] == "factual-0000/aligned"
        await pilot.press("v")
        await until(pilot, lambda: begun)
        assert begun[0][1:] == [str((build / "media" / media.name).resolve())]

    drive(stage.app(), script)


def test_reasoning_and_raw_replies_are_shown_on_request(stage: Stage) -> None:
    folder = make(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        await typed(pilot, screen, "is:disagree")
        await pilot.press("G")
        await until(pilot, lambda: screen.detail and "0001" in screen.detail.row.id)
        await pilot.pause()
        assert "characters of reasoning hidden" in screen_text(app)
        assert "It says 15 there" not in screen_text(app)
        await pilot.press("t")
        await pilot.pause()
        assert "It says 15 there" in screen_text(app)
        assert '{"label": "ABSTAIN"}' in screen_text(app)

    drive(stage.app(), script)


@pytest.mark.slow
def test_an_active_run_keeps_the_selection(stage: Stage) -> None:
    asked = instances(4)
    folder = stage.run("going", state="running", asked=asked, done=6, answering=answering)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        await typed(pilot, screen, "is:pending")
        assert len(screen.listing.ordinals) == 18
        await pilot.press("G")
        stage.answer(folder, asked[:12], answering)
        await until(pilot, lambda: len(screen.listing.ordinals) == 12)
        await pilot.pause()
        assert screen.table.cursor_key == 23

    drive(stage.app(), script)


def test_a_run_deleted_meanwhile_is_reported(stage: Stage) -> None:
    folder = make(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        (folder / "run.sqlite").unlink()
        screen.reload()
        await until(pilot, lambda: "is not a run" in screen_text(app))

    drive(stage.app(), script)


@pytest.mark.parametrize("size", BOTH)
def test_labelling_by_keys(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    folder = make(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen("label", [folder])
        await pilot.pause()
        await pilot.press("ctrl+u", *"ann", "enter")
        screen = app.screen
        assert isinstance(screen, LabelScreen)
        await until(pilot, lambda: screen.session is not None)
        await pilot.pause()
        await snapshot(app, "label")
        assert "image-correct" not in screen_text(app)
        assert "policy:" not in screen_text(app)
        assert "trams" not in screen_text(app).splitlines()[0], "a run's name can reveal its model"
        for key, count in (
            ("1", "1 of 18 labelled"),
            ("2", "2 of 18 labelled"),
            ("space", "2 labelled, 1 skipped, of 18"),
        ):
            await pilot.press(key)
            await until(pilot, lambda count=count: count in screen_text(app))  # type: ignore[misc]
        await pilot.press("u")
        await until(pilot, lambda: "2 of 18 labelled" in screen_text(app))
        with RunStore.read(folder) as store:
            labels = [r.verdicts["human:ann@1"].label for r in store.records() if "human:ann@1" in r.verdicts]
        assert sorted(map(str, labels)) == ["IMAGE", "TEXT"]

    drive(stage.app(), script, size)


def test_the_view_shows_every_step_and_nothing_of_a_hidden_reference(stage: Stage) -> None:
    odd = Instance("x", "x", "aligned", "q", (Text("q"),), {"image": ("1",), "shown text": ("secret",)}, {"type": "t"})
    folder = stage.run("odd", asked=[odd], done=0)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        assert "secret" not in screen_text(app)
        assert "not answered yet" in screen_text(app)
        assert isinstance(screen.query_one(SampleView), SampleView)
        assert screen.query_one(VirtualTable).row_count == 1

    drive(stage.app(), script)


# --- media ---------------------------------------------------------------------------------------


def mixed(build: Path) -> tuple[list[Instance], dict[str, Media]]:
    """Two questions about a sound, a video, a 3D model and a broken image; media are in ``build``."""
    (build / "media").mkdir(parents=True)
    media = {}
    for name, data, suffix, modality in (
        ("sound", sound(1.5), ".wav", "audio"),
        ("video", video(), ".mp4", "video"),
        ("model", cloud(), ".npz", "point_cloud"),
        ("broken", b"\x89PNG\r\n\x1a\n [@click=app.quit]x[/]", ".png", "image"),
    ):
        media[name] = Media(hashlib.sha256(data).hexdigest(), suffix, modality)  # type: ignore[arg-type]
        (build / "media" / media[name].name).write_bytes(data)
    asked = instances(2)
    first = tuple(part for name, medium in media.items() for part in (Text(f"{name}: "), medium))
    asked[0] = replace(asked[0], parts=(*first, Text("Which?")))
    asked[1] = replace(asked[1], parts=(media["sound"], Text("What?")))
    return asked, media


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_every_medium_is_shown_with_its_facts_or_why_not(size: tuple[int, int], stage: Stage, tmp_path: Path) -> None:
    asked, _ = mixed(tmp_path / "build")
    folder = stage.run("mixed", asked=asked, data=tmp_path / "build")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await open_samples(pilot, app, folder)
        await pilot.press("enter")
        pictures = [picture for picture in screen.view.query(Picture) if picture.media is not None]
        await until(pilot, lambda: all(picture.query(Static) for picture in pictures))
        assert len(screen.view.query(BlockPicture)) == 3
        captions = [str(picture.query_one(Static).content) for picture in pictures]
        for caption, expected in zip(
            captions,
            (
                r"1  audio, wav",
                r"2  video, mp4.* 12 frames",
                r"3  3D model, npz.* 300 points",
                r"4  image, png, 0.0 kB, is",
            ),
            strict=True,
        ):
            assert re.match(expected, caption), caption
        assert "▀▀▀" in screen_text(app)
        await pilot.press("escape", "j")
        await until(pilot, lambda: len(screen.view.query(BlockPicture)) == 1)

    drive(stage.app(), script, size)


@pytest.mark.slow
def test_a_medium_that_takes_long_keeps_nothing_waiting(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, media = mixed(tmp_path / "build")
    folder = stage.run("mixed", asked=asked, data=tmp_path / "build")
    going, begun = threading.Event(), []

    def slow(medium: Media, *rest: Any) -> MediaPreview:
        begun.append(medium)
        going.wait(60)
        return preview_media(medium, *rest)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "not there" in screen_text(app))  # the picture of the newest answer, on Runs
        monkeypatch.setattr("app.tui.widgets.terminal_picture.preview_media", slow)
        try:
            screen = await open_samples(pilot, app, folder)
            await until(pilot, lambda: len(begun) == 2)
            await pilot.press("j")
            await until(pilot, lambda: screen.detail is not None and screen.detail.row.id == asked[1].id)
            assert "What?" in screen_text(app)
        finally:
            going.set()
        await until(pilot, lambda: len(screen.view.query(BlockPicture)) == 1)
        assert begun == [media["sound"], media["video"], media["sound"]], "what nobody waits for is not read"

    drive(stage.app(), script)


def test_a_question_without_any_source_has_its_right_value(stage: Stage) -> None:
    items = [
        Instance(f"e{n}/closed-book", f"e{n}", "closed-book", "How many?", (Text("How many?"),), {"right": ("12",)})
        for n in range(3)
    ]
    folder = stage.run("memory", asked=items)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, folder)
        await until(pilot, lambda: "BOTH" in screen_text(app))
        for text in ("closed-book", "How many?", "right  12"):
            assert text in screen_text(app)

    drive(stage.app(), script, (120, 40))
