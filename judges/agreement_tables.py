"""Agreement between judges as tables and as a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from benchmarks.answers import Answers
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import (
    DIFFERENCE,
    INTERVALS,
    SHARE,
    Draws,
    diagonal,
    estimate,
    span,
    telling_clusters,
)
from benchmarks.vocabulary import Cell, Estimate, Table
from judges.judge_agreement import (
    LabelPairs,
    Selection,
    agreement_and_kappa,
    count_label_pairs,
    fleiss_from_sums,
    fleiss_group_sums,
    label_kappa,
    positive_agreement,
)
from judges.judge_methods import MethodJudges, one_per_method

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[Cell, ...]]

ALL_CONDITIONS = "all"
"""The label of the row for all conditions together."""

_NO_SHARED_LABELS = "no answer is labelled by both"

_NOTE_PAIRS = (
    "Only answers that both judges labelled count; the last two columns count the answers that one of the two left "
    "unlabelled, among those that both judged."
)
_NOTE_KAPPA = (
    "kappa: agreement beyond chance (Cohen 1960); 1 is full agreement, 0 what two independent judges would reach."
)


def agreement_tables(
    runs: Runs, judges: Sequence[str], labels: Sequence[str], conditions: Sequence[str], *, resamples: int, seed: int
) -> list[Table]:
    """Return the tables agreement, agreement-labels and confusion for all pairs of ``judges``, and fleiss for three methods.

    ``runs`` maps a row's label to its answers, ``judges`` are ids, ``labels`` and ``conditions`` are the benchmark's.
    In fleiss, one judge of each method counts (:func:`one_per_method`). Raises SpecError for fewer than two judges, and for a
    judge named twice.
    """
    if len(judges) < 2 or len(set(judges)) < len(judges):
        raise SpecError("agreement needs two or more different judges; name each once.")
    methods = one_per_method(judges)
    agreement: list[_Row] = []
    by_label: list[_Row] = []
    confused: list[_Row] = []
    for run, answers in runs.items():
        views = _views(answers, conditions)
        for a, b in combinations(judges, 2):
            for view, of in views.items():
                label_pairs = count_label_pairs(answers, a, b, labels, of)
                agreement.append((f"{run} / {a}, {b} / {view}", _agreement_cells(label_pairs, resamples, seed)))
                if view == ALL_CONDITIONS:
                    prefix = f"{run} / {a}, {b}"
                    by_label += _label_rows(prefix, label_pairs.counts, labels, resamples, seed)
                    confused += _confusion_rows(prefix, label_pairs.counts.sum(0), labels)
    tables = [
        Table(
            "agreement",
            "Agreement between judges",
            ("answers", "agreement", "kappa", "first left out", "second left out"),
            tuple(agreement),
            (_NOTE_PAIRS, _NOTE_KAPPA, *_not_together(judges, methods), INTERVALS),
        ),
        Table(
            "agreement-labels",
            "Agreement between judges, label by label",
            ("first gives it", "second gives it", "both", "positive agreement", "kappa"),
            tuple(by_label),
            (
                "Positive agreement: of all that either gives this label, the share that both do (Dice). "
                "kappa: this label against all others.",
                INTERVALS,
            ),
        ),
        Table(
            "confusion",
            "Which label for which: rows by the first judge, columns by the second",
            tuple(labels),
            tuple(confused),
        ),
    ]
    if len(methods.counted) > 2:
        tables.append(_fleiss_table(runs, methods, labels, conditions, resamples, seed))
    return tables


def agreement_sentence(
    answers: Answers, judge: str, references: Sequence[str], *, resamples: int = 1000, seed: int = 0
) -> str:
    """Return one line on how ``judge`` agrees with the best available judge, for display under a table.

    ``references`` are ids, best first (people, then models behind an API); the first one that shares a labelled answer
    with ``judge`` is used.
    """
    used_labels = {label for kind in answers.kinds for verdict in kind.verdicts.values() if (label := verdict.label)}
    labels = sorted(used_labels)
    for reference in references:
        if reference == judge:
            continue
        pair = count_label_pairs(answers, judge, reference, labels)
        n = int(pair.counts.sum())
        if n:
            agreed, kappa = _estimate_agreement(pair.counts, resamples, seed)
            unlabelled = sum(pair.left_out[0].values())
            suffix = f"; {judge} gave {unlabelled} more no label" if unlabelled else ""
            kappa_text = (
                f"Cohen's kappa is undefined: {kappa.reason}"
                if kappa.value is None
                else f"Cohen's kappa {kappa.value:.2f}{_interval(kappa, '.2f')}"
            )
            share = f"{100 * (agreed.value or 0):.1f}%{_interval(agreed, '.1f', 100)}"
            return f"{judge} agrees with {reference} on {share} of {n} answer{'s' * (n != 1)}, {kappa_text}{suffix}."
    return f"How {judge} agrees with people or with an API judge is unknown for this run."


def _interval(estimate: Estimate, form: str, scale: float = 1) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({span(f'{scale * estimate.low:{form}}', f'{scale * estimate.high:{form}}')})"


def _views(answers: Answers, conditions: Sequence[str]) -> dict[str, Selection]:
    by_condition = answers.count(lambda kind: kind.condition)
    present = [condition for condition in conditions if condition in by_condition]
    everything: dict[str, Selection] = {ALL_CONDITIONS: lambda kind: kind.condition in conditions}
    if len(present) < 2:  # the only condition would repeat the row of all
        return everything
    return everything | {name: _under(name) for name in present}


def _under(condition: str) -> Selection:
    return lambda kind: kind.condition == condition


def _estimate_agreement(counts: NDArray[np.int64], resamples: int, seed: int) -> tuple[Estimate, Estimate]:
    """Return raw agreement and Cohen's kappa with their intervals."""
    draws = Draws.of(counts, resamples, seed)
    return agreement_and_kappa(counts, draws, _NO_SHARED_LABELS, _undefined_kappa(draws.totals))


