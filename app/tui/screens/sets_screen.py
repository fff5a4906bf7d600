"""The Sets screen: the question sets, every model tried on the one under the cursor, and the trial of a new model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from app.compare.question_sets.question_set_history import SetHistory, history_table, set_history
from app.new_run.run_choices import cached_choices, nearby_choices
from app.store.question_sets import QuestionSet
from app.store.tried_models import TriedModels, read_tried, update_tried
from app.store.workspace import Workspace
from app.tui.key_commands import bindings
from app.tui.latest_only import LatestOnly
from app.tui.screens.base_screen import RashomonScreen
from app.tui.tui_confirmations import confirm_addresses
from app.tui.tui_processes import allow_address_options
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.forest_plot import ForestPlot, ForestRow
from app.tui.widgets.result_table import ResultTable
from app.tui.widgets.table_columns import Column
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.errors import RashomonError

_COLUMNS = (Column("set", 0, tail=0.5), Column("version", 8, right=True), Column("benchmark", 12))
_BEST = "the best so far"


class SetsScreen(RashomonScreen):
    """The sets; below, the history of the one under the cursor: the leads as a plot, and all of it as a table."""

    name_ = "sets"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self._sets: list[QuestionSet] = []
        self._models: dict[str, str] = {}
        """The models that have answered the set under the cursor, by their label."""
        self._reader: LatestOnly | None = None

    def heading(self) -> Content:
        return Content(f"Sets  {len(self._sets)}" if self._sets else "Sets")

    def body(self) -> ComposeResult:
        yield panel(VirtualTable(_COLUMNS, empty="no question sets yet; 8 builds one from a table", id="sets"), "Sets")
        with panel(VerticalScroll(id="leads", can_focus=False), "Leads"):
            yield ForestPlot()
        yield ResultTable(id="history")

    def on_mount(self) -> None:
        self._reader = LatestOnly(self, "history")
        self.set_focus(self.query_one("#sets", VirtualTable))
        self.action_again()

    @property
    def current(self) -> QuestionSet | None:
        """The set under the cursor."""
        place = self.query_one("#sets", VirtualTable).cursor
        return self._sets[place] if place < len(self._sets) else None

    def action_again(self) -> None:
        """Read the sets and the history on display again."""
        self.attempt(self.rashomon.workspace.question_sets, self._show_sets, group="sets")

    def _show_sets(self, sets: list[QuestionSet]) -> None:
        self._sets = sets
        rows = [[known.name, str(known.latest.number), known.benchmark] for known in sets]
        table = self.query_one("#sets", VirtualTable)
        table.show(len(rows), lambda first, count: rows[first : first + count], keys=[known.name for known in sets])
        self.update_title()
        self.refresh_bindings()
        self._read_history()

    @on(VirtualTable.Moved, "#sets")
    def _read_history(self) -> None:
        question_set, workspace, rule = self.current, self.rashomon.workspace, self.rashomon.settings.rule
        if question_set is None or self._reader is None:
            self.query_one(ResultTable).show_message("")
            return

        def read() -> SetHistory | str:
            try:
                tried = read_tried(question_set.latest.build.parent)
                return set_history(workspace, question_set, tried, trust=tried.trust or rule, against=tried.incumbent)
            except RashomonError as error:
                return str(error)

        self._reader.submit(read, self._show_history)

    def _show_history(self, history: SetHistory | str) -> None:
        result, forest = self.query_one(ResultTable), self.query_one(ForestPlot)
        if isinstance(history, str):
            self._models = {}
            result.show_message(history)
            forest.show([])
            return
        labels = [view.label for view in history.views.runs]
        self._models = {label: run.model for label, run in zip(labels, history.runs, strict=True)}
        result.show(history_table(history))
        beside = "the best of the others" if history.incumbent is None else "the incumbent"
        set_panel_title(self.query_one("#leads"), Content(f"Leads over {beside}"))
        forest.show([ForestRow(labels[place], history.lead(place)) for place in history.claims])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.ready and self.current is not None if action in ("try", "against") else True

    def action_intervals(self) -> None:
        self.query_one(ResultTable).toggle_intervals()

    def action_notes(self) -> None:
        self.query_one(ResultTable).toggle_notes()

    # --- what can be done with a set --------------------------------------------------------------

    def action_try(self) -> None:
        """Choose a model, and ask it the set after a confirmation."""
        question_set = self.current
        if question_set is None or not self.rashomon.may_write():
            return
        known, workspace = list(self._models.values()), self.rashomon.workspace

        def read() -> tuple[list[str], TriedModels]:
            return _models_here(workspace), read_tried(question_set.latest.build.parent)

        def show(choices: tuple[list[str], TriedModels]) -> None:
            models, tried = choices
            words, rule = list(dict.fromkeys([*models, *known])), tried.trust or self.rashomon.settings.rule

            def on_choice(model: str | None) -> None:
                if model is not None:
                    confirm_addresses(self.rashomon, (model,), partial(self._try, question_set, model, rule))

            self.app.push_screen(ChoiceDialog("Try which model?", words, typed="another: an id or a folder"), on_choice)

        self.attempt(read, show, group="models")

    def _try(self, question_set: QuestionSet, model: str, rule: str | None, addresses: list[str]) -> None:
        trust = ["--trust", rule] if rule else []
        options = ["--set", question_set.name, *trust, *allow_address_options(addresses)]
        arguments = ["try", *options, "--", model]  # what was typed is no option
        text = f"{model}\non {question_set.name}@{question_set.latest.number}, all rows but those held out"
        dialog = CommandDialog(self.rashomon, "Try a model", arguments, text=text)
        self.rashomon.push_screen(dialog, lambda _: self.action_again())

    def action_against(self) -> None:
        """Choose the incumbent among the models that have answered the set."""
        question_set = self.current
        if question_set is None or not self.rashomon.may_write():
            return
        models = dict(self._models)

        def on_choice(label: str | None) -> None:
            if label is not None:
                self._remember(question_set, lambda tried: replace(tried, incumbent=models.get(label, "")))

        self.app.push_screen(ChoiceDialog("Compare with which model?", [_BEST, *models]), on_choice)

    def _remember(self, question_set: QuestionSet, change: Callable[[TriedModels], TriedModels]) -> None:
        try:
            update_tried(question_set.latest.build.parent, change)
        except RashomonError as error:
            self.rashomon.show_error(error)
        else:
            self.action_again()


def _models_here(workspace: Workspace) -> list[str]:
    """Return the models that New run lists, if they take images and can be loaded."""
    choices = [*cached_choices(), *nearby_choices(workspace)]
    return [choice.spec_name for choice in choices if not choice.problem and "image" in choice.takes]
