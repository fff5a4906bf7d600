"""Random bursts of keys, and what may not come of them: nothing is done that was not asked about in a dialog on the screen."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.annotation.labelling_session import LabellingSession
from app.store.run_trash import Trash
from app.store.workspace import Workspace
from app.tui.screens import SCREENS
from app.tui.screens.answer_screen import AnswerScreen
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.label_screen import LabelScreen
from app.tui.screens.review_screen import ReviewScreen
from app.tui.tui_app import RashomonApp
from app.tui.tui_processes import RunProcesses
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.dialogs import Dialog, LeaveDialog
from benchmarks.build import BuildOptions
from benchmarks.clash import Clash
from benchmarks.errors import StoreError
from tests.support.data.clash import published_folder, published_row
from tests.support.demo import FOUR_BIT
from tests.support.sampled import some_fast
from tests.support.trainings import staged_training
from tests.support.tui_burst import burst
from tests.support.tui_computed import three_runs
from tests.support.tui_stage import Stage, drive, screen_text, until

KEYS = (
    *"ydnxyrRpuosewblLjkgGaAdfgmtThinvNYz/;7890+- []cBDIS",
    *("enter", "enter", "escape", "tab", "shift+tab", "space", "up", "down", "left", "right", "pagedown", "home", "delete"),
    *("backspace", "ctrl+b", "ctrl+o", "ctrl+r", "ctrl+s", "ctrl+t", "ctrl+y", "ctrl+q", "ctrl+u", "ctrl+z"),
)  # fmt: skip
ELSEWHERE = (*"123456?q", "ctrl+n", "ctrl+p", *(f"f{number}" for number in range(1, 10)), "escape")
"""Keys that lead to another screen, which takes long: less of them."""
MEANT = (
    "dy",
    "/dy",
    "Ry",
    "xy",
    "xb",
    "6\r",
    "o1\rb\r\r",
    "\x12y",
    "\x11y",
    "wy",
    "by",
    "u",
    "dyu",
    "\x13\ry",
    "\ry",
    "ewy",
    "a",
    "ay",
    "By",
    "Dy",
    "rz\r",
    "r\r",
    "4\r",
    "yes\ry",
)
"""Sequences that somebody in a hurry types, each of which would do something."""
ROWS = FOUR_BIT.parent / "rows.csv"
"""A table of rows that can be built from."""
_NAMES = {"\r": "enter", "\x12": "ctrl+r", "\x11": "ctrl+q", "\x13": "ctrl+s"}


@dataclass
class Seen:
    """Record of what was painted and done, and when; kept by the tests, independently of the interface."""

    dialogs: dict[int, float] = field(default_factory=dict)
    """The time when each dialog, by identity, was first on the screen with its heading."""
    answers: dict[tuple[int, object], float] = field(default_factory=dict)
    """The time when an item of a session of labelling, reviewing or answering was first on the screen."""
    answered: tuple[Dialog[Any], float] | None = None
    """The last dialog that was answered, and when the key that answered it was pressed."""
    pressed: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def act(self, what: str) -> None:
        """Note that something was done, and whether a dialog that was painted before its key was pressed agreed to it."""
        self.done[what] += 1
        if self.answered is None:
            self.wrong.append(f"{what}: no dialog was answered")
            return
        dialog, pressed = self.answered
        painted = self.dialogs.get(id(dialog))
        if painted is None or painted >= pressed:
            self.wrong.append(f"{what}: {dialog} was painted at {painted}, its key pressed at {pressed}")

    def decide(self, what: str, session: object, item: object) -> None:
        """Note that an item was decided on, and whether it was painted before the key was pressed."""
        self.done[what] += 1
        painted = self.answers.get((id(session), item))
        if painted is None or painted >= self.pressed:
            self.wrong.append(f"{what}: the item was painted at {painted}, the key pressed at {self.pressed}")


class Watched(RashomonApp):
    """The interface, which notes every frame."""

    NOTIFICATION_TIMEOUT = 0.5
    seen: Seen

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if isinstance(screen, Dialog) and id(screen) not in self.seen.dialogs and renderable is not None:
            heading = str(screen.painted.content).split("\n")[0][:20]
            if isinstance(screen, CommandDialog):
                heading = "y starts it"
            if screen is self.screen and heading in screen_text(self):
                self.seen.dialogs[id(screen)] = time.monotonic()
                self.kept.append(screen)
        item, text = displayed_item(screen)
        if item is not None and text in screen_text(self):
            self.seen.answers.setdefault((id(screen.session), item), time.monotonic())

    kept: list[Any]
    """Dialogs, kept so that no other has their identity."""

    def exit(self, *arguments: Any, **named: Any) -> None:
        if not self.busy_leaving:
            if isinstance(self.screen, LeaveDialog):  # ctrl+q once more is its answer, too
                self.seen.answered = self.screen, self.seen.pressed
            self.seen.act("leave")
        else:
            super().exit(*arguments, **named)

    busy_leaving = False


def displayed_item(screen: Any) -> tuple[object, str]:
    """Return the item that a screen's session is at, and a text that is on the screen with it; None if there is none."""
    session = getattr(screen, "session", None)
    if session is None or session.current is None:
        return None, ""
    if isinstance(screen, LabelScreen):
        return session.position, session.current.answer[:20]
    if isinstance(screen, ReviewScreen):
        return session.current.id, f"Row {session.current.id}"[:40]
    if isinstance(screen, AnswerScreen):
        return session.count, f"Question {session.count + 1:,} of"
    return None, ""


