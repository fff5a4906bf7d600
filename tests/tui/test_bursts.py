"""Random bursts of keys, and what may not come of them: nothing is done that was not asked about in a dialog on the screen."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.annotation.session import LabellingSession
from app.store.trash import Trash
from app.store.workspace import Workspace
from app.tui.app import RashomonApp
from app.tui.processes import RunProcesses
from app.tui.screens import SCREENS
from app.tui.screens.base import RashomonScreen
from app.tui.screens.label import LabelScreen
from app.tui.widgets.dialogs import Dialog, LeaveDialog
from benchmarks.errors import StoreError
from tests.support.sampled import some_fast
from tests.support.tui_burst import burst
from tests.support.tui_computed import three_runs
from tests.support.tui_stage import Stage, drive, screen_text, until

KEYS = (
    *"ydnxyrRpuosewblLjkgGaAdfgmtThinvNYz/;7890+- []",
    *("enter", "enter", "escape", "tab", "shift+tab", "space", "up", "down", "left", "right", "pagedown", "home", "delete"),
    *("backspace", "ctrl+b", "ctrl+r", "ctrl+s", "ctrl+y", "ctrl+q", "ctrl+u"),
)  # fmt: skip
ELSEWHERE = (*"123456?", "ctrl+n", "ctrl+p", "f1", "f2", "f4", "escape")
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
)
"""Sequences that somebody in a hurry types, each of which would do something."""
_NAMES = {"\r": "enter", "\x12": "ctrl+r", "\x11": "ctrl+q", "\x13": "ctrl+s"}


@dataclass
class Seen:
    """Record of what was painted and done, and when; kept by the tests, independently of the interface."""

    dialogs: dict[int, float] = field(default_factory=dict)
    """The time when each dialog, by identity, was first on the screen with its heading."""
    answers: dict[tuple[int, int | None], float] = field(default_factory=dict)
    """The time when the answer at a place of a labelling session was first on the screen."""
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


class Watched(RashomonApp):
    """The interface, which notes every frame."""

    NOTIFICATION_TIMEOUT = 0.5
    seen: Seen

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if isinstance(screen, Dialog) and id(screen) not in self.seen.dialogs and renderable is not None:
            heading = str(screen.painted.content)
            if screen is self.screen and heading.split("\n")[0][:20] in screen_text(self):
                self.seen.dialogs[id(screen)] = time.monotonic()
                self.kept.append(screen)
        if isinstance(screen, LabelScreen) and screen.session is not None:
            shown = screen.session.current
            if shown is not None and shown.answer[:20] in screen_text(self):
                self.seen.answers.setdefault((id(screen.session), screen.session.position), time.monotonic())

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

        monkeypatch.setattr(RunProcesses, name, job)

    def start_job(self: RunProcesses, arguments: Sequence[str]) -> Any:
        if "--dry-run" not in arguments:  # what says what a command would do needs no question
            log.act("start a command")
        raise refused

    monkeypatch.setattr(RunProcesses, "start_job", start_job)
    monkeypatch.setattr(Trash, "delete", note("delete", refused))
    monkeypatch.setattr("app.tui.screens.samples.override", note("override", refused))
    monkeypatch.setattr("app.tui.screens.samples.retract_override", note("take back", refused))
    monkeypatch.setattr("app.tui.screens.samples.open_in_viewer", lambda path: None)
    monkeypatch.setattr("app.tui.confirmations.adopt", note("adopt", refused))
    monkeypatch.setattr("app.tui.screens.new_run.prepare_job", note("begin", refused))
    monkeypatch.setattr("app.tui.screens.new_run.save_spec", lambda spec, path, replace=False: log.act("save"))
    monkeypatch.setattr("app.tui.screens.settings.save_settings", lambda settings: None)

    def export(*arguments: Any, out: Path, **named: Any) -> Any:
        if out.exists():
            log.act("export over files")
        raise refused

    monkeypatch.setattr("app.tui.screens.export.export_runs", export)
    give, undo = LabellingSession.label_current, LabellingSession.undo

    def label(self: LabellingSession, store: Any, label: str | None) -> None:
        log.done["label"] += 1
        painted = log.answers.get((id(self), self.position))
        if painted is None or painted >= log.pressed:
            log.wrong.append(f"label: the answer was painted at {painted}, the key pressed at {log.pressed}")
        give(self, store, label)

    monkeypatch.setattr(LabellingSession, "label_current", label)
    monkeypatch.setattr(LabellingSession, "undo", undo)
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
                while len(app.screen_stack) > 2:
                    await app.pop_screen()
                entry = SCREENS[name]
                log = {"nothing": (), "run": folders[:1], "runs": (folders[:2],)}[entry.needs]
                if name != "runs":
                    app.push_screen(entry.screen_class()(*log))
                    await pilot.pause()
                if name == "label":
                    await painted(pilot)
                    await burst(pilot, ["ctrl+u", *"ann", "enter"])
            await burst(pilot, chosen(source))
            if isinstance(app.screen, Dialog) and source.random() < 0.5:  # somebody who looks, and answers
                await painted(pilot)
                await burst(pilot, [source.choice(["y", "y", "n", "enter", "escape", "x", "b"])])
            assert not seen.wrong, (name, number)
        app.busy_leaving = True

    drive(app, script, (80, 24))
    assert not seen.wrong


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
    return runs


@pytest.mark.parametrize("name", some_fast(PLACES, 6))
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
