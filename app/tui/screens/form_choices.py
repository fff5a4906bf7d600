"""Choices in the form of a new run: the rows of its tables, and the selected ones."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from textual.content import Content

from app.new_run.prompt_files import prompt_choices
from app.new_run.run_choices import (
    BenchmarkChoice,
    ModelChoice,
    judge_choices,
    model_choice,
    policy_choices,
    reader_choices,
)
from app.new_run.run_estimate import BuildContents
from app.papers.paper_setups import Setup, find_setup, setup_names
from app.spec_keys import spec_keys
from app.store.workspace import Workspace
from app.tui.hostile_text import literal
from app.tui.screens.new_run_form import RunForm
from app.tui.screens.new_run_options import (
    as_list,
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
from benchmarks.base import Benchmark
from benchmarks.build import read_manifest
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark

_IMAGE_POLICY = "policy:always-image"
"""The policy that suits the questions that a reader of images does."""


class FormChoices:
    """The rows of the tables of a ``form``, which depend on one another, and the selected ones.

    Attributes:
        benchmarks: The benchmarks by name; empty until they are read.
        models: The models of this machine and those that the user added, by name.
        not_here: The models of the paper's setup that are not on this machine.
        judges: The judges added by the user.
        contents: The contents of the build; None until they are known.
    """

    def __init__(self, form: RunForm, workspace: Workspace) -> None:
        self._form, self._workspace = form, workspace
        self.benchmarks: dict[str, BenchmarkChoice] = {}
        self.models: dict[str, ModelChoice] = {}
        self.not_here: list[str] = []
        self.judges: list[str] = []
        self.contents: BuildContents | None = None

    def _table(self, name: str) -> ChoiceTable:
        return self._form.table(name)

    @property
    def benchmark(self) -> Benchmark | None:
        """The selected benchmark; None until the benchmarks are read."""
        return next((get_benchmark(str(name)) for name in self._table("benchmarks").chosen), None)

    def offer_benchmarks(self, choices: list[BenchmarkChoice], build: Path | None) -> bool:
        """List the benchmarks; at first, select that of the ``build``, or one that is built, and return True."""
        first_time = not self.benchmarks
        self.benchmarks = {choice.name: choice for choice in choices}
        table = self._table("benchmarks")
        data = {choice.name: self._workspace.source_folder(choice.name) for choice in choices}
        if not first_time:
            table.offer(benchmark_options(choices, data))
            return False
        built_name = next((choice.name for choice in choices if choice.build is not None), choices[0].name)
        if build is not None:
            with suppress(RashomonError, OSError, ValueError):  # its field reports it
                built_name = str(read_manifest(build)["benchmark"])
        table.offer(benchmark_options(choices, data), choose=[built_name])
        table.cursor = list(self.benchmarks).index(built_name)
        return True

    def offer_models(self, choices: Iterable[ModelChoice] = ()) -> None:
        """List the models of this machine, those of the paper that it lacks, and the benchmark's policies and readers."""
        self.models = {choice.spec_name: choice for choice in choices} | self.models
        self.not_here = [name for name in self.not_here if name not in self.models]
        policies = self.contents.policies if self.contents is not None else ()
        table = self._table("model-table")
        rows = [*sorted(self.models.values(), key=lambda model: bool(model.problem))]
        rows += map(missing_model, self.not_here)
        rows += [choice for choice in policy_choices() if choice.spec_name in policies]
        if _IMAGE_POLICY in policies:
            rows += [choice for choice in reader_choices() if not choice.problem]
        shown = {choice.spec_name for choice in rows}
        rows += [model_choice(str(name)) for name in table.chosen if str(name) not in shown]
        table.offer(model_options(rows))
        if self.benchmark is not None:
            self._offer_judges(self.benchmark)

    def _offer_judges(self, benchmark: Benchmark, choose: tuple[str, ...] | None = None) -> None:
        options = judge_options(judge_choices(benchmark, self.models.values()), self.judges)
        self._table("judge-table").offer(options, choose=choose)

    def reset(self, benchmark: Benchmark) -> None:
        """Offer what suits a benchmark that was just selected, with the default selection."""
        for key, field in self._form.fields().items():
            if hasattr(benchmark.decoding, key) and not spec_keys()[key].example:
                field.example(f"{getattr(benchmark.decoding, key)}")
        self.contents = None
        self.not_here = []
        options = scope_options(benchmark, None, prompt_choices(benchmark, self._workspace))
        self._table("scope-table").offer(options, choose=default_selection(benchmark, None))
        self._table("sampling-table").offer(sampling_options(), choose=())
        self.judges = []
        self._offer_judges(benchmark, choose=benchmark.judges[:1])

    def show_contents(self, contents: BuildContents | None) -> bool:
        """Offer the scope of a build; return False if it is no longer the selected benchmark's."""
        benchmark = self.benchmark
        if benchmark is None or (contents is not None and contents.benchmark.name != benchmark.name):
            return False
        previous, self.contents = self.contents, contents
        table = self._table("scope-table")
        same = previous is not None and contents is not None and previous.strata == contents.strata
        selection = table.chosen if same else carry_over_selection(benchmark, contents, table.chosen)
        prompts = prompt_choices(benchmark, self._workspace)
        table.offer(scope_options(benchmark, contents, prompts), choose=selection)
        self.offer_models()
        return True

    def needs(self, name: str) -> Content:
        """Return the paper, the setup and the data of a benchmark in words."""
        choice = self.benchmarks[name]
        benchmark = choice.benchmark
        lines = []
        if choice.build is not None:
            lines.append(Content(f"built: {choice.build.manifest['instances']:,} instances"))
            if choice.sets:
                sets = ", ".join(f"{known.name} ({known.numbers})" for known in choice.sets)
                lines.append(literal(f"question sets, as SET or SET@NUMBER below: {sets}", DIM))
        elif choice.folder.exists():
            lines.append(literal(choice.state, WRONG))
        else:
            lines.append(literal(f"to build: {choice.command(self._workspace)}"))
        if benchmark.name in setup_names():
            sentence = setup_sentence(find_setup(benchmark.name), self.models)
            lines.append(literal(f"{sentence}. ctrl+t fills it in.", DIM))
        if benchmark.rows_source:
            lines.append(literal("8 checks a table of your own, and builds from it", DIM))
        lines.append(literal(f"paper: {benchmark.paper}", DIM))
        lines += [literal(f"data from {line}", DIM) for line in choice.needs()]
        return Content("\n").join(lines)

    def add_judge(self, name: str) -> None:
        """Add a judge to the table and select it."""
        self.judges = list(dict.fromkeys((*self.judges, name)))
        if self.benchmark is not None:
            selected = [str(key) for key in self._table("judge-table").chosen]
            self._offer_judges(self.benchmark, choose=(*selected, name))

    def add_model(self, choice: ModelChoice) -> None:
        """Add a model to the table and select it."""
        self.models = {choice.spec_name: choice} | self.models
        table = self._table("model-table")
        chosen = [*table.chosen, choice.spec_name]
        self.offer_models()
        table.choose(chosen)
        table.cursor = [option.key for option in table.options].index(choice.spec_name)

    def fill_in(self, setup: Setup, benchmark: Benchmark) -> str:
        """Select a paper's setup, with those of its models and judges that this machine has; return what that changes."""
        ready = {choice.spec_name for choice in judge_choices(benchmark, self.models.values()) if choice.ready}
        values, sentence = setup.with_judge({name: name in ready for name in setup.judges})
        scope = self._table("scope-table")
        allowed = {option.key for option in scope.options if option.allowed}
        strata = [key for key in scope.chosen if isinstance(key, tuple) and key[0] == "strata"]
        wanted = [("prompt_set", values["prompt_set"]), *(("conditions", name) for name in values["conditions"])]
        scope.choose([*strata, *(key for key in wanted if key in allowed)])
        typed = {**values, **values["decoding"]}
        for key, field in self._form.fields().items():
            if key in ("limit", "seed", *values["decoding"]):
                field.value = str(typed.get(key, ""))
        judges, models = as_list(values["judge"]), as_list(values["model"])
        self.judges = [name for name in judges if name in setup.judges]
        self._offer_judges(benchmark, choose=tuple(judges))
        self.not_here = [name for name in models if name not in self.models]
        self._table("model-table").choose(name for name in models if name in self.models)
        self.offer_models()
        return sentence

    def missing(self) -> dict[str, str]:
        """Return a message for each key of a spec without a selection."""
        return dict(missing_selection(self.contents, self._table("scope-table").chosen))

    def values(self) -> dict[str, Any]:
        """Return the form's values as :func:`app.new_run.spec_form.read_form` takes them."""
        values: dict[str, Any] = {key: field.value for key, field in self._form.fields().items()}
        benchmark = self.benchmark
        if values["data"].strip():
            with suppress(RashomonError):  # which the check of the form reports
                values["data"] = str(self._workspace.data_folder(values["data"].strip()))
        values["benchmark"] = benchmark.name if benchmark else ""
        values["model"] = [str(name) for name in self._table("model-table").chosen]
        values["judge"] = [str(name) for name in self._table("judge-table").chosen]
        if benchmark is not None:
            chosen = [*self._table("scope-table").chosen, *self._table("sampling-table").chosen]
            values |= selection_values(benchmark, self.contents, chosen)
            if values["judge"] == list(benchmark.judges[:1]):
                values["judge"] = []
        return values
