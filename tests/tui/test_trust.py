"""Received runs and new addresses in the interface: nothing is sent or taken over unasked."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from app.store.run_store import RunStore
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Confirm, ErrorDialog
from mlx_backends.remote import allowed_addresses
from tests.support.trust import receive, tree
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until

SIZE = next(iter(SIZES.values()))


def test_a_received_run_is_adopted_by_a_key_after_what_it_would_use_was_shown(stage: Stage) -> None:
    folder = stage.run("theirs", done=20)
    with RunStore.read(folder) as store:
        spec = store.meta("spec")
    receive(folder, spec={**spec, "judge": ["match", "endpoint:j@https://collector.example/v1"]})
    before = tree(folder)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, (Confirm, ErrorDialog)))
        while not isinstance(
            app.screen, RunsScreen
        ):  # whether to resume it, whether to use the address, that it is not ours
            dialog = app.screen
            await pilot.press("y" if isinstance(dialog, Confirm) else "escape")
            await until(pilot, lambda dialog=dialog: app.screen is not dialog)  # type: ignore[misc]
        assert tree(folder) == before, "it is not gone on with"
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Confirm) and "collector" in screen_text(app))
        assert "https://collector.example:443" in " ".join(screen_text(app).split())
        await pilot.press("n")
        assert stage.workspace.run_names() == ["theirs"]
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, Confirm) and "collector" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: stage.workspace.run_names() == ["theirs", "theirs-adopted"])
        assert {run.name: run.own for run in stage.workspace.summaries()} == {"theirs": False, "theirs-adopted": True}

    drive(stage.app(), script, SIZE)
    assert tree(folder) == before
    with RunStore.open(stage.workspace.runs_folder / "theirs-adopted") as store:
        assert sum(p.done for p in store.progress()) == 20


@pytest.mark.parametrize(
    ("key", "agreed", "proxy"), [("n", False, ""), ("y", True, ""), ("y", True, "http://proxy.invalid:3128")]
)
def test_resuming_a_run_asks_for_a_new_address(
    stage: Stage, key: str, agreed: bool, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", proxy.replace("//", "//somebody:secret@"))
    address = f"https://judge-{key}.example:443"
    route = f"{address},proxy={proxy}" if proxy else address
    folder = stage.run("mine", state="interrupted", done=20)
    with RunStore.open(folder) as store:
        store.set_meta("spec", {**store.meta("spec"), "judge": [f"endpoint:j@{address}/v1"]})
    started: list[list[str]] = []

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        monkeypatch.setattr(app.processes, "start", lambda arguments, runs: started.append(list(arguments)))
        await until(pilot, lambda: bool(app.snapshot.runs))
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, Confirm) and "Resume?" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Confirm) and "new address" in screen_text(app))
        assert address in "".join(screen_text(app).split())
        assert proxy in "".join(screen_text(app).split())
        assert "secret" not in screen_text(app)
        assert not started
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, Confirm))

    drive(stage.app(), script, SIZE)
    assert started == ([["resume", str(folder), "--allow-address", route]] if agreed else [])
    assert address not in allowed_addresses._recorded(), "the command that is started keeps it"
