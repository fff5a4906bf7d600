"""``rashomon benchmarks``, ``models`` and ``judges``: what there is."""

from __future__ import annotations

import json
from typing import Any

from app.report.text import clean
from app.store.workspace import Workspace
from benchmarks.base import benchmark_names, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError
from judges.base import get_judge, judge_names


def benchmarks(workspace: Workspace, *, as_json: bool) -> None:
    """Print the benchmarks, their sources, conditions and prompt sets, and whether the workspace holds a build."""
    found: list[dict[str, Any]] = []
    for name in benchmark_names():
        benchmark = get_benchmark(name)
        folder = workspace.build_folder(name)
        found.append(
            {
                "name": name,
                "title": benchmark.title,
                "paper": benchmark.paper,
                "conditions": list(benchmark.conditions),
                "labels": list(benchmark.labels),
                "prompt_sets": dict(benchmark.prompt_sets),
                "sources": {source.name: source.description for source in benchmark.sources},
                "answer_formats": dict(benchmark.answer_formats),
                "build": str(folder) if folder.exists() else None,
                "state": _build_state(workspace, name),
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


def _build_state(workspace: Workspace, name: str) -> str:
    folder = workspace.build_folder(name)
    if not folder.exists():
        return f"not built here yet: rashomon build {name} --source ..."
    try:
        build = Build.open(folder)
    except RashomonError as error:
        return str(error)
    return f"built: {build.manifest['instances']} rows in {folder}"


def models(*, as_json: bool) -> None:
    """Print the policy baselines, and the models in the Hugging Face cache with whether each fits in memory."""
    from mlx_backends.memory import fits
    from mlx_backends.models import cached_models, hub_cache
    from mlx_backends.policy import policy_names

    found: list[dict[str, Any]] = [{"name": name, "kind": "policy baseline", "fits": True} for name in policy_names()]
    for model in cached_models():
        fit = fits(model.weights_bytes) if model.problem is None else None
        found.append(
            {
                "name": model.name,
                "kind": f"{model.architecture} (text only)" if model.engine == "mlx-lm" else model.architecture,
                "quantisation": model.quantisation,
                "bytes": model.weights_bytes,
                "fits": fit.ok if fit else None,
                "note": fit.sentence if fit else model.problem,
            }
        )
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for one in found:
        facts = [str(one[key]) for key in ("kind", "quantisation", "note") if one.get(key)]
        print(clean(f"{one['name']:<48} {', '.join(facts)}"))
    if not any("bytes" in one for one in found):
        print(
            f"no models in {clean(str(hub_cache()))}; `hf download mlx-community/Qwen3-VL-4B-Instruct-4bit` fetches one."
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
