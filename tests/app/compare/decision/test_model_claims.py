"""Claims about many models on one set: corrections, the best of the others, and how often equal models are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from app.compare.decision.model_claims import BETTER, NOT_SHOWN, WORSE, claims, pair_lead
from app.compare.decision.sample_size import examples_to_show
from app.compare.decision.target_shares import ALPHA, TargetShares, UndecidedAnswers
from app.compare.question_sets.question_set_history import SetHistory, changed_answers
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.paired_tests import holm
from tests.support.compared_runs import basis_of, simulated

MODELS = 20


def verdicts(basis: TargetShares, incumbent: int | None = None, tests: int = 0) -> dict[int, str]:
    return {claim.run: claim.verdict for claim in claims(basis, incumbent, tests=tests)}


def some_models(*worse_by: float, examples: int = 150, seed: int = 1) -> TargetShares:
    return basis_of(simulated(np.random.default_rng(seed), examples, 2, worse_by))


def test_a_clear_difference_is_shown_in_both_directions() -> None:
    basis = some_models(0.3)
    assert verdicts(basis, incumbent=0) == {1: WORSE}
    assert verdicts(basis, incumbent=1) == {0: BETTER}
    assert verdicts(basis) == {0: BETTER, 1: WORSE}


@pytest.mark.parametrize(("incumbent", "sign"), [(1, 1), (0, -1)])
def test_the_changed_answers_explain_the_verdict(incumbent: int, sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The better model loses answers, too, but those that it gains come first; the reverse for the worse one."""
    monkeypatch.setattr(
        "app.compare.question_sets.question_set_history._changes", lambda first, second, ids, leads: leads
    )
    basis = some_models(0.3)
    basis = replace(basis, ids=[str(place) for place in range(len(basis.group))])
    (claim,) = claims(basis, incumbent)
    leads = basis.credits.hit[:, claim.run] - basis.credits.hit[:, claim.rival]
    assert {-1.0, 1.0} <= {*leads}
    history = cast(SetHistory, SimpleNamespace(shares=basis, views=basis.views))
    assert cast(list[float], changed_answers(history, claim, 3)) == [sign] * 3


def test_the_best_of_the_others_is_the_rival() -> None:
    (first, second, third) = claims(some_models(0.25, 0.3))
    assert (first.verdict, second.verdict, third.verdict) == (BETTER, WORSE, WORSE)
    assert second.rival == third.rival == 0


def test_it_is_better_only_if_it_leads_every_other_one() -> None:
    equals = some_models(0.0, 0.4)
    assert verdicts(equals)[0] == verdicts(equals)[1] == NOT_SHOWN


def test_each_model_tried_makes_a_claim_harder() -> None:
    basis = some_models(0.07, examples=120)
    p = [claims(basis, 0, tests=tests)[0].p for tests in (1, 2, 5, 20)]
    assert p == sorted(p)
    assert p[1] == pytest.approx(min(1.0, 2 * p[0]))
    few, many = claims(basis, 0, tests=1)[0], claims(basis, 0, tests=20)[0]
    assert many.low < few.low < few.lead < few.high < many.high


def test_an_interval_and_its_verdict_agree() -> None:
    for seed in range(8):
        for claim in claims(some_models(0.05, 0.12, 0.2, examples=60, seed=seed)):
            assert claim.low <= claim.lead <= claim.high
            if claim.verdict == BETTER:
                assert claim.low > -0.01
            if claim.verdict == WORSE:
                assert claim.high < 0.01


def test_three_rows_and_a_single_model_show_nothing() -> None:
    right = np.zeros((3, 2, 2), np.bool_)
    right[:, :, 1] = True
    assert verdicts(basis_of(right)) == {0: NOT_SHOWN, 1: NOT_SHOWN}
    assert claims(basis_of(right[:, :, :1])) == []


def test_one_page_shows_nothing() -> None:
    basis = some_models(0.4)
    one_page = replace(basis, clusters=Clusters.of(np.zeros(len(basis.group), np.int64)))
    assert set(verdicts(one_page).values()) == {NOT_SHOWN}


