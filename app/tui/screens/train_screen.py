"""The Train screen: a form with every option of ``rashomon train``, its estimate beside it, and a confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from app.commands.training.training_estimate import plan_lines
from app.engine.training.training_folder import Training, read_trainings
from app.engine.training.training_options import default_text, option_groups
from app.engine.training.training_plan import plan_training
from app.engine.training.training_spec_and_recipes import RECIPES, TrainingSpec, training_spec
from app.store.workspace import Workspace
from app.text.shell_quoting import shell_quote
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.latest_only import LatestOnly
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, HEADING, WRONG
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.form_field import Field
from app.tui.widgets.titled_panel import panel
from benchmarks.errors import RashomonError, SpecError
from benchmarks.number_ranges import TYPED
from benchmarks.training.training_set import is_training_set
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.models.model_discovery import cached_models, read_config
from mlx_backends.training_settings import training_problem

MODEL, DATA = "model", "data"
_GROUPS = option_groups()
_OPTIONS = {option.name: option for options in _GROUPS.values() for option in options}
_DELAY_SECONDS = 0.6
"""The seconds for which the typed values hold still before the estimate begins."""
_AFTERWARDS = "Trainings (f8) shows its progress; x stops it there, at a checkpoint."


class TrainScreen(RashomonScreen):
    """A form with every option of ``rashomon train`` that decides a training, derived from the spec."""

    name_ = "train"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.problem = ""
        """The first problem of what was typed; empty if there is none."""
        self.estimate = ""
        """The estimate of what was typed, or why there is none; empty until it is known."""
        self._estimate_latest = LatestOnly(self, "estimate")
        self._timer: Timer | None = None

    def heading(self) -> Content:
        return Content("Train  an adapter of a vision-language model")

    def body(self) -> ComposeResult:
        with Container(id="train-form"):
            with panel(VerticalScroll(id="train-fields", can_focus=False), "Training"):
                for group, options in _GROUPS.items():
                    yield Static(Content.styled(group, HEADING), classes="group")
                    for option in options:
                        is_long = option.name in (MODEL, DATA)
                        yield Field(option.name, option.label, option.hint, option.default, long=is_long)
            with panel(VerticalScroll(id="train-command", can_focus=False), "Estimate"):
                yield Static(id="summary")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(f"#input-{MODEL}", Input))
        self._describe()

    # --- input ------------------------------------------------------------------------------------

    def _field(self, key: str) -> Field:
        return self.query_one(f"#field-{key}", Field)

    def _typed(self) -> dict[str, str]:
        return {name: value for name in _OPTIONS if (value := self._field(name).value.strip())}

    @on(Input.Changed)
    def _describe(self) -> None:
        """Show the command, or what is wrong, and estimate what was typed; a recipe's values are those of empty fields."""
        typed = self._typed()
        recipe = RECIPES.get(typed.get("recipe", ""), {})
        for name, option in _OPTIONS.items():
            value = recipe.get(option.key)
            self._field(name).example(option.default if value is None else default_text(option.key, value))
        self.problem = "name a model and a training set" if not {MODEL, DATA} <= typed.keys() else ""
        spec = None
        try:
            values = {_OPTIONS[name].key: _OPTIONS[name].value(value) for name, value in typed.items()}
            spec = training_spec({MODEL: "m", DATA: "."} | values, context=TYPED)
        except SpecError as error:
            self.problem = str(error)
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.estimate = ""
        if spec is not None and not self.problem:
            self._timer = self.set_timer(_DELAY_SECONDS, partial(self._estimate, spec, typed))
        self._show_summary()

    def _show_summary(self) -> None:
        if self.problem:
            first = literal(f"✗ {self.problem}", WRONG)
        else:
            first = literal(self.estimate or "estimating ...", "" if self.estimate else DIM, newlines=True)
        command = literal(f"$ {self._command_line()}", DIM, limit=2_000)
        self.update_static("#summary", Content("\n").join([first, command]))

    def _estimate(self, spec: TrainingSpec, typed: dict[str, str]) -> None:
        """Estimate a training in the background; what was typed since then counts instead."""
        workspace = self.rashomon.workspace

        def show(estimate: str) -> None:
            if typed == self._typed():
                self.estimate = estimate
                self._show_summary()

        self._estimate_latest.submit(lambda: _estimate(workspace, spec), show)

    def _options(self) -> list[str]:
        return [argument for name, value in self._typed().items() if (argument := _OPTIONS[name].argument(value))]

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

        self.attempt(lambda: _training_sets(workspace) if key == DATA else _models(), show, group="choose")

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


def _estimate(workspace: Workspace, spec: TrainingSpec) -> str:
    """Return what ``rashomon train --dry-run`` prints, or the reason why the training cannot start."""
    values = spec.model_dump(exclude_unset=True)
    if path_exists(spec.model):
        values[MODEL] = str(typed_path(spec.model))
    values[DATA] = str(typed_path(spec.data).absolute())
    try:
        plan = plan_training(workspace, training_spec(values, context=TYPED), force=False)
    except RashomonError as error:
        return f"✗ {error}"
    warnings = [f"warning: {warning}" for warning in plan.warnings]
    return "\n".join([*plan_lines(workspace, plan), *warnings])


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
