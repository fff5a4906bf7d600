"""Quality control (section "Quality Verification", Appendix E): two annotators label samples independently, a third decides
where they disagree.

The labels lie in the products' folder: ``labels/annotator-1.jsonl`` and ``labels/annotator-2.jsonl``, and
``labels/adjudication.jsonl`` for the verifier. A row is ``{"sample": id, "verdict": "accept" or "reject", "level": "L1", "L2"
or "L3"}``, the level optional.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import Estimate, digest
from benchmarks.crosscheck_bench.constants import LEVELS
from benchmarks.crosscheck_bench.sample import CrossCheckSample
from benchmarks.errors import SourceError
from benchmarks.rows.files import json_lines
from benchmarks.stats.intervals import cohen_kappa

FOLDER = "labels"
ANNOTATORS = ("annotator-1.jsonl", "annotator-2.jsonl")
ADJUDICATION = "adjudication.jsonl"
VERDICTS = ("accept", "reject")

REVIEWED = 0.1
"""The share of each task that the paper has labelled twice."""

_NOBODY = "no sample is labelled by both"
_ONE_LABEL = "both give all samples one and the same label, so agreement by chance is 1 too"


@dataclass(frozen=True, slots=True)
class AnnotatorLabel:
    """What one person says of a sample; ``level`` is "" where none is given."""

    verdict: str
    level: str = ""


Labels = Mapping[str, AnnotatorLabel]


@dataclass(frozen=True, slots=True)
class Review:
    """Which samples are left out, by id, and why; and what the manifest says of the annotators."""

    left_out: Mapping[str, str]
    report: Mapping[str, Any]


def review(folder: Path, samples: Sequence[CrossCheckSample], bad_row: Callable[[str, str], None]) -> Review | None:
    """What the labels in ``folder`` say of the samples, or None where there are none.

    ``bad_row`` is told of every row that cannot be used: where, and why. Raises SourceError where one annotator's file is
    there without the other's.
    """
    place = folder / FOLDER
    there = [name for name in ANNOTATORS if (place / name).is_file()]
    if not there:
        return None
    if len(there) < len(ANNOTATORS):
        raise SourceError(f"{place} has {there[0]} alone; quality control needs {' and '.join(ANNOTATORS)}.")
    known = {sample.id: sample for sample in samples}
    first, second, decided = (_read(place / name, known, bad_row) for name in (*ANNOTATORS, ADJUDICATION))
    both = [name for name in known if name in first and name in second]
    verdicts = [(first[name].verdict, second[name].verdict) for name in both]
    levelled = [name for name in both if first[name].level and second[name].level]
    levels = [(first[name].level, second[name].level) for name in levelled]
    left_out = {name: why for name in known if (why := _left_out(first.get(name), second.get(name), decided.get(name)))}
    return Review(
        left_out,
        {
            "labelled_by_both": len(both),
            "labelled_by_one": len((first.keys() | second.keys()) - set(both)),
            "agreement": _number(agreement(verdicts)),
            "kappa": _number(kappa(verdicts, VERDICTS)),
            "levels": {
                "agreement": _number(agreement(levels)),
                "kappa": _number(kappa(levels, tuple(LEVELS))),
                "annotator_1_as_assigned": _number(_as_assigned(first, known)),
                "annotator_2_as_assigned": _number(_as_assigned(second, known)),
            },
            "adjudicated": sum(name in decided for name in both if first[name].verdict != second[name].verdict),
            "undecided": sorted(name for name, why in left_out.items() if why == UNDECIDED),
            "left_out": {why: sum(w == why for w in left_out.values()) for why in sorted(set(left_out.values()))},
        },
    )


BOTH_REJECT = "quality control: both annotators reject it"
UNDECIDED = "quality control: the annotators disagree and nobody has decided"
DECIDED = "quality control: the annotators disagree and the verifier rejects it"
ONE_REJECTS = "quality control: one annotator rejects it and the other has not labelled it"


def kappa(pairs: Sequence[tuple[str, str]], labels: Sequence[str]) -> Estimate:
    """Cohen's kappa (Cohen 1960) of two annotators' labels of the same samples; n/a with the reason where it is undefined."""
    import numpy as np

    counts = np.zeros((len(labels), len(labels)))
    for one, other in pairs:
        counts[labels.index(one), labels.index(other)] += 1
    value = float(cohen_kappa(counts))
    if math.isnan(value):
        return Estimate(None, n=len(pairs), reason=_ONE_LABEL if pairs else _NOBODY)
    return Estimate(value, n=len(pairs))


def agreement(pairs: Sequence[tuple[str, str]]) -> Estimate:
    """The share of samples with one label by both."""
    if not pairs:
        return Estimate(None, reason=_NOBODY)
    return Estimate(sum(one == other for one, other in pairs) / len(pairs), n=len(pairs))


def to_review(samples: Iterable[CrossCheckSample], seed: int) -> list[CrossCheckSample]:
    """A tenth of each task's samples, at least one, for two people to label: the stratified subset of Appendix E."""
    by_task: dict[str, list[CrossCheckSample]] = {}
    for sample in samples:
        by_task.setdefault(sample.task, []).append(sample)
    chosen: list[CrossCheckSample] = []
    for task in by_task.values():
        ranked = sorted(task, key=lambda sample: digest([seed, "review", sample.id]))
        chosen += ranked[: max(1, math.ceil(REVIEWED * len(task)))]
    return chosen


def _left_out(first: AnnotatorLabel | None, second: AnnotatorLabel | None, decided: AnnotatorLabel | None) -> str:
    said = [label.verdict for label in (first, second) if label is not None]
    if "reject" not in said:
        return ""
    if said == ["reject", "reject"]:
        return BOTH_REJECT
    if decided is not None:
        return DECIDED if decided.verdict == "reject" else ""
    return UNDECIDED if len(said) > 1 else ONE_REJECTS


def _as_assigned(labels: Labels, known: Mapping[str, CrossCheckSample]) -> Estimate:
    """How often a person gives a sample the level that its task has."""
    return agreement([(label.level, known[name].level) for name, label in labels.items() if label.level])


def _number(found: Estimate) -> dict[str, Any]:
    if found.value is None:
        return {"value": None, "n": found.n, "reason": found.reason}
    return {"value": round(found.value, 6), "n": found.n}


def _read(
    file: Path, known: Mapping[str, CrossCheckSample], bad_row: Callable[[str, str], None]
) -> dict[str, AnnotatorLabel]:
    if not file.is_file():
        return {}
    labels: dict[str, AnnotatorLabel] = {}
    for number, row in json_lines(file):
        name, problem = _named(row, known, labels)
        if problem:
            bad_row(f"{FOLDER}/{file.name}:{number}", problem)
        else:
            labels[name] = AnnotatorLabel(row["verdict"], row.get("level") or "")
    return labels


def _named(row: Any, known: Mapping[str, CrossCheckSample], labels: Labels) -> tuple[str, str]:
    """The sample that a row labels, and what is wrong with the row."""
    if not isinstance(row, dict):
        return "", "the line is not a JSON object"
    name = row.get("sample")
    if not isinstance(name, str) or name not in known:
        return "", "a label for a sample that is not in this build"
    if name in labels:
        return name, "repeated: a second label for one sample"
    if row.get("verdict") not in VERDICTS:
        return name, f"the verdict is not one of {', '.join(VERDICTS)}"
    if row.get("level") and row["level"] not in tuple(LEVELS):
        return name, f"the level is not one of {', '.join(LEVELS)}"
    return name, ""
