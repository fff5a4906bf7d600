"""Export to Inspect's log format, version 2: a zip of JSON files with the suffix ``.eval``, for ``inspect view``.

A label that is right under its condition scores "C", any other label "I", and an answer with nothing to label "N". An answer
that the judge failed on, or leaves undecided, has no score. Images are previews; the media themselves are named by sha256. A
repeat is an epoch.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from app.exports.export_input import Export, ExportedRun, Files, headline_metrics, media_of, score_of
from app.exports.tabular_export import run_json
from app.json_output.json_envelope import plain
from app.report.samples.sample_rows import sample_to_json
from app.report.samples.thumbnails import Thumbnail
from benchmarks.protocols.repeats import split_repeat
from benchmarks.vocabulary import Generation, Media, Record, Verdict, digest

_VERSION = 2
_STOPPED = {"stop": "stop", "length": "max_tokens", "error": "unknown"}


def to_inspect_files(export: Export) -> Files:
    """Return ``RUN.eval`` for each run."""
    return {f"{run.file_name}.eval": _log(export, run) for run in export.runs}


def _log(export: Export, run: ExportedRun) -> bytes:
    samples = [_sample(export, run, record) for record in run.records]
    spec, plan = _spec(export, run), _plan(run)
    summaries = [_summary(log_sample) for log_sample in samples]
    parts: dict[str, Any] = {"_journal/start.json": {"version": _VERSION, "eval": spec, "plan": plan}}
    parts |= {f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample for sample in samples}
    parts |= {"_journal/summaries/1.json": summaries, "summaries.json": summaries}
    parts["header.json"] = {
        "version": _VERSION,
        "status": "cancelled" if run.outcomes["pending"] else "success",
        "eval": spec,
        "plan": plan,
        "results": _results(export, run),
        "stats": _stats(export, run),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=5) as archive:
        for name, value in parts.items():
            # A ZipInfo without a date, so that the same run gives the same bytes.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return out.getvalue()


def _spec(export: Export, run: ExportedRun) -> dict[str, Any]:
    key = digest([run.name, dict(run.identity)])
    names = list(dict.fromkeys(_name_and_epoch(run, record)[0] for record in run.records))
    return {
        "eval_id": key[:22],
        "run_id": key[22:44],
        "task_id": key[42:64],
        "created": _time(export, run),
        "task": export.benchmark.name,
        "task_version": 1,
        "task_args": {"prompt_set": run.spec["prompt_set"], "conditions": list(run.spec["conditions"])},
        "dataset": {
            "name": export.benchmark.name,
            "samples": len(names),
            "sample_ids": names,
            "shuffled": False,
        },
        "model": str(run.spec["model"]),
        "model_generate_config": _decoding(run),
        "config": {
            "limit": run.spec["limit"],
            "epochs": run.spec.get("repeats", 1),
            "fail_on_error": False,
            "log_images": True,
        },
        "packages": run.versions,
        "metadata": plain(run_json(run, canonical=export.options.canonical)),
    }


def _plan(run: ExportedRun) -> dict[str, Any]:
    return {
        "name": "plan",
        "steps": [{"solver": str(run.identity.get("protocol", "direct")), "params": {}}],
        "config": _decoding(run),
    }


def _decoding(run: ExportedRun) -> dict[str, Any]:
    decoding = run.spec["decoding"]
    return {key: decoding[key] for key in ("max_tokens", "temperature", "top_p")} | {"seed": run.spec["seed"]}


def _results(export: Export, run: ExportedRun) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, cell in headline_metrics(export, run).items():
        around = {"low": cell.low, "high": cell.high, "sd": cell.sd, "n": cell.n}
        metrics[name] = {"name": name, "value": cell.value, "params": {}, "metadata": around}
    scored = sum(score_of(export.benchmark, run.judge, record) is not None for record in run.records)
    score = {
        "name": run.judge,
        "scorer": run.judge,
        "scored_samples": scored,
        "unscored_samples": len(run.records) - scored,
        "params": {},
        "metrics": metrics,
        "metadata": {"outcomes": dict(sorted(run.outcomes.items())), "unparsed": run.outcomes["unparsed"]},
    }
    completed = len(run.records) - run.outcomes["pending"] - run.outcomes["error"]
    return {"total_samples": len(run.records), "completed_samples": completed, "scores": [score]}


def _stats(export: Export, run: ExportedRun) -> dict[str, Any]:
    return {
        "started_at": _time(export, run),
        "completed_at": _time(export, run),
        "model_usage": _usage(export, run, [generation for record in run.records for generation in record.generations]),
    }


def _sample(export: Export, run: ExportedRun, record: Record) -> dict[str, Any]:
    instance = record.instance
    sample = sample_to_json(record, canonical=export.options.canonical)
    model, usage = str(run.spec["model"]), _usage(export, run, record.generations)
    prompt = {"role": "user", "content": _content(record, export.thumbnails)}
    answers = [
        {"role": "assistant", "content": generation.text, "source": "generate", "model": model}
        for generation in record.generations
    ]
    scores = {
        judge: _score(verdict, score_of(export.benchmark, judge, record))
        for judge, verdict in record.verdicts.items()
        if verdict.status not in ("undecided", "judge-failed")
    }
    name, epoch = _name_and_epoch(run, record)
    log_sample: dict[str, Any] = {
        "id": name,
        "epoch": epoch,
        "input": [prompt],
        "target": [f"{key}: {value}" for key, values in instance.references.items() for value in values] or "",
        "messages": [prompt, *answers],
        "output": {
            "model": model,
            "choices": [
                {"message": answers[-1], "stop_reason": _STOPPED[record.answer.finish_reason]}
            ] if record.answer else [],
            "usage": usage.get(model),
        },
        "scores": scores,
        "metadata": {
            "condition": instance.condition,
            "group": instance.group,
            "outcome": record.outcome(run.judge),
            "strata": dict(instance.strata),
            "media": [media.name for media in media_of(record)],
            **{key: sample[key] for key in ("question", "references", "steps", "verdicts")},
        },
        "model_usage": usage,
    }  # fmt: skip
    if record.answer is not None and record.answer.finish_reason == "error":
        message = record.answer.error or "error"
        log_sample["error"] = {"message": message, "traceback": message, "traceback_ansi": message}
    return log_sample


def _name_and_epoch(run: ExportedRun, record: Record) -> tuple[str, int]:
    return split_repeat(record.instance.id) if run.spec.get("repeats", 1) > 1 else (record.instance.id, 1)


def _content(record: Record, thumbnails: Mapping[str, Thumbnail]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in record.instance.parts:
        if not isinstance(part, Media):
            content.append({"type": "text", "text": part.text})
        elif part.modality == "image" and (picture := thumbnails[part.sha256].picture):
            content.append({"type": "image", "image": picture, "detail": "auto"})
        else:
            content.append({"type": "text", "text": f"[{part.modality.upper()} {part.sha256}]"})
    return content


def _score(verdict: Verdict, score: float | None) -> dict[str, Any]:
    value = "N" if verdict.label is None or score is None else "C" if score == 1 else "I"
    metadata = {"status": verdict.status, "label": verdict.label, "flags": list(verdict.flags), "raw": verdict.raw}
    return {"value": value, "answer": verdict.label or "", "explanation": verdict.reason, "metadata": metadata}


def _summary(log_sample: Mapping[str, Any]) -> dict[str, Any]:
    texts = [part for part in log_sample["input"][0]["content"] if part["type"] == "text"]
    keys = ("id", "epoch", "target", "scores", "model_usage")
    return {
        **{key: log_sample[key] for key in keys},
        "input": [{"role": "user", "content": texts or [{"type": "text", "text": "(Image)"}]}],
        "metadata": {key: log_sample["metadata"][key] for key in ("condition", "outcome")},
        "completed": bool(log_sample["output"]["choices"]),
        "message_count": len(log_sample["messages"]),
        **({"error": log_sample["error"]["message"]} if "error" in log_sample else {}),
    }


def _usage(export: Export, run: ExportedRun, generations: Sequence[Generation]) -> dict[str, dict[str, int]]:
    """Return the tokens of the run's model by its name; none in a canonical export, as equal answers may differ in them."""
    if export.options.canonical:
        return {}
    prompt_tokens = sum(generation.prompt_tokens or 0 for generation in generations)
    completion_tokens = sum(generation.completion_tokens or 0 for generation in generations)
    tokens = {
        "input_tokens": prompt_tokens,
        "output_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return {str(run.spec["model"]): tokens}


def _time(export: Export, run: ExportedRun) -> str:
    return datetime.fromtimestamp(0 if export.options.canonical else run.created, UTC).isoformat(timespec="seconds")
