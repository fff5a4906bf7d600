"""The rows of what can be chosen for a new run, and what their choice says in a spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from app.new_run.choices import BenchmarkChoice, JudgeChoice, ModelChoice
from app.new_run.run_estimate import BuildContents
from app.tui.theme import RIGHT, WRONG
from app.tui.widgets.choice_table import Option
from app.tui.widgets.virtual_table import Cell
from benchmarks.base import Benchmark

Asked = tuple[str, ...]
"""("prompt_set", word), ("conditions", word) or ("strata", key, value), EXACT or LIKELIHOOD."""


EXACT: Asked = ("exact",)
LIKELIHOOD: Asked = ("score", "likelihood")


def benchmark_options(found: Sequence[BenchmarkChoice]) -> list[Option]:
    """The benchmarks, and whether each is built."""
    return [Option(choice.name, [choice.name, _state(choice)]) for choice in found]


def _state(choice: BenchmarkChoice) -> Cell:
    if choice.build is not None:
        return [("✓ ", RIGHT), (f"{choice.build.manifest['instances']} samples built", "")]
    if choice.folder.exists():
        return [("✗ ", WRONG), (choice.state, "")]
    return [("○ not built here yet", "#909090")]


def model_options(models: Iterable[ModelChoice]) -> list[Option]:
    """The models: what each is, its size, whether it fits in memory. One that cannot be run says why."""
    return [
        Option(
            model.word,
            [model.name, _kind(model), _size(model.weights_bytes), _fits(model)],
            allowed=not model.problem,
            detail=f"{model.word}: {model.facts()}",
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


def judge_options(found: Sequence[JudgeChoice], added: Sequence[str]) -> list[Option]:
    """The judges, those that were typed first; an engine that wants a model's name can only be read."""
    rows = [Option(word, [word, "added here"], detail=word) for word in added]
    for judge in found:
        if judge.word not in added:
            wants = judge.word.endswith(":")
            shown = f"{judge.word}NAME" if wants else judge.word.rpartition("/")[2]
            glyph = ("✓ ", RIGHT) if judge.ready else ("○ ", "#909090")
            detail = f"{judge.word}{'NAME: type it below' if wants else ''}: {judge.description}"
            cells: list[Cell] = [shown, [glyph, (judge.description, "")]]
            rows.append(Option(judge.word, cells, allowed=not wants, detail=detail))
    return rows


def asked_options(benchmark: Benchmark, contents: BuildContents | None) -> list[Option]:
    """Prompt sets, conditions and strata, with how many instances each has where the build is known."""
    rows = [
        Option(("prompt_set", word), ["prompts", word, "", description], "prompts", detail=f"{word}: {description}")
        for word, description in benchmark.prompt_sets.items()
    ]
    for word in benchmark.conditions:
        count = None if contents is None else contents.conditions.get(word, 0)
        told = "the sources disagree" if word in benchmark.conflicts else ""
        rows.append(
            Option(
                ("conditions", word),
                ["condition", word, "" if count is None else f"{count:,}", told],
                "conditions",
                allowed=count != 0,
                detail=f"{word}: the build has none" if count == 0 else f"{word}{told and ': '}{told}",
            )
        )
    for name, values in contents.strata.items() if contents is not None else ():
        for value, count in values.items():
            cells = [name, value, f"{count:,}"]
            rows.append(Option(("strata", name, value), cells, f"strata {name}", bool(value), f"{name}: {value}"))
    exact = "each answer by itself: none together, nothing reused"
    rows.append(Option(EXACT, ["how", "exact", "", exact], "exact", detail=f"exact: {exact}"))
    if contents is not None and contents.scored:
        rows.append(_likelihood(contents))
    return rows


def _likelihood(contents: BuildContents) -> Option:
    told = "the likeliest of a question's options, no answer generated"
    count = f"{sum(contents.scored.values()):,}"
    every = len(contents.scored) == len(contents.conditions)
    where = "" if every else f"; under {', '.join(contents.scored)} alone"
    return Option(LIKELIHOOD, ["how", "likelihood", count, told], "likelihood", detail=f"likelihood: {told}{where}")


def default_asked(benchmark: Benchmark, contents: BuildContents | None) -> list[Asked]:
    """What is chosen at first: the paper's prompts, the default conditions that there are, all strata."""
    chosen: list[Asked] = [("prompt_set", next(iter(benchmark.prompt_sets)))]
    chosen += [("conditions", word) for word in _default_conditions(benchmark, contents)]
    if contents is not None:
        chosen += [("strata", name, value) for name, values in contents.strata.items() for value in values]
    return chosen


def _default_conditions(benchmark: Benchmark, contents: BuildContents | None) -> list[str]:
    there = benchmark.conditions if contents is None else tuple(contents.conditions)
    wanted = benchmark.default_conditions or there
    return [word for word in wanted if word in there]


def asked_again(benchmark: Benchmark, contents: BuildContents | None, chosen: Sequence[Hashable]) -> list[Asked]:
    """What is chosen where the build is another one: the prompts stay, of the rest what is chosen at first."""
    keys: list[Any] = list(chosen)
    prompts = [key for key in keys if key[0] == "prompt_set"]
    return [*prompts, *(key for key in default_asked(benchmark, contents) if key[0] != "prompt_set")]


def nothing_chosen(contents: BuildContents | None, chosen: Sequence[Hashable]) -> Mapping[str, str]:
    """What is to be chosen and is not: of conditions and of each stratum, one at least."""
    keys: list[Any] = list(chosen)
    missing = {}
    if not any(key[0] == "conditions" for key in keys):
        missing["conditions"] = "choose one at least"
    for name in contents.strata if contents is not None else ():
        if not any(key[:2] == ("strata", name) for key in keys):
            missing["strata"] = f"choose one {name} at least"
    return missing


def asked_typed(benchmark: Benchmark, contents: BuildContents | None, chosen: Sequence[Hashable]) -> dict[str, Any]:
    """What a choice says in a spec. What is chosen by default, and a stratum with all its values, is not said."""
    keys: list[Any] = list(chosen)
    prompts = [key[1] for key in keys if key[0] == "prompt_set"]
    conditions = [key[1] for key in keys if key[0] == "conditions"]
    strata: dict[str, list[str]] = {}
    for name, values in contents.strata.items() if contents is not None else ():
        wanted = [key[2] for key in keys if key[:2] == ("strata", name)]
        if set(wanted) != set(values):
            strata[name] = wanted
    return {
        "prompt_set": [] if prompts == [next(iter(benchmark.prompt_sets))] else prompts,
        "conditions": [] if conditions == _default_conditions(benchmark, contents) else conditions,
        "exact": EXACT in keys,
        "score": LIKELIHOOD[1] if LIKELIHOOD in keys else "",
        "strata": {name: values for name, values in strata.items() if values},
    }
