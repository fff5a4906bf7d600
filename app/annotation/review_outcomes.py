"""The outcome of a review by row, and its numbers: progress, agreement between reviewers, reasons, and levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from app.annotation.review_session import by_item, disagreements
from app.annotation.review_store import CHOICES, Decision
from benchmarks.review_guide import ReviewGuide
from benchmarks.stats.intervals import DIFFERENCE, Draws, estimate, kappa_estimate, resample, wilson
from benchmarks.vocabulary import Cell, Estimate, Table
from judges.judge_agreement import fleiss_from_sums, fleiss_sums, gwet_ac1, gwet_from_sums, raw_agreement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RESAMPLES = 1_000
UNDECIDED = "undecided"
_NO_PAIRS = "no row is decided by all of them"
_ONE_CHOICE = "all give all rows one and the same decision, so agreement by chance is 1 too"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for a row: a decision in force, or why there is none. ``reviewers`` decided on it."""

    decision: Decision | None
    why: str = ""
    reviewers: tuple[str, ...] = ()
    grade: str = ""

    @property
    def choice(self) -> str:
        return UNDECIDED if self.decision is None else self.decision.choice


def outcomes(ids: Sequence[str], decisions: Sequence[Decision], required: int = 1) -> dict[str, Outcome]:
    """Return the outcome of every row: the adjudicator's decision, or else what at least ``required`` reviewers agree on."""
    reviews = by_item(decisions)
    settled = {decision.item: decision for decision in decisions if decision.adjudication}
    disputed = disagreements(decisions)
    return {item: _outcome(reviews.get(item, ()), settled.get(item), item in disputed, required) for item in ids}


def _outcome(reviews: Sequence[Decision], settled: Decision | None, disputed: bool, required: int) -> Outcome:
    names = tuple(decision.reviewer for decision in reviews)
    grades = {decision.grade for decision in reviews if decision.grade}
    grade = grades.pop() if len(grades) == 1 else ""
    if settled is not None:
        return Outcome(settled, "adjudicated", names, settled.grade or grade)
    if len(reviews) < max(1, required):
        return Outcome(None, f"{len(reviews)} of {max(1, required)} reviewers have decided", names, grade)
    if disputed and len({decision.content for decision in reviews}) > 1:
        return Outcome(None, "the reviewers disagree", names, grade)
    return Outcome(reviews[0], "agreed" if len(reviews) > 1 else "one reviewer", names, grade)


def review_tables(
    guide: ReviewGuide, ids: Sequence[str], decisions: Sequence[Decision], *, required: int = 1, seed: int = 0
) -> list[Table]:
    """Return the tables progress, agreement and reasons; and levels, if the benchmark has levels."""
    names = list(dict.fromkeys(decision.reviewer for decision in decisions if not decision.adjudication))
    by_row = outcomes(ids, decisions, required)
    tables = [_progress(names, ids, decisions, by_row)]
    if len(names) > 1:
        choices = {name: {d.item: str(d.choice) for d in decisions if d.reviewer == name} for name in names}
        tables.append(agreement_table("agreement", "Agreement of the reviewers' decisions", choices, CHOICES, seed))
    if guide.grades:
        grades = {name: {d.item: d.grade for d in decisions if d.reviewer == name and d.grade} for name in names}
        graded = {name: given for name, given in grades.items() if given}
        if len(graded) > 1:
            tables.append(agreement_table("levels", "Agreement of the reviewers' levels", graded, guide.grades, seed))
    tables.append(_reasons(by_row))
    return tables


