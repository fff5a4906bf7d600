"""Quality control (section "Quality Verification", Appendix E) by two independent annotators and a verifier.

The verifier decides where the annotators disagree. The labels are in the product folder: ``labels/annotator-1.jsonl``
and ``labels/annotator-2.jsonl``, and ``labels/adjudication.jsonl`` for the verifier. A row is ``{"sample": id,
"verdict": "accept" or "reject", "level": "L1", "L2" or "L3"}``; the level is optional.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.crosscheck_bench.crosscheck_constants import LEVELS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.errors import SourceError
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import is_present
from benchmarks.stats.intervals import cohen_kappa
from benchmarks.vocabulary import Estimate, digest

FOLDER = "labels"
ANNOTATORS = ("annotator-1.jsonl", "annotator-2.jsonl")
ADJUDICATION = "adjudication.jsonl"
VERDICTS = ("accept", "reject")

REVIEW_SHARE = 0.1
"""The share of each task that the paper has labelled twice."""

_NO_PAIRS = "no sample is labelled by both"
_ONE_LABEL = "both give all samples one and the same label, so agreement by chance is 1 too"


@dataclass(frozen=True, slots=True)
class AnnotatorLabel:
    """One person's label of a sample; ``level`` is "" if not given."""

    verdict: str
    level: str = ""


Labels = Mapping[str, AnnotatorLabel]


@dataclass(frozen=True, slots=True)
class Review:
    """The excluded samples by id with the reason, and the annotators' report for the manifest."""

    left_out: Mapping[str, str]
    report: Mapping[str, Any]


def review(folder: Path, samples: Sequence[CrossCheckSample], bad_row: Callable[[str, str], None]) -> Review | None:
    """Return the outcome of the labels in ``folder``, or None if there are none.

    ``bad_row`` receives the place of every unusable row and the reason. Raises SourceError if only one annotator's file
    is present.
    """
    labels_folder = folder / FOLDER
    files = [name for name in ANNOTATORS if is_present(labels_folder / name)]
    if not files:
        return None
    if len(files) < len(ANNOTATORS):
        raise SourceError(f"{labels_folder} has only {files[0]}; quality control needs {' and '.join(ANNOTATORS)}.")
    by_id = {sample.id: sample for sample in samples}
    first, second, decided = (
        _read_labels(labels_folder / name, by_id, bad_row) for name in (*ANNOTATORS, ADJUDICATION)
    )
    doubly_labelled = [name for name in by_id if name in first and name in second]
    verdicts = [(first[name].verdict, second[name].verdict) for name in doubly_labelled]
    levels = [pair for name in doubly_labelled if all(pair := (first[name].level, second[name].level))]
    left_out = {
        name: why for name in by_id if (why := _exclusion_reason(first.get(name), second.get(name), decided.get(name)))
    }
    return Review(
        left_out,
        {
            "labelled_by_both": len(doubly_labelled),
            "labelled_by_one": len((first.keys() | second.keys()) - set(doubly_labelled)),
            "agreement": _estimate_to_json(agreement(verdicts)),
            "kappa": _estimate_to_json(kappa(verdicts, VERDICTS)),
            "levels": {
                "agreement": _estimate_to_json(agreement(levels)),
                "kappa": _estimate_to_json(kappa(levels, tuple(LEVELS))),
                "annotator_1_as_assigned": _estimate_to_json(_level_agreement(first, by_id)),
                "annotator_2_as_assigned": _estimate_to_json(_level_agreement(second, by_id)),
            },
            "adjudicated": sum(
                a != b and name in decided for name, (a, b) in zip(doubly_labelled, verdicts, strict=True)
            ),
            "undecided": sorted(name for name, why in left_out.items() if why == UNDECIDED),
            "left_out": dict(sorted(Counter(left_out.values()).items())),
        },
    )


BOTH_REJECT = "quality control: both annotators reject it"
UNDECIDED = "quality control: the annotators disagree and nobody has decided"
VERIFIER_REJECTS = "quality control: the annotators disagree and the verifier rejects it"
ONE_REJECTS = "quality control: one annotator rejects it and the other has not labelled it"