def test_unknown_labels_of_one_model_do_not_shrink_the_comparison_of_others() -> None:
    """A broken model whose answers have no label leaves the two others as they are."""
    basis = some_models(0.3, 0.3)
    label = basis.label.copy()
    label[: len(label) // 2, 2] = -1
    text = -1 - np.arange(label.size).reshape(label.shape)
    known = (label >= 0).all(1)
    ids = [str(number) for number in range(len(label))]
    every = UndecidedAnswers(basis.metric, basis.clusters, basis.condition, label, text, group=basis.group, ids=ids)
    partly = TargetShares(
        basis.views,
        basis.metric,
        basis.group[known],
        basis.clusters.at(known),
        basis.condition[known],
        label[known],
        every,
    )
    assert pair_lead(partly.credits, 0, 1) == pytest.approx(basis.difference(0, 1).value)
    assert verdicts(partly, 0)[1] == verdicts(basis, 0)[1] == WORSE
    assert claims(partly, 0)[1].low < claims(basis, 0)[1].low  # what is unknown may all be wrong


def false_claims(studies: int, worse_by: Sequence[float], *, examples: int = 60, seed: int = 0) -> Counter[str]:
    """Count the studies in which the last of the models is told apart from the others, corrected and not.

    "plain" is a paired test against the best so far at 5%, "highest" the best share; "first" are claims beside the first model as
    the incumbent, of which one is enough.
    """
    counts: Counter[str] = Counter()
    random = np.random.default_rng(seed)
    last = len(worse_by)
    for _ in range(studies):
        basis = basis_of(simulated(random, examples, 2, worse_by))
        claim = claims(basis)[last]
        counts[f"corrected {claim.verdict}"] += 1
        best = int(np.argmax(basis.shares[:last]))
        plain = basis.difference(last, best)
        counts["plain better"] += plain.p <= ALPHA and plain.value > 0
        counts["plain worse"] += plain.p <= ALPHA and plain.value < 0
        counts["highest"] += bool(basis.shares[last] > basis.shares[:last].max())
        p = [basis.difference(run, 0) for run in range(1, last + 1)]
        counts["first plain"] += any(d.p <= ALPHA and d.value > 0 for d in p)
        corrected = holm([d.p for d in p])
        counts["first corrected"] += any((q or 0.0) <= ALPHA and d.value > 0 for q, d in zip(corrected, p, strict=True))
    return counts


def first_runs(basis: TargetShares, count: int) -> TargetShares:
    """The first ``count`` runs alone."""
    views = replace(basis.views, runs=basis.views.runs[:count])
    return TargetShares(views, basis.metric, basis.group, basis.clusters, basis.condition, basis.label[:, :count])


def false_claims_in_turn(studies: int, models: int, *, examples: int = 60, seed: int = 0) -> Counter[str]:
    """Count the studies in which any of equal models is told apart when it is tried, each beside those before it."""
    counts: Counter[str] = Counter()
    random = np.random.default_rng(seed)
    for _ in range(studies):
        basis = basis_of(simulated(random, examples, 2, [0.0] * (models - 1)))
        in_turn = {claims(first_runs(basis, tried))[-1].verdict for tried in range(2, models + 1)}
        counts.update(in_turn)
    return counts


@pytest.mark.slow
def test_equal_models_tried_in_turn_are_rarely_told_apart() -> None:
    counts = false_claims_in_turn(40, 8)
    assert counts[BETTER] <= 5
    assert counts[WORSE] <= 5


@pytest.mark.slow
def test_the_twentieth_of_equal_models_wins_in_at_most_a_twentieth_of_studies() -> None:
    studies = 150
    counts = false_claims(studies, [0.0] * (MODELS - 1))
    assert counts[f"corrected {BETTER}"] <= 0.05 * studies
    assert counts[f"corrected {WORSE}"] <= 0.05 * studies + 4
    assert counts["plain worse"] > counts[f"corrected {WORSE}"]  # the luckiest of nineteen is no fair rival
    assert counts["first corrected"] < counts["first plain"]
    # The hardest case: the twentieth equals the first, and all between are worse.
    assert false_claims(60, [0.3] * (MODELS - 2) + [0.0])[f"corrected {BETTER}"] <= 5


@pytest.mark.slow
def test_a_model_that_is_better_than_nineteen_others_is_told() -> None:
    random = np.random.default_rng(9)
    wins = [claims(basis_of(simulated(random, 150, 2, [0.1] * (MODELS - 1))))[0].verdict for _ in range(20)]
    assert wins.count(BETTER) >= 12


@pytest.mark.slow
def test_as_many_rows_as_are_estimated_show_a_difference_in_most_studies() -> None:
    random = np.random.default_rng(3)
    pilots = [basis_of(simulated(random, 60, 2, [0.1])).least(0, 1) for _ in range(20)]
    examples = int(np.median([examples_to_show(60, pilot.error, 0.1, ALPHA / 2) for pilot in pilots]))
    studies = (basis_of(simulated(random, examples, 2, [0.1])) for _ in range(120))
    shown = sum(claims(study, 1)[0].verdict == BETTER for study in studies)
    assert 0.7 <= shown / 120 <= 0.97
