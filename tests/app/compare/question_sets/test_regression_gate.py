"""The gate: verdicts on runs of known truth, how often they are wrong, and the rows that are said to decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.compare.decision.target_metric import target_metric
from app.compare.decision.trust_metric import trust_target
from app.compare.question_sets.regression_gate import (
    FAILED,
    INCONCLUSIVE,
    NO_LOSS_SHOWN,
    PASSED,
    READING,
    REGRESSED,
    Gate,
    GateTest,
    gate_remarks,
    paired_tests,
    published_test,
)
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Estimate, Generation, Instance, Record
from docs.simulated_readers import random_reader, scaled_to, true_accuracy
from docs.simulated_runs import Layout, World, draw, views_of
from tests.support.compared_runs import CONDITIONS, RIGHT, WRONG, side, sides

MARGIN = 0.03
ROWS_A_PAGE = 6
Labels = Mapping[tuple[str, str], str]


def labels(examples: int, wrong: float = 0.0, *, start: int = 0, only: str = "") -> dict[tuple[str, str], str]:
    """Labels of which the first share of examples is wrong, under one condition or all."""
    return {
        (f"e{number}", c): WRONG[c] if number - start < wrong * examples and only in ("", c) else RIGHT[c]
        for number in range(start, start + examples)
        for c in CONDITIONS
    }


def pair(run: Labels, baseline: Labels, *, alike: bool = False) -> RunViews:
    """Two runs, whose answers without a label are the same text or not."""

    def view(name: str, of: Labels) -> RunView:
        def read(places: Sequence[int]) -> Iterator[Record]:
            instance = Instance("", "", "", "", ())
            answer = "perhaps" if alike else f"perhaps, says {name}"
            return (Record(instance, (Generation("", answer, "stop"),)) for _ in places)

        return replace(side(name, of), read=read)

    return sides(view("run", run), view("baseline", baseline))


def gate(views: RunViews, *, max_loss: float = MARGIN, errors: int = 0, allowed: int = 0, **options: bool) -> Gate:
    tests = paired_tests(views, target_metric(views, None), max_loss, **options)
    rows = tuple(view.examples for view in views.runs)
    outcome = Gate(
        run="run",
        baseline="baseline",
        compared="by accuracy",
        max_loss=max_loss,
        tests=tests,
        rows=rows,
        errors=errors,
        allowed=allowed,
    )
    return replace(outcome, remarks=tuple(filter(None, gate_remarks(views, outcome))))


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_the_verdict_is_by_the_interval_and_the_margin() -> None:
    same = gate(pair(labels(400), labels(400)))
    worse = gate(pair(labels(400, 0.1), labels(400)))
    few = gate(pair(labels(12), labels(12)))
    assert [outcome.verdict for outcome in (same, worse, few)] == [PASSED, REGRESSED, INCONCLUSIVE]
    (test,) = worse.tests
    assert (test.run, test.baseline, test.lead) == pytest.approx((0.9, 1.0, -0.1))
    assert test.low is not None
    assert test.high is not None
    assert test.low < -MARGIN
    assert test.high < 0


def test_a_loss_that_is_shown_and_smaller_than_the_margin_passes() -> None:
    outcome = gate(pair(labels(600, 0.03), labels(600)), max_loss=0.1)
    (test,) = outcome.tests
    assert test.high is not None
    assert test.high < 0
    assert outcome.verdict == PASSED
    assert "A loss is shown" in outcome.sentence


@pytest.mark.parametrize("pages", [1, 2, 3, 5])
def test_few_pages_decide_nothing(pages: int) -> None:
    outcome = gate(pair(labels(pages, 1.0), labels(pages)))
    assert outcome.verdict == INCONCLUSIVE
    assert any("Too few pages" in remark for remark in outcome.remarks)


def test_a_condition_that_regressed_is_found_and_named() -> None:
    views = pair(labels(200, 0.1, only="text-correct"), labels(200))
    assert gate(views, max_loss=0.05).verdict == PASSED
    outcome = gate(views, max_loss=0.05, per_condition=True)
    assert {test.name: test.verdict for test in outcome.tests} == {
        condition: REGRESSED if condition == "text-correct" else PASSED for condition in CONDITIONS
    }
    assert outcome.verdict == REGRESSED
    assert "under text-correct" in outcome.sentence


def test_the_tests_of_conditions_are_corrected_for_their_number() -> None:
    views = pair(labels(200, 0.03, only="text-correct"), labels(200))
    under = next(test for test in gate(views, per_condition=True).tests if test.name == "text-correct")
    alone = [
        side(run.name, {key: label for key, label in of.items() if key[1] == "text-correct"})
        for run, of in zip(views.runs, (labels(200, 0.03, only="text-correct"), labels(200)), strict=True)
    ]
    (single,) = gate(sides(*alone)).tests
    assert single.p_worse is not None
    assert under.p_worse == pytest.approx(min(1.0, len(CONDITIONS) * single.p_worse))


def test_passing_takes_every_test_and_needs_no_correction() -> None:
    views = pair(labels(130), labels(130))
    outcome = gate(views, per_condition=True)
    bounds = [test.at_least for test in outcome.tests]
    assert all(bound is not None and bound > -MARGIN for bound in bounds)
    assert outcome.verdict == PASSED
    fewest = gate(pair(labels(85), labels(85)), per_condition=True)
    assert [test.verdict for test in fewest.tests] == [INCONCLUSIVE] * len(CONDITIONS)


@pytest.mark.parametrize(("reading", "verdict"), [(NO_LOSS_SHOWN, PASSED), (PASSED, PASSED), (REGRESSED, REGRESSED)])
def test_reading_stops_a_gate_only_by_a_loss_that_is_shown(reading: str, verdict: str) -> None:
    decision = gate(pair(labels(130), labels(130))).tests
    tests = (*decision, GateTest(name="reading the image alone", about=READING, verdict=reading))
    outcome = Gate(run="run", baseline="baseline", compared="by accuracy", max_loss=MARGIN, tests=tests)
    assert outcome.verdict == verdict


def test_a_condition_that_one_run_lacks_is_not_dropped() -> None:
    lacking = {key: label for key, label in labels(400).items() if key[1] != "both-wrong"}
    outcome = gate(pair(lacking, labels(400)), per_condition=True)
    assert outcome.tests[-1].name == "both-wrong"
    assert outcome.tests[-1].reason
    assert outcome.verdict == INCONCLUSIVE
    first_gone = {key: label for key, label in labels(60).items() if key[1] != CONDITIONS[0]}
    few = gate(pair(first_gone, labels(60)), per_condition=True)
    assert any(remark.endswith("there are 60.") for remark in few.remarks)
    assert "which has to be above" in few.table.notes[0]


def test_lower_can_be_better() -> None:
    views = pair(labels(300, 0.2), labels(300))
    (lower,) = paired_tests(views, target_metric(views, "HR"), MARGIN)
    (higher,) = paired_tests(views, replace(target_metric(views, "HR"), lower_is_better=False), MARGIN)
    assert (lower.verdict, higher.verdict) == (PASSED, REGRESSED)
    assert (lower.run, lower.baseline) == pytest.approx((higher.run, higher.baseline))
    assert lower.lead == pytest.approx(-(higher.lead or 0))
    assert (lower.lead or 0) > 0


def test_a_rule_decides() -> None:
    text = {(f"e{n}", c): "BOTH" if c == "aligned" else "TEXT" for n in range(100) for c in CONDITIONS}
    image = {key: "IMAGE" if label == "TEXT" else label for key, label in text.items()}
    views = pair(text, image)
    verdicts = [paired_tests(views, trust_target(views, rule), MARGIN)[0].verdict for rule in ("text", "image")]
    assert verdicts == [PASSED, REGRESSED]
    by_condition = paired_tests(views, trust_target(views, "image"), MARGIN, per_condition=True)
    assert {test.name: test.lead for test in by_condition}["aligned"] == 0
    assert [test.verdict for test in by_condition].count(REGRESSED) == 3


def test_rows_that_are_not_common_are_said_and_no_common_row_is_an_error() -> None:
    outcome = gate(pair(labels(40), labels(12)))
    assert outcome.tests[0].rows == 12
    assert "12 rows of 40" in outcome.basis
    with pytest.raises(SpecError):
        gate(pair(labels(40), labels(40, start=100)))


# --- labels that are not known, and errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["undecided", "judge-failed", "error"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_missing_label_counts_against_either_verdict(outcome: str, place: int) -> None:
    def lacking(wrong: float) -> GateTest:
        own, baseline = labels(400, wrong), labels(400)
        of = (own, baseline)[place]
        of |= dict.fromkeys([*of][-160:], outcome)
        return gate(pair(own, baseline), max_loss=0.05).tests[0]

    same, worse = lacking(0.0), lacking(0.08)
    # The run's own may all be wrong, so that it cannot pass; the baseline's may, so that no loss is shown.
    expected = [(INCONCLUSIVE, REGRESSED), (PASSED, INCONCLUSIVE)][place]
    assert (same.verdict, worse.verdict) == expected
    assert same.missing_run + same.missing_baseline == 160
    assert same.answers == 1600
    assert worse.low is not None
    assert worse.high is not None
    assert worse.high - worse.low > 0.1, "the interval holds both ends of what is not known"


@pytest.mark.parametrize("place", [0, 1])
def test_a_lead_is_never_outside_what_the_labels_leave(place: int) -> None:
    of = [labels(120, 1.0), labels(120)]
    keys = [*of[0]]
    of[place] |= dict.fromkeys(keys[2:], "undecided")
    outcome = gate(pair(*of))
    (test,) = outcome.tests
    assert (test.run, test.baseline, test.lead, test.known) == (None, None, None, 2)
    assert test.low is not None
    assert outcome.verdict == INCONCLUSIVE
    assert test.reason
    assert "points" in test.numbers
    half = labels(120)
    half |= dict.fromkeys(keys[::4], "undecided")
    (most,) = gate(pair(half, labels(120))).tests
    assert (most.lead, most.known, most.answers) == (0, 360, 480)


def test_equal_answers_without_a_label_make_no_difference() -> None:
    lacking = labels(400)
    lacking |= dict.fromkeys([*lacking][-160:], "undecided")
    (test,) = gate(pair(lacking, lacking, alike=True)).tests
    assert (test.verdict, test.missing_run, test.missing_baseline) == (PASSED, 160, 160)


def test_labels_rather_than_rows_are_asked_for_where_they_decide() -> None:
    own = labels(400)
    own |= dict.fromkeys([*own][-160:], "undecided")
    outcome = gate(pair(own, labels(400)))
    assert outcome.tests[0].rows_needed is None
    assert any("rashomon judge" in remark for remark in outcome.remarks)
    few = {key: "undecided" if number % 12 == 0 else label for number, (key, label) in enumerate(labels(60).items())}
    assert gate(pair(few, labels(60)), max_loss=0.1).tests[0].rows_needed is None, "over half of the margin"


def test_errors_come_first_unless_they_are_allowed() -> None:
    views = pair(labels(400), labels(400))
    assert gate(views, errors=3).verdict == FAILED
    assert gate(views, errors=3, allowed=2).verdict == FAILED
    assert gate(views, errors=3, allowed=3).verdict == PASSED


# --- a paper's value -----------------------------------------------------------------------------------------------------


def test_a_papers_value_is_compared_without_pairs() -> None:
    ours = Estimate(0.80, 0.76, 0.84, 400)

    def verdict(paper: float, **options: bool) -> str:
        return published_test("CDR", ours, paper, 0.05, rows=100, **options).verdict

    assert [verdict(paper) for paper in (0.70, 0.80, 0.82, 0.90)] == [PASSED, PASSED, INCONCLUSIVE, REGRESSED]
    assert [verdict(paper, lower_is_better=True) for paper in (0.70, 0.80, 0.90)] == [REGRESSED, PASSED, PASSED]
    unlabelled = published_test("CDR", replace(ours, missing=100), 0.80, 0.05, rows=100)
    assert (unlabelled.verdict, unlabelled.answers, unlabelled.missing_run) == (INCONCLUSIVE, 500, 100)
    assert (unlabelled.low, unlabelled.high) == pytest.approx((0.76 * 0.8 - 0.8, 0.84 * 0.8 + 0.2 - 0.8))
    one_page = published_test("CDR", Estimate(0.1, n=4), 0.9, 0.05, rows=1)
    assert (one_page.verdict, one_page.low) == (INCONCLUSIVE, None)


# --- error rates -------------------------------------------------------------------------------------------------------------


def nights(studies: int, loss: float, *, pages: int, seed: int, missing: float = 1.0) -> Iterator[GateTest]:
    """Yield the tests of a run that in truth loses so much, by accuracy, beside its baseline.

    Pages have 2 to 10 questions under four conditions; half of the answers show a picture that is another page's, too. Some
    answers are empty, cut off, undecided or errors, at ``missing`` times the rates of ``docs/claims.md``.
    """
    random = np.random.default_rng(seed)
    while studies:
        baseline = replace(random_reader(random), missing=missing)
        run = baseline if not loss else scaled_to(baseline, true_accuracy(baseline) - loss, None)
        if run is None:
            continue
        studies -= 1
        layout = Layout.random(random, pages)
        views = views_of(layout, draw(random, layout, World.random(random, (run, baseline))))
        yield paired_tests(views, target_metric(views, None), MARGIN)[0]


def counted(tests: Iterator[GateTest]) -> Counter[str]:
    return Counter(test.verdict for test in tests)


@pytest.mark.slow
@pytest.mark.parametrize("pages", [4, 30])
def test_equal_versions_are_seldom_said_to_have_regressed(pages: int) -> None:
    verdicts = counted(nights(200, 0.0, pages=pages, seed=pages))
    assert verdicts[REGRESSED] <= 0.05 * 200
    if pages == 4:
        assert verdicts[INCONCLUSIVE] >= 0.95 * 200


@pytest.mark.slow
def test_a_loss_of_the_margin_seldom_passes() -> None:
    assert counted(nights(200, MARGIN, pages=60, seed=1))[PASSED] <= 0.05 * 200


@pytest.mark.slow
def test_a_loss_of_twice_the_margin_is_found_by_as_many_rows_as_are_said() -> None:
    pilots = nights(30, 0.0, pages=30, seed=2, missing=0.0)
    pages = round(float(np.median([test.rows_needed for test in pilots if test.rows_needed])) / ROWS_A_PAGE)
    verdicts = counted(nights(60, 2 * MARGIN, pages=pages, seed=3, missing=0.0))
    assert verdicts[REGRESSED] >= 0.8 * 60
