"""Inspect's log format, version 2: a zip of JSON files with the ending ``.eval``, which ``inspect view`` opens.

Written with the standard library. A label that is accurate under its condition scores "C", another one "I"; "N" is an answer
with nothing to label. What a judge failed on has no score. Pictures are previews, the media themselves are named by sha256.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.exports.plain import run_to_json
from app.exports.source import Export, ExportedRun, Files, headline, media_of, right
from app.exports.thumbnails import Thumbnail
from app.report.samples import sample
from benchmarks.base import Benchmark, Generation, Media, Record, Verdict, digest

_VERSION = 2
_STOPPED = {"stop": "stop", "length": "max_tokens", "error": "unknown"}


def to_inspect_files(given: Export) -> Files:
    """``RUN.eval`` for each run."""
    return {f"{run.file_name}.eval": _log(given, run) for run in given.runs}


def _log(given: Export, run: ExportedRun) -> bytes:
    samples = [_sample(given, run, record) for record in run.records]
    spec, plan = _spec(given, run), _plan(run)
    summaries = [_summary(each) for each in samples]
    parts: dict[str, Any] = {"_journal/start.json": {"version": _VERSION, "eval": spec, "plan": plan}}
    parts |= {f"samples/{each['id']}_epoch_1.json": each for each in samples}
    parts |= {"_journal/summaries/1.json": summaries, "summaries.json": summaries}
    parts["header.json"] = {
        "version": _VERSION,
        "status": "cancelled" if run.outcomes["pending"] else "success",
        "eval": spec,
        "plan": plan,
        "results": _results(given, run),
        "stats": _stats(given, run),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=5) as whole:
        for name, value in parts.items():
            # No time but 1980, so that the same run gives the same bytes.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            whole.writestr(entry, json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return out.getvalue()


def _spec(given: Export, run: ExportedRun) -> dict[str, Any]:
    key = digest([run.name, dict(run.identity)])
    return {
        "eval_id": key[:22],
        "run_id": key[22:44],
        "task_id": key[42:64],
        "created": _time(given, run),
        "task": given.benchmark.name,
        "task_version": 1,
        "task_args": {"prompt_set": run.spec["prompt_set"], "conditions": list(run.spec["conditions"])},
        "dataset": {
            "name": given.benchmark.name,
            "samples": len(run.records),
            "sample_ids": [record.instance.id for record in run.records],
            "shuffled": False,
        },
        "model": str(run.spec["model"]),
        "model_generate_config": _decoding(run),
        "config": {"limit": run.spec["limit"], "epochs": 1, "fail_on_error": False, "log_images": True},
        "packages": run.versions,
        "metadata": run_to_json(run, canonical=given.canonical),
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


def _results(given: Export, run: ExportedRun) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, cell in headline(given, run).items():
        around = {"low": cell.low, "high": cell.high, "sd": cell.sd, "n": cell.n}
        metrics[name] = {"name": name, "value": cell.value, "params": {}, "metadata": around}
    scored = sum(right(given.benchmark, run, record) is not None for record in run.records)
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


def _stats(given: Export, run: ExportedRun) -> dict[str, Any]:
    usage = _usage([each for record in run.records for each in record.generations])
    return {
        "started_at": _time(given, run),
        "completed_at": _time(given, run),
        "model_usage": {str(run.spec["model"]): usage},
    }


def _sample(given: Export, run: ExportedRun, record: Record) -> dict[str, Any]:
    instance = record.instance
    whole = sample(record, canonical=given.canonical)
    model = str(run.spec["model"])
    asked = {"role": "user", "content": _content(record, given.shown)}
    answers = [
        {"role": "assistant", "content": each.text, "source": "generate", "model": model} for each in record.generations
    ]
    scores = {
        judge: _score(given.benchmark, instance.condition, verdict)
        for judge, verdict in record.verdicts.items()
        if verdict.status != "judge-failed"
    }
    made: dict[str, Any] = {
        "id": instance.id,
        "epoch": 1,
        "input": [asked],
        "target": [f"{key}: {value}" for key, values in instance.references.items() for value in values] or "",
        "messages": [asked, *answers],
        "output": {
            "model": model,
            "choices": [
                {"message": answers[-1], "stop_reason": _STOPPED[record.answer.finish_reason]}
            ] if record.answer else [],
            "usage": _usage(record.generations),
        },
        "scores": scores,
        "metadata": {
            "condition": instance.condition,
            "group": instance.group,
            "outcome": record.outcome(run.judge),
            "strata": dict(instance.strata),
            "media": [media.name for media in media_of(record)],
            **{key: whole[key] for key in ("question", "references", "steps", "verdicts")},
        },
        "model_usage": {model: _usage(record.generations)},
    }  # fmt: skip
    if record.answer is not None and record.answer.finish_reason == "error":
        message = record.answer.error or "error"
        made["error"] = {"message": message, "traceback": message, "traceback_ansi": message}
    return made


def _content(record: Record, shown: Mapping[str, Thumbnail]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in record.instance.parts:
        if not isinstance(part, Media):
            found.append({"type": "text", "text": part.text})
        elif part.modality == "image" and (picture := shown[part.sha256].picture):
            found.append({"type": "image", "image": picture, "detail": "auto"})
        else:
            found.append({"type": "text", "text": f"[{part.modality.upper()} {part.sha256}]"})
    return found


def _score(benchmark: Benchmark, condition: str, verdict: Verdict) -> dict[str, Any]:
    value = "N" if verdict.label is None else "C" if benchmark.correct(condition, verdict.label) else "I"
    told = {"status": verdict.status, "label": verdict.label, "flags": list(verdict.flags), "raw": verdict.raw}
    return {"value": value, "answer": verdict.label or "", "explanation": verdict.reason, "metadata": told}


def _summary(made: Mapping[str, Any]) -> dict[str, Any]:
    texts = [each for each in made["input"][0]["content"] if each["type"] == "text"]
    kept = ("id", "epoch", "target", "scores", "model_usage")
    return {
        **{key: made[key] for key in kept},
        "input": [{"role": "user", "content": texts or [{"type": "text", "text": "(Image)"}]}],
        "metadata": {key: made["metadata"][key] for key in ("condition", "outcome")},
        "completed": bool(made["output"]["choices"]),
        "message_count": len(made["messages"]),
        **({"error": made["error"]["message"]} if "error" in made else {}),
    }


def _usage(generations: list[Generation] | tuple[Generation, ...]) -> dict[str, int]:
    into = sum(each.prompt_tokens or 0 for each in generations)
    out = sum(each.completion_tokens or 0 for each in generations)
    return {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}


def _time(given: Export, run: ExportedRun) -> str:
    return datetime.fromtimestamp(0 if given.canonical else run.created, UTC).isoformat(timespec="seconds")
