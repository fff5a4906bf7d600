"""Mistakes of the models on the first page of a report, with an example."""

from __future__ import annotations

from collections.abc import Iterator

from app.compare.runs.decision_scores import CUT_OFF, decided_score
from app.exports.export_input import media_of
from app.exports.report.report_document import Example
from app.exports.report.report_inputs import Evidence, single_source
from app.report.samples.sample_media import media_path, preview_media
from benchmarks.answer_behaviour import ACTS, act_of
from benchmarks.answers import AnswerKind
from benchmarks.stats.intervals import percent
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record, Text

_PICTURE_PIXELS = 320
_MOST_MISTAKES = 3
_MOST_OTHERS = 2
_LONGEST_PROMPT = 400
"""The most characters of a prompt in the example; of a longer one, it has the question."""

_LONGEST = 160
"""The most characters of a question, a source or an answer in the example."""

_SOURCES = ("image", "text", "audio", "video")
"""The names of references that are what a source says."""

_UNLABELLED = {
    "unparsed": "gives nothing that can be scored",
    "error": "fails with an error",
    "judge-failed": "gives an answer that could not be scored",
    CUT_OFF: "is cut off at the token limit",
}
_RIGHT = "right"
"""The outcome of an answer that the benchmark's tables count as right."""


def frequent_mistakes(evidence: Evidence, run: str) -> list[str]:
    """Return the most frequent mistake of a run under each condition, the most frequent first."""
    lines = []
    for condition in evidence.counted:
        outcomes = evidence.count(run, lambda kind, of=condition: _outcome(evidence, kind, of))  # type: ignore[misc]
        total = outcomes.total()
        wrong = [(count, label) for label, count in outcomes.items() if label != _RIGHT]
        if not wrong:
            continue
        (count, label), *rarer = sorted(wrong, reverse=True)
        situation = evidence.situation(condition)
        does = _does(evidence, label)
        others = sum(number for number, _ in rarer)
        rest = f", and is wrong in another way in {others}" if others else ""
        if len(rarer) == 1:
            rest = f", and {_does(evidence, rarer[0][1])} in {others}"
        sentence = f"{situation[:1].upper()}{situation[1:]}, it {does} {count:,} of {total:,} times"
        lines.append((-(count + others) / total, f"{sentence} ({percent(count / total)}){rest}."))
    lines.sort()
    return [line for _, line in lines[:_MOST_MISTAKES]]


def others_mistakes(evidence: Evidence) -> Iterator[str]:
    """Yield the most frequent mistake of each other model, of at most two."""
    others = [run.label for run in evidence.models if run.label != evidence.subject.label]
    for run in others[:_MOST_OTHERS]:
        if lines := frequent_mistakes(evidence, run):
            yield f"{run}: {lines[0][:1].lower()}{lines[0][1:]}"


def _does(evidence: Evidence, label: str) -> str:
    """Return what an answer with this label or outcome does, as a verb phrase."""
    return _UNLABELLED.get(label) or (evidence.scorecard and ACTS.get(label)) or evidence.behaviour(label)


def _outcome(evidence: Evidence, kind: AnswerKind, condition: str) -> str | None:
    if kind.condition != condition or single_source(kind):
        return None
    outcome = kind.outcome(evidence.judge)
    if outcome in ("pending", "undecided"):
        return None
    if evidence.scorecard and (act := act_of(kind, evidence.judge)):
        return _RIGHT if evidence.is_good(kind, act) else act
    if decided_score(kind, evidence.judge, evidence.benchmark) == 1:
        return _RIGHT
    if kind.finish_reason == "length":
        return CUT_OFF
    return kind.label(evidence.judge) if outcome == "labelled" else outcome


def find_example(evidence: Evidence) -> Example | None:
    """Return the shortest of the most frequent wrong answers; None if there is no wrong answer."""
    run = evidence.subject.label
    kinds = evidence.count(run, lambda kind: _wrong_kind(evidence, kind))
    if not kinds:
        return None
    most_frequent = max(sorted(kinds), key=lambda kind: (*_clarity(evidence, kind.partition(" ")[0]), kinds[kind]))
    exported = evidence.exported(run)
    candidates = (
        record
        for record in exported.records
        if record.outcome(exported.judge) == "labelled"
        and f"{record.instance.condition} {record.verdicts[exported.judge].label}" == most_frequent
    )
    record = min(candidates, key=lambda record: (_length(record), record.instance.id), default=None)
    if record is None:
        return None
    condition, _, label = most_frequent.partition(" ")
    answer = record.answer
    prompt = _prompt(record)
    lines = (
        [("Question", _clipped(record.instance.question))] if len(prompt) > _LONGEST_PROMPT else [("Prompt", prompt)]
    )
    lines += [
        (f"The {source} says", _clipped(" or ".join(values)))
        for source, values in record.instance.references.items()
        if values and source in _SOURCES
    ]
    if right := _right_value(evidence, record):
        lines.append(("Right would be", _clipped(right)))
    lines.append((f"{run} answers", _clipped(visible_answer(answer.text) if answer is not None else "")))
    lines.append(("So it", f"{evidence.behaviour(label)}, {evidence.situation(condition)}"))
    for media in media_of(record):
        preview = preview_media(media, media_path(exported.build, media), _PICTURE_PIXELS)
        if preview.picture is not None:
            return Example(tuple(lines), preview.picture, preview.facts, record.instance.id)
    return Example(tuple(lines), instance=record.instance.id)


def _wrong_kind(evidence: Evidence, kind: AnswerKind) -> str | None:
    """Return the condition and the label of a wrong answer."""
    if kind.condition not in evidence.counted or kind.outcome(evidence.judge) != "labelled" or single_source(kind):
        return None
    if kind.finish_reason == "length" or _outcome(evidence, kind, kind.condition) in (None, _RIGHT):
        return None
    return f"{kind.condition} {kind.label(evidence.judge)}"


def _clarity(evidence: Evidence, condition: str) -> tuple[bool, bool]:
    """Return what makes an example under a condition clear: a conflict, and one source that is right."""
    return condition in evidence.conflicts, bool(_right_source(evidence, condition))


def _right_source(evidence: Evidence, condition: str) -> str:
    """Return the source whose value is right under a condition; empty if there is no single one, or nobody said so."""
    if evidence.scorecard and condition in evidence.conflicts:
        return evidence.rule if evidence.rule in _SOURCES else ""
    sources = ("image", "text")
    right = [source for source in sources if _is_label_right(evidence, condition, source.upper())]
    return right[0] if len(right) == 1 else ""


def _is_label_right(evidence: Evidence, condition: str, label: str) -> bool:
    return label in evidence.benchmark.labels and evidence.benchmark.correct(condition, label)


def _right_value(evidence: Evidence, record: Record) -> str:
    """Return the value of the source that is right, else the right answer, else what a right answer does."""
    references, condition = record.instance.references, record.instance.condition
    if values := references.get(_right_source(evidence, condition)) or references.get("answer"):
        return " or ".join(values)
    if evidence.scorecard:
        return ""
    labels = [label for label in evidence.benchmark.behaviours if _is_label_right(evidence, condition, label)]
    return f"an answer that {' or '.join(map(evidence.behaviour, labels))}" if labels else ""


def _prompt(record: Record) -> str:
    """Return the prompt in one line, with a word for each medium."""
    parts = (part.text if isinstance(part, Text) else f"[{part.modality}]" for part in record.instance.parts)
    return " ".join("".join(parts).split())


def _length(record: Record) -> int:
    answer = record.answer
    return len(record.instance.question) + (0 if answer is None else len(visible_answer(answer.text)))


def _clipped(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
