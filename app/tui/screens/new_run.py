"""The New run screen: a form for a spec, with an estimate of its runs while it is filled in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Input, Static, Tab, Tabs

from app.new_run.choices import (
    BenchmarkChoice,
    ModelChoice,
    benchmark_choices,
    cached_choices,
    judge_choices,
    model_choice,
    nearby_choices,
    policy_choices,
)
from app.new_run.form import command_line, prepare_job, read_form, save_spec
from app.new_run.preflight import Preflight, PreflightChecker
from app.new_run.run_estimate import BuildContents
from app.run_spec import BatchSpec
from app.setups import find_setup, setup_names
from app.system.paths import path_exists, typed_path
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
    missing_selection,
    model_options,
    selection_options,
    selection_values,
)
from app.tui.widgets.choice_table import ChoiceTable
from app.tui.widgets.dialogs import Confirm, TextDialog
from app.tui.widgets.estimate_line import form_summary
from app.tui.widgets.field import Field
from app.tui.widgets.prompt_view import PromptView
from app.tui.widgets.virtual_table import Column
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark

SECTIONS = {
    "benchmark": ("Benchmark", ("benchmark", "data")),
    "models": ("Models", ("model",)),
    "conditions": ("Conditions", ("prompt_set", "conditions", "strata", "score")),
    "options": (
        "Options",
        ("limit", "seed", "name", "max_tokens", "temperature", "top_p", "max_pixels", "kv_bits", "restarts"),
    ),
    "judges": ("Judges", ("judge", "cost_ceiling", "token_ceiling", "input_price", "output_price", "concurrency")),
    "preview": ("Prompt", ()),
}
"""The sections by id, with their titles and the keys of a spec that each of them sets."""

_DELAY_SECONDS = 0.15
_MAX_NAMED = 6
"""The number of runs that a confirmation names."""
_OPTIONS = (
    ("limit", "examples", "stratified, each with all its conditions"),
    ("seed", "seed", "for examples and sampling"),
    ("max_tokens", "max tokens", "of an answer"),
    ("temperature", "temperature", "0 is greedy"),
    ("top_p", "top p", "nucleus sampling"),
    ("max_pixels", "max pixels", "larger images are scaled down"),
    ("kv_bits", "kv bits", "8 or 4: quantises the key-value cache"),
    ("name", "name", "of the run"),
    ("restarts", "restarts", "of a worker that ran out of memory"),
)
_API = (
    ("cost_ceiling", "max cost", "of each run and judge; needs the prices"),
    ("input_price", "input price", "of a million tokens"),
    ("output_price", "output price", "of a million tokens"),
    ("token_ceiling", "max tokens", "of each run and judge"),
    ("concurrency", "concurrency", "simultaneous calls of remote engines"),
)
_DEFAULTS = {"limit": "all", "seed": "0", "name": "derived from spec", "restarts": "2", "max_pixels": "none"}
_DEFAULTS |= {"kv_bits": "none", "cost_ceiling": "none", "token_ceiling": "none", "concurrency": "8"}


class NewRunScreen(RashomonScreen):
    """Configure a run, see its size, time and cost, and start it."""

    name_ = "new"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.spec: BatchSpec | None = None
        """The spec of the form; None while the form is invalid."""
        self.preflight: Preflight | None = None
        """The checks and the estimate of ``spec``; None until they are known."""
        self._problems: dict[str, str] = {}
        """The problems of the form by spec key."""
        self._benchmarks: dict[str, BenchmarkChoice] = {}
        self._models: dict[str, ModelChoice] = {}
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
        return Content("New run")

    def unsaved(self) -> str:
        changed = self._changed or self._typed_values() != self._saved
        return "The form of the new run is not saved; ctrl+s saves it as a spec file." if changed else ""

    def body(self) -> ComposeResult:
        yield Tabs(*(Tab(Content(title), id=f"tab-{name}") for name, (title, _) in SECTIONS.items()))
        with ContentSwitcher(initial="benchmark"):
            with Vertical(id="benchmark"):
                yield ChoiceTable(
                    (Column("benchmark", 17), Column("build", 0)), single=True, empty="reading ...", id="benchmarks"
                )
                yield Static(id="needs")
                yield Field("data", "build folder", example="default: the workspace's build", long=True)
            with Vertical(id="models"):
                yield ChoiceTable(
                    (
                        Column("model", 0, min_width=22, tail=0.5),
                        Column("kind", 20),
                        Column("size", 8, right=True),
                        Column("memory", 8),
                    ),
                    empty="reading ...",
                    id="model-table",
                )
                yield Static(id="model-table-detail", classes="detail")
                yield Field(
                    "model", "another model", example="a folder, ORG/NAME, openai:NAME; Enter adds it", long=True
                )
            with Vertical(id="conditions"):
                yield ChoiceTable(
                    (Column("of", 12), Column("", 24), Column("instances", 9, right=True), Column("about", 0)),
                    empty="select a benchmark first",
                    id="condition-table",
                )
                yield Static(id="condition-table-detail", classes="detail")
            with VerticalScroll(id="options", can_focus=False):
                for key, label, hint in _OPTIONS:
                    yield Field(key, label, hint, _DEFAULTS.get(key, ""))
            with Vertical(id="judges"):
                yield ChoiceTable(
                    (Column("judge", 30, tail=0.5), Column("about", 0)),
                    empty="select a benchmark first",
                    id="judge-table",
                )
                yield Static(id="judge-table-detail", classes="detail")
                with Vertical(id="api"):
                    yield Field("judge", "another judge", example="a model, openai:NAME; Enter adds it", long=True)
                    for key, label, hint in _API:
                        yield Field(key, label, hint, _DEFAULTS.get(key, ""))
            yield PromptView(id="preview")
        yield Static(id="summary")

    def on_mount(self) -> None:
        workspace = self.rashomon.workspace
        self.checker = PreflightChecker(workspace)
        self.in_thread(partial(benchmark_choices, workspace), self._offer_benchmarks, group="benchmarks")
        self.in_thread(
            lambda: [*policy_choices(), *cached_choices(), *nearby_choices(workspace)],
            self._offer_models,
            group="models",
        )
        self.set_focus(self.query_one("#benchmarks"))
        self.update_summary()

    def _table(self, name: str) -> ChoiceTable:
        return self.query_one(f"#{name}", ChoiceTable)

    def _fields(self) -> dict[str, Field]:
        return {field.key: field for field in self.query(Field)}

    def _typed_values(self) -> dict[str, str]:
        return {field.key: field.value for field in self.query(Field) if field.value}

    # --- choices ----------------------------------------------------------------------------------

    def _offer_benchmarks(self, choices: list[BenchmarkChoice]) -> None:
        self._benchmarks = {choice.name: choice for choice in choices}
        built_name = next((choice.name for choice in choices if choice.build is not None), choices[0].name)
        self._table("benchmarks").offer(benchmark_options(choices), choose=[built_name])
        self._table("benchmarks").cursor = list(self._benchmarks).index(built_name)
        self._benchmark_chosen()

    def _offer_models(self, choices: list[ModelChoice]) -> None:
        self._models = {choice.spec_name: choice for choice in choices} | self._models
        self._table("model-table").offer(model_options(self._models.values()))
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
        choice = self._benchmarks[benchmark.name]
        lines = [benchmark.paper, *(f"data from {line}" for line in choice.needs())]
        if benchmark.rows_source:
            lines.insert(1, "8 or f4: check a table of your own rows and build from it")
        if choice.build is None:
            lines = [choice.state, f"to build: {choice.command(self.rashomon.workspace)}", *lines]
        self.query_one("#needs", Static).update(literal("\n".join(lines), newlines=True))
        for key, field in self._fields().items():
            if hasattr(benchmark.decoding, key) and key not in _DEFAULTS:
                field.example(f"{getattr(benchmark.decoding, key)}")
        self._contents = None
        options = selection_options(benchmark, None)
        self._table("condition-table").offer(options, choose=default_selection(benchmark, None))
        self._judges = []
        self._offer_judges(benchmark, choose=benchmark.judges[:1])
        self._read_contents()
        self.form_changed()

    def _offer_judges(self, benchmark: Benchmark, choose: tuple[str, ...] | None = None) -> None:
        options = judge_options(judge_choices(benchmark, self._models.values()), self._judges)
        self._table("judge-table").offer(options, choose=choose)

    def _read_contents(self) -> None:
        """Read the build for the numbers of instances by condition and stratum."""
        benchmark = self.benchmark
        if benchmark is None:
            return
        values = {**self.form(), "model": ["policy:random"]}
        spec, _ = read_form({key: values[key] for key in ("benchmark", "model", "data", "prompt_set")})
        if spec is not None:
            self._contents_latest.submit(partial(_contents_of, self.checker, spec), self._show_contents)

    def _show_contents(self, contents: BuildContents | None) -> None:
        benchmark = self.benchmark
        if benchmark is None or (contents is not None and contents.benchmark.name != benchmark.name):
            return
        previous, self._contents = self._contents, contents
        table = self._table("condition-table")
        same = previous is not None and contents is not None and previous.strata == contents.strata
        selection = table.chosen if same else carry_over_selection(benchmark, contents, table.chosen)
        table.offer(selection_options(benchmark, contents), choose=selection)
        self.form_changed()

    # --- input ------------------------------------------------------------------------------------

    def form(self) -> dict[str, Any]:
        """Return the form's values as :func:`app.new_run.form.read_form` takes them."""
        values: dict[str, Any] = {key: field.value for key, field in self._fields().items()}
        benchmark = self.benchmark
        values["benchmark"] = benchmark.name if benchmark else ""
        values["model"] = [str(name) for name in self._table("model-table").chosen]
        values["judge"] = [str(name) for name in self._table("judge-table").chosen]
        if benchmark is not None:
            values |= selection_values(benchmark, self._contents, self._table("condition-table").chosen)
            if values["judge"] == list(benchmark.judges[:1]):
                values["judge"] = []
        return values

    @on(ChoiceTable.Changed)
    def _chosen(self, event: ChoiceTable.Changed) -> None:
        self._changed = True
        if event.table.id == "condition-table":
            self._read_contents()
        self.form_changed()

    @on(ChoiceTable.Moved)
    def _moved(self, event: ChoiceTable.Moved) -> None:
        table = event.table
        if isinstance(table, ChoiceTable) and table.id != "benchmarks":
            option = table.option
            self.query_one(f"#{table.id}-detail", Static).update(literal(option.detail if option else "", limit=400))

    @on(Input.Changed)
    def _changed_text(self, event: Input.Changed) -> None:
        if event.input.id in ("input-model", "input-judge"):
            self._describe(event.input)
            return
        if event.input.id == "input-data":
            self._read_contents()
        self.form_changed()

    def _describe(self, widget: Input) -> None:
        """Show the facts of the model whose name is being typed."""
        field = next(field for field in self.query(Field) if field.key == str(widget.id).removeprefix("input-"))
        name = widget.value.strip()
        if not name:
            field.show_problem()
            return

        def show(choice: ModelChoice) -> None:
            if widget.value.strip() == name:
                field.show_problem(choice.problem) if choice.problem else field.show_note(choice.facts())

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
            self.in_thread(partial(model_choice, name), self._add_model, group="add")

    def _add_model(self, choice: ModelChoice) -> None:
        self._models = {choice.spec_name: choice} | self._models
        table = self._table("model-table")
        table.offer(model_options(self._models.values()), choose=[*table.chosen, choice.spec_name])
        table.cursor = 0
        self.form_changed()

    def form_changed(self) -> None:
        """Validate the form at once, and check and estimate its runs after a short delay."""
        self.spec, self._problems = read_form(self.form())
        if self.benchmark is not None:
            missing = missing_selection(self._contents, self._table("condition-table").chosen)
            self._problems |= missing
            self.spec = None if missing else self.spec
        self.preflight = None
        if self._timer is not None:
            self._timer.stop()
        if self.spec is not None:
            self._timer = self.set_timer(_DELAY_SECONDS, partial(self._check, self.spec))
        self.update_summary()

    def _check(self, spec: BatchSpec) -> None:
        self._check_latest.submit(partial(self.checker.check, spec), partial(self._show_preflight, spec))

    def _show_preflight(self, spec: BatchSpec, preflight: Preflight) -> None:
        if spec is not self.spec:
            return
        self.preflight = preflight
        self._problems = dict(preflight.problems or {})
        self.update_summary()
        self._show_prompt()

    def update_summary(self) -> None:
        """Show the problems of the form, or the estimate of its runs, and the command line."""
        for key, field in self._fields().items():
            if key not in ("model", "judge"):
                field.show_problem(self._problems.get(key, ""))
        for name, (title, keys) in SECTIONS.items():
            invalid = any(key in self._problems for key in keys)
            tab = self.query_one(f"#tab-{name}", Tab)
            label = f"✗ {title}" if invalid else title
            if tab.label_text != label:
                tab.label = Content(label)
        line = None
        if self.spec is not None:
            try:
                line = command_line(self.rashomon.workspace, self.spec)
            except RashomonError as error:
                line = str(error)
        self.query_one("#summary", Static).update(form_summary(self._problems, self.preflight, line))

    def _show_prompt(self) -> None:
        if self.query_one(ContentSwitcher).current == "preview" and self.preflight and self.preflight.runs:
            first = self.preflight.runs[0]
            self.query_one(PromptView).show(first.run, first.estimate.instances, first.contents.build)

    # --- sections ---------------------------------------------------------------------------------

    @on(Tabs.TabActivated)
    def _section(self, event: Tabs.TabActivated) -> None:
        name = str(event.tab.id).removeprefix("tab-")
        self.query_one(ContentSwitcher).current = name
        self._show_prompt()

    def action_section(self, step: str) -> None:
        """Go to the next (1) or previous (-1) section and focus its first widget."""
        tabs, names = self.query_one(Tabs), list(SECTIONS)
        current = names.index(str(tabs.active).removeprefix("tab-"))
        name = names[(current + int(step)) % len(names)]
        tabs.active = f"tab-{name}"
        self.query_one(ContentSwitcher).current = name
        section = self.query_one(f"#{name}")
        first = next((widget for widget in (section, *section.query("*")) if widget.can_focus), None)
        if first is not None:
            self.set_focus(first)

    # --- actions ----------------------------------------------------------------------------------

    def action_paper(self) -> None:
        """Fill in the setup of the benchmark's paper, with those of its models and judges that this machine has."""
        benchmark = self.benchmark
        if benchmark is None:
            return
        if benchmark.name not in setup_names():
            self.rashomon.toast(f"{benchmark.name} has no paper's setup", severity="warning")
            return
        setup = find_setup(benchmark.name)
        ready = {choice.spec_name for choice in judge_choices(benchmark, self._models.values()) if choice.ready}
        values, sentence = setup.with_judge({name: name in ready for name in setup.judges})
        conditions = self._table("condition-table")
        allowed = {option.key for option in conditions.options if option.allowed}
        kept = [key for key in conditions.chosen if isinstance(key, tuple) and key[0] == "strata"]
        asked = [("prompt_set", values["prompt_set"]), *(("conditions", name) for name in values["conditions"])]
        conditions.choose([*kept, *(key for key in asked if key in allowed)])
        for key, field in self._fields().items():
            value = {**values, **values["decoding"]}.get(key)
            if key in ("seed", *values["decoding"]):
                field.value = str(value)
        judges = [values["judge"]] if isinstance(values["judge"], str) else values["judge"]
        self._judges = [name for name in judges if name in setup.judges]
        self._offer_judges(benchmark, choose=tuple(judges))
        models = [values["model"]] if isinstance(values["model"], str) else values["model"]
        self._table("model-table").choose(name for name in models if name in self._models)
        self._changed = True
        self._read_contents()
        self.form_changed()
        missing = [name for name in models if name not in self._models]
        if sentence:
            self.rashomon.toast(sentence)
        if missing:
            names = ", ".join(name.rpartition("/")[2] for name in missing)
            self.rashomon.toast(
                f"`rashomon models get` fetches the paper's models: {names}", title="Not on this machine"
            )

    def _if_valid(self, then: Callable[[BatchSpec], None]) -> None:
        """Call ``then`` with the spec, or report the form's first problem."""
        if self.spec is None or self._problems:
            key, problem = next(iter(self._problems.items()), ("form", "still being checked; try again"))
            self.rashomon.toast(f"{key.replace('_', ' ')}: {problem}", severity="warning")
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
            self.in_thread(work, partial(self._start_process, addresses), group="start")

        if yes:
            confirm_addresses(self.rashomon, (*spec.model, *spec.judge), create_runs)

    def _start_process(self, addresses: list[str], created: tuple[Path, list[Path]]) -> None:
        file, folders = created
        try:
            self.rashomon.processes.start(["batch", str(file), *allow_address_options(addresses)])
        except RashomonError as error:
            self.rashomon.show_error(error)
            return
        self._mark_saved()
        self.rashomon.open_screen("live", folders[:1])

    def _mark_saved(self) -> None:
        self._changed = False
        self._saved = self._typed_values()


def _start_question(spec: BatchSpec, preflight: Preflight | None) -> str:
    """Return the runs about to be started, with their warnings and costs."""
    if preflight is None or not preflight.runs:
        return f"{spec.benchmark}: {', '.join(spec.model)}"
    runs = preflight.runs
    lines = [f"{run.name}: {len(run.estimate.instances):,} instances" for run in runs[:_MAX_NAMED]]
    lines += [f"and {len(runs) - _MAX_NAMED} more runs"] * (len(runs) > _MAX_NAMED)
    return "\n".join([*lines, *preflight.warnings, *preflight.costs])


def _contents_of(checker: PreflightChecker, spec: BatchSpec) -> BuildContents | None:
    """Return the contents of a build; None if it cannot be read, which its field reports."""
    try:
        return checker.contents(spec.runs()[0])
    except RashomonError:
        return None
