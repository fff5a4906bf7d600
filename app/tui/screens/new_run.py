"""New run: a spec put together by keys, with what it will be said while it is typed."""

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
    near_choices,
    policy_choices,
)
from app.new_run.form import begin, command_line, read, save
from app.new_run.preflight import Preflight, PreflightChecker
from app.new_run.run_estimate import BuildContents
from app.run_spec import BatchSpec
from app.system.paths import exists, typed_path
from app.tui.commands import bindings
from app.tui.confirmations import with_agreement
from app.tui.hostile_text import literal
from app.tui.latest_only import LatestOnly
from app.tui.processes import allowing
from app.tui.screens.base import RashomonScreen
from app.tui.screens.new_options import (
    asked_again,
    asked_options,
    asked_typed,
    benchmark_options,
    default_asked,
    judge_options,
    model_options,
    nothing_chosen,
)
from app.tui.widgets.choice_table import ChoiceTable
from app.tui.widgets.dialogs import Confirm, TextDialog
from app.tui.widgets.estimate_line import told
from app.tui.widgets.field import Field
from app.tui.widgets.prompt_view import PromptView
from app.tui.widgets.virtual_table import Column
from benchmarks.base import Benchmark, get_benchmark
from benchmarks.errors import RashomonError

SECTIONS = {
    "benchmark": ("Benchmark", ("benchmark", "data")),
    "models": ("Models", ("model",)),
    "asked": ("What", ("prompt_set", "conditions", "strata", "score")),
    "amount": ("Amount", ("limit", "seed", "name", "max_tokens", "temperature", "top_p", "max_pixels", "restarts")),
    "judges": ("Judges", ("judge", "cost_ceiling", "token_ceiling", "input_price", "output_price", "concurrency")),
    "preview": ("Prompt", ()),
}
"""The sections, their titles, and the keys of a spec that are chosen in each."""

_WAIT_SECONDS = 0.15
_NAMED = 6
"""The number of runs that a question names."""
_AMOUNT = (
    ("limit", "examples", "stratified, each with all its conditions"),
    ("seed", "seed", "decides which, and every sampled token"),
    ("max_tokens", "longest answer", "in tokens"),
    ("temperature", "temperature", "0 is greedy"),
    ("top_p", "top p", "nucleus sampling"),
    ("max_pixels", "pixels at most", "larger images are scaled down"),
    ("name", "name", "of the run"),
    ("restarts", "restarts", "of a worker that died for want of memory"),
)
_API = (
    ("cost_ceiling", "cost at most", "of each run and judge; needs the prices"),
    ("input_price", "price in", "of a million tokens"),
    ("output_price", "price out", "of a million tokens"),
    ("token_ceiling", "tokens at most", "of each run and judge"),
    ("concurrency", "calls at once", "remote engines"),
)
_UNSAID = {"limit": "all", "seed": "0", "name": "made from the spec", "restarts": "2", "max_pixels": "none"}
_UNSAID |= {"cost_ceiling": "none", "token_ceiling": "none", "concurrency": "8"}


