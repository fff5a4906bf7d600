"""Rows of the tables on New run, and translation of the selected rows into the values of a spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.fetch import fetched_files_record
from app.fetch.benchmark_downloads import NOT_FETCHED, RECIPES
from app.new_run.prompt_files import PromptChoice
from app.new_run.run_choices import BenchmarkChoice, JudgeChoice, ModelChoice
from app.new_run.run_estimate import BuildContents
from app.papers.paper_setups import PREFIX, Setup
from app.tui.theme import DIM, RIGHT, WRONG
from app.tui.widgets.choice_table import ChoiceOption
from app.tui.widgets.estimate_line import memory_words
from app.tui.widgets.table_columns import Cell, Row
from benchmarks.base import Benchmark
from benchmarks.protocols.without_sources import shows_no_source
from benchmarks.vocabulary import WITHOUT_SOURCES
from mlx_backends.policy_engine import PREFIX as POLICY

SelectionKey = tuple[str, ...]
"""("prompt_set", word), ("conditions", word) or ("strata", key, value), EXACT or LIKELIHOOD."""


EXACT: SelectionKey = ("exact",)
LIKELIHOOD: SelectionKey = ("score", "likelihood")
NOT_HERE = "not on this machine"
"""The reason why a model of a paper's setup cannot be chosen."""
_STRATUM_WORDS = {
    "answer": "right answer",
    "change": "kind of change",
    "correct": "right source",
    "form": "form of answer",
    "instance": "entity",
    "manual_check": "to be checked",
    "size": "scenes",
    "source": "data source",
}
"""The words for the strata whose keys are not words."""
_CONFLICT = "the sources disagree"
_NO_CONFLICT = "no conflict"
_NO_SOURCE, _PARTIAL = "no source: memory", "a part is left out"
_EVERY_PARTIAL = "all that leave a part out"


def stratum_word(key: str) -> str:
    """Return the word for a stratum's key."""
    return _STRATUM_WORDS.get(key, key.replace("_", " "))


# --- benchmarks -----------------------------------------------------------------------------------------


def benchmark_options(choices: Sequence[BenchmarkChoice], data: Mapping[str, Path]) -> list[ChoiceOption]:
    """Return the rows of the benchmarks, with the state of their builds; ``data`` are the folders of their data."""
    return [ChoiceOption(choice.name, [choice.name, _state(choice, data[choice.name])]) for choice in choices]


def _state(choice: BenchmarkChoice, data: Path) -> Cell:
    if choice.build is not None:
        return [("✓ ", RIGHT), (f"{choice.build.manifest['instances']:,} instances", "")]
    if choice.folder.exists():
        return [("✗ ", WRONG), (choice.state, "")]
    return [(f"○ not built: {next_step(choice.name, data)}", DIM)]


def next_step(benchmark: str, data: Path) -> str:
    """Return what the build of a benchmark needs next, with its key."""
    if benchmark == "k-passages":
        return "f9 makes it of a build"
    if benchmark == "retrieval":
        return "8 checks your own log"
    if benchmark in NOT_FETCHED:
        return "8 checks your rows"
    state = fetched_files_record.fetch_state(data) if benchmark in RECIPES else "none"
    if state == "fetched":
        return "f builds it"
    return "f resumes fetching its data" if state == "begun" else "f fetches its data"


def setup_sentence(setup: Setup, available: Iterable[str]) -> str:
    """Return what the setup of a benchmark's paper consists of; ``available`` are the models of this machine."""
    models, here = as_list(setup.values["model"]), set(available)
    judges = " and ".join(as_list(setup.values["judge"]))
    limit = f", {setup.values['limit']:,} examples" if "limit" in setup.values else ""
    return (
        f"{PREFIX}{setup.name}: {_count(len(models), 'model')}, {sum(name in here for name in models)} of them here; "
        f"prompts {setup.values['prompt_set']}, {_count(len(setup.values['conditions']), 'condition')}{limit}, "
        f"judge {judges}"
    )


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def as_list(value: str | Sequence[str]) -> list[str]:
    """Return the names of a setup's value, which is a name or several."""
    return [value] if isinstance(value, str) else list(value)


# --- models ---------------------------------------------------------------------------------------------


def model_options(models: Iterable[ModelChoice]) -> list[ChoiceOption]:
    """Return the rows of the models: kind, size, and fit in memory; or the reason why a model cannot run."""
    return [
        ChoiceOption(
            model.spec_name,
            _model_cells(model),
            "policies" if model.spec_name.startswith(POLICY) else "models",
            allowed=not model.problem,
            detail=_model_detail(model),
        )
        for model in models
    ]


def missing_model(spec_name: str) -> ModelChoice:
    """Return a model of a paper's setup that is not on this machine."""
    return ModelChoice(spec_name, spec_name.rpartition("/")[2], "model", fits=None, problem=NOT_HERE)


