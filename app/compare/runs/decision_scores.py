"""Counting of answers in a decision: no answer is not right, and an answer whose label is not known may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.run_pairs import label_codes
from app.compare.runs.run_view import RunView
from benchmarks.answers import AnswerKind
from benchmarks.base import Benchmark
from benchmarks.tables.missing_labels import MISSING, list_missing
from benchmarks.vocabulary import LabelMetrics

CUT_OFF = "cut off"
"""The outcome in a decision of an answer that ended at the limit of tokens, whatever its label."""
GIVES_RIGHT = "right value"
"""The outcome in a decision of an answer that gives the right value though no source has it."""
NO_ANSWER = ("unparsed", CUT_OFF)
"""The outcomes that are no answer, and so not right."""
UNKNOWN = ("undecided", "judge-failed")
"""The outcomes of answers whose label is not known: with errors, a decision must hold whatever they turn out to be."""


def decided_score(kind: AnswerKind, judge: str, benchmark: Benchmark) -> float | None:
    """Return the score of an answer in a decision: 0 for no answer and for an invention; None if it is not known."""
    if kind.is_no_answer(judge):
        return None if benchmark.left_out(kind) else 0.0
    score = benchmark.counted_score(kind, judge)
    if score is None:
        return None
    verdict = kind.verdicts[judge]
    return 0.0 if benchmark.is_invention(verdict.label, verdict.behaviour) else score


def score_bounds(benchmark: Benchmark, condition: str) -> dict[str, tuple[float, float]]:
    """Return the least and the greatest score of each outcome that counts in a decision under a condition."""
    scores = {label: benchmark.score(condition, label) for label in benchmark.labels}
    scores |= {label: 0.0 for label in scores if label in benchmark.inventions} | {GIVES_RIGHT: 1.0}
    unknown = (min(scores.values()), max(scores.values()))
    known = {**dict.fromkeys(NO_ANSWER, 0.0), **scores}
    return {**dict.fromkeys(UNKNOWN, unknown), **{outcome: (score, score) for outcome, score in known.items()}}


class MissingAnswers(NamedTuple):
    """The numbers of a run's answers without a label that can be used, by outcome, and of all its answers.

    ``cut_clause`` says how many were cut while reasoning.
    """

    by_outcome: Mapping[str, int]
    of: int
    cut_clause: str = ""

    @property
    def total(self) -> int:
        return sum(self.by_outcome.values())

    @property
    def clause(self) -> str:
        """The missing answers as a predicate of their run; empty if nothing is missing."""
        words = {**MISSING, CUT_OFF: "cut off at the token limit"}
        return (
            f"lacks {self.total:,} of {self.of:,} answers ({list_missing(self.by_outcome, words)})"
            + (f"; {self.cut_clause}" if self.cut_clause else "")
            if self.total
            else ""
        )


def missing_answers(run: RunView, metrics: LabelMetrics, hits: NDArray[Any], *, decision: bool) -> MissingAnswers:
    """Return a run's missing answers under the conditions of ``hits``, scores of shape (conditions, labels).

    Those cut off are missing in a ``decision`` alone.
    """
    coded = run.coded
    condition = coded.condition_codes({name: i for i, name in enumerate(metrics.conditions)})
    is_used = np.append(hits.any(1), False)[condition]
    cut_off = coded.cut_off & decision
    counted = () if decision else label_codes(metrics)
    numbers = np.bincount(coded.outcome[is_used & ~cut_off], minlength=len(coded.outcomes)).tolist()
    missing = {
        name: n for name, n in zip(coded.outcomes, numbers, strict=True) if name in MISSING and name not in counted
    }
    by_outcome = Counter(missing) + Counter({CUT_OFF: int((is_used & cut_off).sum())})
    return MissingAnswers(by_outcome, int(is_used.sum()), run.cut_clause)
