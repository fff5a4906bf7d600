"""The screens, one module each. A new screen adds a line here and its commands in ``app/tui/commands.py``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from textual.screen import Screen


class ScreenEntry(NamedTuple):
    """A screen that can be opened by name.

    ``needs`` names the arguments of its class: "nothing" (``Class()``), "run" (``Class(folder)``), or "runs"
    (``Class(folders)``, one or more). ``target`` is ``module:Class``, imported when the screen is first opened. A screen that
    ``writes`` to the workspace is not opened for a bundle.
    """

    name: str
    title: str
    target: str
    needs: str = "nothing"
    writes: bool = False

    def screen_class(self) -> Callable[..., Screen[Any]]:
        """Import and return the class."""
        module, _, name = self.target.partition(":")
        cls: Callable[..., Screen[Any]] = getattr(import_module(module), name)
        return cls


SCREENS: dict[str, ScreenEntry] = {
    entry.name: entry
    for entry in (
        ScreenEntry("runs", "Runs", "app.tui.screens.runs:RunsScreen"),
        ScreenEntry("live", "Live run", "app.tui.screens.live:LiveScreen", "run"),
        ScreenEntry("samples", "Samples", "app.tui.screens.samples:SamplesScreen", "run"),
        ScreenEntry("label", "Label", "app.tui.screens.label:LabelScreen", "run", writes=True),
        ScreenEntry("tables", "Tables", "app.tui.screens.tables:TablesScreen", "runs"),
        ScreenEntry("compare", "Compare", "app.tui.screens.compare:CompareScreen", "runs"),
        ScreenEntry("export", "Export", "app.tui.screens.export:ExportScreen", "runs"),
        ScreenEntry("new", "New run", "app.tui.screens.new_run:NewRunScreen", writes=True),
        ScreenEntry("rows", "Your rows", "app.tui.screens.own_rows:OwnRowsScreen", writes=True),
        ScreenEntry("sets", "Sets", "app.tui.screens.sets:SetsScreen"),
        ScreenEntry("review", "Review", "app.tui.screens.review:ReviewScreen", writes=True),
        ScreenEntry("answer", "Answer", "app.tui.screens.answer:AnswerScreen", writes=True),
        ScreenEntry("vary", "Vary", "app.tui.screens.vary:VaryScreen", writes=True),
        ScreenEntry("fetch", "Fetch", "app.tui.screens.fetch:FetchScreen", writes=True),
        ScreenEntry("trainings", "Trainings", "app.tui.screens.trainings:TrainingsScreen"),
        ScreenEntry("train", "Train", "app.tui.screens.train:TrainScreen", writes=True),
        ScreenEntry("settings", "Settings", "app.tui.screens.settings:SettingsScreen"),
        ScreenEntry("doctor", "Doctor", "app.tui.screens.doctor:DoctorScreen"),
    )
}
