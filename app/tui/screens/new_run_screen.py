"""The New run screen: a form for a spec, with an estimate of its runs while it is filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Input, Static

from app.new_run.preflight import Preflight, PreflightChecker
from app.new_run.run_choices import (
    BenchmarkChoice,
    ModelChoice,
    benchmark_choices,
    broken_plugins,
    cached_choices,
    model_choice,
    nearby_choices,
)
from app.new_run.run_estimate import BuildContents
from app.new_run.spec_form import command_line, read_form
from app.papers.paper_setups import find_setup, setup_names
from app.run_spec import BatchSpec
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.latest_only import LatestOnly
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.form_choices import FormChoices
from app.tui.screens.new_run_form import SECTIONS, RunForm, section_titles
from app.tui.screens.spec_actions import ask_to_save, ask_to_start
from app.tui.theme import WRONG
from app.tui.widgets.choice_table import ChoiceTable
from app.tui.widgets.estimate_line import field_word, form_summary
from app.tui.widgets.prompt_view import PromptView
from app.tui.widgets.tab_line import TabLine
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.plugins.find_plugins import BrokenPlugin

_DELAY_SECONDS = 0.15
_ANY_MODEL = "policy:random"
"""Stands in for the model in the estimate until one is selected."""
_KEYS_OF_TABLES = {
    "benchmarks": {"benchmark", "data"},
    "model-table": {"model"},
    "scope-table": {"prompt_set", "conditions", "strata"},
    "sampling-table": {"exact", "score"},
    "judge-table": {"judge"},
}
"""The keys of a spec that each table sets."""


class NewRunScreen(RashomonScreen):
    """Configure a run, see its size, time and cost, and start it."""

    name_ = "new"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, build: str = "") -> None:
        """Open an empty form, or one for a run on the build in the folder ``build``."""
        super().__init__()
        self._build = Path(build) if build else None
        self.spec: BatchSpec | None = None
        """The spec of the form; None while the form is invalid."""
        self.preflight: Preflight | None = None
        """The checks and the estimate of ``spec``; None until they are known."""
        self._problems: dict[str, str] = {}
        """The problems of the form by spec key."""
        self._touched: set[str] = set()
        """The keys of a spec that the user has set; a problem of any other is something still missing."""
        self._estimate: Preflight | None = None
        """The last estimate, on display until the next is known."""
        self._assumed = False
        """True if the estimate is for a model yet to be selected."""
        self._timer: Timer | None = None
        self._changed = False
        """True if the selection has changed since the form was last saved or started."""
        self._saved: dict[str, str] = {}
        """The typed values at that time."""
        self._check_latest = LatestOnly(self, "check")
        self._contents_latest = LatestOnly(self, "contents")
        self._describe_latest = LatestOnly(self, "describe")

    # --- widgets ----------------------------------------------------------------------------------

    def heading(self) -> Content:
        name = self.benchmark.name if self.is_mounted and self.benchmark else ""
        return Content("New run  ") + literal(name, "bold")

    def unsaved(self) -> str:
        changed = self._changed or self.form_view.typed_values() != self._saved
        return "The form of the new run is not saved; ctrl+s saves it as a spec file." if changed else ""

    def body(self) -> ComposeResult:
        yield TabLine({name: title for name, (title, _) in SECTIONS.items()})
        yield RunForm()

    def on_mount(self) -> None:
        workspace = self.rashomon.workspace
        self.checker = PreflightChecker(workspace)
        if self._build is not None:
            self.form_view.fields()["data"].value = str(self._build)
        self.read_choices()
        self.attempt(broken_plugins, self._warn_of_plugins, group="plugins")
        self.set_focus(self.query_one("#benchmarks"))
        self.update_summary()

    def read_choices(self) -> None:
        """Read the benchmarks and models of this machine."""
        workspace = self.rashomon.workspace
        self.attempt(partial(benchmark_choices, workspace), self._offer_benchmarks, group="benchmarks")
        self.attempt(
            lambda: [*cached_choices(), *nearby_choices(workspace)],
            self.choices.offer_models,
            group="models",
        )

    def _warn_of_plugins(self, broken: Sequence[BrokenPlugin]) -> None:
        for plugin in broken:
            self.rashomon.toast(f"not listed: {plugin}", severity="warning")

    def action_fetch(self) -> None:
        """Open Fetch on top of the form."""
        self.rashomon.open_screen("fetch", on_top=True)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.ready and self.choices.benchmarks:
            self.read_choices()

    @property
    def form_view(self) -> RunForm:
        """The widgets of the form."""
        return self.query_one(RunForm)

    @cached_property
    def choices(self) -> FormChoices:
        """The rows of the form's tables, and the selected ones."""
        return FormChoices(self.form_view, self.rashomon.workspace)

    def _table(self, name: str) -> ChoiceTable:
        return self.form_view.table(name)

    # --- choices ----------------------------------------------------------------------------------

    def _offer_benchmarks(self, choices: list[BenchmarkChoice]) -> None:
        if self.choices.offer_benchmarks(choices, self._build):
            self._benchmark_chosen()
        else:
            self._read_contents()
        self._show_needs()

    @property
    def benchmark(self) -> Benchmark | None:
        """The selected benchmark; None until the benchmarks are read."""
        return self.choices.benchmark

    @on(ChoiceTable.Changed, "#benchmarks")
    def _benchmark_chosen(self) -> None:
        if self.benchmark is None:
            return
        self.choices.reset(self.benchmark)
        self._read_contents()
        self.update_title()
        self.form_changed()

    @on(ChoiceTable.Moved, "#benchmarks")
    def _show_needs(self) -> None:
        """Show the paper, the setup and the data of the benchmark under the cursor."""
        option = self._table("benchmarks").option
        if option is not None:
            self.update_static("#needs", self.choices.needs(str(option.key)))

    def _read_contents(self) -> None:
        """Read the build for the numbers of instances by condition and stratum."""
        if self.benchmark is None:
            return
        values = {**self.choices.values(), "model": [_ANY_MODEL]}
        spec, _ = read_form({key: values[key] for key in ("benchmark", "model", "data", "prompt_set")})
        if spec is not None:
            self._contents_latest.submit(partial(_contents_of, self.checker, spec), self._show_contents)

    def _show_contents(self, contents: BuildContents | None) -> None:
        if self.choices.show_contents(contents):
            self.form_changed()

    # --- input ------------------------------------------------------------------------------------

    @on(ChoiceTable.Changed)
    def _chosen(self, event: ChoiceTable.Changed) -> None:
        self._changed = True
        self._touched |= _KEYS_OF_TABLES[str(event.table.id)]
        if event.table.id == "scope-table":
            self._read_contents()
        self.form_changed()

    @on(ChoiceTable.Moved)
    def _moved(self, event: ChoiceTable.Moved) -> None:
        detail = self.query(f"#{event.table.id}-detail").results(Static)
        table = event.table
        for widget in detail:
            option = table.option if isinstance(table, ChoiceTable) else None
            widget.update(literal(option.detail if option else "", limit=400))

    @on(Input.Changed)
    def _changed_text(self, event: Input.Changed) -> None:
        if event.value:
            self._touched.add(str(event.input.id).removeprefix("input-"))
        if event.input.id in ("input-model", "input-judge"):
            self._describe(event.input)
            return
        if event.input.id == "input-data":
            self._read_contents()
        self.form_changed()

    def _describe(self, widget: Input) -> None:
        """Show the facts of the model whose name is being typed, in place of those of the row under the cursor."""
        detail = self.query_one(f"#{'model' if widget.id == 'input-model' else 'judge'}-table-detail", Static)
        name = widget.value.strip()
        if not name:
            detail.update("")
            return

        def show(choice: ModelChoice) -> None:
            if widget.value.strip() == name:
                problem = f"✗ {choice.problem}" if choice.problem else ""
                detail.update(literal(problem or choice.facts(), WRONG if problem else "", limit=400))

        self._describe_latest.submit(partial(model_choice, name), show)

    @on(Input.Submitted, "#input-model, #input-judge")
    def _add_word(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        if not name:
            return
        event.input.value = ""
        if event.input.id == "input-judge":
            self.choices.add_judge(name)
            self.form_changed()
        else:
            self.attempt(partial(model_choice, name), self._add_model, group="add")

    def _add_model(self, choice: ModelChoice) -> None:
        self.choices.add_model(choice)
        self.form_changed()

    def form_changed(self) -> None:
        """Validate the form at once, and check and estimate its runs after a short delay."""
        form = self.choices.values()
        self._assumed = not form["model"]
        spec, self._problems = read_form({**form, "model": form["model"] or [_ANY_MODEL]})
        if self.benchmark is not None:
            missing = self.choices.missing()
            self._problems |= missing
            spec = None if missing else spec
        if self._assumed:
            self._problems["model"] = "select at least one, with space"
        self.spec = None if self._assumed else spec
        self.preflight = None
        if self._timer is not None:
            self._timer.stop()
        if spec is not None:
            self._timer = self.set_timer(_DELAY_SECONDS, partial(self._check, spec, self.spec))
        self.update_summary(checking=spec is not None)

    def _check(self, spec: BatchSpec, wanted: BatchSpec | None) -> None:
        """Check ``spec``; ``wanted`` is the form's, which is None if a model is yet to be selected."""
        self._check_latest.submit(partial(self.checker.check, spec), partial(self._show_preflight, wanted))

    def _show_preflight(self, wanted: BatchSpec | None, preflight: Preflight) -> None:
        if wanted is not self.spec:
            return
        problems = dict(preflight.problems or {})
        if self._assumed:
            problems = {**problems, "model": self._problems.get("model", "")}
        self.preflight = None if self._assumed else preflight
        self._problems, self._estimate = problems, preflight
        self.update_summary()
        self._show_prompt()

    def update_summary(self, *, checking: bool = False) -> None:
        """Show the problems of the form, or the estimate of its runs, and the command line."""
        missing = {key: problem for key, problem in self._problems.items() if key not in self._touched}
        problems = {key: problem for key, problem in self._problems.items() if key not in missing}
        for key, field in self.form_view.fields().items():
            if key not in ("model", "judge"):
                field.show_problem(problems.get(key, ""))
        self.query_one(TabLine).retitle(section_titles(problems, missing))
        line = None
        if self.spec is not None:
            try:
                line = command_line(self.rashomon.workspace, self.spec)
            except RashomonError as error:
                line = str(error)
        summary = form_summary(problems, missing, self._estimate, line, assumed=self._assumed)
        self.update_static("#summary", summary)
        self.query_one("#estimate").border_subtitle = Content("◐ checking …" if checking else "")

    def _show_prompt(self) -> None:
        if self.query_one(ContentSwitcher).current == "preview" and self.preflight and self.preflight.runs:
            first = self.preflight.runs[0]
            self.query_one(PromptView).show(first.run, first.estimate.instances, first.contents.build)

    # --- sections ---------------------------------------------------------------------------------

    @on(TabLine.Chosen)
    def _section_clicked(self, event: TabLine.Chosen) -> None:
        self.open_section(event.pane)

    def action_section(self, step: str) -> None:
        """Go to the next (1) or previous (-1) section and focus its first widget."""
        names = list(SECTIONS)
        current = names.index(self.query_one(TabLine).current)
        self.open_section(names[(current + int(step)) % len(names)])

    def open_section(self, name: str) -> None:
        """Show a section and focus its first widget."""
        self.query_one(TabLine).select(name)
        self.query_one(ContentSwitcher).current = name
        section = self.query_one(f"#{name}")
        first = next((widget for widget in (section, *section.query("*")) if widget.can_focus), None)
        if first is not None:
            self.set_focus(first)
        self.refresh_bindings()
        self._show_prompt()

    # --- actions ----------------------------------------------------------------------------------

    def action_paper(self) -> None:
        """Fill in the setup of the benchmark's paper, with those of its models and judges that this machine has."""
        self._choose_under_cursor()
        benchmark = self.benchmark
        if benchmark is None:
            return
        if benchmark.name not in setup_names():
            self.rashomon.toast(f"{benchmark.name} has no paper's setup", severity="warning")
            return
        sentence = self.choices.fill_in(find_setup(benchmark.name), benchmark)
        self._changed = True
        self._read_contents()
        self.form_changed()
        if sentence:
            self.rashomon.toast(sentence)
        if self.choices.not_here:
            names = ", ".join(name.rpartition("/")[2] for name in self.choices.not_here)
            self.rashomon.toast(
                f"`rashomon models get` fetches the paper's models: {names}", title="Not on this machine"
            )

    def _choose_under_cursor(self) -> None:
        """Select the benchmark under the cursor, if the benchmarks are on display."""
        table = self._table("benchmarks")
        option = table.option
        if self.query_one(TabLine).current == "benchmark" and option is not None and option.key not in table.chosen:
            table.choose([option.key])
            self._changed = True
            self._benchmark_chosen()

    def _if_valid(self, then: Callable[[BatchSpec], None]) -> None:
        """Call ``then`` with the spec, or report the form's first problem."""
        if self.spec is None or self._problems:
            self._touched |= set(self._problems)  # from now on what is missing is wrong
            self.update_summary()
            key, problem = next(iter(self._problems.items()), ("form", "still being checked; try again"))
            self.rashomon.toast(f"{field_word(key)}: {problem}", severity="warning")
            return
        then(self.spec)

    def action_copy(self) -> None:
        self._if_valid(lambda spec: self.rashomon.copy(command_line(self.rashomon.workspace, spec)))

    def action_save(self) -> None:
        self._if_valid(lambda spec: ask_to_save(self, spec, self._spec_name(spec), self._mark_saved))

    def _spec_name(self, spec: BatchSpec) -> str:
        return self.preflight.runs[0].name if self.preflight and self.preflight.runs else spec.benchmark

    def action_start(self) -> None:
        self._if_valid(lambda spec: ask_to_start(self, spec, self.preflight, self._mark_saved))

    def _mark_saved(self) -> None:
        self._changed = False
        self._saved = self.form_view.typed_values()


def _contents_of(checker: PreflightChecker, spec: BatchSpec) -> BuildContents | None:
    """Return the contents of a build; None if it cannot be read, which its field reports."""
    try:
        return checker.contents(spec.runs()[0])
    except RashomonError:
        return None
