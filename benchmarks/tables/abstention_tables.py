"""Tables of abstentions: under conflict and needless, by coverage, and by the ratio of costs."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import AbstentionRule, Benchmark
from benchmarks.stats.intervals import INTERVALS
from benchmarks.tables.abstention_quality import (
    ABSTAINS,
    COVERAGE,
    NEEDLESS,
    RATIOS,
    RISK,
    SHARES,
    UNDER_CONFLICT,
    WRONG,
    at_ratio,
    count_responses,
    response_places,
    share_estimates,
    utility_estimate,
)
from benchmarks.vocabulary import Cell, Estimate, Table

CURVE = tuple(tenth / 10 for tenth in range(1, 10))
"""The coverages at which the risk of the most confident answers is shown."""


def curve_rows(
    run: str, answers: Answers, judge: str, benchmark: Benchmark, rule: AbstentionRule
) -> list[tuple[str, tuple[Cell, ...]]]:
    """Return coverage and risk of a run's most confident answers; none for a run without likelihoods.

    Of equally confident answers, the earlier one is answered first.
    """
    import numpy as np

    if answers.confidence is None:
        return []
    places, unparsed = response_places(benchmark, rule), benchmark.unparsed_label

    def response(kind: AnswerKind) -> int:
        outcome = kind.outcome(judge)
        label = kind.label(judge) if outcome == "labelled" else unparsed if outcome == "unparsed" else None
        place = None if label is None else places.get((kind.condition, label))
        return -1 if place is None else place[1]

    responses, confidence = answers.codes(response), answers.confidence.answer
    total = int((responses >= 0).sum())
    answered = np.flatnonzero((responses > ABSTAINS) & ~np.isnan(confidence))
    answered = answered[np.argsort(-confidence[answered], kind="stable")]
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for share in CURVE:
        size = round(share * total)
        if 0 < size <= len(answered):
            chosen = answered[:size]
            clusters = answers.clusters.at(chosen)
            rows.append(
                (
                    f"{run} / most confident {share:.0%}",
                    (Estimate(size / total, n=total), clusters.mean(responses[chosen] == WRONG)),
                )
            )
    return rows


_NOTE_RULE = (
    "An answer abstains if it says that it cannot be determined, or names the conflict ({labels}); it is then neither right nor "
    "wrong. Under conflict: {conflict}{without}."
)
_NOTE_COLUMNS = (
    "difference: the first column less the second, 1 if conflicts alone decide, 0 if abstentions ignore them; justified: the "
    "share of the abstentions that are under conflict; coverage: the share of answers that do not abstain; risk: the share of "
    "wrong ones among those."
)
_NOTE_INTERVALS = INTERVALS
_NOTE_UTILITY = (
    "Utility is 1 for an answer without a cost and 0 for the costliest mistake. The columns are the cost of a needless "
    "abstention to that of a wrong answer or a missed conflict, which cost the same here. A conflict is missed by an answer "
    "under it that neither abstains nor is right. `rashomon recommend --costs` takes your own costs."
)
_NOTE_CURVE = (
    "A run that abstains at the right questions has a low risk at a high coverage. Runs with likelihoods have further rows: the "
    "risk if they also left unanswered what they are least confident of. Intervals: 95%, over clusters; the thresholds are "
    "chosen on these answers."
)
_NOTE_MIX = (
    "Coverage, risk and utility are of these answers, in which {share:.0%} are under conflict; `recommend --conflict-share` "
    "takes another share."
)


def abstention_tables(
    runs: Mapping[str, Answers], judge: str, benchmark: Benchmark, *, resamples: int, seed: int
) -> list[Table]:
    """Return the tables abstention, risk-coverage and utility; none if no label of the benchmark abstains."""
    rule = benchmark.abstention
    if rule is None:
        return []
    counted = {run: count_responses(answers, judge, benchmark, rule) for run, answers in runs.items()}
    counts = {run: of_run for run, (of_run, _) in counted.items() if len(of_run)}
    if not counts:
        return []
    labels = sorted(frozenset().union(*rule.labels.values()))
    definition = _NOTE_RULE.format(
        labels=", ".join(labels),
        conflict=", ".join(rule.conflict),
        without=f"; without: {', '.join(rule.without)}" if rule.without else "",
    )
    mixed = (
        _NOTE_MIX.format(
            share=float(sum(of_run[:, 1].sum() for of_run in counts.values()))
            / sum(of_run.sum() for of_run in counts.values())
        ),
    )
    shares, points, utilities = list[_Row](), list[_Row](), list[_Row]()
    for run, of_run in counts.items():
        _, distinct = counted[run]
        cells = share_estimates(of_run, resamples, seed, distinct)
        shares.append((run, tuple(cells.values())))
        points += curve_rows(run, runs[run], judge, benchmark, rule)
        points.append((run, (cells[COVERAGE], cells[RISK])))
        costs = [at_ratio(ratio_) for ratio_ in RATIOS.values()]
        utilities.append(
            (run, tuple(utility_estimate(of_run, cost, resamples, seed, distinct=distinct) for cost in costs))
        )
    return [
        Table(
            "abstention",
            "Abstentions under conflict, and needless ones",
            tuple(SHARES),
            tuple(shares),
            (definition, _NOTE_COLUMNS, _NOTE_INTERVALS, *mixed),
            chart="bars",
            drawn=(UNDER_CONFLICT, NEEDLESS),
        ),
        Table(
            "risk-coverage",
            "Risk against coverage",
            (COVERAGE, RISK),
            tuple(points),
            (definition, _NOTE_CURVE, *mixed),
            chart="risk-coverage",
        ),
        Table(
            "utility",
            "Utility by cost ratio",
            tuple(RATIOS),
            tuple(utilities),
            (_NOTE_UTILITY, definition, INTERVALS, *mixed),
            chart="bars",
        ),
    ]


_Row = tuple[str, tuple[Cell, ...]]