def kappa(pairs: Sequence[tuple[str, str]], labels: Sequence[str]) -> Estimate:
    """Return Cohen's kappa (Cohen 1960) of two annotators on the same samples; n/a with the reason if it is undefined."""
    import numpy as np

    counts = np.zeros((len(labels), len(labels)))
    for first, second in pairs:
        counts[labels.index(first), labels.index(second)] += 1
    value = float(cohen_kappa(counts))
    if math.isnan(value):
        return Estimate(None, n=len(pairs), reason=_ONE_LABEL if pairs else _NO_PAIRS)
    return Estimate(value, n=len(pairs))


def agreement(pairs: Sequence[tuple[str, str]]) -> Estimate:
    """Return the share of samples with the same label from both annotators."""
    if not pairs:
        return Estimate(None, reason=_NO_PAIRS)
    return Estimate(sum(first == second for first, second in pairs) / len(pairs), n=len(pairs))


def select_for_review(samples: Iterable[CrossCheckSample], seed: int) -> list[CrossCheckSample]:
    """Return a tenth of each task's samples, at least one, for two people to label: the stratified subset of Appendix E."""
    by_task: dict[str, list[CrossCheckSample]] = {}
    for sample in samples:
        by_task.setdefault(sample.task, []).append(sample)
    chosen_samples: list[CrossCheckSample] = []
    for task in by_task.values():
        ranked = sorted(task, key=lambda sample: digest([seed, "review", sample.id]))
        chosen_samples += ranked[: max(1, math.ceil(REVIEW_SHARE * len(task)))]
    return chosen_samples


def _exclusion_reason(
    first: AnnotatorLabel | None, second: AnnotatorLabel | None, decided: AnnotatorLabel | None
) -> str:
    verdicts = [label.verdict for label in (first, second) if label is not None]
    if "reject" not in verdicts:
        return ""
    if verdicts == ["reject", "reject"]:
        return BOTH_REJECT
    if decided is not None:
        return VERIFIER_REJECTS if decided.verdict == "reject" else ""
    return UNDECIDED if len(verdicts) > 1 else ONE_REJECTS


def _level_agreement(labels: Labels, by_id: Mapping[str, CrossCheckSample]) -> Estimate:
    """Return the share of samples to which a person gives the level of its task."""
    return agreement([(label.level, by_id[name].level) for name, label in labels.items() if label.level])


def _estimate_to_json(estimate: Estimate) -> dict[str, Any]:
    if estimate.value is None:
        return {"value": None, "n": estimate.n, "reason": estimate.reason}
    return {"value": round(estimate.value, 6), "n": estimate.n}


def _read_labels(
    file: Path, by_id: Mapping[str, CrossCheckSample], bad_row: Callable[[str, str], None]
) -> dict[str, AnnotatorLabel]:
    if not is_present(file):
        return {}
    labels: dict[str, AnnotatorLabel] = {}
    for number, row in read_json_lines(file):
        name, problem = _check_row(row, by_id, labels)
        if problem:
            bad_row(f"{FOLDER}/{file.name}:{number}", problem)
        else:
            labels[name] = AnnotatorLabel(row["verdict"], row.get("level") or "")
    return labels


def _check_row(row: Any, by_id: Mapping[str, CrossCheckSample], labels: Labels) -> tuple[str, str]:
    """Return the id of the sample that a row labels, and the problem with the row."""
    if not isinstance(row, dict):
        return "", "the line is not a JSON object"
    name = row.get("sample")
    if not isinstance(name, str) or name not in by_id:
        return "", "a label for a sample that is not in this build"
    if name in labels:
        return name, "repeated: a second label for one sample"
    if row.get("verdict") not in VERDICTS:
        return name, f"the verdict is not one of {', '.join(VERDICTS)}"
    if row.get("level") and row["level"] not in tuple(LEVELS):
        return name, f"the level is not one of {', '.join(LEVELS)}"
    return name, ""
