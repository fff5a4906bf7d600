"""A workspace with runs in any state, created without processes or models, and tools to drive the interface."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Size
from textual.pilot import Pilot
from textual.strip import Strip

from app.engine.run_plan import create_run
from app.run_spec import BatchSpec
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Dialog
from benchmarks.vocabulary import Generation, Instance, Record
from judges.cmc_rules.cmc_match_judge import Match
from tests.support.parsed_styles import share_parsed_styles
from tests.support.runs import Answering, instances, says

SIZES = {"80x24": (80, 24), "120x40": (120, 40)}
BOTH = [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40", marks=pytest.mark.slow)]
"""The sizes for tests that run at both; the larger one belongs to the slow suite."""
PATIENCE = 60.0
CREATED = 1_750_000_000.0
# Notifications stay, so that a screen does not depend on the speed of the machine.
RashomonApp.NOTIFICATION_TIMEOUT = 3600.0
share_parsed_styles()


class Staged(RashomonApp):
    """The interface with notifications that stay, so that no screen depends on the speed of the machine.

    Keys are pressed by somebody who looks first: only once the dialog that should get them is painted.
    """

    NOTIFICATION_TIMEOUT = 3600.0

    async def _press_keys(self, keys: Iterable[str]) -> None:
        for key in keys:
            end = time.monotonic() + PATIENCE
            while isinstance(self.screen, Dialog) and not self.screen.displayed:
                assert time.monotonic() < end, "the dialog is never painted"
                await asyncio.sleep(0.01)
            await super()._press_keys([key])


@dataclass
class Stage:
    """A workspace, and the locks that stand in for processes working on its runs."""

    path: Path
    """The workspace's folder."""
    locks: dict[str, FileLock] = field(default_factory=dict)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.path)

    def run(
        self,
        name: str,
        *,
        state: str = "done",
        note: str = "",
        done: int | None = None,
        asked: list[Instance] | None = None,
        answering: Answering | None = None,
        model: str = "policy:always-image",
        data: Path | None = None,
        benchmark: str = "cmc-bench",
        quantisation: str | None = "4-bit",
    ) -> Path:
        """Create a run in ``state`` with the first ``done`` instances answered (default: all) and return its folder.

        In an active state, this process holds the run's lock until :meth:`close` or :meth:`die`.
        """
        asked = instances(4) if asked is None else asked
        answering = answering or says("12")
        (spec,) = BatchSpec(benchmark=benchmark, model=(model,), name=name).runs()
        self.workspace.make()
        identity = {
            **spec.identity(),
            "data digest": "d" * 64,
            "weights digest": "e" * 64,
            "quantisation": quantisation,
            "engine": "policy",
            "device": "cpu",
        }
        folder = self.workspace.runs_folder / name
        create_run(self.workspace, spec, folder, identity, asked, data=data)
        self.answer(folder, asked[: len(asked) if done is None else done], answering)
        with RunStore.open(folder) as store:
            store.set_meta("state", {"state": state, "note": note, "pid": os.getpid()})
            store.set_meta("created", CREATED + len(self.workspace.run_names()))
        if state in ("queued", "loading", "running", "judging", "paused"):
            self.work_on(folder)
        return folder

    def answer(self, folder: Path, items: list[Instance], answering: Answering) -> None:
        """Commit the answers to ``asked``, labelled by ``match``."""
        with RunStore.open(folder) as store:
            match = Match()
            store.use_engine(
                {"engine": "policy", "model": "policy", "machine": {"chip": "M", "memory": 16 * 10**9, "system": ""}}
            )
            ids = {instance.id for instance in items}
            answers = []
            for pending in store.pending():
                if pending.instance.id in ids:
                    generation: Generation = answering(pending.instance)
                    verdicts = (
                        ()
                        if generation.finish_reason == "error"
                        else (match.judge(Record(pending.instance, (generation,))),)
                    )
                    condition = pending.instance.condition
                    answers.append(NewAnswer(pending.ordinal, condition, 0, "digest", generation, True, verdicts))
            store.commit(answers)

    def note(self, folder: Path, state: str, note: str = "") -> None:
        """Set a run's state, as its worker would."""
        with RunStore.open(folder) as store:
            store.set_meta("state", {"state": state, "note": note, "pid": os.getpid()})

    def work_on(self, folder: Path) -> None:
        """Hold the run's lock, as a worker does."""
        lock = FileLock(folder / "lock")
        assert lock.acquire(f"process {os.getpid()}")
        self.locks[folder.name] = lock

    def die(self, folder: Path) -> None:
        """Release the lock without a note, as a killed worker does."""
        self.locks.pop(folder.name).release()

    def close(self) -> None:
        for lock in self.locks.values():
            lock.release()
        self.locks.clear()

    def app(self) -> RashomonApp:
        """Return the interface to this workspace, with pictures in half blocks."""
        return Staged(self.workspace, images="half")


Script = Callable[[Pilot[Any], RashomonApp], Awaitable[None]]


def drive(app: RashomonApp, script: Script, size: tuple[int, int] = (120, 40)) -> None:
    """Run the app without a terminal, with ``script`` at the keys, once the workspace has been read."""

    async def perform() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: app.snapshot.complete)
            await pilot.pause()
            await script(pilot, app)

    asyncio.run(perform())


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for a condition, however long a busy machine takes, while the app keeps running."""
    end = time.monotonic() + PATIENCE
    wait = 0.01
    while not condition():
        assert pilot.app._exception is None, "the app ended by an exception"
        assert time.monotonic() < end, f"timed out; the screen:\n{screen_text(pilot.app)}"
        await asyncio.sleep(wait)
        wait = min(0.08, 1.5 * wait)


def strips(app: Any) -> list[Strip]:
    """Return the screen as one strip per line."""
    size: Size = app.size
    screen = app.screen
    lines: list[Strip] = list(screen._compositor.render_strips(size))
    return lines


def screen_text(app: Any) -> str:
    """Return the screen as text, without trailing spaces."""
    return "\n".join(strip.text.rstrip() for strip in strips(app)).rstrip("\n") + "\n"
