"""The New run screen: a form for a spec, with an estimate of its runs while it is filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Input, Static

from app.new_run.choices import (
    BenchmarkChoice,
    ModelChoice,
    benchmark_choices,
    broken_plugins,
    cached_choices,
    judge_choices,
    model_choice,
    nearby_choices,
    policy_choices,
    reader_choices,
)
from app.new_run.form import command_line, prepare_job, read_form, save_spec
from app.new_run.preflight import Preflight, PreflightChecker, RunPreflight
from app.new_run.prompt_files import prompt_choices
from app.new_run.run_estimate import BuildContents
from app.run_spec import BatchSpec
from app.setups import find_setup, setup_names
from app.spec_keys import spec_keys
from app.tui.commands import bindings
from app.tui.confirmations import confirm_addresses
from app.tui.hostile_text import literal
from app.tui.latest_only import LatestOnly
from app.tui.processes import allow_address_options
from app.tui.screens.base import RashomonScreen
from app.tui.screens.new_run_options import (
    benchmark_options,
    carry_over_selection,
    default_selection,
    judge_options,
    missing_model,
    missing_selection,
    model_options,
    sampling_options,
    scope_options,
    selection_values,
    setup_sentence,
)
from app.tui.theme import DIM, WRONG
from app.tui.widgets.choice_table import ChoiceTable
from app.tui.widgets.dialogs import Confirm, TextDialog
from app.tui.widgets.estimate_line import field_word, form_summary
from app.tui.widgets.prompt_view import PromptView
from app.tui.widgets.run_form import SECTIONS, RunForm
from app.tui.widgets.tab_line import TabLine
from benchmarks.base import Benchmark
from benchmarks.build import read_manifest
from benchmarks.errors import RashomonError
from benchmarks.plugins import BrokenPlugin
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.typed_paths import path_exists, typed_path

_DELAY_SECONDS = 0.15
_MAX_NAMED = 6
"""The number of runs that a confirmation names."""
_ANY_MODEL = "policy:random"
"""Stands in for the model in the estimate until one is selected."""
_IMAGE_POLICY = "policy:always-image"
"""The policy that suits the questions that a reader of images does."""
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
        self._benchmarks: dict[str, BenchmarkChoice] = {}
        self._models: dict[str, ModelChoice] = {}
        self._not_here: list[str] = []
        """The models of the paper's setup that are not on this machine."""
        self._judges: list[str] = []
        """The judges added by the user."""
        self._contents: BuildContents | None = None
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
            self._offer_models,
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
        if self._benchmarks:
            self.read_choices()

    @property
    def form_view(self) -> RunForm:
        """The widgets of the form."""
        return self.query_one(RunForm)

    def _table(self, name: str) -> ChoiceTable:
        return self.form_view.table(name)

    # --- choices ----------------------------------------------------------------------------------

    def _offer_benchmarks(self, choices: list[BenchmarkChoice]) -> None:
        first_time = not self._benchmarks
        self._benchmarks = {choice.name: choice for choice in choices}
        table = self._table("benchmarks")
        data = {choice.name: self.rashomon.workspace.source_folder(choice.name) for choice in choices}
        if first_time:
            built_name = next((choice.name for choice in choices if choice.build is not None), choices[0].name)
            if self._build is not None:
                with suppress(RashomonError, OSError, ValueError):  # its field reports it
                    built_name = str(read_manifest(self._build)["benchmark"])
            table.offer(benchmark_options(choices, data), choose=[built_name])
            table.cursor = list(self._benchmarks).index(built_name)
            self._benchmark_chosen()
        else:
            table.offer(benchmark_options(choices, data))
            self._read_contents()
        self._show_needs()

    def _offer_models(self, choices: Iterable[ModelChoice] = ()) -> None:
        """List the models of this machine, those of the paper that it lacks, and the benchmark's policies and readers."""
        self._models = {choice.spec_name: choice for choice in choices} | self._models
        self._not_here = [name for name in self._not_here if name not in self._models]
        policies = self._contents.policies if self._contents is not None else ()
        table = self._table("model-table")
        rows = [*sorted(self._models.values(), key=lambda model: bool(model.problem))]
        rows += map(missing_model, self._not_here)
        rows += [choice for choice in policy_choices() if choice.spec_name in policies]
        if _IMAGE_POLICY in policies:
            rows += [choice for choice in reader_choices() if not choice.problem]
        shown = {choice.spec_name for choice in rows}
        rows += [model_choice(str(name)) for name in table.chosen if str(name) not in shown]
        table.offer(model_options(rows))
        if self.benchmark is not None:
            self._offer_judges(self.benchmark)

    @property
    def benchmark(self) -> Benchmark | None:
        """The selected benchmark; None until the benchmarks are read."""
        return next((get_benchmark(str(name)) for name in self._table("benchmarks").chosen), None)

    @on(ChoiceTable.Changed, "#benchmarks")
    def _benchmark_chosen(self) -> None:
        benchmark = self.benchmark
        if benchmark is None:
            return
        for key, field in self.form_view.fields().items():
            if hasattr(benchmark.decoding, key) and not spec_keys()[key].example:
                field.example(f"{getattr(benchmark.decoding, key)}")
        self._contents = None
        self._not_here = []
        options = scope_options(benchmark, None, prompt_choices(benchmark, self.rashomon.workspace))
        self._table("scope-table").offer(options, choose=default_selection(benchmark, None))
        self._table("sampling-table").offer(sampling_options(), choose=())
        self._judges = []
        self._offer_judges(benchmark, choose=benchmark.judges[:1])
        self._read_contents()
        self.update_title()
        self.form_changed()

    @on(ChoiceTable.Moved, "#benchmarks")
    def _show_needs(self) -> None:
        """Show the paper, the setup and the data of the benchmark under the cursor."""
        option = self._table("benchmarks").option
        if option is None:
            return
        choice = self._benchmarks[str(option.key)]
        benchmark, workspace = choice.benchmark, self.rashomon.workspace
        lines = []
        if choice.build is not None:
            lines.append(Content(f"built: {choice.build.manifest['instances']:,} instances"))
            if choice.sets:
                sets = ", ".join(f"{known.name} ({known.numbers})" for known in choice.sets)
                lines.append(literal(f"question sets, as SET or SET@NUMBER below: {sets}", DIM))
        elif choice.folder.exists():
            lines.append(literal(choice.state, WRONG))
        else:
            lines.append(literal(f"to build: {choice.command(workspace)}"))
        if benchmark.name in setup_names():
            sentence = setup_sentence(find_setup(benchmark.name), self._models)
            lines.append(literal(f"{sentence}. ctrl+t fills it in.", DIM))
        if benchmark.rows_source:
            lines.append(literal("8 checks a table of your own, and builds from it", DIM))
        lines.append(literal(f"paper: {benchmark.paper}", DIM))
        lines += [literal(f"data from {line}", DIM) for line in choice.needs()]
        self.update_static("#needs", Content("\n").join(lines))

    def _offer_judges(self, benchmark: Benchmark, choose: tuple[str, ...] | None = None) -> None:
        options = judge_options(judge_choices(benchmark, self._models.values()), self._judges)
        self._table("judge-table").offer(options, choose=choose)

    def _read_contents(self) -> None:
        """Read the build for the numbers of instances by condition and stratum."""
        benchmark = self.benchmark
        if benchmark is None:
            return
        values = {**self.form(), "model": [_ANY_MODEL]}
        spec, _ = read_form({key: values[key] for key in ("benchmark", "model", "data", "prompt_set")})
        if spec is not None:
            self._contents_latest.submit(partial(_contents_of, self.checker, spec), self._show_contents)

    def _show_contents(self, contents: BuildContents | None) -> None:
        benchmark = self.benchmark
        if benchmark is None or (contents is not None and contents.benchmark.name != benchmark.name):
            return
        previous, self._contents = self._contents, contents
        table = self._table("scope-table")
        same = previous is not None and contents is not None and previous.strata == contents.strata
        selection = table.chosen if same else carry_over_selection(benchmark, contents, table.chosen)
        prompts = prompt_choices(benchmark, self.rashomon.workspace)
        table.offer(scope_options(benchmark, contents, prompts), choose=selection)
        self._offer_models()
        self.form_changed()

    # --- input ------------------------------------------------------------------------------------

    def form(self) -> dict[str, Any]:
        """Return the form's values as :func:`app.new_run.form.read_form` takes them."""
        values: dict[str, Any] = {key: field.value for key, field in self.form_view.fields().items()}
        benchmark = self.benchmark
        if values["data"].strip():
            with suppress(RashomonError):  # which the check of the form reports
                values["data"] = str(self.rashomon.workspace.data_folder(values["data"].strip()))
        values["benchmark"] = benchmark.name if benchmark else ""
        values["model"] = [str(name) for name in self._table("model-table").chosen]
        values["judge"] = [str(name) for name in self._table("judge-table").chosen]
        if benchmark is not None:
            chosen = [*self._table("scope-table").chosen, *self._table("sampling-table").chosen]
            values |= selection_values(benchmark, self._contents, chosen)
            if values["judge"] == list(benchmark.judges[:1]):
                values["judge"] = []
        return values

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
                detail.update(
                    literal(f"✗ {choice.problem}", WRONG, limit=400)
                    if choice.problem
                    else literal(choice.facts(), limit=400)
                )

        self._describe_latest.submit(partial(model_choice, name), show)

    @on(Input.Submitted, "#input-model, #input-judge")
    def _add_word(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        if not name:
            return
        event.input.value = ""
        if event.input.id == "input-judge":
            self._judges = list(dict.fromkeys((*self._judges, name)))
            if self.benchmark is not None:
                selected = [str(key) for key in self._table("judge-table").chosen]
                self._offer_judges(self.benchmark, choose=(*selected, name))
            self.form_changed()
        else:
            self.attempt(partial(model_choice, name), self._add_model, group="add")

    def _add_model(self, choice: ModelChoice) -> None:
        self._models = {choice.spec_name: choice} | self._models
        table = self._table("model-table")
        chosen = [*table.chosen, choice.spec_name]
        self._offer_models()
        table.choose(chosen)
        table.cursor = [option.key for option in table.options].index(choice.spec_name)
        self.form_changed()

    def form_changed(self) -> None:
        """Validate the form at once, and check and estimate its runs after a short delay."""
        form = self.form()
        self._assumed = not form["model"]
        spec, self._problems = read_form({**form, "model": form["model"] or [_ANY_MODEL]})
        if self.benchmark is not None:
            missing = missing_selection(self._contents, self._table("scope-table").chosen)
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

    def _missing(self) -> dict[str, str]:
        """Return the problems of what the user has not touched yet."""
        return {key: problem for key, problem in self._problems.items() if key not in self._touched}

    def update_summary(self, *, checking: bool = False) -> None:
        """Show the problems of the form, or the estimate of its runs, and the command line."""
        missing = self._missing()
        problems = {key: problem for key, problem in self._problems.items() if key not in missing}
        for key, field in self.form_view.fields().items():
            if key not in ("model", "judge"):
                field.show_problem(problems.get(key, ""))
        titles = {}
        for name, (title, keys) in SECTIONS.items():
            glyph = (
                "✗ " if any(key in problems for key in keys) else "○ " if any(key in missing for key in keys) else ""
            )
            titles[name] = f"{glyph}{title}"
        self.query_one(TabLine).retitle(titles)
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
        setup = find_setup(benchmark.name)
        ready = {choice.spec_name for choice in judge_choices(benchmark, self._models.values()) if choice.ready}
        values, sentence = setup.with_judge({name: name in ready for name in setup.judges})
        scope = self._table("scope-table")
        allowed = {option.key for option in scope.options if option.allowed}
        strata = [key for key in scope.chosen if isinstance(key, tuple) and key[0] == "strata"]
        wanted = [("prompt_set", values["prompt_set"]), *(("conditions", name) for name in values["conditions"])]
        scope.choose([*strata, *(key for key in wanted if key in allowed)])
        typed = {**values, **values["decoding"]}
        for key, field in self.form_view.fields().items():
            if key in ("limit", "seed", *values["decoding"]):
                field.value = str(typed.get(key, ""))
        judges = [values["judge"]] if isinstance(values["judge"], str) else values["judge"]
        self._judges = [name for name in judges if name in setup.judges]
        self._offer_judges(benchmark, choose=tuple(judges))
        models = [values["model"]] if isinstance(values["model"], str) else values["model"]
        self._not_here = [name for name in models if name not in self._models]
        self._table("model-table").choose(name for name in models if name in self._models)
        self._offer_models()
        self._changed = True
        self._read_contents()
        self.form_changed()
        if sentence:
            self.rashomon.toast(sentence)
        if self._not_here:
            names = ", ".join(name.rpartition("/")[2] for name in self._not_here)
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
        def ask(spec: BatchSpec) -> None:
            name = self.preflight.runs[0].name if self.preflight and self.preflight.runs else spec.benchmark
            path = str(Path.cwd() / f"{name}.toml")
            self.app.push_screen(
                TextDialog("Save as a spec file", "`rashomon --batch FILE` runs it.", value=path),
                partial(self._save, spec),
            )

        self._if_valid(ask)

    def _save(self, spec: BatchSpec, typed: str | None, *, replace: bool = False) -> None:
        if typed is None or not typed.strip():
            return
        try:
            path = typed_path(typed.strip())
        except RashomonError as error:
            self.rashomon.show_error(error)
            return
        if path_exists(path) and not replace:

            def on_answer(yes: bool | None) -> None:
                if yes:
                    self._save(spec, typed, replace=True)

            self.app.push_screen(Confirm("Replace the file?", f"{path} exists."), on_answer)
            return
        try:
            save_spec(spec, path, replace=replace)
        except RashomonError as error:
            self.rashomon.show_error(error)
            return
        self._mark_saved()
        self.rashomon.toast(f"saved {path}")

    def action_start(self) -> None:
        def ask(spec: BatchSpec) -> None:
            self.app.push_screen(
                Confirm("Start?", _start_question(spec, self.preflight), yes="Start"), partial(self._start, spec)
            )

        self._if_valid(ask)

    def _start(self, spec: BatchSpec, yes: bool | None) -> None:
        def create_runs(addresses: list[str]) -> None:
            work = partial(prepare_job, self.rashomon.workspace, spec)
            self.attempt(work, partial(self._start_process, addresses), group="start")

        if yes:
            confirm_addresses(self.rashomon, (*spec.model, *spec.judge), create_runs)

    def _start_process(self, addresses: list[str], created: tuple[Path, list[Path]]) -> None:
        file, folders = created
        try:
            names = [folder.name for folder in folders]
            self.rashomon.processes.start(["batch", str(file), *allow_address_options(addresses)], runs=names)
        except RashomonError as error:
            self.rashomon.show_error(error)
            return
        self._mark_saved()
        self.rashomon.open_screen("live", folders[:1])

    def _mark_saved(self) -> None:
        self._changed = False
        self._saved = self.form_view.typed_values()


def _start_question(spec: BatchSpec, preflight: Preflight | None) -> str:
    """Return the runs about to be started, with their warnings and costs."""
    if preflight is None or not preflight.runs:
        return f"{spec.benchmark}: {', '.join(spec.model)}"
    runs = preflight.runs
    lines = [f"{run.name}: {_work(run)}" for run in runs[:_MAX_NAMED]]
    lines += [f"and {len(runs) - _MAX_NAMED} more runs"] * (len(runs) > _MAX_NAMED)
    return "\n".join([*lines, *preflight.warnings, *preflight.costs])


def _work(run: RunPreflight) -> str:
    """Return what is left to do in a run."""
    if run.finished:
        return "finished already, nothing is run"
    if not run.exists:
        return f"{run.estimate.answers:,} instances"
    return f"{run.estimate.left:,} of {run.estimate.answers:,} instances are left"


def _contents_of(checker: PreflightChecker, spec: BatchSpec) -> BuildContents | None:
    """Return the contents of a build; None if it cannot be read, which its field reports."""
    try:
        return checker.contents(spec.runs()[0])
    except RashomonError:
        return None