def _undefined_kappa(totals: Array) -> str:
    return (
        "both give all answers one and the same label, so agreement by chance is 1 too"
        if totals.any()
        else _NO_SHARED_LABELS
    )


def _agreement_cells(label_pairs: LabelPairs, resamples: int, seed: int) -> tuple[Cell, ...]:
    agreed, kappa = _estimate_agreement(label_pairs.counts, resamples, seed)
    return (agreed.n, agreed, kappa, *(_format_reasons(reasons) for reasons in label_pairs.left_out))


def _format_reasons(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "0"


def _label_rows(prefix: str, counts: NDArray[np.int64], labels: Sequence[str], resamples: int, seed: int) -> list[_Row]:
    import numpy as np

    totals, draws = counts.sum(0, dtype=float), Draws.of(counts, resamples, seed)
    first, second, agreed = totals.sum(-1), totals.sum(-2), diagonal(totals)
    n = int(totals.sum())
    values = positive_agreement(totals), label_kappa(totals)
    replicates = draws.replicates(positive_agreement), draws.replicates(label_kappa)
    rows: list[_Row] = []
    for i, label in enumerate(labels):
        either = int(first[i] + second[i] - agreed[i])
        none = (
            _NO_SHARED_LABELS
            if n == 0
            else "neither judge gives this label"
            if either == 0
            else _undefined_kappa(totals)
        )
        given: Array = counts[:, i].sum(-1) + counts[:, :, i].sum(-1) - counts[:, i, i]
        telling = telling_clusters(np.stack([given, counts.sum((1, 2)) - given], axis=1))
        cells = (
            estimate(float(values[0][i]), replicates[0][:, i], either, clusters=len(counts), reason=none),
            estimate(float(values[1][i]), replicates[1][:, i], n, clusters=telling, within=DIFFERENCE, reason=none),
        )
        rows.append((f"{prefix} / {label}", (int(first[i]), int(second[i]), int(agreed[i]), *cells)))
    return rows


def _confusion_rows(prefix: str, totals: Array, labels: Sequence[str]) -> list[_Row]:
    return [(f"{prefix} / {label}", tuple(int(cell) for cell in totals[i])) for i, label in enumerate(labels)]


def _not_together(judges: Sequence[str], methods: MethodJudges) -> tuple[str, ...]:
    """Return a note on why three or more judges have no kappa together."""
    if len(judges) < 3 or len(methods.counted) > 2:
        return ()
    return (
        f"No kappa of all judges together: each method counts once, which leaves {' and '.join(methods.counted)}. Left out: "
        f"{methods.left_out_text()}.",
    )


def _fleiss_part(part: int, judges: int, sums: Any) -> Any:
    return fleiss_from_sums(sums, judges)[part]


def _fleiss_table(
    runs: Runs, methods: MethodJudges, labels: Sequence[str], conditions: Sequence[str], resamples: int, seed: int
) -> Table:
    rows: list[_Row] = []
    judges = methods.counted
    for run, answers in runs.items():
        for view, of in _views(answers, conditions).items():
            sums = fleiss_group_sums(answers, judges, labels, of)
            totals, draws = sums.sum(0), Draws.of(sums, resamples, seed)
            n = int(totals[1])
            reason = (
                _undefined_kappa(totals).replace("both give", "all judges give")
                if n
                else "no answer is labelled by all of them"
            )
            values = fleiss_from_sums(totals, len(judges))
            cells = []
            for part, (within, clusters) in enumerate(
                ((SHARE, len(sums)), (DIFFERENCE, telling_clusters(sums[:, 2:])))
            ):
                replicates = draws.replicates(partial(_fleiss_part, part, len(judges)))
                value = float(values[part])
                cells.append(estimate(value, replicates, n, clusters=clusters, within=within, reason=reason))
            rows.append((f"{run} / {view}", (n, *cells)))
    notes = (
        f"Judges: {', '.join(judges)}. Only answers that all of them labelled count.",
        *([f"Each method counts once. Left out: {methods.left_out_text()}."] if methods.left_out else []),
        "agreement: of all pairs of judges, the share that agree; kappa: Fleiss' (Fleiss 1971).",
        INTERVALS,
    )
    return Table("fleiss", "Agreement of all judges together", ("answers", "agreement", "kappa"), tuple(rows), notes)
