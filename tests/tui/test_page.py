"""``W``, which opens the page in the browser at the instance on display, and never where labelling is blind."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from textual.pilot import Pilot

from app.tui.page_servers import NoPageError, PageServers, ServedPage
from app.tui.screens.flips_screen import FlippedScreen, SideBySideScreen
from app.tui.screens.label_screen import LabelScreen
from app.tui.screens.live_screen import LiveScreen
from app.tui.screens.results_screen import ResultsScreen
from app.tui.screens.samples_screen import SamplesScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import ErrorDialog, TextDialog
from tests.support.runs import instances
from tests.support.tui_computed import open_samples, press, three_runs, until_computed, visit
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until

SERVER = """#!{python}
import json, os, sys, time
arguments = sys.argv[sys.argv.index("view") + 1 :]
with open({log!r}, "a") as log:
    print(json.dumps([os.getpid(), *arguments]), file=log)
if arguments[-1].endswith("damaged"):
    sys.exit("'damaged' is not a run")
print("reading the runs")
print(f"http://127.0.0.1:{{os.getpid()}}/?token=abc")
print("served", flush=True)
time.sleep(600)
"""


class Command:
    """A stand-in for `rashomon view`: it prints a link, and stays until it is ended."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "served.jsonl"
        self.path = folder / "python"
        self.path.write_text(SERVER.format(python=sys.executable, log=str(self._log)))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of the processes that were started."""
        return [call[1:] for call in self._calls()]

    @property
    def alive(self) -> int:
        """The number of processes that run."""
        return sum(_runs(call[0]) for call in self._calls())

    def _calls(self) -> list[list[Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Yield the command, which must not outlive the test, in a session without a browser."""
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("app.tui.open_external.sys.platform", "linux")
    stand_in = Command(tmp_path)
    monkeypatch.setattr("app.tui.page_servers.sys.executable", str(stand_in.path))
    yield stand_in
    assert not stand_in.alive


async def link_opened(pilot: Pilot[Any], app: RashomonApp) -> str:
    """Press W, wait for the link, close its dialog, and return the id of the instance in it."""
    await pilot.press("W")
    await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "http://127.0.0.1:" in screen_text(app))
    assert "For another browser" in screen_text(app)
    dialog = app.screen
    assert isinstance(dialog, ErrorDialog)
    link = urlsplit(dialog.message.partition("\n")[0])
    assert link.query == "token=abc"
    await pilot.press("escape")
    app.clear_notifications()
    return unquote(link.fragment.removeprefix("id="))


def test_the_page_opens_at_the_answer_on_display(stage: Stage, command: Command) -> None:
    folders = three_runs(stage, 4)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, folders[0])
        await pilot.press("j", "j")
        screen = app.screen
        assert isinstance(screen, SamplesScreen)
        await until(pilot, lambda: screen.detail is not None and screen.detail.row.ordinal == screen.table.cursor_key)
        assert screen.detail is not None
        shown = screen.detail.row.id
        assert await link_opened(pilot, app) == shown
        assert command.calls == [["--no-browser", "--", str(folders[0])]]
        await pilot.press("z")
        await pilot.pause()
        assert await link_opened(pilot, app) == shown
        app.open_screen("live", [folders[0]])
        live = app.screen
        assert isinstance(live, LiveScreen)
        await until(pilot, lambda: live.page_at())
        assert await link_opened(pilot, app) == live.page_at()
        assert len(command.calls) == 1, "the same page is served once"

    drive(stage.app(), script)


def test_the_page_has_all_runs_of_a_comparison(stage: Stage, command: Command) -> None:
    folders = three_runs(stage, 4)[:2]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", folders)
        await until_computed(pilot)
        assert (await link_opened(pilot, app)).startswith("factual-")
        assert command.calls == [["--no-browser", "--", *map(str, folders)]]
        await press(pilot, "enter")
        assert isinstance(app.screen, SideBySideScreen)
        assert await link_opened(pilot, app) == app.screen.changes[app.screen.place].instance
        await press(pilot, "escape", "t", "t", "n", "enter")
        assert isinstance(app.screen, FlippedScreen)
        assert await link_opened(pilot, app) == app.screen.flips[0].instance
        assert len(command.calls) == 1, "the same page is served once"
        await pilot.press("1", "j", "space", "W")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        assert len(command.calls[-1]) == 3, "the marked run"
        assert "#id" not in screen_text(app), "from its beginning"
        assert command.alive <= 3

    drive(stage.app(), script)


def test_the_page_has_the_judge_and_the_rule_of_the_screen(stage: Stage, command: Command) -> None:
    folders = three_runs(stage, 4)[:2]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.settings = app.settings.model_copy(update={"trust": "image"})
        await visit(pilot, app, "compare", folders)
        await until_computed(pilot)
        compare = app.screen
        assert isinstance(compare, ResultsScreen)
        compare.judge = "match@4"
        await link_opened(pilot, app)
        options = ["--no-browser", "--judge=match@4", "--trust=image", "--"]
        assert command.calls == [[*options, *map(str, folders)]]
        await press(pilot, "enter")
        assert isinstance(app.screen, SideBySideScreen)
        await link_opened(pilot, app)
        assert len(command.calls) == 1
        await open_samples(pilot, app, folders[0])
        await link_opened(pilot, app)
        assert command.calls[-1] == ["--no-browser", "--trust=image", "--", str(folders[0])]

    drive(stage.app(), script)


def test_the_page_stays_closed_while_labelling_is_blind(stage: Stage, command: Command) -> None:
    folder = stage.run("secret-model", asked=instances(2))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen("label", [folder])
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LabelScreen) and app.screen.session is not None)
        await pilot.press("W")
        await until(pilot, lambda: "The page shows models" in screen_text(app))
        assert "secret-model" not in screen_text(app)
        for name in ("review", "answer"):
            app.clear_notifications()
            app.open_screen(name)
            await pilot.press("W")
            await until(pilot, lambda: "The page shows models" in screen_text(app))
        assert command.calls == []

    drive(stage.app(), script)


def test_without_a_run_there_is_no_page(stage: Stage, command: Command) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("W")
        await until(pilot, lambda: "choose a run first" in screen_text(app))
        assert command.calls == []

    drive(stage.app(), script, SIZES["80x24"])


def test_a_browser_beside_the_terminal_opens_the_link(
    stage: Stage, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run("charts", asked=instances(1))
    opened = tmp_path / "opened"
    viewer = tmp_path / "bin" / "xdg-open"
    viewer.parent.mkdir()
    viewer.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    viewer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{viewer.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    for variable in ("SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(variable, raising=False)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("W")
        await until(pilot, lambda: "/?token=abc" in screen_text(app))
        await until(pilot, opened.exists)
        assert opened.read_text().startswith("http://127.0.0.1:")

    drive(stage.app(), script)


def test_servers_are_few_and_a_failure_has_its_reason(tmp_path: Path, command: Command) -> None:
    servers = PageServers()
    pages = [ServedPage(tmp_path, (tmp_path / f"run-{number}",)) for number in range(5)]
    assert len({servers.link(page) for page in pages}) == 5
    assert command.alive == 3
    assert servers.link(pages[-1], "a b/#%\u00e9") == f"{servers.link(pages[-1])}#id=a%20b/%23%25%C3%A9"
    assert len(command.calls) == 5
    with pytest.raises(NoPageError, match="'damaged' is not a run"):
        servers.link(ServedPage(tmp_path, (tmp_path / "damaged",)))
    servers.close()
    assert command.alive == 0
