"""Recommendations by what a user says should win."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from app.compare.decision.trust_metric import OBEDIENCE, ceiling
from app.compare.decision.utility_metric import UserCosts
from app.compare.recommend.recommendation import Recommendation, recommend_views
from app.compare.recommend.recommendation_advice import rule_sentences
from app.compare.runs.packed_answers import LabelledAnswer
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.tables.abstention_quality import Costs
from tests.support.compared_runs import CONDITIONS, side, sides

EXAMPLES = 200


def model(name: str, under_conflict: str, aligned: str = "BOTH") -> RunView:
    """A model that does one thing under conflict."""
    labels = {(f"e{n}", c): aligned if c == "aligned" else under_conflict for n in range(EXAMPLES) for c in CONDITIONS}
    return replace(side(name, labels), own_rows_only=True)


def reader(name: str, correct: float) -> RunView:
    """A model that does the same in some examples, and invents in the others."""
    labels = {
        (f"e{n}", c): "BOTH" if c == "aligned" else "IMAGE" if n < correct * EXAMPLES else "NEITHER"
        for n in range(EXAMPLES)
        for c in CONDITIONS
    }
    return replace(side(name, labels), own_rows_only=True)


def ruled(run: RunView, *rules: str) -> RunView:
    """The run over rows that say what should win: example ``n`` has the rule ``n`` of these, in turn."""
    answers = {i: a._replace(rule=rules[int(a.group[1:]) % len(rules)]) for i, a in run.answers.items()}
    return replace(run, answers=answers)


def recommended(recommendation: Recommendation) -> list[str]:
    decision = recommendation.decision
    return [decision.basis.views.runs[i].label for i in decision.holds]


@pytest.mark.parametrize(("rule", "winner"), [("image", "sees"), ("text", "reads"), ("flag", "flags")])
def test_the_rule_decides(rule: str, winner: str) -> None:
    views = sides(
        model("sees", "IMAGE"), model("reads", "TEXT"), model("flags", "ABSTAIN"), model("invents", "NEITHER")
    )
    recommendation = recommend_views(views, trust=rule)
    assert recommended(recommendation) == [winner]
    assert recommendation.table.columns[0] == OBEDIENCE
    assert not recommendation.by_rule


def test_without_a_rule_own_documents_have_a_sentence_for_each() -> None:
    by_rule = recommend_views(sides(model("sees", "IMAGE"), model("reads", "TEXT"), model("flags", "ABSTAIN"))).by_rule
    assert {rule: lead.shares[0][0] for rule, lead in by_rule.items() if lead.is_shown} == {
        "image": "sees",
        "text": "reads",
        "flag": "flags",
    }
    assert [sentence.partition(":")[0] for sentence in rule_sentences(by_rule)] == [
        "If the image should win",
        "If the text should win",
        "If a conflict should be flagged",
    ]


def test_without_a_rule_runs_that_differ_under_none_begin_with_no_recommendation() -> None:
    nothing = "No run can be recommended yet"
    alike = recommend_views(sides(reader("a", 0.8), reader("b", 0.8)))
    assert alike.summary.startswith(nothing)
    assert alike.advice[0].startswith(nothing)
    assert alike.decision.holds == (0, 1)
    assert any(line.startswith("Among the models only, 2 are shown to be within ") for line in alike.advice)
    sized = [
        replace(reader(name, 0.8), cost=RunCost(10, 10, 9.0, peak_memory=peak)) for name, peak in (("a", 9), ("b", 5))
    ]
    advice = recommend_views(sides(*sized)).advice
    assert advice[0].startswith(nothing)
    assert not any("ecommended" in line for line in advice[1:]), "one verdict leads, and no other follows"
    assert any(line.startswith("Among the models only, the choice would be b ") for line in advice)
    apart = recommend_views(sides(reader("a", 0.8), reader("b", 0.3)))
    assert nothing not in apart.summary


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_model_that_seldom_follows_the_rule_is_not_to_be_relied_on(share: float) -> None:
    recommendation = recommend_views(sides(reader("a", share), reader("b", share)), trust="image")
    unreliable = "a follows your rule in 30% of conflicts"
    assert (unreliable in recommendation.advice[0]) == (unreliable in recommendation.summary) == (share < 0.5)
    assert bool(recommendation.unreliable) == (share < 0.5)


def test_without_a_rule_models_that_follow_none_are_not_to_be_relied_on() -> None:
    assert recommend_views(sides(reader("a", 0.3), reader("b", 0.3))).unreliable
    assert not recommend_views(sides(reader("a", 0.8), reader("b", 0.3))).unreliable


def test_sentences_say_what_runs_are_compared_by() -> None:
    runs = [
        reader("a", 0.3),
        reader("b", 0.3),
        replace(model("policy:always-text", "TEXT"), spec={"model": "policy:always-text"}),
    ]
    for rule, words in ((None, "by decision accuracy"), ("image", "in following your rule")):
        lines = [
            line
            for line in recommend_views(sides(*runs), trust=rule).advice
            if re.search(r"beats? policy:always-text", line)
        ]
        assert lines
        assert all(words in line for line in lines)


def test_rows_that_all_say_what_should_win_decide_without_an_option() -> None:
    runs = [model("sees", "IMAGE"), model("reads", "TEXT"), model("flags", "ABSTAIN")]
    views = sides(*(ruled(run, "text", "text", "flag") for run in runs))
    recommendation = recommend_views(views)
    assert recommended(recommendation) == ["reads"]
    assert not recommendation.by_rule
    assert recommendation.decision.basis.shares.tolist() == pytest.approx(
        [1 / 4, 1 / 4 + 3 / 4 * 134 / 200, 1 / 4 + 3 / 4 * 66 / 200]
    )
    assert "each row's own" in recommendation.table.notes[0]
    assert recommend_views(views, trust="image").decision.basis.shares.tolist() == pytest.approx(
        recommendation.decision.basis.shares.tolist()
    )
    assert recommend_views(views, metric="accuracy").table.columns[0] == "decision accuracy"


def test_rows_of_which_some_say_what_should_win_leave_the_others_to_the_option() -> None:
    runs = [model("sees", "IMAGE"), model("reads", "TEXT")]
    views = sides(*(ruled(run, "text", "") for run in runs))
    asked = recommend_views(views)
    assert len(asked.by_rule) == 3
    assert "600 of 1,200 answers under conflict" in asked.advice[4]
    image = recommend_views(views, trust="image").decision.basis.shares.tolist()
    assert image == pytest.approx([1 / 4 + 3 / 8, 1 / 4 + 3 / 8])
    assert recommended(recommend_views(views, trust="text")) == ["reads"]


def test_the_ceiling_is_what_a_model_reads_of_what_each_row_takes() -> None:
    labels = {("a", "image-correct"): "TEXT", ("b", "image-correct"): "TEXT"}
    run = side("m", labels)
    alone = {f"{e}/image-only": LabelledAnswer(e, "image-only", "IMAGE", 0, "image") for e in ("a", "b")}
    alone |= {f"{e}/text-only": LabelledAnswer(e, "text-only", "NEITHER", 0, "text") for e in ("a", "b")}
    rules = {"a": "image", "b": "text"}
    answers = {i: answer._replace(rule=rules[answer.group]) for i, answer in {**run.answers, **alone}.items()}
    views = sides(replace(run, answers=answers))
    share = ceiling(views.runs[0], views, None)
    assert (share.value, share.n) == (0.5, 2)


def test_inventing_never_wins_where_both_sources_are_wrong() -> None:
    invents, follows = reader("invents", 0.5), reader("follows", 1.0)
    recommendation = recommend_views(sides(invents, follows))
    first, second = recommendation.decision.basis.shares.tolist()
    assert (first, second) == (pytest.approx(1.5 / 4), pytest.approx(2 / 4))
    assert recommended(recommendation) == ["follows"]


def test_the_share_of_conflicts_weighs_agreement() -> None:
    obeys, agrees = model("obeys", "IMAGE", aligned="NEITHER"), model("agrees", "TEXT")
    always, never = (
        recommend_views(sides(obeys, agrees), trust="image", user=UserCosts(conflict_share=share))
        for share in (1.0, 0.0)
    )
    assert recommended(always) == ["obeys"]
    assert recommended(never) == ["agrees"]


def test_both_extremes_are_those_of_the_recommended_run() -> None:
    best = replace(reader("best", 0.86), cost=RunCost(10, 10, 40.0, peak_memory=2000))
    small = replace(reader("small", 0.84), cost=RunCost(10, 10, 20.0, peak_memory=1000))
    for runs in ((best, small), (small, best)):
        recommendation = recommend_views(sides(*runs), trust="image", margin=0.2)
        assert "Recommended: small" in recommendation.summary
        assert recommendation.bounds.endswith(
            "small reaches 100.0% if no question has a conflict, and 84.0% if all have one."
        )


def test_a_rule_that_no_answer_follows_recommends_nobody_by_a_lead() -> None:
    recommendation = recommend_views(
        sides(model("a", "NEITHER", "NEITHER"), model("b", "NEITHER", "NEITHER")), trust="flag"
    )
    assert recommendation.decision.basis.shares.tolist() == [0, 0]


def test_costs_and_a_rule_exclude_each_other() -> None:
    views = sides(model("a", "IMAGE"), model("b", "TEXT"))
    with pytest.raises(SpecError):
        recommend_views(views, trust="image", user=UserCosts(Costs(wrong=2)))
    with pytest.raises(SpecError):
        recommend_views(views, trust="image", metric="CDR")
    with pytest.raises(SpecError):
        recommend_views(views, trust="nobody")
    other = RunViews(get_benchmark("contra4"), "choice@1", views.runs, seed=0)
    with pytest.raises(SpecError):
        recommend_views(other, trust="image")
