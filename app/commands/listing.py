"""``rashomon benchmarks``, ``models`` and ``judges``: what there is."""

from __future__ import annotations

import json
from typing import Any

from app.new_run.choices import benchmark_choices, cached_choices, policy_choices
from app.store.workspace import Workspace
from app.text.escape import clean, size
from benchmarks.base import benchmark_names, get_benchmark
from judges.base import get_judge, judge_names
from mlx_backends.models.catalog import curated
from mlx_backends.models.discovery import hub_cache
from mlx_backends.models.memory_estimate import fits, need, smallest_mac


def benchmarks(workspace: Workspace, *, as_json: bool) -> None:
    """Print the benchmarks, their sources, conditions and prompt sets, and whether the workspace holds a build."""
    found: list[dict[str, Any]] = []
    for choice in benchmark_choices(workspace):
        benchmark = choice.benchmark
        found.append(
            {
                "name": benchmark.name,
                "title": benchmark.title,
                "paper": benchmark.paper,
                "conditions": list(benchmark.conditions),
                "labels": list(benchmark.labels),
                "prompt_sets": dict(benchmark.prompt_sets),
                "sources": {source.name: source.description for source in benchmark.sources},
                "answer_formats": dict(benchmark.answer_formats),
                "build": str(choice.folder) if choice.folder.exists() else None,
                "state": choice.state,
            }
        )
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for one in found:
        print(f"{one['name']}  {one['title']}\n    {one['paper']}")
        print(f"    {clean(one['state'])}")
        print(f"    conditions:  {', '.join(one['conditions'])}")
        print(f"    labels:      {', '.join(one['labels'])}")
        for kind in ("prompt_sets", "sources", "answer_formats"):
            if not one[kind]:
                continue
            print(f"    {kind.replace('_', ' ')}:")
            for name, description in one[kind].items():
                print(f"        {name:<16} {description}")


def models(*, as_json: bool) -> None:
    """Print the policy baselines, the models of the cache with whether each fits in memory, and those worth fetching."""
    found = cached_choices()
    here = {each.name for each in found if not each.problem}
    if as_json:
        told: list[dict[str, Any]] = [
            {"name": each.name, "kind": each.kind, "fits": True, "takes": list(each.takes)} for each in policy_choices()
        ]
        told += [
            {
                "name": each.name,
                "kind": None if each.problem else each.kind,
                "quantisation": each.quantisation,
                "bytes": each.weights_bytes or 0,
                "fits": each.fits,
                "takes": list(each.takes),
                "note": each.problem or each.note,
            }
            for each in found
        ]
        told += [
            {
                "name": each.id,
                "kind": "curated",
                "base": each.base,
                "quantisation": each.quantisation,
                "benchmarks": list(each.benchmarks),
                "bytes": each.weights_bytes,
                "memory": need(each.weights_bytes),
                "smallest_mac": smallest_mac(each.weights_bytes),
                "fits": fits(each.weights_bytes).ok,
                "fetched": each.id in here,
            }
            for each in curated()
        ]
        print(json.dumps(told, indent=2))
        return
    for each in (*policy_choices(), *found):
        print(clean(f"{each.name:<48} {each.facts()}"))
    if not found:
        print(f"no models in {clean(str(hub_cache()))}")
    print("\nof the papers, converted for MLX; `rashomon models get ID` fetches one:")
    print(f"{'':<48} {'weights':>8} {'memory':>8}  {'Mac':<8} {'':<12} rows of")
    for one in curated():
        mac = smallest_mac(one.weights_bytes)
        state = "fetched" if one.id in here else "not fetched" if fits(one.weights_bytes).ok else "too large"
        print(
            f"{one.id:<48} {size(one.weights_bytes):>8} {size(need(one.weights_bytes)):>8}  "
            f"{f'{mac} GB' if mac else '-':<8} {state:<12} {', '.join(one.benchmarks)}"
        )


def judges(*, as_json: bool) -> None:
    """Print the judges that need no model, and which benchmarks have a rubric for one that is."""
    found = [get_judge(name) for name in judge_names()]
    rubrics = {name: rubric for name in benchmark_names() if (rubric := get_benchmark(name).rubric) is not None}
    if as_json:
        told = [
            {
                "name": judge.name,
                "version": judge.version,
                "benchmarks": list(judge.benchmarks),
                "description": judge.description,
            }
            for judge in found
        ]
        told += [
            {
                "name": "MODEL",
                "version": f"{rubric.name}-{rubric.version}",
                "benchmarks": [name],
                "description": f"any model, asked for one of {', '.join(rubric.labels)}",
            }
            for name, rubric in rubrics.items()
        ]
        print(json.dumps(told, indent=2))
        return
    for judge in found:
        print(f"{judge.id:<12} {', '.join(judge.benchmarks)}: {judge.description}")
    for name, rubric in rubrics.items():
        print(f"MODEL        {name}: any model, asked for one of {', '.join(rubric.labels)}")
    print(
        "MODEL is a folder, a Hub id in the cache, openai:NAME, azure:DEPLOYMENT, anthropic:NAME, gemini:NAME or "
        "endpoint:NAME@URL."
    )
