"""Rows of the tables on New run, and translation of the selected rows into the values of a spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from app.new_run.choices import BenchmarkChoice, JudgeChoice, ModelChoice
from app.new_run.run_estimate import BuildContents
from app.tui.theme import DIM, RIGHT, WRONG
from app.tui.widgets.choice_table import ChoiceOption
from app.tui.widgets.virtual_table import Cell
from benchmarks.base import Benchmark

SelectionKey = tuple[str, ...]
"""("prompt_set", word), ("conditions", word) or ("strata", key, value), EXACT or LIKELIHOOD."""


EXACT: SelectionKey = ("exact",)
LIKELIHOOD: SelectionKey = ("score", "likelihood")


def benchmark_options(choices: Sequence[BenchmarkChoice]) -> list[ChoiceOption]:
    """Return the rows of the benchmarks, with the state of their builds."""
    return [ChoiceOption(choice.name, [choice.name, _state(choice)]) for choice in choices]


def _state(choice: BenchmarkChoice) -> Cell:
    if choice.build is not None:
        return [("✓ ", RIGHT), (f"{choice.build.manifest['instances']} instances built", "")]
    if choice.folder.exists():
        return [("✗ ", WRONG), (choice.state, "")]
    return [("○ not built here yet", DIM)]


def model_options(models: Iterable[ModelChoice]) -> list[ChoiceOption]:
    """Return the rows of the models: kind, size, and fit in memory; or the reason why a model cannot run."""
    return [
        ChoiceOption(
            model.spec_name,
            [model.name, _kind(model), _size(model.weights_bytes), _fits(model)],
            allowed=not model.problem,
            detail=f"{model.spec_name}: {model.facts()}",
        )
        for model in models
    ]


def _kind(model: ModelChoice) -> Cell:
    if model.problem:
        return [("✗ ", WRONG), (model.problem, "")]
    return model.quantisation or model.kind


def _size(weights: int | None) -> str:
    if weights is None:
        return ""
    return f"{weights / 1e9:.1f} GB" if weights >= 10**8 else f"{weights / 1e6:.1f} MB"


def _fits(model: ModelChoice) -> Cell:
    if model.weights_bytes is None:
        return ""
    return [("✓ fits", RIGHT)] if model.fits else [("✗ too big", WRONG)]


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


def selection_options(benchmark: Benchmark, contents: BuildContents | None) -> list[ChoiceOption]:
    """Return the rows of prompt sets, conditions and strata, with their numbers of instances if the build is known."""
    rows = [
        ChoiceOption(
            ("prompt_set", word), ["prompts", word, "", description], "prompts", detail=f"{word}: {description}"
        )
        for word, description in benchmark.prompt_sets.items()
    ]
    for word in benchmark.conditions:
        count = None if contents is None else contents.conditions.get(word, 0)
        note = "the sources disagree" if word in benchmark.conflicts else ""
        rows.append(
            ChoiceOption(
                ("conditions", word),
                ["condition", word, "" if count is None else f"{count:,}", note],
                "conditions",
                allowed=count != 0,
                detail=f"{word}: none in the build" if count == 0 else f"{word}{note and ': '}{note}",
            )
        )
    for name, values in contents.strata.items() if contents is not None else ():
        for value, count in values.items():
            cells = [name, value, f"{count:,}"]
            rows.append(ChoiceOption(("strata", name, value), cells, f"strata {name}", bool(value), f"{name}: {value}"))
    exact = "one answer at a time: no batching, no caches"
    rows.append(ChoiceOption(EXACT, ["how", "exact", "", exact], "exact", detail=f"exact: {exact}"))
    if contents is not None and contents.scorable:
        rows.append(_likelihood(contents))
    return rows


def _likelihood(contents: BuildContents) -> ChoiceOption:
    note = "the most likely of a question's options; nothing is generated"
    count = f"{sum(contents.scorable.values()):,}"
    all_conditions = len(contents.scorable) == len(contents.conditions)
    limit = "" if all_conditions else f"; only under {', '.join(contents.scorable)}"
    return ChoiceOption(
        LIKELIHOOD, ["how", "likelihood", count, note], "likelihood", detail=f"likelihood: {note}{limit}"
    )


def default_selection(benchmark: Benchmark, contents: BuildContents | None) -> list[SelectionKey]:
    """Return the initial selection: the paper's prompts, the default conditions in the build, all strata."""
    selection: list[SelectionKey] = [("prompt_set", next(iter(benchmark.prompt_sets)))]
    selection += [("conditions", word) for word in _default_conditions(benchmark, contents)]
    if contents is not None:
        selection += [("strata", name, value) for name, values in contents.strata.items() for value in values]
    return selection


def _default_conditions(benchmark: Benchmark, contents: BuildContents | None) -> list[str]:
    available = benchmark.conditions if contents is None else tuple(contents.conditions)
    return [word for word in benchmark.default_conditions or available if word in available]


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
    if not any(key[0] == "conditions" for key in keys):
        missing["conditions"] = "select at least one"
    for name in contents.strata if contents is not None else ():
        if not any(key[:2] == ("strata", name) for key in keys):
            missing["strata"] = f"select at least one {name}"
    return missing


def selection_values(
    benchmark: Benchmark, contents: BuildContents | None, chosen: Sequence[Hashable]
) -> dict[str, Any]:
    """Return a selection as values of a spec; defaults, and strata with all values selected, are left empty."""
    keys: list[Any] = list(chosen)
    prompts = [key[1] for key in keys if key[0] == "prompt_set"]
    conditions = [key[1] for key in keys if key[0] == "conditions"]
    strata: dict[str, list[str]] = {}
    for name, values in contents.strata.items() if contents is not None else ():
        selected = [key[2] for key in keys if key[:2] == ("strata", name)]
        if set(selected) != set(values):
            strata[name] = selected
    return {
        "prompt_set": [] if prompts == [next(iter(benchmark.prompt_sets))] else prompts,
        "conditions": [] if conditions == _default_conditions(benchmark, contents) else conditions,
        "exact": EXACT in keys,
        "score": LIKELIHOOD[1] if LIKELIHOOD in keys else "",
        "strata": {name: values for name, values in strata.items() if values},
    }
