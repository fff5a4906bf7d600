"""Export to the layout of lm-evaluation-harness: a folder a model, ``results_TIME.json`` and ``samples_TASK_TIME.jsonl``.

A condition is a task. An answer that no table counts has ``acc`` null, so that no script counts it as right or wrong; one with
nothing to label is wrong if the benchmark's tables count it as wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.exports.export_input import Export, ExportedRun, Files, headline_metrics, score_of
from app.exports.tabular_export import run_json
from app.json_output.json_envelope import plain
from app.report.samples.sample_rows import prompt_text
from benchmarks.base import Benchmark
from benchmarks.text.answer_text import visible_answer
from benchmarks.untrusted.file_names import name_key
from benchmarks.vocabulary import Estimate, Record

_METRIC = "acc"


def to_lm_eval_files(export: Export) -> Files:
    """Return ``lm-eval/MODEL/results_TIME.json`` and ``samples_TASK_TIME.jsonl`` for each run and condition."""
    files: Files = {}
    for run in export.runs:
        stamp = datetime.fromtimestamp(0 if export.options.canonical else run.created, UTC).strftime(
            "%Y-%m-%dT%H-%M-%S.%f"
        )
        # Scripts read one model per folder, so a second run of a model needs its own.
        is_only_run = sum(name_key(other.slug) == name_key(run.slug) for other in export.runs) == 1
        folder = f"lm-eval/{run.slug if is_only_run else run.file_name}"
        tasks = _tasks(export.benchmark, run)
        files[f"{folder}/results_{stamp}.json"] = _dumps(_results(export, run, tasks), indent=2)
        for task, records in tasks.items():
            lines = (_dumps(_sample(export.benchmark, run, record)) for record in records)
            files[f"{folder}/samples_{task}_{stamp}.jsonl"] = "".join(f"{line}\n" for line in lines)
    return files


def _tasks(benchmark: Benchmark, run: ExportedRun) -> dict[str, list[Record]]:
    tasks: dict[str, list[Record]] = {}
    for record in run.records:
        tasks.setdefault(f"{benchmark.name}_{record.instance.condition}", []).append(record)
    return tasks


def _results(export: Export, run: ExportedRun, tasks: Mapping[str, list[Record]]) -> dict[str, Any]:
    name = export.benchmark.name
    results: dict[str, Any] = {name: {"alias": name, **_main(export, run)}}
    effective = {}
    for task in tasks:
        condition = task.removeprefix(f"{name}_")
        accuracy = _accuracy(export, run, condition)
        results[task] = {"alias": condition, **_with_error(_METRIC, accuracy)}
        effective[task] = accuracy.n
    decoding = dict(run.spec["decoding"])
    return {
        "results": results,
        "group_subtasks": {name: list(tasks)},
        "groups": {name: results[name]},
        "configs": {task: _config(task, decoding) for task in tasks},
        "versions": dict.fromkeys((name, *tasks), 1),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {task: {_METRIC: True} for task in tasks},
        "n-samples": {
            task: {"original": len(records), "effective": effective[task]} for task, records in tasks.items()
        },
        "config": {
            "model": run.identity.get("engine"),
            "model_args": {"pretrained": run.spec["model"], "revision": run.identity.get("model revision")},
            "batch_size": 1,
            "device": run.identity.get("device"),
            "limit": run.spec["limit"],
            "gen_kwargs": decoding,
            "random_seed": run.spec["seed"],
        },
        "date": 0.0 if export.options.canonical else run.created,
        "model_source": run.identity.get("engine"),
        "model_name": run.spec["model"],
        "model_name_sanitized": run.slug,
        "rashomon": plain(run_json(run, canonical=export.options.canonical)),
    }


def _main(export: Export, run: ExportedRun) -> dict[str, Any]:
    """Return the run's metrics in the main table."""
    metrics: dict[str, Any] = {}
    for name, cell in headline_metrics(export, run).items():
        metrics |= _with_error(name, cell)
    return metrics


def _accuracy(export: Export, run: ExportedRun, condition: str) -> Estimate:
    """Return the accuracy under a condition, with the interval that the tables have."""
    assert export.inputs is not None
    benchmark, judge = export.benchmark, run.judge
    share, _ = export.inputs.runs[run.label].mean_score(
        lambda kind: benchmark.counted_score(kind, judge) if kind.condition == condition else None
    )
    return share


def _with_error(name: str, cell: Estimate) -> dict[str, Any]:
    """Return a metric with its standard error: half the width of its 95% interval by 1.96."""
    error: float | str = "N/A" if cell.sd is None else cell.sd
    if cell.low is not None and cell.high is not None and cell.sd is None:
        error = (cell.high - cell.low) / (2 * 1.96)
    return {f"{name},none": "N/A" if cell.value is None else cell.value, f"{name}_stderr,none": error}


def _config(task: str, decoding: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task": task,
        "output_type": "generate_until",
        "metric_list": [{"metric": _METRIC, "aggregation": "mean", "higher_is_better": True}],
        "generation_kwargs": {"until": [], **decoding},
        "repeats": 1,
        "num_fewshot": 0,
    }


def _sample(benchmark: Benchmark, run: ExportedRun, record: Record) -> dict[str, Any]:
    instance, verdict = record.instance, record.verdicts.get(run.judge)
    prompt = prompt_text(record)
    target = " | ".join(f"{key}: {'; '.join(values)}" for key, values in instance.references.items())
    doc = {
        "id": instance.id,
        "group": instance.group,
        "condition": instance.condition,
        "question": instance.question,
        "references": {key: list(values) for key, values in instance.references.items()},
        "strata": dict(instance.strata),
    }
    score = score_of(benchmark, run.judge, record)
    return {
        # The harness numbers its documents; an id also pairs runs of different subsets correctly.
        "doc_id": instance.id,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": dict(run.spec["decoding"])}},
        "resps": [[record.answer.text if record.answer else ""]],
        "filtered_resps": [visible_answer(record.answer.text) if record.answer else ""],
        "filter": "none",
        "metrics": [_METRIC],
        "doc_hash": _hash(_dumps(doc)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(target),
        _METRIC: score,
        "outcome": record.outcome(run.judge),
        "label": verdict.label if verdict else None,
        "reason": verdict.reason if verdict else None,
    }


def _dumps(value: Any, indent: int | None = None) -> str:
    # In ASCII, since many readers of JSON lines split at other characters than a newline.
    return json.dumps(value, indent=indent)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
