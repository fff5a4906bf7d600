"""The screens, a module each. A new one adds a line here and its commands in ``app/tui/commands.py``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from app.tui.screens.base import RashomonScreen


class Entry(NamedTuple):
    """A screen that can be gone to by name.

    ``needs`` says what its class is made with: "nothing" (``Class()``), "run" (``Class(folder)``), or "runs"
    (``Class(folders)``, one or more). ``place`` is ``module:Class``, imported when it is first opened.
    """

    name: str
    title: str
    place: str
    needs: str = "nothing"

    def screen_class(self) -> type[RashomonScreen]:
        """The class, imported now."""
        module, _, name = self.place.partition(":")
        found: type[RashomonScreen] = getattr(import_module(module), name)
        return found


SCREENS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("runs", "Runs", "app.tui.screens.runs:RunsScreen"),
        Entry("live", "Live run", "app.tui.screens.live:LiveScreen", "run"),
        Entry("samples", "Samples", "app.tui.screens.samples:SamplesScreen", "run"),
        Entry("label", "Label", "app.tui.screens.label:LabelScreen", "run"),
        Entry("tables", "Tables", "app.tui.screens.tables:TablesScreen", "runs"),
        Entry("compare", "Compare", "app.tui.screens.compare:CompareScreen", "runs"),
        Entry("export", "Export", "app.tui.screens.export:ExportScreen", "runs"),
        Entry("new", "New run", "app.tui.screens.new_run:NewRunScreen"),
        Entry("rows", "Your rows", "app.tui.screens.own_rows:OwnRowsScreen"),
        Entry("settings", "Settings", "app.tui.screens.settings:SettingsScreen"),
        Entry("doctor", "Doctor", "app.tui.screens.doctor:DoctorScreen"),
    )
}
