"""A scripted reviewer at the keys of the Review screen; it is a rule, and never reported as a person.

``python -m tests.support.scripted_reviewer WORKSPACE BUILD NAME`` opens the interface without a terminal, reviews every row
that is not decided yet, and prints a line of JSON for each decision once the screen counts it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input, OptionList, TextArea

from app.annotation.review_session import ReviewItem
from app.annotation.review_store import Decision
from app.report.samples.sample_media import media_path
from app.store.workspace import Workspace
from app.tui.screens.review_screen import ReviewScreen
from app.tui.tui_app import RashomonApp
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.review_guide import ReviewGuide
from tests.support.tui_stage import Staged, screen_text, until


def rule(guide: ReviewGuide, build: Path, item: ReviewItem, name: str) -> Decision:
    """Return the decision of the scripted reviewer ``name`` on a row: the same for all, but for one row in eight.

    Of ten rows it rejects two and corrects the question of one. A row with a medium that cannot be played is rejected by all.
    """
    if any(medium.media is None or not _intact(build, medium.media) for medium in item.media):
        reason = next(reason for reason in guide.reasons if reason in ("image", "medium", "picture"))
        return Decision(item.id, name, "reject", reason)
    base = _hash(item.id)
    choice = "reject" if base % 10 < 2 else "fix" if base % 10 == 2 else "accept"
    if _hash(item.id + name) % 8 == 0:
        choice = "reject" if choice == "accept" else "accept"
    if choice == "reject":
        return Decision(item.id, name, "reject", guide.reasons[base // 10 % len(guide.reasons)])
    if choice == "accept":
        return Decision(item.id, name, "accept")
    question = next(field for field in item.fields if "question" in field.heading.lower())
    return Decision(item.id, name, "fix", corrections={question.place: question.text + "?"})


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _intact(build: Path, media: Any) -> bool:
    path = media_path(build, media)
    return path is not None and hashlib.sha256(path.read_bytes()).hexdigest() == media.sha256


async def _decide(pilot: Pilot[Any], app: RashomonApp, decision: Decision, item: ReviewItem) -> None:
    """Press the keys of a decision."""
    if decision.choice == "accept":
        await pilot.press("a")
    elif decision.choice == "reject":
        await pilot.press("r")
        await until(pilot, lambda: len(app.screen.query(OptionList)) > 0)
        await _highlight(pilot, app, _options(app).index(decision.reason))
        await pilot.press("enter")
    else:
        ((place, _),) = decision.corrections.items()
        number = [field.place for field in item.fields if field.editable].index(place)
        await pilot.press("f")
        await until(pilot, lambda: len(app.screen.query(OptionList)) > 0)
        await _highlight(pilot, app, number)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.focused, TextArea))
        await pilot.press("end", "question_mark", "ctrl+s")
        await until(pilot, lambda: len(app.screen.query(OptionList)) > 0 and "save this fix" in _options(app))
        await pilot.press("enter")


def _options(app: RashomonApp) -> list[str]:
    return [str(option.prompt) for option in app.screen.query_one(OptionList).options]


async def _highlight(pilot: Pilot[Any], app: RashomonApp, number: int) -> None:
    for _ in range(number):
        await pilot.press("down")
    assert app.screen.query_one(OptionList).highlighted == number


async def _review(pilot: Pilot[Any], app: RashomonApp, build: Path, name: str) -> None:
    guide = get_benchmark(Build.open(build).benchmark).review_guide
    await until(pilot, lambda: app.snapshot.complete)
    app.open_screen("review")
    await until(pilot, lambda: "o names a folder" in screen_text(app))
    await pilot.press("o")
    for text in (str(build), name):
        await until(pilot, lambda: len(app.screen.query(Input)) > 0 and app.screen.query_one(Input).value != str(build))
        app.screen.query_one(Input).value = text
        await pilot.press("enter")
        await pilot.pause()
    await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and app.screen.session is not None)
    screen = app.screen
    assert isinstance(screen, ReviewScreen)
    session = screen.session
    assert session is not None
    while (item := session.current) is not None:
        await until(pilot, lambda: app.screen is screen and screen._text.displayed and not screen._busy)
        decision, count = rule(guide, build, item, name), session.count
        await _decide(pilot, app, decision, item)
        await until(pilot, lambda count=count: session.count > count)  # type: ignore[misc]
        # Not by print(), which the interface captures.
        os.write(1, f"{json.dumps([decision.item, decision.choice])}\n".encode())


async def _main(workspace: Path, build: Path, name: str) -> None:
    app = Staged(Workspace(workspace), images="off")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await _review(pilot, app, build, name)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
