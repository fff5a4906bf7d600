"""Gate for scripts: a run passes beside a baseline, has regressed, or neither is shown.

The largest acceptable loss is a margin, as in a non-inferiority test. A run passes if its loss is shown to be smaller, by the
one-sided 95% bound that ``recommend`` takes. It has regressed if a loss is shown, by the two-sided 95% interval and the test of
signs, and is not shown to be smaller. A loss that is shown, and shown to be smaller, passes. Beside what decides, the gate tests
whether each source is still read alone. All tests must pass, which needs no correction (an intersection-union test, Berger 1982);
one that has regressed is enough, so that losses are corrected for the number of tests (Holm 1979). Answers whose label is not
known count against either verdict. ``docs/again.md`` has the error rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.compare.comparison_tables import coverage_warnings
from app.compare.decision.model_claims import lead_p, pair_lead
from app.compare.decision.sample_size import TWO_SIDED, examples_to_show
from app.compare.decision.target_metric import TargetMetric, metric_title
from app.compare.decision.target_shares import ALPHA, TargetShares, target_shares
from app.compare.decision.trust_metric import reading_targets
from app.compare.runs.run_view import RunViews
from app.compare.runs.spec_diff import difference_warnings
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from app.text.plural import count_of
from app.text.text_elision import elide_shared
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import INTERVALS, few_pages
from benchmarks.stats.paired_tests import holm
from benchmarks.vocabulary import Cell, Estimate, Table

PASSED, REGRESSED, INCONCLUSIVE, FAILED = "passed", "regressed", "inconclusive", "failed"
NO_LOSS_SHOWN = "no loss shown"
"""The verdict on the reading of a source that has not regressed. A gate passes with it: else each source would have to be shown
to be read as well as before, for which most tables are too small."""
_NAME = 24
"""The width of a run's name in a sentence."""
_CORRECTED = (
    "Losses are corrected for the number of tests (Holm 1979), since one is enough; passing, which takes all of them, and "
    "intervals are not."
)
_OF_READING = "Reading a source alone is tested for a loss only: to pass, none may be shown."
METRIC, CONDITION, READING = "metric", "condition", "reading"
_ROUNDING = 1e-9
_WHERE = {METRIC: "in", CONDITION: "under", READING: "in"}
"""The words before the name of what a test is about."""
_COLUMNS = ("run", "baseline", "lead", "at least", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTest:
    """Test of a metric, or of its part under one condition. Values are fractions.

    Attributes:
        about: "metric", "condition" for a part of it, or "reading" for answers to one source alone.
        run, baseline: The metric of either, over the answers whose label is known in both. None where these are fewer than
            half, or where the labels that are not known would make something else of them whatever they are.
        lead: The lead of the run, negative where it is worse; None as they are.
        low, high: The two-sided 95% interval of the lead, whatever the missing labels turn out to be; None where there is none.
        at_least: The one-sided 95% bound of the lead; beside a paper's value, ``low``.
        p_within: The p of a loss of the margin or more; None beside a paper's value.
        p_worse: The two-sided p of no loss, corrected for the number of tests.
        answers, rows, pages: The compared answers, their examples and clusters; pages are None beside a paper's value.
        known: The number of these answers whose label is known in both, on which ``lead`` rests.
        missing_run, missing_baseline: The numbers of these answers whose label is not known.
        rows_needed: The number of rows that would decide with a power of 80%, where it is inconclusive; None if unknown.
        verdict: "passed", "regressed" or "inconclusive"; of reading, "no loss shown" in place of "inconclusive".
        reason: The reason why nothing can be tested, or why there is no lead, if so.
    """

    name: str
    about: str = METRIC
    run: float | None = None
    baseline: float | None = None
    lead: float | None = None
    low: float | None = None
    high: float | None = None
    at_least: float | None = None
    p_within: float | None = None
    p_worse: float | None = None
    answers: int = 0
    known: int = 0
    rows: int = 0
    pages: int | None = None
    missing_run: int = 0
    missing_baseline: int = 0
    rows_needed: int | None = None
    verdict: str = INCONCLUSIVE
    reason: str = ""

    @property
    def title(self) -> str:
        """The name as it is displayed."""
        return metric_title(self.name)

    @property
    def numbers(self) -> str:
        """The lead with its interval, in points; the reason where there is none."""
        ends = [format_points(value, sign=True) for value in (self.low, self.high) if value is not None]
        if self.lead is None:
            return f"{self.reason} ({' to '.join(ends)} points at 95%)" if ends else self.reason
        lead = format_points(self.lead, sign=True)
        return f"{lead} points ({' to '.join(ends)} at 95%)" if ends else f"{lead} points (all on one page)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The outcome of a gate.

    Attributes:
        run, baseline: The names of the run, and of the baseline or the paper's row.
        compared: The clause on what they are compared by: "in HR".
        max_loss: The largest acceptable loss, a fraction.
        rows: The rows of the run, and of a baseline that is one.
        errors, allowed: The number of errors among the run's answers, and how many are acceptable.
        remarks: Sentences that a reader needs beside the verdict.
    """

    run: str
    baseline: str
    compared: str
    max_loss: float
    tests: tuple[GateTest, ...]
    rows: tuple[int, ...] = ()
    errors: int = 0
    allowed: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """One of "passed", "regressed", "inconclusive" and "failed": more errors than are acceptable.

        One test that has regressed is enough, which is why their p are corrected; to pass, all must, but those of reading need
        only show no loss.
        """
        verdicts = {PASSED if test.verdict == NO_LOSS_SHOWN else test.verdict for test in self.tests}
        if self.errors > self.allowed:
            return FAILED
        return next(verdict for verdict in (REGRESSED, INCONCLUSIVE, PASSED) if verdict in verdicts)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        run, baseline = elide_shared((self.run, self.baseline), _NAME)
        margin = f"{margin_points(self.max_loss)} points"
        if self.verdict == FAILED:
            more = f" ({self.allowed:,} are allowed)" if self.allowed else ""
            errors = f"{count_of(self.errors, 'answer')} of {run} {'is an error' if self.errors == 1 else 'are errors'}"
            return f"Failed: {errors}{more}."
        if self.verdict == PASSED:
            is_worse = any(test.high is not None and test.high < 0 for test in self.tests)
            shown = " A loss is shown, but it is smaller." if is_worse else ""
            return f"Passed: {run} loses less than {margin} beside {baseline}.{shown}"
        named = [test for test in self.tests if test.verdict == self.verdict]
        where = f" {_name_tests(named)}" if len(named) < len(self.tests) else ""
        if self.verdict == REGRESSED:
            exceeds = any((test.high or 0.0) < -self.max_loss for test in named)
            loss = f"by more than {margin}" if exceeds else f"and may lose {margin} or more"
            return f"Regressed: {run} is worse than {baseline}{where}, {loss}."
        return f"Inconclusive: {run} may lose {margin} or more beside {baseline}{where}, or nothing."

    @property
    def basis(self) -> str:
        """The answers, rows and pages that the verdict rests on, in a sentence."""
        decisive = [test for test in self.tests if test.about != READING]
        answers, rows = sum(test.answers for test in decisive), max(test.rows for test in decisive)
        reading = "".join(f"; in {test.name}, on {test.answers:,}" for test in self.tests if test.about == READING)
        if (pages := max(test.pages or 0 for test in self.tests)) == 0:
            return (
                f"Compared {self.compared}, on {count_of(answers, 'answer')}. The paper's value is a number without pairs: the "
                "interval is that of the run alone."
            )
        common = f" of {max(self.rows):,} (the others are not common)" if max(self.rows) > rows else ""
        return (
            f"Compared {self.compared}, on {count_of(answers, 'answer')} to {count_of(rows, 'row')}{common}, on "
            f"{count_of(pages, 'page')}{reading}."
        )

    @property
    def table(self) -> Table:
        """The tests, a row each."""
        is_paired = any(test.pages is not None for test in self.tests)
        notes = [
            "lead: of the run, negative where it is worse, with its 95% interval, whatever the missing labels are. "
            "at least: its one-sided 95% bound"
            + (", which has to be above the largest acceptable loss." if is_paired else "."),
            *([_CORRECTED] if len(self.tests) > 1 else []),
            *([_OF_READING] if any(test.about == READING for test in self.tests) else []),
            INTERVALS,
        ]
        rows: tuple[tuple[str, tuple[Cell, ...]], ...] = tuple(
            (
                test.title,
                (
                    *(Estimate(value, n=test.known, reason=test.reason) for value in (test.run, test.baseline)),
                    Estimate(test.lead, test.low, test.high, test.known, test.reason),
                    Estimate(test.at_least, n=test.answers, reason=test.reason or "one page says nothing of others"),
                    test.verdict,
                ),
            )
            for test in self.tests
        )
        title = f"{self.run} beside {self.baseline}"
        return Table("check", title, _COLUMNS, rows, tuple(notes), percent=True)


def margin_points(max_loss: float) -> str:
    """Return a margin in percentage points, to three digits, of which one is not 0."""
    return f"{100 * max_loss:.3g}"


def _name_tests(tests: Sequence[GateTest]) -> str:
    """Return the names of tests in words: "under aligned and both-wrong and in reading the image alone"."""
    names: dict[str, list[str]] = {}
    for test in tests:
        names.setdefault(_WHERE[test.about], []).append(test.title)
    return " and ".join(f"{where} {join_names(of)}" for where, of in names.items())


def paired_tests(
    views: RunViews, metric: TargetMetric, max_loss: float, *, per_condition: bool = False, reading: bool = False
) -> tuple[GateTest, ...]:
    """Test the first of two runs against the second, on the answers that both have, for a loss of ``max_loss``.

    With ``per_condition`` each condition is a test; with ``reading``, so is each source that both were asked alone.
    Raises SpecError if the runs have no answer in common that counts.
    """
    parts = _by_condition(views, metric) if per_condition else {metric.name: metric}
    about = dict.fromkeys(parts, CONDITION if per_condition else METRIC)
    if not len(views.runs[0].coded.paired_places(views.runs[1].coded)[0]):
        run, baseline = (view.name for view in views.runs)
        raise SpecError(f"{run} and {baseline} share no row; name a baseline that was asked the same rows.")
    if reading:
        read = {target.name: target for target in reading_targets(views).values() if target is not None}
        parts, about = parts | read, about | dict.fromkeys(read, READING)
    shares: dict[str, TargetShares] = {}
    reasons: dict[str, str] = {}
    for name, part in parts.items():
        try:
            shares[name] = target_shares(views, part, jointly=False)
        except SpecError as error:
            reasons[name] = str(error)
    if not shares:
        raise SpecError(next(iter(reasons.values()), "no condition that was asked counts for the metric."))
    # A condition that cannot be tested counts as a test: its answers may have been lost.
    untested = [1.0] * len(reasons)
    worse = holm([*(lead_p(part, 1, 0) for part in shares.values()), *untested])
    tests = {
        name: _paired_test(name, part, max_loss, p_worse or 0.0, len(parts))
        for (name, part), p_worse in zip(shares.items(), worse, strict=False)
    }
    return tuple(_about(tests.get(name) or GateTest(name=name, reason=reasons[name]), about[name]) for name in parts)


def _about(test: GateTest, about: str) -> GateTest:
    """Return a test of what it is about; that of reading does not wait for more rows."""
    if about == READING and test.verdict == INCONCLUSIVE:
        return replace(test, about=about, verdict=NO_LOSS_SHOWN, rows_needed=None)
    return replace(test, about=about)


def _by_condition(views: RunViews, metric: TargetMetric) -> dict[str, TargetMetric]:
    """Return the part of a metric under each condition that counts for it and that a run was asked under."""
    names = views.label_metrics.conditions
    codes = {name: place for place, name in enumerate(names)}
    asked = {code for run in views.runs for code in np.unique(run.coded.condition_codes(codes)).tolist()}
    condition = np.arange(len(metric.hits)) % len(names)  # of each row of the hits, which are repeated for each rule
    used = {int(place) for place in condition[metric.hits.any(1)]}
    return {
        name: replace(metric, name=name, hits=metric.hits * (condition == place)[:, None])
        for place, name in enumerate(names)
        if place in used & asked
    }


def _paired_test(name: str, shares: TargetShares, max_loss: float, p_worse: float, tests: int) -> GateTest:
    credits, least = shares.credits, shares.least(0, 1)
    p_within = least.non_inferiority_p(max_loss)
    known = ~np.isnan(credits.hit).any(1)
    pages, lead = credits.clusters.own_count, pair_lead(credits, 0, 1)
    is_possible = least.value - _ROUNDING <= lead <= _ROUNDING - shares.least(1, 0).value
    means = credits.hit[known].mean(0) if 2 * known.sum() >= len(credits.group) and is_possible else None
    if means is not None and shares.metric.lower_is_better:
        means = 1 - means
    missing_run, missing_baseline = np.isnan(credits.hit).sum(0).tolist()
    low, high = shares.interval(0, 1) if pages > 1 else (None, None)
    verdict = PASSED if p_within <= ALPHA else REGRESSED if p_worse <= ALPHA else INCONCLUSIVE
    rows = len(np.unique(credits.group))
    return GateTest(
        name=name,
        run=None if means is None else float(means[0]),
        baseline=None if means is None else float(means[1]),
        lead=None if means is None else lead,
        low=low,
        high=high,
        at_least=least.lower() if pages > 1 else None,
        p_within=p_within,
        p_worse=p_worse,
        answers=len(credits.group),
        known=int(known.sum()),
        rows=rows,
        pages=pages,
        missing_run=missing_run,
        missing_baseline=missing_baseline,
        rows_needed=None
        if verdict != INCONCLUSIVE or pages < 2
        else _rows_needed(rows, least.error, least.value, -shares.least(1, 0).value, max_loss, ALPHA / tests),
        verdict=verdict,
        reason=f"only {int(known.sum()):,} of {len(credits.group):,} labels are known in both runs, too few for a lead"
        if means is None
        else "",
    )


def _rows_needed(rows: int, error: float, least: float, greatest: float, max_loss: float, alpha: float) -> int | None:
    """Return the number of rows that would decide with a power of 80%, on as many more pages.

    It is for a run as good as the baseline, and so for one that loses twice the margin. Where there are as many already, the loss
    is near the middle, and it is for that loss. The lead is between ``least`` and ``greatest``, as missing labels turn out; None
    where these leave less than half of the margin, so that labels come first.
    """
    room = max_loss - (greatest - least)
    if room < max_loss / 2:
        return None
    for size in (room, max(max_loss + least, -greatest)):
        needed = examples_to_show(rows, error, size, alpha) if size > 0 else 0
        if needed > rows:
            return needed
    return None


def published_test(
    name: str, ours: Estimate, paper: float, max_loss: float, *, rows: int, lower_is_better: bool = False
) -> GateTest:
    """Test a run's estimate against a paper's value, a number without pairs: its interval is that of the run's own clusters.

    Answers without a label are taken for hits and for misses, whichever is worse for the verdict.
    """
    assert ours.value is not None
    sign, of = -1 if lower_is_better else 1, ours.n + ours.missing
    test = GateTest(
        name=name,
        run=ours.value,
        baseline=paper,
        lead=sign * (ours.value - paper),
        answers=of,
        known=ours.n,
        rows=rows,
        missing_run=ours.missing,
    )
    if ours.low is None or ours.high is None:
        return test
    low, high = sorted(sign * (hits / of - paper) for hits in (ours.low * ours.n, ours.high * ours.n + ours.missing))
    verdict = PASSED if low > -max_loss else REGRESSED if high < 0 else INCONCLUSIVE
    middle, error = sign * (ours.value * ours.n / of - paper), (ours.high - ours.low) / (2 * TWO_SIDED)
    ends = sorted((middle, middle + sign * ours.missing / of))
    needed = _rows_needed(rows, error, ends[0], ends[1], max_loss, ALPHA / 2) if verdict == INCONCLUSIVE else None
    return replace(test, low=low, high=high, at_least=low, verdict=verdict, rows_needed=needed)


def gate_remarks(views: RunViews, gate: Gate) -> Iterator[str]:
    """Yield what a reader must know besides the verdict: missing labels, the rows that would decide, other differences."""
    missing = sum(test.missing_run + test.missing_baseline for test in gate.tests)
    undecided = [test for test in gate.tests if test.verdict == INCONCLUSIVE]
    if missing:
        known = sum(test.known for test in gate.tests if test.lead is not None)
        rest = f" Shares and leads rest on the {known:,} answers whose label is known." if known else ""
        yield f"The labels of {count_of(missing, 'answer')} are not known; they count against either verdict.{rest}"
    needed, rows = max(((test.rows_needed or 0, test.rows) for test in undecided), default=(0, 0))
    if needed:
        yield (
            f"About {needed:,} rows, on as many more pages, would decide if the two are as good, or if the loss is twice "
            f"{margin_points(gate.max_loss)} points; there are {rows:,}."
        )
    elif undecided and missing:
        yield "More rows would not decide: labels of these answers would (`rashomon judge`, `rashomon label`)."
    yield few_pages(*(test.pages for test in gate.tests if test.pages is not None))
    yield from (f"{test.title}: {test.numbers}" for test in gate.tests if test.reason)
    yield from coverage_warnings(views)
    yield from difference_warnings(views.runs[::-1])