class NewRunScreen(RashomonScreen):
    """Put a spec together, see what it will be, start it."""

    name_ = "new"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    NewRunScreen ContentSwitcher { height: 1fr; }
    NewRunScreen ContentSwitcher > * { padding: 0 1; }
    NewRunScreen #needs { height: auto; max-height: 5; color: #b0b0b0; }
    NewRunScreen #judge-table, NewRunScreen #model-table { height: 1fr; min-height: 4; }
    NewRunScreen .detail { height: auto; max-height: 2; color: #b0b0b0; }
    NewRunScreen.-tall .detail { max-height: 5; }
    NewRunScreen #api { height: auto; }
    NewRunScreen #said { height: auto; min-height: 4; max-height: 9; background: $surface; padding: 0 1; }
    NewRunScreen.-tall #said { max-height: 14; min-height: 6; }
    NewRunScreen.-tall #needs { max-height: 12; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.spec: BatchSpec | None = None
        """What is typed, where all of it fits."""
        self.prospects: Preflight | None = None
        """What ``spec`` will be; None while that is not known."""
        self._wrong: dict[str, str] = {}
        self._benchmarks: dict[str, BenchmarkChoice] = {}
        self._models: dict[str, ModelChoice] = {}
        self._judges: list[str] = []
        self._contents: BuildContents | None = None
        self._wait: Timer | None = None
        self._changed = False
        """Whether anything was chosen since it was last saved or started."""
        self._kept: dict[str, str] = {}
        """What was typed then."""
        self._look_latest = LatestOnly(self, "look")
        self._contents_latest = LatestOnly(self, "contents")
        self._describe_latest = LatestOnly(self, "describe")

    # --- what is on the screen --------------------------------------------------------------------

    def heading(self) -> Content:
        return Content("New run")

    def unsaved(self) -> str:
        typed = self._changed or self._typed_values() != self._kept
        return "What is chosen and typed for the new run; ctrl+s saves it as a file." if typed else ""

    def body(self) -> ComposeResult:
        yield Tabs(*(Tab(Content(title), id=f"tab-{name}") for name, (title, _) in SECTIONS.items()))
        with ContentSwitcher(initial="benchmark"):
            with Vertical(id="benchmark"):
                yield ChoiceTable(
                    (Column("benchmark", 17), Column("its data", 0)), single=True, empty="looking ...", id="benchmarks"
                )
                yield Static(id="needs")
                yield Field("data", "another build", example="the workspace's; or a folder", long=True)
            with Vertical(id="models"):
                yield ChoiceTable(
                    (
                        Column("model", 0, least=22, end=0.5),
                        Column("is", 20),
                        Column("size", 8, right=True),
                        Column("memory", 8),
                    ),
                    empty="looking ...",
                    id="model-table",
                )
                yield Static(id="model-table-detail", classes="detail")
                yield Field(
                    "model", "another model", example="a folder, ORG/NAME, openai:NAME; Enter adds it", long=True
                )
            with Vertical(id="asked"):
                yield ChoiceTable(
                    (Column("of", 12), Column("", 24), Column("instances", 9, right=True), Column("is", 0)),
                    empty="choose a benchmark first",
                    id="asked-table",
                )
                yield Static(id="asked-table-detail", classes="detail")
            with VerticalScroll(id="amount", can_focus=False):
                for key, label, hint in _AMOUNT:
                    yield Field(key, label, hint, _UNSAID.get(key, ""))
            with Vertical(id="judges"):
                yield ChoiceTable(
                    (Column("judge", 30, end=0.5), Column("is", 0)),
                    empty="choose a benchmark first",
                    id="judge-table",
                )
                yield Static(id="judge-table-detail", classes="detail")
                with Vertical(id="api"):
                    yield Field("judge", "another judge", example="a model, openai:NAME; Enter adds it", long=True)
                    for key, label, hint in _API:
                        yield Field(key, label, hint, _UNSAID.get(key, ""))
            yield PromptView(id="preview")
        yield Static(id="said")

    def on_mount(self) -> None:
        workspace = self.rashomon.workspace
        self.looker = PreflightChecker(workspace)
        self.in_thread(partial(benchmark_choices, workspace), self._benchmarks_found, group="benchmarks")
        self.in_thread(
            lambda: [*policy_choices(), *cached_choices(), *near_choices(workspace)], self._models_found, group="models"
        )
        self.set_focus(self.query_one("#benchmarks"))
        self.say()

    def _table(self, name: str) -> ChoiceTable:
        return self.query_one(f"#{name}", ChoiceTable)

    def _fields(self) -> dict[str, Field]:
        return {field.key: field for field in self.query(Field)}

    def _typed_values(self) -> dict[str, str]:
        return {field.key: field.value for field in self.query(Field) if field.value}

    # --- what can be chosen -----------------------------------------------------------------------

    def _benchmarks_found(self, found: list[BenchmarkChoice]) -> None:
        self._benchmarks = {choice.name: choice for choice in found}
        built = next((choice.name for choice in found if choice.build is not None), found[0].name)
        self._table("benchmarks").offer(benchmark_options(found), choose=[built])
        self._table("benchmarks").cursor = list(self._benchmarks).index(built)
        self._benchmark_chosen()

    def _models_found(self, found: list[ModelChoice]) -> None:
        self._models = {choice.word: choice for choice in found} | self._models
        self._table("model-table").offer(model_options(self._models.values()))
        if self.benchmark is not None:
            self._offer_judges(self.benchmark)

    @property
    def benchmark(self) -> Benchmark | None:
        """The benchmark that is chosen."""
        return next((get_benchmark(str(name)) for name in self._table("benchmarks").chosen), None)

    @on(ChoiceTable.Changed, "#benchmarks")
    def _benchmark_chosen(self) -> None:
        benchmark = self.benchmark
        if benchmark is None:
            return
        choice = self._benchmarks[benchmark.name]
        lines = [benchmark.paper, *(f"data from {line}" for line in choice.needs())]
        if benchmark.rows_source:
            lines.insert(1, "f4: check a table of your own rows, and build from it")
        if choice.build is None:
            lines = [choice.state, f"build it: {choice.command(self.rashomon.workspace)}", *lines]
        self.query_one("#needs", Static).update(literal("\n".join(lines), newlines=True))
        for key, field in self._fields().items():
            if hasattr(benchmark.decoding, key) and key not in _UNSAID:
                field.example(f"{getattr(benchmark.decoding, key)}")
        self._contents = None
        self._table("asked-table").offer(asked_options(benchmark, None), choose=default_asked(benchmark, None))
        self._judges = []
        self._offer_judges(benchmark, choose=benchmark.judges[:1])
        self._read_contents()
        self.typed()

    def _offer_judges(self, benchmark: Benchmark, choose: tuple[str, ...] | None = None) -> None:
        offered = judge_options(judge_choices(benchmark, self._models.values()), self._judges)
        self._table("judge-table").offer(offered, choose=choose)

    def _read_contents(self) -> None:
        """What the build holds, for the numbers beside conditions and strata."""
        benchmark = self.benchmark
        if benchmark is None:
            return
        typed = {**self.form(), "model": ["policy:random"], "conditions": [], "strata": {}, "judge": [], "name": ""}
        stub, _ = read({key: typed[key] for key in ("benchmark", "model", "data", "prompt_set")})
        if stub is not None:
            self._contents_latest.ask(partial(_contents_of, self.looker, stub), self._contents_found)

    def _contents_found(self, found: BuildContents | None) -> None:
        benchmark = self.benchmark
        if benchmark is None or (found is not None and found.benchmark.name != benchmark.name):
            return
        before, self._contents = self._contents, found
        table = self._table("asked-table")
        same = before is not None and found is not None and before.strata == found.strata
        chosen = table.chosen if same else asked_again(benchmark, found, table.chosen)
        table.offer(asked_options(benchmark, found), choose=chosen)
        self.typed()

    # --- what is typed ----------------------------------------------------------------------------

    def form(self) -> dict[str, Any]:
        """What is typed and chosen, as :func:`app.new_run.form.read` takes it."""
        said: dict[str, Any] = {key: field.value for key, field in self._fields().items()}
        benchmark = self.benchmark
        said["benchmark"] = benchmark.name if benchmark else ""
        said["model"] = [str(word) for word in self._table("model-table").chosen]
        said["judge"] = [str(word) for word in self._table("judge-table").chosen]
        if benchmark is not None:
            said |= asked_typed(benchmark, self._contents, self._table("asked-table").chosen)
            if said["judge"] == list(benchmark.judges[:1]):
                said["judge"] = []
        return said

    @on(ChoiceTable.Changed)
    def _chosen(self, event: ChoiceTable.Changed) -> None:
        self._changed = True
        if event.table.id == "asked-table":
            self._read_contents()
        self.typed()

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
        self.typed()

    def _describe(self, typed: Input) -> None:
        """Say what the model is that is being typed."""
        field = next(field for field in self.query(Field) if field.key == str(typed.id).removeprefix("input-"))
        word = typed.value.strip()
        if not word:
            field.wrong()
            return

        def tell(choice: ModelChoice) -> None:
            if typed.value.strip() == word:
                field.wrong(choice.problem) if choice.problem else field.tell(choice.facts())

        self._describe_latest.ask(partial(model_choice, word), tell)

    @on(Input.Submitted, "#input-model, #input-judge")
    def _add_word(self, event: Input.Submitted) -> None:
        word = event.value.strip()
        if not word:
            return
        event.input.value = ""
        if event.input.id == "input-judge":
            self._judges = list(dict.fromkeys((*self._judges, word)))
            if self.benchmark is not None:
                chosen = [str(key) for key in self._table("judge-table").chosen]
                self._offer_judges(self.benchmark, choose=(*chosen, word))
            self.typed()
        else:
            self.in_thread(partial(model_choice, word), self._add_model, group="add")

    def _add_model(self, choice: ModelChoice) -> None:
        self._models = {choice.word: choice} | self._models
        table = self._table("model-table")
        table.offer(model_options(self._models.values()), choose=[*table.chosen, choice.word])
        table.cursor = 0
        self.typed()

    def typed(self) -> None:
        """Something was typed or chosen: say what is wrong at once, and what it will be when it is known."""
        self.spec, self._wrong = read(self.form())
        if self.benchmark is not None:
            missing = nothing_chosen(self._contents, self._table("asked-table").chosen)
            self._wrong |= missing
            self.spec = None if missing else self.spec
        self.prospects = None
        if self._wait is not None:
            self._wait.stop()
        if self.spec is not None:
            self._wait = self.set_timer(_WAIT_SECONDS, partial(self._look, self.spec))
        self.say()

    def _look(self, spec: BatchSpec) -> None:
        self._look_latest.ask(partial(self.looker.look, spec), partial(self._looked, spec))

    def _looked(self, spec: BatchSpec, found: Preflight) -> None:
        if spec is not self.spec:
            return
        self.prospects = found
        self._wrong = dict(found.wrong or {})
        self.say()
        self._show_prompt()

    def say(self) -> None:
        """Write what is wrong, or what the runs will be, and the command line."""
        for key, field in self._fields().items():
            if key not in ("model", "judge"):
                field.wrong(self._wrong.get(key, ""))
        for name, (title, keys) in SECTIONS.items():
            wrong = any(key in self._wrong for key in keys)
            tab = self.query_one(f"#tab-{name}", Tab)
            label = f"✗ {title}" if wrong else title
            if tab.label_text != label:
                tab.label = Content(label)
        line = None
        if self.spec is not None:
            try:
                line = command_line(self.rashomon.workspace, self.spec)
            except RashomonError as error:
                line = str(error)
        self.query_one("#said", Static).update(told(self._wrong, self.prospects, line))

    def _show_prompt(self) -> None:
        if self.query_one(ContentSwitcher).current == "preview" and self.prospects and self.prospects.runs:
            first = self.prospects.runs[0]
            self.query_one(PromptView).show(first.run, first.outlook.instances, first.contents.build)

    # --- moving -----------------------------------------------------------------------------------

    @on(Tabs.TabActivated)
    def _section(self, event: Tabs.TabActivated) -> None:
        name = str(event.tab.id).removeprefix("tab-")
        self.query_one(ContentSwitcher).current = name
        self._show_prompt()

    def action_section(self, by: str) -> None:
        """To the section after (1) or before (-1), and into it."""
        tabs, names = self.query_one(Tabs), list(SECTIONS)
        now = names.index(str(tabs.active).removeprefix("tab-"))
        name = names[(now + int(by)) % len(names)]
        tabs.active = f"tab-{name}"
        self.query_one(ContentSwitcher).current = name
        section = self.query_one(f"#{name}")
        inside = [section, *section.query("*")]
        first = next((widget for widget in inside if widget.can_focus), None)
        if first is not None:
            self.set_focus(first)

    # --- what is done with it -------------------------------------------------------------------------

    def _if_right(self, do: Callable[[BatchSpec], None]) -> None:
        if self.spec is None or self._wrong:
            key, sentence = next(iter(self._wrong.items()), ("", "this is being looked at; try again"))
            self.rashomon.tell(f"{key.replace('_', ' ')}: {sentence}", severity="warning")
            return
        do(self.spec)

    def action_copy(self) -> None:
        self._if_right(lambda spec: self.rashomon.copy(command_line(self.rashomon.workspace, spec)))

    def action_save(self) -> None:
        def ask(spec: BatchSpec) -> None:
            name = self.prospects.runs[0].name if self.prospects and self.prospects.runs else spec.benchmark
            where = str(Path.cwd() / f"{name}.toml")
            self.app.push_screen(
                TextDialog("Save as a spec file", "`rashomon --batch FILE` runs it.", value=where),
                partial(self._save, spec),
            )

        self._if_right(ask)

    def _save(self, spec: BatchSpec, typed: str | None, *, replace: bool = False) -> None:
        if typed is None or not typed.strip():
            return
        try:
            path = typed_path(typed.strip())
        except RashomonError as error:
            self.rashomon.failed(error)
            return
        if exists(path) and not replace:

            def answered(yes: bool | None) -> None:
                if yes:
                    self._save(spec, typed, replace=True)

            self.app.push_screen(Confirm("Replace it?", f"{path} is there already."), answered)
            return
        try:
            save(spec, path, replace=replace)
        except RashomonError as error:
            self.rashomon.failed(error)
            return
        self._forget()
        self.rashomon.tell(f"saved {path}")

    def action_start(self) -> None:
        def ask(spec: BatchSpec) -> None:
            self.app.push_screen(
                Confirm("Start?", _starting(spec, self.prospects), yes="Start"), partial(self._start, spec)
            )

        self._if_right(ask)

    def _start(self, spec: BatchSpec, yes: bool | None) -> None:
        def agreed(addresses: list[str]) -> None:
            start = partial(begin, self.rashomon.workspace, spec)
            self.in_thread(start, partial(self._begun, addresses), group="start")

        if yes:
            with_agreement(self.rashomon, (*spec.model, *spec.judge), agreed)

    def _begun(self, agreed: list[str], begun: tuple[Path, list[Path]]) -> None:
        file, folders = begun
        try:
            self.rashomon.jobs.start(["batch", str(file), *allowing(agreed)])
        except RashomonError as error:
            self.rashomon.failed(error)
            return
        self._forget()
        self.rashomon.go("live", folders[:1])

    def _forget(self) -> None:
        """Count what is chosen and typed as kept."""
        self._changed = False
        self._kept = self._typed_values()


def _starting(spec: BatchSpec, known: Preflight | None) -> str:
    """Return what is about to be started, and what is to be known before."""
    if known is None or not known.runs:
        return f"{spec.benchmark}: {', '.join(spec.model)}"
    lines = [f"{run.name}: {len(run.outlook.instances):,} instances" for run in known.runs[:_NAMED]]
    lines += [f"and {len(known.runs) - _NAMED} more runs"] * (len(known.runs) > _NAMED)
    return "\n".join([*lines, *known.warnings, *known.costs])


def _contents_of(looker: PreflightChecker, stub: BatchSpec) -> BuildContents | None:
    """What a build holds; None where it cannot be read, which is said by the field."""
    try:
        return looker.contents(stub.runs()[0])
    except RashomonError:
        return None
