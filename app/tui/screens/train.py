"""The Train screen: a form that starts a training, once its memory was estimated and the user has confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from app.engine.training.folder import Training, read_trainings
from app.engine.training.spec import RECIPES, training_spec
from app.store.workspace import Workspace
from app.text.shell import shell_quote
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import DIM, WRONG
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.field import Field
from app.tui.widgets.panel import panel
from benchmarks.errors import SpecError
from benchmarks.number_ranges import TYPED
from benchmarks.training.training_set import is_training_set
from benchmarks.untrusted.finder_files import folder_entries
from mlx_backends.models.discovery import cached_models, read_config
from mlx_backends.training import training_problem

MODEL, DATA = "model", "data"
_FIELDS = (
    ("recipe", "recipe", " or ".join(RECIPES), "none"),
    ("rank", "rank", "of the adapter", "16"),
    ("epochs", "epochs", "passes over the rows", "1"),
    ("learning-rate", "learning rate", "of AdamW", "1e-4"),
    ("max-length", "max. length", "the most tokens of a row", "2048"),
    ("max-pixels", "max. pixels", "scales larger images down", "none"),
    ("name", "name", "letters, digits and . _ -", "of model and data"),
)
"""Key, label, hint and placeholder of fields; the key is the option of the command."""
_AFTERWARDS = "Trainings (f8) shows its progress; x stops it there, at a checkpoint."
_KEYS = (MODEL, DATA, *(key for key, *_ in _FIELDS))


class TrainScreen(RashomonScreen):
    """A form with the options of ``rashomon train`` that matter most; its command line takes the others."""

    name_ = "train"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.problem = ""
        """The first problem of what was typed; empty if there is none."""

    def heading(self) -> Content:
        return Content("Train  an adapter of a vision-language model")

    def body(self) -> ComposeResult:
        with panel(VerticalScroll(id="train-fields", can_focus=False), "Training"):
            yield Field(MODEL, "model", "", "a folder, or a fetched model; ctrl+o lists these", long=True)
            yield Field(DATA, "training set", "", "a folder of rashomon training; ctrl+o lists those near", long=True)
            for key, label, hint, example in _FIELDS:
                yield Field(key, label, hint, example)
        with panel(VerticalScroll(id="train-command", can_focus=False), "Command"):
            yield Static(id="summary")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(f"#input-{MODEL}", Input))
        self._describe()

    # --- input ------------------------------------------------------------------------------------

    def _field(self, key: str) -> Field:
        return self.query_one(f"#field-{key}", Field)

    def _typed(self) -> dict[str, str]:
        return {key: value for key in _KEYS if (value := self._field(key).value.strip())}

    @on(Input.Changed)
    def _describe(self) -> None:
        """Show the command, or what is wrong; a recipe's values are those of empty fields."""
        typed = self._typed()
        recipe = RECIPES.get(typed.get("recipe", ""), {})
        for key, _, _, default in _FIELDS:
            value = recipe.get(key.replace("-", "_"), default)
            self._field(key).example(f"{value:g}" if isinstance(value, float) else str(value))
        self.problem = "name a model and a training set" if not {MODEL, DATA} <= typed.keys() else ""
        try:
            values = {key.replace("-", "_"): value for key, value in typed.items()}
            training_spec({MODEL: "m", DATA: "."} | values, context=TYPED)
        except SpecError as error:
            self.problem = str(error)
        first = (
            literal(f"✗ {self.problem}", WRONG) if self.problem else Content("ctrl+r estimates the memory, and asks")
        )
        command = literal(f"$ {self._command_line()}", DIM, limit=2_000)
        self.update_static("#summary", Content("\n").join([first, command]))

    def _options(self) -> list[str]:
        return [f"--{key}={value}" for key, value in self._typed().items()]

    def _command_line(self) -> str:
        """Return the command that trains, quoted for a shell."""
        return " ".join([self.rashomon.workspace.command(), "train", *map(shell_quote, self._options())])

    def action_copy(self) -> None:
        self.rashomon.copy(self._command_line())

    def action_choose(self) -> None:
        """Choose a fetched model, or a training set where that field has the focus."""
        key = DATA if self.focused is self.query_one(f"#input-{DATA}") else MODEL
        workspace = self.rashomon.workspace

        def on_choice(value: str | None) -> None:
            if value is not None and not value.isprintable():  # an input would send it to the terminal as it is
                self.rashomon.toast("the name has control characters; rename the folder", severity="warning")
            elif value is not None:
                self._field(key).value = value

        def show(values: Sequence[str]) -> None:
            if values:
                heading = "Train on which rows?" if key == DATA else "Train which model?"
                self.app.push_screen(ChoiceDialog(heading, values), on_choice)
            elif key == DATA:
                self.rashomon.toast("there is no training set here; `rashomon training` writes one")
            else:
                self.rashomon.toast("no model that can be trained is fetched; f6 fetches one")

        self.in_thread(lambda: _training_sets(workspace) if key == DATA else _models(), show, group="choose")

    # --- the training -----------------------------------------------------------------------------

    def action_start(self) -> None:
        """Estimate the memory, and train after a confirmation."""
        if self.problem:
            self.rashomon.toast(self.problem, severity="warning")
            return
        arguments = ["train", *self._options()]
        dialog = CommandDialog(
            self.rashomon,
            "Train",
            arguments,
            preview=[*arguments, "--dry-run"],
            text=_AFTERWARDS,
            detached=True,
        )

        def on_end(started: bool | None) -> None:
            if started:
                self.rashomon.open_screen("trainings")

        self.rashomon.push_screen(dialog, on_end)


def _models() -> list[str]:
    """Return the fetched models that can be trained."""
    usable = [model for model in cached_models() if model.problem is None and "image" in model.takes]
    return [model.name for model in usable if training_problem(read_config(model.path)) is None]


def _training_sets(workspace: Workspace) -> list[str]:
    """Return the training sets of earlier trainings, and those in the working folder and in the workspace."""
    earlier = [item.spec.data for item in read_trainings(workspace) if isinstance(item, Training)]
    places = [place for place in (Path.cwd(), workspace.path) if place.is_dir()]
    near = [str(folder) for place in places for folder in sorted(folder_entries(place))]
    return [folder for folder in dict.fromkeys([*reversed(earlier), *near]) if is_training_set(Path(folder))]
