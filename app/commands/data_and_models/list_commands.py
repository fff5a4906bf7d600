"""``rashomon benchmarks``, ``models`` and ``judges``: the lists of what is available."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping
from typing import Any

from app.json_output.catalog_json import (
    BenchmarkEntry,
    CachedEntry,
    CatalogEntry,
    CheckedModelJudge,
    JudgeCheckEntry,
    JudgeList,
    ModelList,
    PolicyEntry,
    ReaderEntry,
    RubricEntry,
    RuleJudgeEntry,
    SetupEntry,
    SetupValue,
)
from app.json_output.json_envelope import print_json
from app.new_run.run_choices import (
    BenchmarkChoice,
    ModelChoice,
    benchmark_choices,
    cached_choices,
    policy_choices,
    reader_choices,
)
from app.papers.paper_setups import PREFIX, find_setup, setup_names
from app.report.runs.portable_facts import portable_message, portable_path
from app.store.judge_checks import JudgeCheck, current_checks
from app.store.workspace import Workspace
from app.text.text_escaping import clean, size
from benchmarks.fetch.hub_cache import hub_cache
from benchmarks.plugins.find_plugins import Registry
from benchmarks.registry import REGISTRY as BENCHMARKS
from benchmarks.registry import get_benchmark, working_benchmarks
from benchmarks.vocabulary import WITHOUT_SOURCES
from judges.judge_registry import REGISTRY as JUDGES
from judges.judge_registry import benchmarks_of, working_judges
from mlx_backends.models.memory_and_cache_sizes import memory_fit, required_memory, smallest_mac
from mlx_backends.models.model_catalog import CatalogModel, catalog_models
from mlx_backends.ocr_engine import READERS
from mlx_backends.portable_model_names import without_folders


def benchmarks(workspace: Workspace, name: str | None = None, *, as_json: bool) -> None:
    """Print the benchmarks with their sources, conditions and prompt sets, and whether the workspace has a build.

    With ``name``, print that one alone, with the setup of its paper. Raises SpecError if there is none.
    """
    if name is not None:
        get_benchmark(name)
    else:
        _warn_of_broken(BENCHMARKS)
    choices = [choice for choice in benchmark_choices(workspace) if name in (None, choice.name)]
    entries = [_benchmark_entry(workspace, choice, with_setup=name is not None) for choice in choices]
    if as_json:
        print_json("benchmarks", entries)
        return
    for choice, entry in zip(choices, entries, strict=True):
        print(f"{entry.name}  {entry.title}\n    {entry.paper}")
        print(f"    {clean(choice.state)}")
        conditions = [condition for condition in entry.conditions if condition not in entry.without_sources]
        print(f"    conditions:  {', '.join([*conditions, *([WITHOUT_SOURCES] if entry.without_sources else [])])}")
        if entry.without_sources and name is not None:
            print(f"    {WITHOUT_SOURCES}: {', '.join(entry.without_sources)}")
        print(f"    labels:      {', '.join(entry.labels)}")
        lists = ("prompt_sets", "sources", "answer_formats", *(("tasks", "capabilities") if name is not None else ()))
        for kind in lists:
            descriptions: Mapping[str, str] = getattr(entry, kind)
            if not descriptions:
                continue
            print(f"    {kind.replace('_', ' ')}:")
            width = max(16, *map(len, descriptions))
            for key, description in descriptions.items():
                print(f"        {key:<{width}} {description}")
        if entry.setup is not None:
            _print_setup(entry.name, entry.setup)


def _warn_of_broken(registry: Registry[Any]) -> None:
    """Print a line on standard error for each plugin that is not listed because it cannot be used."""
    for broken in registry.broken():
        print(f"warning: {clean(str(broken))}", file=sys.stderr)


def _benchmark_entry(workspace: Workspace, choice: BenchmarkChoice, *, with_setup: bool) -> BenchmarkEntry:
    benchmark = choice.benchmark
    return BenchmarkEntry(
        name=benchmark.name,
        title=benchmark.title,
        paper=benchmark.paper,
        conditions=tuple(benchmark.conditions),
        without_sources=tuple(benchmark.without_sources),
        labels=tuple(benchmark.labels),
        prompt_sets=dict(benchmark.prompt_sets),
        sources={source.name: source.description for source in benchmark.sources},
        answer_formats=dict(benchmark.answer_formats),
        tasks=dict(benchmark.tasks),
        capabilities=dict(benchmark.capabilities),
        build=portable_path(choice.folder, workspace.path) if choice.folder.exists() else None,
        state=portable_message(choice.state, workspace.path),
        setup=_setup(benchmark.name) if with_setup else None,
    )


def _setup(name: str) -> SetupEntry | None:
    """Return the setup of the paper; None for a benchmark without one."""
    if name not in setup_names():
        return None
    setup = find_setup(name)
    values = {**setup.values, **setup.values["decoding"]}
    return SetupEntry(
        values={key: SetupValue(value=values[key], source=source) for key, source in setup.sources.items()},
        judges=setup.judges,
        differences=setup.differences,
    )


def _print_setup(name: str, setup: SetupEntry) -> None:
    print(f"    the paper's setup, `rashomon --batch {PREFIX}{name}`:")
    for key, entry in setup.values.items():
        value = entry.value
        print(f"        {key:<16} {', '.join(value) if isinstance(value, list) else value}")
        print(f"        {'':<16} ({entry.source})")
    if setup.judges:
        print(f"        {'judge':<16} {' or '.join(setup.judges)}, where there is a key")
    for sentence in setup.differences:
        print(f"        {'differs':<16} {sentence}")


def models(*, as_json: bool) -> None:
    """Print the policies, the readers, the cached models with whether each fits in memory, and the catalog."""
    cached = cached_choices()
    fetched = {model.name for model in cached if not model.problem}
    catalog = [catalog_entry(model, fetched) for model in catalog_models()]
    if as_json:
        policies = [
            PolicyEntry(name=model.name, description=model.note, takes=tuple(model.takes)) for model in policy_choices()
        ]
        entries = ModelList(
            policies=tuple(policies),
            readers=tuple(map(_reader_entry, reader_choices())),
            cached=tuple(map(_cached_entry, cached)),
            catalog=tuple(catalog),
        )
        print_json("models", entries)
        return
    for model in (*policy_choices(), *reader_choices(), *cached):
        print(clean(f"{model.name:<48} {model.facts()}"))
    if not cached:
        print(f"no models in the cache {clean(str(hub_cache()))}")
    print("\nthe models of the papers, converted for MLX; `rashomon models get ID` fetches one:")
    _print_catalog((model for model in catalog if model.benchmarks), "rows of")
    print("\nother models in wide use; ? marks sizes from memory:")
    _print_catalog((model for model in catalog if not model.benchmarks), "")
    print(
        "\n`rashomon models --for` recommends three of them for this machine, `--for 16GB` for a Mac with that memory."
    )


def _reader_entry(model: ModelChoice) -> ReaderEntry:
    return ReaderEntry(
        name=model.name, description=READERS[model.name], takes=tuple(model.takes), problem=model.problem
    )


def _cached_entry(model: ModelChoice) -> CachedEntry:
    return CachedEntry(
        name=model.name,
        kind=None if model.problem else model.kind,
        quantisation=model.quantisation,
        bytes=model.weights_bytes,
        fits=model.fits,
        takes=tuple(model.takes),
        family=model.family,
        note=model.note,
        problem=model.problem,
    )


def catalog_entry(model: CatalogModel, fetched: Container[str]) -> CatalogEntry:
    """Return a model of the catalog; ``memory`` is what it needs with a flat allowance for its requests."""
    return CatalogEntry(
        name=model.id,
        base=model.base,
        quantisation=model.quantisation,
        benchmarks=tuple(model.benchmarks),
        bytes=model.weights_bytes,
        memory=required_memory(model.weights_bytes),
        smallest_mac=smallest_mac(model.weights_bytes),
        licence=model.licence,
        released=model.released,
        checked=model.checked,
        caution=model.caution,
        fetched=model.id in fetched,
        fits=memory_fit(model.weights_bytes).ok,
    )


def _print_catalog(models: Iterable[CatalogEntry], heading: str) -> None:
    print(f"{'':<48} {'weights':>8} {'memory':>8}  {'Mac':<8} {'':<12} {heading}".rstrip())
    for model in models:
        mac = f"{model.smallest_mac} GB" if model.smallest_mac else "-"
        state = "fetched" if model.fetched else "not fetched" if model.fits else "too large"
        line = (
            f"{model.name:<48} {size(model.bytes):>8} {size(model.memory):>8}  "
            f"{mac:<8} {state:<12} {', '.join(model.benchmarks)}{'' if model.checked else '?'}"
        )
        print(line.rstrip())
        if model.caution:
            print(f"{'':<48} {model.caution}")


def judges(*, as_json: bool) -> None:
    """Print the rule-based judges, the benchmarks with a rubric for judging by a model, and the results of checks."""
    _warn_of_broken(JUDGES)
    checks = {check.judge: _check_entry(check) for check in reversed(current_checks())}
    rules = [
        RuleJudgeEntry(
            name=judge.name,
            version=judge.version,
            benchmarks=benchmarks_of(judge),
            description=judge.description,
            check=checks.pop(judge.id, None),
        )
        for judge in working_judges()
    ]
    rubrics = [
        RubricEntry(
            name=rubric.name, version=str(rubric.version), benchmark=benchmark.name, labels=tuple(rubric.labels)
        )
        for benchmark in working_benchmarks()
        if (rubric := benchmark.rubric) is not None
    ]
    if as_json:
        checked = [CheckedModelJudge(id=without_folders(judge), check=check) for judge, check in checks.items()]
        print_json("judges", JudgeList(rules=tuple(rules), rubrics=tuple(rubrics), checked=tuple(checked)))
        return
    for rule in rules:
        print(f"{f'{rule.name}@{rule.version}':<12} {', '.join(rule.benchmarks)}: {rule.description}")
        if rule.check:
            print(f"{'':<12} {rule.check.sentence}")
    for entry in rubrics:
        print(f"MODEL        {entry.benchmark}: any model, which answers with one of {', '.join(entry.labels)}")
    print(
        "MODEL is a folder, a Hub id in the cache, openai:NAME, azure:DEPLOYMENT, anthropic:NAME, gemini:NAME or "
        "endpoint:NAME@URL."
    )
    for judge, check in checks.items():
        print(clean(f"{judge} {check.sentence}"))
    if not checks and not any(rule.check for rule in rules):
        print("`rashomon judges check JUDGE` examines a judge of cmc-bench by labelled answers.")


def _check_entry(check: JudgeCheck) -> JudgeCheckEntry:
    return JudgeCheckEntry(
        at=check.at, answers=check.answers, labelled=check.labelled, right=check.right, sentence=str(check)
    )
