"""The Vary screen: a build whose examples are repeated under levels of factors, or with k passages."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Input, Static

from app.annotation.review_session import find_build
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, WRONG
from app.tui.tui_confirmations import confirm_build
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.form_field import Field
from app.tui.widgets.tab_line import TabLine
from app.tui.widgets.titled_panel import panel
from benchmarks.errors import SpecError
from benchmarks.factors.factor_levels import parse_factor
from benchmarks.k_passages.k_passages_design import PassageDesign
from benchmarks.registry import benchmark_names
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.varied_names import FACTOR_NAMES

FACTORS, PASSAGES = "factors", "passages"
_TITLES = {FACTORS: "Factors", PASSAGES: "K passages"}
_HINTS: Mapping[str, str] = {
    "crop": "none, region or X0:Y0:X1:Y1",
    "cover": "0,0.5,1 of the region is grey",
    "resolution": "1,0.5,0.25 of the width",
    "blur": "0,1,2,4 pixels",
    "jpeg": "none,50,10: the quality",
    "distance": "built,0.1,0.5 off the truth",
    "text-source": "none,forum post: who wrote it",
    "text-date": "none,2019: the passage's date",
    "length": "0,100,500 words more",
    "image-source": "none,official report",
    "image-date": "none,2019: the image's date",
    "order": "image-first,text-first",
}
"""The levels of each factor, by an example."""
_FACTOR_OPTIONS = (
    ("conditions", "conditions", "such as image-correct", "all"),
    ("cells", "cells", "how many of the crossed levels", "all"),
    ("region", "region", "X0:Y0:X1:Y1 of every image", "none"),
    ("regions", "regions file", "a region for each image", "none"),
)
_PASSAGE_LEVELS = (
    ("passages", "passages", "how many, 1 to 10", "1,3,5"),
    ("wrong", "wrong", "how many of them are wrong", "0,1,2"),
    ("place", "place", "first,middle,last: right one", "first,last"),
    ("images", "images", "its own, and other examples'", "0"),
    ("words", "words", "the least length of a passage", "0"),
)
_OPTIONS = (
    ("limit", "limit", "examples, drawn at random", "all"),
    ("seed", "seed", "of the draw", "0"),
)
"""Key, label, hint and placeholder of fields; the key is the option of the command."""
_NOT_VARIED = "not varied"
_WHOLE_NUMBERS = ("cells", "limit", "seed")
_NO_FACTOR = "name two levels or more of a factor"
_OWN_KEYS = {FACTORS: [key for key, *_ in _FACTOR_OPTIONS], PASSAGES: [key for key, *_ in _PASSAGE_LEVELS]}


class VaryScreen(RashomonScreen):
    """Repeat the examples of a build under crossed levels. The number of calls is counted before anything is built."""

    name_ = "vary"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, section: str = FACTORS) -> None:
        super().__init__()
        self._first_section = section if section in _TITLES else FACTORS
        self._build = "" if section in _TITLES else section
        self.problem = ""
        """The first problem of what was typed; empty if there is none."""

    def heading(self) -> Content:
        return Content("Vary  a build's examples, repeated under levels")

    def body(self) -> ComposeResult:
        yield Field("build", "build", "", "a build's folder, or a benchmark built here; ctrl+o lists them", long=True)
        yield TabLine(_TITLES)
        with ContentSwitcher(initial=FACTORS):
            with panel(VerticalScroll(id=FACTORS, can_focus=False), "Levels, the first one as reference"):
                for name in FACTOR_NAMES:
                    yield Field(name, name, _HINTS[name], _NOT_VARIED)
                for key, label, hint, example in _FACTOR_OPTIONS:
                    yield Field(key, label, hint, example)
            with panel(VerticalScroll(id=PASSAGES, can_focus=False), "Levels, separated by commas"):
                for key, label, hint, example in _PASSAGE_LEVELS:
                    yield Field(key, label, hint, example)
        with panel(Vertical(id="vary-options"), "Build"):
            for key, label, hint, example in _OPTIONS:
                yield Field(key, label, hint, example)
            yield Field("out", "build into", "", "default: in the workspace", long=True)
            with VerticalScroll(can_focus=False):
                yield Static(id="summary")

    def on_mount(self) -> None:
        self._show_section(self._first_section)
        if self._build:
            self._field("build").value = self._build
        else:
            self.attempt(self.rashomon.workspace.builds, self._suggest, group="builds")
        self._describe()

    def _suggest(self, builds: Mapping[str, Path]) -> None:
        """Name a build of the workspace, unless one has been typed."""
        if not self._field("build").value and "cmc-bench" in builds:
            self._field("build").value = "cmc-bench"

    # --- sections ---------------------------------------------------------------------------------

    @property
    def section(self) -> str:
        """The section on display: "factors" or "passages"."""
        return self.query_one(TabLine).current

    @on(TabLine.Chosen)
    def _clicked(self, event: TabLine.Chosen) -> None:
        self._show_section(event.pane)

    def action_section(self) -> None:
        """Switch between factors and k passages."""
        self._show_section(PASSAGES if self.section == FACTORS else FACTORS)

    def _show_section(self, section: str) -> None:
        self.query_one(TabLine).select(section)
        self.query_one(ContentSwitcher).current = section
        self.set_focus(self.query_one(f"#{section} Input", Input))
        self._describe()

    def action_choose(self) -> None:
        """Choose one of the workspace's builds."""
        paths: dict[str, Path] = {}

        def on_choice(name: str | None) -> None:
            if name is None:
                return
            build = name if name in benchmark_names() else str(paths[name])
            if not build.isprintable():  # an input would send it to the terminal as it is
                self.rashomon.toast("the folder's name has control characters; rename the folder", severity="warning")
                return
            self._field("build").value = build

        def show(builds: Mapping[str, Path]) -> None:
            paths.update(builds)
            if builds:
                self.app.push_screen(ChoiceDialog("Vary which build?", list(builds)), on_choice)
            else:
                self.rashomon.toast("nothing is built in this workspace; f6 fetches and builds")

        self.attempt(self.rashomon.workspace.builds, show, group="builds")

    # --- input ------------------------------------------------------------------------------------

    def _field(self, key: str) -> Field:
        return self.query_one(f"#field-{key}", Field)

    def _typed(self, key: str) -> str:
        return self._field(key).value.strip()

    def _factors(self) -> dict[str, str]:
        return {name: text for name in FACTOR_NAMES if (text := self._typed(name))}

    def _options(self) -> list[str]:
        """Return the options of the command that were typed."""
        keys = [*_OWN_KEYS[self.section], *(key for key, *_ in _OPTIONS)]
        factors = self._factors() if self.section == FACTORS else {}
        options = [f"--factor={name}={levels}" for name, levels in factors.items()]
        return [*options, *(f"--{key}={value}" for key in keys if (value := self._typed(key)))]

    @property
    def _command(self) -> str:
        return "vary" if self.section == FACTORS else "passages"

    @on(Input.Changed)
    def _changed(self) -> None:
        self._describe()

    def _describe(self) -> None:
        """Show the number of settings and the command, or what is wrong."""
        counts, problems = self._levels()
        sentence = ""
        if self.section == FACTORS:
            crossed = " × ".join(f"{count} of {name}" for name, count in counts.items())
            sentence = f"{prod(counts.values()):,} cells: {crossed}" if counts else _NO_FACTOR
        else:
            try:
                sentence = f"{sum(1 for _ in self._passage_design().cells()):,} settings of each example"
            except SpecError as error:
                problems[PASSAGES] = str(error)
        for key in (*FACTOR_NAMES, *_WHOLE_NUMBERS):
            self._field(key).show_problem(problems.get(key, ""))
        self.problem = next(iter(problems.values()), "")
        first = literal(f"✗ {self.problem}", WRONG) if self.problem else Content(sentence)
        command = literal(f"$ {self._command_line()}", DIM, limit=2_000)
        self.update_static("#summary", Content("\n").join([first, command]))

    def _command_line(self) -> str:
        """Return the command that makes the build, quoted for a shell."""
        out = self._typed("out")
        words = [self._command, self._typed("build") or "BUILD", *self._options(), *[f"--out={out}"] * bool(out)]
        return " ".join([self.rashomon.workspace.command(), *map(shell_quote, words)])

    def _levels(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the number of levels of each factor on display, and the problem of each field on display that is wrong."""
        counts: dict[str, int] = {}
        problems: dict[str, str] = {}
        for name, levels in self._factors().items() if self.section == FACTORS else ():
            try:
                counts[name] = len(parse_factor(f"{name}={levels}").levels)
            except SpecError as error:
                problems[name] = str(error)
        for key in _WHOLE_NUMBERS:
            value = self._typed(key)
            if value and not (value.isascii() and value.isdigit()):
                problems[key] = f"{key} is a whole number."
        return counts, problems

    def _passage_design(self) -> PassageDesign:
        levels = {key: self._typed(key) or None for key, *_ in _PASSAGE_LEVELS}
        return PassageDesign.parse({**levels, "places": levels["place"]})

    def action_copy(self) -> None:
        self.rashomon.copy(self._command_line())

    # --- the build --------------------------------------------------------------------------------

    def action_build(self) -> None:
        """Count the calls of the design, and build it after a confirmation."""
        if self.problem or (self.section == FACTORS and not self._factors()):
            self.rashomon.toast(self.problem or _NO_FACTOR, severity="warning")
            return
        name, out = self._typed("build"), self._typed("out")
        if not name:
            self.rashomon.toast("name a build; ctrl+o lists those of the workspace", severity="warning")
            return
        workspace, section = self.rashomon.workspace, self.section
        self.attempt(lambda: _folders(workspace, section, name, out), self._ask, group="build")

    def _ask(self, folders: tuple[Path, Path]) -> None:
        """Open the dialog that counts the calls, asks, and builds."""
        base, out = folders
        # The dialog states the number of calls and asks, as --force does.
        arguments = [self._command, str(base), *self._options(), f"--out={out}", "--force"]
        confirm_build(self, arguments, out, text=f"into {out}", preview=True)


def _folders(workspace: Workspace, section: str, name: str, out: str) -> tuple[Path, Path]:
    """Return the folders of the build to vary and of the new one. Raises RashomonError."""
    base = find_build(workspace, name)
    if out:
        return base.path, typed_path(out)
    return base.path, workspace.varied_folder(base.path) if section == FACTORS else workspace.build_folder("k-passages")