def _model_cells(model: ModelChoice) -> Row:
    """Return the name and the facts of a model; of one without a size, the second cell extends over the others."""
    if model.problem == NOT_HERE:
        return [model.name, [(f"○ {NOT_HERE}", DIM)]]
    if model.problem:
        return [model.name, [("✗ ", WRONG), (model.problem, "")]]
    if model.spec_name.startswith(POLICY):
        return [model.name, [(model.note, DIM)]]
    kind = model.quantisation or model.kind
    return (
        [model.name, kind]
        if model.weights_bytes is None
        else [model.name, kind, _size(model.weights_bytes), _fits(model)]
    )


def _model_detail(model: ModelChoice) -> str:
    if model.problem == NOT_HERE:
        return f"{model.spec_name}: {NOT_HERE}; f fetches it"
    if model.spec_name.startswith(POLICY):
        return f"{model.spec_name}: a policy reads no source; its answer: {model.note}"
    if model.needed_bytes is None or model.available_bytes is None:
        return f"{model.spec_name}: {model.facts()}"
    facts = replace(model, note="").facts()
    return f"{model.spec_name}: {facts}; needs {memory_words(model.needed_bytes, model.available_bytes)}"


def _size(weights: int) -> str:
    return f"{weights / 1e9:.1f} GB" if weights >= 10**8 else f"{weights / 1e6:.1f} MB"


def _fits(model: ModelChoice) -> Cell:
    return [("✓ fits", RIGHT)] if model.fits else [("✗ too big", WRONG)]


# --- judges ---------------------------------------------------------------------------------------------


def judge_options(choices: Sequence[JudgeChoice], added: Sequence[str]) -> list[ChoiceOption]:
    """Return the rows of the judges, those typed by the user first; an engine without a model cannot be selected."""
    rows = [ChoiceOption(name, [name, "added here"], detail=name) for name in added]
    for judge in choices:
        if judge.spec_name not in added:
            incomplete = judge.spec_name.endswith(":")
            name = f"{judge.spec_name}NAME" if incomplete else judge.spec_name.rpartition("/")[2]
            glyph = ("✓ ", RIGHT) if judge.ready else ("○ ", DIM)
            detail = f"{judge.spec_name}{'NAME: type it below' if incomplete else ''}: {judge.description}"
            cells: list[Cell] = [name, [glyph, (judge.description, "")]]
            rows.append(ChoiceOption(judge.spec_name, cells, allowed=not incomplete, detail=detail))
    return rows


# --- scope and sampling ---------------------------------------------------------------------------------


def scope_options(
    benchmark: Benchmark, contents: BuildContents | None, prompts: Iterable[PromptChoice] = ()
) -> list[ChoiceOption]:
    """Return the rows of prompt sets, conditions and strata, with their numbers of instances if the build is known.

    Further prompt sets, which are no benchmark's own, come last.

    The first row of each group is headed by the group's name.
    """
    rows = [*_prompt_options(benchmark), *_condition_options(benchmark, contents)]
    rows += [*_without_sources_option(benchmark, contents), *_stratum_options(contents)]
    rows += _further_prompt_options(prompts)
    headed, group = [], ""
    for row in rows:
        headed.append(row if row.group != group else row._replace(cells=["", *row.cells[1:]]))
        group = row.group
    return headed


def _prompt_options(benchmark: Benchmark) -> Iterator[ChoiceOption]:
    for word, description in benchmark.prompt_sets.items():
        detail = f"prompts {word}: {description}"
        yield ChoiceOption(("prompt_set", word), ["prompts", word, "", description], "prompts", detail=detail)


def _further_prompt_options(prompts: Iterable[PromptChoice]) -> Iterator[ChoiceOption]:
    for choice in prompts:
        key, group = ("prompt_set", choice.spec_name), "more prompts"
        if choice.template is None:
            name = choice.spec_name.rpartition("/")[2]
            yield ChoiceOption(
                key, [group, name, "", [("✗ ", WRONG), (choice.problem, "")]], group, False, choice.problem
            )
        else:
            template = choice.template
            detail = f"prompts {template.name}: {template.rationale or template.description}"
            yield ChoiceOption(key, [group, template.name, "", template.description], group, detail=detail)


def _condition_options(benchmark: Benchmark, contents: BuildContents | None) -> Iterator[ChoiceOption]:
    for word in benchmark.conditions:
        count = None if contents is None else contents.conditions.get(word, 0)
        note = (_CONFLICT if word in benchmark.conflicts else _NO_CONFLICT) if benchmark.conflicts else ""
        if word in benchmark.without_sources:
            note = _NO_SOURCE if shows_no_source(word) else _PARTIAL
        yield ChoiceOption(
            ("conditions", word),
            ["conditions", word, "" if count is None else f"{count:,}", note],
            "conditions",
            allowed=count != 0,
            detail=f"condition {word}: {'none in the build' if count == 0 else note}".removesuffix(": "),
        )


