"""The screens, one module each. A new screen adds a line here and its commands in ``app/tui/key_commands.py``."""

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
        ScreenEntry("runs", "Runs", "app.tui.screens.runs_screen:RunsScreen"),
        ScreenEntry("live", "Live run", "app.tui.screens.live_screen:LiveScreen", "run"),
        ScreenEntry("samples", "Samples", "app.tui.screens.samples_screen:SamplesScreen", "run"),
        ScreenEntry("label", "Label", "app.tui.screens.label_screen:LabelScreen", "run", writes=True),
        ScreenEntry("tables", "Tables", "app.tui.screens.tables_screen:TablesScreen", "runs"),
        ScreenEntry("compare", "Compare", "app.tui.screens.compare_screen:CompareScreen", "runs"),
        ScreenEntry("export", "Export", "app.tui.screens.export_screen:ExportScreen", "runs"),
        ScreenEntry("new", "New run", "app.tui.screens.new_run_screen:NewRunScreen", writes=True),
        ScreenEntry("rows", "Your rows", "app.tui.screens.own_rows_screen:OwnRowsScreen", writes=True),
        ScreenEntry("sets", "Sets", "app.tui.screens.sets_screen:SetsScreen"),
        ScreenEntry("review", "Review", "app.tui.screens.review_screen:ReviewScreen", writes=True),
        ScreenEntry("answer", "Answer", "app.tui.screens.answer_screen:AnswerScreen", writes=True),
        ScreenEntry("vary", "Vary", "app.tui.screens.vary_screen:VaryScreen", writes=True),
        ScreenEntry("fetch", "Fetch", "app.tui.screens.fetch_screen:FetchScreen", writes=True),
        ScreenEntry("trainings", "Trainings", "app.tui.screens.trainings_screen:TrainingsScreen"),
        ScreenEntry("train", "Train", "app.tui.screens.train_screen:TrainScreen", writes=True),
        ScreenEntry("settings", "Settings", "app.tui.screens.settings_screen:SettingsScreen"),
        ScreenEntry("doctor", "Doctor", "app.tui.screens.doctor_screen:DoctorScreen"),
    )
}
