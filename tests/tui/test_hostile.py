"""Hostile text on every screen: it steers no terminal and nothing of it is a link. A new screen adds a line to ``CASES``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from app.store.run_store import RunStore
from app.tui.hostile_text import sanitize
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Confirm, TextDialog
from benchmarks.build import BuildOptions
from benchmarks.clash import Clash
from benchmarks.vocabulary import Generation, Instance, Verdict
from tests.support.data.clash import published_folder, published_row
from tests.support.runs import instances, says
from tests.support.sampled import some_fast
from tests.support.tui_computed import press, visit
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, strips, until

PAYLOAD = "[@click=app.bell]x[/] [/nope] [red]r \x1b]52;c;c3RvbGVu\x07\x1b[31m\x9b31m \u202edrow\u200b \udc80 a\tb"
STORED = PAYLOAD.replace("\udc80", "")
"""As it can stand in a spec."""


LITERAL = r"[@click=app.bell]x[/] [/nope] [red]r \x1b]52;c;"


class Case(NamedTuple):
    """A screen: how to get to it with the hostile run, and what of the payload is to be read there (nothing: only no harm)."""

    name: str
    go: Callable[[Pilot[Any], RashomonApp, Path], Awaitable[object]]
    reads: str = ""


async def _runs(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    await pilot.press("j")
    await until(pilot, lambda: "31m" in screen_text(app))  # a narrow terminal has the ends of the model's name


async def _samples(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.open_screen("samples", [folder])
    await until(pilot, lambda: "[@click" in screen_text(app))
    await pilot.press("enter", "t")


async def _samples_filter(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    await _samples(pilot, app, folder)
    await pilot.press("escape", "slash")
    app.screen.query_one("#filter", Input).value = f"colour:{PAYLOAD}"


async def _samples_override(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    await _samples(pilot, app, folder)
    await pilot.press("o", "1", "enter", *"[@click=app.bell]x[/", "enter", "enter")
    await until(pilot, lambda: "IMAGE *" in screen_text(app))


async def _label(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.open_screen("label", [folder])
    await until(pilot, lambda: "Annotator" in screen_text(app))
    await pilot.press("enter")
    await until(pilot, lambda: "[@click" in screen_text(app))


async def _review(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    sample = published_row(
        1, original_caption=f"white {STORED}", conflicting_caption=f"black {STORED}", question=STORED
    )
    source = published_folder(folder.parent / "clash-source", [sample])
    Clash().build([("published", str(source))], app.workspace.build_folder("clash"), BuildOptions())
    app.open_screen("review")
    await until(pilot, lambda: "Review which build?" in screen_text(app))
    await pilot.press("enter")
    await until(pilot, lambda: "Reviewer" in screen_text(app))
    await pilot.press("enter")
    await until(pilot, lambda: "[@click" in screen_text(app))


async def _review_fix(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    await _review(pilot, app, folder)
    await pilot.press("f", "enter")
    await until(pilot, lambda: len(app.screen.query(TextArea)) > 0)


async def _answer(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    sample = published_row(1, question=STORED)
    source = published_folder(folder.parent / "clash-source", [sample])
    Clash().build([("published", str(source))], app.workspace.build_folder("clash"), BuildOptions())
    app.open_screen("answer")
    for heading in ("Answer which benchmark?", "Who answers?", "How many examples?"):
        await until(pilot, lambda heading=heading: heading in screen_text(app))  # type: ignore[misc]
        await pilot.press("enter")
    await until(pilot, lambda: "[@click" in screen_text(app))


async def _live(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    (folder / "worker.log").write_text(PAYLOAD, "utf-8", "surrogateescape")
    app.open_screen("live", [folder])
    await until(pilot, lambda: "Newest answer: " in screen_text(app))


async def _log(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    await _live(pilot, app, folder)
    await pilot.press("L")
    await until(pilot, lambda: LITERAL in screen_text(app))


async def _error(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.show_error(ValueError(PAYLOAD))
    await pilot.pause()


async def _toast(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.toast(PAYLOAD)
    await until(pilot, lambda: len(app.screen.query("Toast")) > 0)


async def _question(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.push_screen(Confirm("Sure?", PAYLOAD))
    await pilot.pause()


async def _typed(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.push_screen(TextDialog("A name", PAYLOAD, value=sanitize(PAYLOAD), check=lambda text: PAYLOAD))
    await pilot.pause()


async def _rows(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    table = folder.parent / "hostile.csv"
    named = STORED.replace('"', "")
    words = (("red", "gold"), ("green", "pink"), ("blue", "black"))
    rows = [f'"{n}.png","{STORED}","{one}","{STORED} {one}","{two}","{n}"' for n, (one, two) in enumerate(words)]
    table.write_text("\n".join([f'image,question,answer,passage,conflict,"{named}"', *rows]), "utf-8")
    for n in range(3):
        Image.new("RGB", (8, 8), (80 * n, 0, 0)).save(table.parent / f"{n}.png")
    await pilot.press("f4")
    await pilot.pause()
    app.screen.query_one("#input-table", Input).value = str(table)
    await press(pilot, "enter", "n")


async def _vary(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.open_screen("vary")
    await pilot.pause()
    for key in ("build", "text-source", "limit", "out"):
        app.screen.query_one(f"#input-{key}", Input).value = sanitize(PAYLOAD)
    await until(pilot, lambda: "✗" in screen_text(app))


async def _train(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    app.open_screen("train")
    await pilot.pause()
    for key in ("model", "data", "recipe"):
        app.screen.query_one(f"#input-{key}", Input).value = sanitize(PAYLOAD)
    await until(pilot, lambda: "✗" in screen_text(app))


def _of(name: str, *keys: str) -> Callable[[Pilot[Any], RashomonApp, Path], Awaitable[object]]:
    """To a screen of the hostile run and of a copy of it."""

    async def go(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
        await visit(pilot, app, name, (folder, folder.with_name("hostile-2")))
        await press(pilot, *keys)

    return go


CASES = [
    Case("runs", _runs, "31m"),
    Case("samples", _samples, "[@click"),
    Case("samples-filter", _samples_filter, "[@click"),
    Case("samples-override", _samples_override, "[@click"),
    Case("label", _label, "[@click"),
    Case("review", _review, "[@click"),
    Case("review-fix", _review_fix, "[@click"),
    Case("answer", _answer, "[@click"),
    Case("live", _live, "[/nope]"),
    Case("live-log", _log, LITERAL),
    Case("error", _error, "[/nope]"),
    Case("toast", _toast, "[@click"),
    Case("confirm", _question, "[/nope]"),
    Case("ask", _typed, "[/nope]"),
    Case("tables", _of("tables"), "[red]r"),
    Case("tables-copy", _of("tables", "y", "enter"), "[red]r"),
    Case("tables-choose", _of("tables", "w"), "[@click"),
    Case("compare", _of("compare"), "[red]r"),
    Case("compare-flips", _of("compare", "t", "t"), "[red]r"),
    Case("compare-texts", _of("compare", "f", "c", "j", "b"), "[red]r"),
    Case("compare-take", _of("compare", "T"), "[red]r"),
    Case("compare-answers", _of("compare", "t", "t", "left", "enter", "enter"), "[@click"),
    Case("export", _of("export", "w"), "files"),
    Case("rows", _rows, "[@click"),
    Case("vary", _vary, "[@click"),
    Case("train", _train, "[@click"),
]


@pytest.mark.parametrize("size", BOTH)
@pytest.mark.parametrize("case", some_fast(CASES, 10), ids=lambda case: case.name)
def test_hostile_text_is_only_text(
    case: Case, size: tuple[int, int], stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = hostile_run(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await case.go(pilot, app, folder)
        await pilot.pause()
        assert case.reads in screen_text(app)
        assert_harmless(app)

    drive(stage.app(), script, size)


def hostile_run(stage: Stage) -> Path:
    """Return a run with the payload in its question, answers, model and note."""
    asked = instances(3, question=PAYLOAD)
    folder = stage.run("hostile", asked=asked, answering=_partly("15"), model=f"policy:uniform{STORED}")
    stage.note(folder, "failed", PAYLOAD)
    stage.run("hostile-2", asked=asked, answering=_partly("12"), model="policy:random")
    with RunStore.open(folder) as store:
        stored = store.answer_of("factual-0000/aligned")
        assert stored is not None
        store.add_verdicts([(*stored, Verdict(f"human:{STORED}", "labelled", STORED, STORED))])
    return folder


def _partly(text: str) -> Callable[[Instance], Generation]:
    """Answer the payload, which no rule labels, or ``text``."""
    return lambda instance: says(PAYLOAD if instance.group.endswith("0") else text)(instance)


def assert_harmless(app: RashomonApp) -> None:
    """No character on the screen is a control or invisible one, and nothing hostile can be clicked."""
    for strip in strips(app):
        for segment in strip:
            assert segment.text.isprintable() or not segment.text, repr(segment.text)
            meta = segment.style.meta if segment.style else {}
            assert "app.bell" not in str(meta), meta
            assert segment.style is None or segment.style.link is None