class Preview:
    """A job that has printed what its command would do."""

    code = 0

    def output(self) -> str:
        return "12 calls"

    def stop(self) -> None: ...


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Return the record, with everything that would be done replaced by a note in it."""
    log = Seen()

    def note(what: str, result: Any = None) -> Callable[..., Any]:
        def act(*arguments: Any, **named: Any) -> Any:
            log.act(what)
            if isinstance(result, Exception):
                raise result
            return result

        return act

    refused = StoreError("not in this test.")
    for name in ("resume", "start", "stop", "stop_batch", "stop_all"):
        real = getattr(RunProcesses, name)

        def job(self: RunProcesses, *arguments: Any, _name: str = name, _real: Any = real) -> None:
            paused = _name == "resume" and (arguments[0] / "pause").exists()
            if paused:  # a run that waits with its model in memory goes on by a key alone, as it was paused by one
                _real(self, *arguments)
            else:
                log.act(_name)
                if _name == "start":
                    raise refused

        monkeypatch.setattr(RunProcesses, name, job)

    def start_job(self: RunProcesses, arguments: Sequence[str]) -> Any:
        if "--dry-run" in arguments:  # what says what a command would do needs no question
            return Preview()
        log.act("start a command")
        raise refused

    monkeypatch.setattr(RunProcesses, "start_job", start_job)
    monkeypatch.setattr(Trash, "delete", note("delete", refused))
    monkeypatch.setattr("app.tui.screens.session_overrides.override", note("override", refused))
    monkeypatch.setattr("app.tui.screens.session_overrides.retract_override", note("take back", refused))
    monkeypatch.setattr("app.tui.screens.samples_screen.open_in_viewer", lambda path: None)
    monkeypatch.setattr("app.tui.tui_confirmations.adopt", note("adopt", refused))
    monkeypatch.setattr("app.tui.screens.spec_actions.prepare_job", note("begin", refused))
    monkeypatch.setattr("app.tui.screens.spec_actions.save_spec", lambda spec, path, replace=False: log.act("save"))
    monkeypatch.setattr("app.tui.screens.settings_screen.save_settings", lambda settings: None)
    monkeypatch.setattr("app.tui.screens.session_screen.open_in_viewer", lambda path: None)
    monkeypatch.setattr("app.tui.screens.trainings_screen.stop_training", note("stop a training"))

    def export(*arguments: Any, out: Path, **named: Any) -> Any:
        if out.exists():
            log.act("export over files")
        raise refused

    monkeypatch.setattr("app.tui.screens.export_screen.export_runs", export)
    give = LabellingSession.label_current

    def label(self: LabellingSession, store: Any, label: str | None) -> None:
        log.decide("label", self, self.position)
        give(self, store, label)

    monkeypatch.setattr(LabellingSession, "label_current", label)
    decide, submitted = ReviewScreen._decide, AnswerScreen.on_input_submitted

    def review(self: ReviewScreen, choice: Any, *, unseen: bool = False, **named: Any) -> None:
        if unseen:
            log.act(choice)
        elif self.session is not None and self._text.displayed and not self._busy:
            log.decide(choice, self.session, displayed_item(self)[0])
        decide(self, choice, unseen=unseen, **named)

    def answer(self: AnswerScreen, event: Any) -> None:
        if self.session is not None and event.value.strip() and self._text.displayed and not self._busy:
            log.decide("answer", self.session, displayed_item(self)[0])
        submitted(self, event)

    monkeypatch.setattr(ReviewScreen, "_decide", review)
    monkeypatch.setattr(AnswerScreen, "on_input_submitted", answer)
    start = CommandDialog.action_start

    def confirmed(self: CommandDialog) -> None:
        log.answered = (self, log.pressed)
        start(self)

    monkeypatch.setattr(CommandDialog, "action_start", confirmed)
    dismiss = Dialog.dismiss

    def answered(self: Dialog[Any], result: Any = None) -> Any:
        log.answered = (self, log.pressed)
        return dismiss(self, result)

    monkeypatch.setattr(Dialog, "dismiss", answered)
    return log


def chosen(source: random.Random) -> list[str]:
    """Return a burst: random keys, or one of those that somebody in a hurry types, alone or among others."""
    keys = [source.choice(KEYS) for _ in range(source.randint(1, 8))]
    if source.random() < 0.15:
        keys.insert(source.randint(0, len(keys)), source.choice(ELSEWHERE))
    if source.random() < 0.4:
        place = source.randint(0, len(keys))
        meant = [_NAMES.get(key, key) for key in source.choice(MEANT)]
        keys = meant if source.random() < 0.5 else keys[:place] + meant + keys[place:]
    return keys


def try_bursts(stage: Stage, seen: Seen, name: str, count: int, folders: tuple[Path, ...]) -> None:
    app = Watched(stage.workspace, images="half")
    app.seen, app.kept = seen, []
    source = random.Random(f"bursts on {name}")

    async def script(pilot: Pilot[Any], _: RashomonApp) -> None:
        deliver = app.key_queue._deliver

        async def pressed(event: Any) -> None:
            seen.pressed = event.time
            await deliver(event)

        app.key_queue._deliver = pressed
        for number in range(count):
            if number % 50 == 0 or at(app) != name:
                if app.workspace.path != stage.path:
                    app.open_workspace(stage.workspace)
                while len(app.screen_stack) > 2:
                    await app.pop_screen()
                entry = SCREENS[name]
                log = {"nothing": (), "run": folders[:1], "runs": (folders[:2],)}[entry.needs]
                if name != "runs":
                    app.push_screen(entry.screen_class()(*log))
                    await pilot.pause()
                await begin(pilot, app, name)
            await burst(pilot, chosen(source))
            if isinstance(app.screen, Dialog) and source.random() < 0.5:  # somebody who looks, and answers
                await painted(pilot)
                await burst(pilot, [source.choice(["y", "y", "n", "enter", "escape", "x", "b"])])
            assert not seen.wrong, (name, number)
        app.busy_leaving = True

    drive(app, script, (80, 24))
    assert not seen.wrong


async def begin(pilot: Pilot[Any], app: RashomonApp, name: str) -> None:
    """Bring a screen, just opened, to where its keys do something."""
    answers: dict[str, Sequence[Sequence[str]]] = {
        "label": (["ctrl+u", *"ann", "enter"],),
        "review": (["enter"], ["ctrl+u", *"ann", "enter"]),
        "answer": (["enter"], ["ctrl+u", *"ann", "enter"], ["enter"]),
    }
    for keys in answers.get(name, ()):
        await until(pilot, lambda: isinstance(app.screen, Dialog))
        await painted(pilot)
        await burst(pilot, keys)
    if name in ("review", "answer"):
        await until(pilot, lambda: app.screen.session is not None)  # type: ignore[attr-defined]
    if name == "rows":
        app.screen.query_one("#input-table", Input).value = str(ROWS)
        await burst(pilot, ["enter"])
        await until(pilot, lambda: app.screen.table_check is not None)  # type: ignore[attr-defined]
    if name == "vary":
        for key, value in (("build", "clash"), ("blur", "0,1")):
            app.screen.query_one(f"#input-{key}", Input).value = value


def at(app: RashomonApp) -> str:
    """Return the name of the screen under the dialogs."""
    return next(screen.name_ for screen in reversed(app.screen_stack) if isinstance(screen, RashomonScreen))


async def painted(pilot: Pilot[Any]) -> None:
    screen = pilot.app.screen
    await until(pilot, lambda: not isinstance(screen, Dialog) or screen.displayed)


PLACES = list(SCREENS)


@pytest.fixture
def prepared(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    monkeypatch.chdir(tmp_path)
    for variable in ("XDG_CONFIG_HOME", "HF_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    runs = three_runs(stage, 4)
    stage.die(stage.run("broken-off", state="running", done=3))
    source = published_folder(tmp_path / "source", [published_row(number) for number in range(1, 30)])
    Clash().build([("published", str(source))], stage.workspace.build_folder("clash"), BuildOptions())
    staged_training(stage.workspace, "broken-off-training", state="stopped", done=50)
    staged_training(stage.workspace, "training", state="training", done=50).lock().acquire(f"process {os.getpid()}")
    return runs


@pytest.mark.parametrize("name", some_fast(PLACES, 3))
def test_no_burst_does_what_no_painted_dialog_asked(
    name: str, stage: Stage, prepared: tuple[Path, ...], seen: Seen
) -> None:
    try_bursts(stage, seen, name, 8, prepared)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_no_burst_of_very_many_does_what_no_painted_dialog_asked(
    name: str, stage: Stage, prepared: tuple[Path, ...], seen: Seen
) -> None:
    try_bursts(stage, seen, name, 1000, prepared)
    print(
        f"{name}: 1000 bursts; done after a painted question: {dict(seen.done)}; dialogs painted: {len(seen.dialogs)}"
    )
    assert Workspace(stage.path).run_names()