def _without_sources_option(benchmark: Benchmark, contents: BuildContents | None) -> Iterator[ChoiceOption]:
    """Yield the row that adds all conditions without sources, if there are any."""
    if benchmark.without_sources:
        count = (
            None if contents is None else sum(contents.conditions.get(word, 0) for word in benchmark.without_sources)
        )
        cells: list[Cell] = ["conditions", WITHOUT_SOURCES, "" if count is None else f"{count:,}", _EVERY_PARTIAL]
        yield ChoiceOption(("conditions", WITHOUT_SOURCES), cells, "conditions", count != 0, _EVERY_PARTIAL)


def _stratum_options(contents: BuildContents | None) -> Iterator[ChoiceOption]:
    for name, values in contents.strata.items() if contents is not None else ():
        for value, count in values.items():
            word = stratum_word(name)
            cells = [word, value, f"{count:,}", ""]
            yield ChoiceOption(("strata", name, value), cells, f"strata {name}", bool(value), f"{word}: {value}")


def sampling_options() -> list[ChoiceOption]:
    """Return the rows of the ways to answer: one at a time, and with likelihoods."""
    exact = "one answer at a time: no batching, no caches"
    scored = "adds likelihoods; the most likely option is the answer"
    return [
        ChoiceOption(EXACT, ["exact", exact], "exact"),
        ChoiceOption(LIKELIHOOD, ["likelihood", scored], "likelihood"),
    ]


def default_selection(benchmark: Benchmark, contents: BuildContents | None) -> list[SelectionKey]:
    """Return the initial selection: the paper's prompts, the default conditions in the build, all strata."""
    selection: list[SelectionKey] = [("prompt_set", next(iter(benchmark.prompt_sets)))]
    selection += [("conditions", word) for word in _default_conditions(benchmark, contents)]
    if contents is not None:
        selection += [("strata", name, value) for name, values in contents.strata.items() for value in values]
    return selection


def _default_conditions(benchmark: Benchmark, contents: BuildContents | None) -> list[str]:
    available = benchmark.conditions if contents is None else tuple(contents.conditions)
    default = benchmark.default_conditions or tuple(word for word in available if word not in benchmark.without_sources)
    return [word for word in default if word in available]


def carry_over_selection(
    benchmark: Benchmark, contents: BuildContents | None, chosen: Sequence[Hashable]
) -> list[SelectionKey]:
    """Return the selection after a change of the build: the selected prompts, and the defaults for the rest."""
    keys: list[Any] = list(chosen)
    prompts = [key for key in keys if key[0] == "prompt_set"]
    return [*prompts, *(key for key in default_selection(benchmark, contents) if key[0] != "prompt_set")]


def missing_selection(contents: BuildContents | None, chosen: Sequence[Hashable]) -> Mapping[str, str]:
    """Return a message for each spec key without a selection: conditions and every stratum need at least one."""
    keys: list[Any] = list(chosen)
    missing = {}
    if not any(key[0] == "conditions" and key[1] != WITHOUT_SOURCES for key in keys):
        missing["conditions"] = "select at least one"
    for name in contents.strata if contents is not None else ():
        if not any(key[:2] == ("strata", name) for key in keys):
            missing["strata"] = f"select at least one {stratum_word(name)}"
    return missing


def selection_values(
    benchmark: Benchmark, contents: BuildContents | None, chosen: Sequence[Hashable]
) -> dict[str, Any]:
    """Return a selection as values of a spec; defaults, and strata with all values selected, are left empty."""
    keys: list[Any] = list(chosen)
    prompts = [key[1] for key in keys if key[0] == "prompt_set"]
    named = [key[1] for key in keys if key[0] == "conditions"]
    conditions = [name for name in named if name != WITHOUT_SOURCES]
    conditions = [] if conditions == _default_conditions(benchmark, contents) else conditions
    strata: dict[str, list[str]] = {}
    for name, values in contents.strata.items() if contents is not None else ():
        selected = [key[2] for key in keys if key[:2] == ("strata", name)]
        if set(selected) != set(values):
            strata[name] = selected
    return {
        "prompt_set": [] if prompts == [next(iter(benchmark.prompt_sets))] else prompts,
        "conditions": [*conditions, *([WITHOUT_SOURCES] if WITHOUT_SOURCES in named else [])],
        "exact": EXACT in keys,
        "score": LIKELIHOOD[1] if LIKELIHOOD in keys else "",
        "strata": {name: values for name, values in strata.items() if values},
    }