def _progress(
    names: Sequence[str], ids: Sequence[str], decisions: Sequence[Decision], by_row: Mapping[str, Outcome]
) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    adjudications = [decision for decision in decisions if decision.adjudication]
    for label, made in (
        *((name, [d for d in decisions if d.reviewer == name and not d.adjudication]) for name in names),
        *([("adjudication", adjudications)] if adjudications else []),
    ):
        counts = Counter(str(decision.choice) for decision in made)
        times = sorted(decision.seconds for decision in made if decision.seconds is not None)
        median = Estimate(times[len(times) // 2], n=len(times)) if times else Estimate(None, reason="not timed")
        rows.append((label, (*(counts[choice] for choice in CHOICES), len(ids) - len(made), median)))
    counts_all = Counter(outcome.choice for outcome in by_row.values())
    rows.append(("outcome", (*(counts_all[choice] for choice in CHOICES), counts_all[UNDECIDED], None)))
    disputed = sum(outcome.why == "the reviewers disagree" for outcome in by_row.values())
    notes = (
        f"{len(ids)} rows are under review. {disputed} wait for an adjudicator, since their reviewers disagree.",
        "seconds: the median time from the display of a row to its decision.",
    )
    return Table("progress", "Decisions", (*CHOICES, UNDECIDED, "seconds"), tuple(rows), notes, judges=())


def pair_counts(first: Mapping[str, str], second: Mapping[str, str], labels: Sequence[str]) -> Array:
    """Return the decisions of two people on the rows that both decided; shape (rows, labels, labels)."""
    import numpy as np

    shared = [item for item in first if item in second]
    counts = np.zeros((len(shared), len(labels), len(labels)))
    for number, item in enumerate(shared):
        counts[number, labels.index(first[item]), labels.index(second[item])] = 1
    return counts


def agreement_numbers(counts: Array, seed: int = 0) -> dict[str, Estimate]:
    """Return the raw agreement, Cohen's kappa and Gwet's AC1 of :func:`pair_counts`, with 95% intervals over the rows."""
    n = int(counts.sum())
    draws = resample(counts, RESAMPLES, seed)
    totals = counts.sum(0)
    agreed = float(raw_agreement(totals)) if n else float("nan")
    return {
        "agreement": wilson(round(agreed * n), n) if n else Estimate(None, reason=_NO_PAIRS),
        "kappa": kappa_estimate(counts, Draws(totals, draws), _ONE_CHOICE if n else _NO_PAIRS),
        "AC1": _beyond_chance(gwet_ac1(totals), gwet_ac1(draws), n, _NO_PAIRS),
    }


def agreement_table(
    name: str, title: str, given: Mapping[str, Mapping[str, str]], labels: Sequence[str], seed: int
) -> Table:
    """Return the agreement of each pair of people, and of all of them, by what each gave which item."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for a, b in combinations(given, 2):
        numbers = agreement_numbers(pair_counts(given[a], given[b], labels), seed)
        rows.append((f"{a}, {b}", (numbers["agreement"].n, *numbers.values())))
    if len(given) > 2:
        rows.append(("all", _all_agree([*given.values()], labels, seed)))
    notes = (
        "kappa: Cohen's (Cohen 1960) for two people, Fleiss' (Fleiss 1971) for all; AC1: Gwet's (Gwet 2008), whose agreement by "
        "chance stays small where one decision is frequent.",
        f"On offer are {', '.join(labels)}; AC1 counts all of them. Intervals: 95%, Wilson's for agreement, else "
        "by bootstrap over rows.",
    )
    return Table(name, title, ("rows", "agreement", "kappa", "AC1"), tuple(rows), notes, judges=())


def _all_agree(given: Sequence[Mapping[str, str]], labels: Sequence[str], seed: int) -> tuple[Cell, ...]:
    import numpy as np

    shared = [item for item in given[0] if all(item in other for other in given)]
    counts = np.zeros((len(shared), len(labels)))
    for number, item in enumerate(shared):
        for decisions in given:
            counts[number, labels.index(decisions[item])] += 1
    sums = fleiss_sums(counts)
    totals, draws = sums.sum(0), resample(sums, RESAMPLES, seed)
    n, people = len(shared), len(given)
    agreed, kappa = fleiss_from_sums(totals, people)
    agreed_draws, kappa_draws = fleiss_from_sums(draws, people)
    return (
        n,
        estimate(float(agreed), agreed_draws, n, clusters=n, reason=_NO_PAIRS),
        _beyond_chance(kappa, kappa_draws, n, _ONE_CHOICE if n else _NO_PAIRS),
        _beyond_chance(gwet_from_sums(totals, people), gwet_from_sums(draws, people), n, _NO_PAIRS),
    )


def _beyond_chance(value: Any, draws: Array, n: int, reason: str) -> Estimate:
    """Return an agreement beyond chance over ``n`` rows."""
    return estimate(float(value), draws, n, clusters=n, within=DIFFERENCE, reason=reason)


def _reasons(by_row: Mapping[str, Outcome]) -> Table:
    rejected = Counter(
        outcome.decision.reason for outcome in by_row.values() if outcome.decision and outcome.choice == "reject"
    )
    rows = tuple((reason, (count,)) for reason, count in sorted(rejected.items(), key=lambda pair: (-pair[1], pair[0])))
    return Table("reasons", "Reasons of the rejections in force", ("rows",), rows, judges=())
