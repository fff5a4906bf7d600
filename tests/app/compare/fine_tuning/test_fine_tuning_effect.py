"""Before and after fine-tuning: which runs belong together, what changed, and whether the adapter is worth shipping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.compare.comparison_tables import compare_views
from app.compare.fine_tuning.fine_tuning_effect import FineTuning, conflict_conditions, fine_tunings, tuned_pairs
from app.compare.fine_tuning.fine_tuning_tables import fine_tuning_table, regressions_table
from app.compare.fine_tuning.fine_tuning_verdict import Verdict, verdict
from app.compare.runs.packed_answers import LabelledAnswer
from app.compare.runs.run_view import RunView, RunViews
from app.store.run_facts import TrainedExamples
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.vocabulary import Estimate
from tests.support.command import Rashomon
from tests.support.compared_runs import CONDITIONS, RIGHT, WRONG, side, sides
from tests.support.runs import instances, make_run, says

BASE = {"weights digest": "a" * 64}
TUNED = {**BASE, "adapter digest": "b" * 64}
FUSED = {"weights digest": "c" * 64, "adapter digest": "b" * 64, "base weights digest": "a" * 64}


def run(name: str, right: Mapping[str, float], identity: Mapping[str, Any], *, examples: int = 200) -> RunView:
    """A run that is right on this share of the examples under each condition."""
    labels = {
        (f"e{number:03d}", condition): (RIGHT if number < right[condition] * examples else WRONG)[condition]
        for number in range(examples)
        for condition in CONDITIONS
    }
    return side(name, labels, identity=dict(identity))


def shares(conflict: float, aligned: float) -> dict[str, float]:
    return {condition: aligned if condition == "aligned" else conflict for condition in CONDITIONS}


BEFORE = run("base", shares(0.3, 0.97), BASE)


def verdict_on(after: RunView, *others: RunViews, margin: float = 0.03, before: RunView = BEFORE) -> Verdict:
    (tuning,) = fine_tunings(sides(before, after), others, resamples=200)
    return checked(tuning, margin)


def checked(tuning: FineTuning, margin: float = 0.03) -> Verdict:
    """The verdict, in whose sentences every shown loss is, before any gain."""
    of = verdict(tuning, margin)
    shown = [change for change in tuning.changes if change.is_loss()]
    assert {change.part for change in of.losses} == {change.part for change in shown}
    for change in shown:
        assert change.part in of.text
    if shown:
        assert of.sentences[0].startswith(f"{tuning.tuned.label} loses ")
    assert of.text.startswith(of.category.capitalize())
    assert len(of.sentences) <= 3
    return of


# --- which runs belong together --------------------------------------------------------------


def test_pairs() -> None:
    tuned, fused = run("tuned", shares(0.9, 0.97), TUNED), run("fused", shares(0.9, 0.97), FUSED)
    other = run("other", shares(0.9, 0.97), {"weights digest": "d" * 64})
    assert [(a.name, b.name) for a, b in tuned_pairs([BEFORE, tuned, fused, other])] == [
        ("base", "tuned"),
        ("base", "fused"),
    ]
    assert tuned_pairs([tuned, BEFORE]) == [(BEFORE, tuned)], "in any order"
    assert not tuned_pairs([BEFORE, other])
    assert not tuned_pairs([tuned, fused]), "neither is the other's base"
    assert not tuned_pairs([replace(BEFORE, identity={**BEFORE.identity, "prompt set": "official"}), tuned])
    of_fused = run("more", shares(0.9, 0.9), {"weights digest": "c" * 64, "adapter digest": "e" * 64})
    assert tuned_pairs([fused, of_fused]) == [(fused, of_fused)], "an adapter on a fused model"


@pytest.mark.parametrize("name", benchmark_names())
def test_every_condition_is_with_or_without_conflict(name: str) -> None:
    benchmark = get_benchmark(name)
    conflicts, without = conflict_conditions(benchmark)
    assert sorted((*conflicts, *without)) == sorted(benchmark.full_conditions)
    assert conflicts
    assert not any("non-conflict" in condition or "original" in condition for condition in conflicts)


# --- what changed ----------------------------------------------------------------------------


def test_the_changes_are_those_of_the_answers() -> None:
    after = run("tuned", shares(0.9, 0.95), TUNED)
    (tuning,) = fine_tunings(sides(BEFORE, after), resamples=500)
    gain, (loss,) = tuning.gain, tuning.losses
    assert (gain.part, loss.part) == ("under conflict", "without conflict")
    assert gain.difference.value == pytest.approx(0.6)
    assert (gain.difference.n, gain.gained, gain.lost) == (600, 360, 0)
    assert (loss.difference.n, loss.gained, loss.lost) == (200, 0, 4)
    assert gain.difference.low is not None
    assert gain.difference.high is not None
    assert gain.difference.low < 0.6 < gain.difference.high
    # Examples, not answers: all three answers of an example change together here.
    assert gain.difference.high - gain.difference.low == pytest.approx(2 * 1.96 * (0.6 * 0.4 / 200) ** 0.5, rel=0.15)
    table = fine_tuning_table([tuning])
    assert [label for label, _ in table.rows] == [
        "tuned / under conflict",
        "tuned / in CDR",
        "tuned / without conflict",
        "tuned / under image-correct",
        "tuned / under text-correct",
        "tuned / under both-wrong",
        "tuned / in answers from the sources under conflict",
    ]
    before = table.rows[0][1][0]
    assert isinstance(before, Estimate)
    assert before.value == pytest.approx(0.3)


def test_answers_that_cannot_be_read_count_as_wrong_and_missing_ones_not_at_all() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    unreadable = {
        name: answer._replace(outcome="unparsed") if answer.condition == "aligned" else answer
        for name, answer in after.answers.items()
    }
    (tuning,) = fine_tunings(sides(BEFORE, replace(after, answers=unreadable)), resamples=200)
    assert tuning.losses[0].difference.value == pytest.approx(-0.97)
    missing = {
        name: answer._replace(outcome="error") if number % 2 else answer
        for number, (name, answer) in enumerate(after.answers.items())
    }
    (tuning,) = fine_tunings(sides(BEFORE, replace(after, answers=missing)), resamples=200)
    assert tuning.gain.difference.n + tuning.losses[0].difference.n == len(after.answers) // 2


def test_runs_without_common_answers_are_told_apart() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    elsewhere = {f"x{name}": answer for name, answer in after.answers.items()}
    (tuning,) = fine_tunings(sides(BEFORE, replace(after, answers=elsewhere)), resamples=200)
    assert tuning.gain.difference.value is None
    assert not tuning.losses
    assert verdict(tuning).category == "not established"
    assert "run both on the same instances" in verdict(tuning).text


# --- the verdict -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conflict", "aligned", "category"),
    [
        (0.9, 0.97, "worth shipping"),
        (0.3, 0.97, "no worthwhile gain"),
        (0.2, 0.97, "harmful"),
        (0.9, 0.8, "harmful"),
        (0.3, 0.04, "harmful"),
    ],
)
def test_categories(conflict: float, aligned: float, category: str) -> None:
    assert verdict_on(run("tuned", shares(conflict, aligned), TUNED)).category == category
    assert verdict_on(run("fused", shares(conflict, aligned), FUSED)).category == category


def test_few_examples_establish_nothing_and_say_how_many_would() -> None:
    few = [run(n, shares(x, 0.9), i, examples=20) for n, x, i in (("base", 0.1, BASE), ("tuned", 0.9, TUNED))]
    of = verdict_on(few[1], before=few[0])
    assert of.category == "not established"
    assert of.examples is not None
    assert f"about {of.examples:,} examples would decide" in of.text
    assert verdict_on(few[1], before=few[0], margin=0.2).category == "worth shipping"
    more = [run(r.name, shares(x, 0.9), r.identity, examples=of.examples) for r, x in zip(few, (0.1, 0.9), strict=True)]
    assert verdict_on(more[1], before=more[0]).category == "worth shipping"


def test_two_examples_are_not_called_a_failure() -> None:
    two = [run(name, shares(1, 1), identity, examples=2) for name, identity in (("base", BASE), ("tuned", TUNED))]
    of = verdict_on(two[1], before=two[0])
    assert of.category == "not established"
    assert of.examples is None
    assert "No gain of tuned can be shown under conflict: 0 points (-" in of.text
    assert "2 examples cannot tell how many would decide, about 90 at the earliest." in of.text


def test_a_destroyed_adapter_is_judged_by_what_its_answers_became() -> None:
    """It gains where neither source is right, by abstaining, and has lost nearly all that it could."""
    became = ["ABSTAIN", "NEITHER", "unparsed", "NEITHER"]
    destroyed = {
        name: answer._replace(outcome=became[number // 4 % 4])
        for number, (name, answer) in enumerate(run("tuned", shares(0.3, 0.97), TUNED).answers.items())
    }
    base = run("base", {**shares(0.9, 0.97), "both-wrong": 0}, BASE)
    of = verdict_on(replace(side("tuned", {}, identity=TUNED), answers=destroyed), before=base)
    assert of.category == "harmful"
    assert of.losses[0].part == "without conflict"
    assert of.sentences[0].startswith("tuned loses 97 points without conflict (")
    assert "from 97.0% to 0.0%: 97 of 200 now invent a value, 49 abstain and 48 have no answer" in of.text
    gain = next(change for change in of.tuning.conflicts if change.part == "under both-wrong")
    assert gain.is_gain()
    assert gain.rose_by == (("abstains", 50),)
    assert of.text.endswith(", but also abstains on 49 of 200 without conflict.")


def test_a_gain_by_abstaining_is_called_that() -> None:
    base, after = run("base", shares(0, 1), BASE), run("tuned", {**shares(0, 1), "both-wrong": 1}, TUNED)
    of = verdict_on(after, before=base)
    assert of.category == "worth shipping"
    assert "gains 33.3 points under conflict (" in of.text
    assert "200 of 200 answers by abstaining" in of.text


def test_an_adapter_that_names_conflicts_is_judged_by_the_metric_that_is_named() -> None:
    """CMC-Bench's accuracy does not count a named conflict where one source is right; CDR does."""
    after = run("tuned", shares(0.3, 0.97), TUNED)
    naming = {
        name: answer if answer.condition == "aligned" else answer._replace(outcome="ABSTAIN")
        for name, answer in after.answers.items()
    }
    views = sides(BEFORE, replace(after, answers=naming))
    (tuning,) = fine_tunings(views, resamples=200)
    of = checked(tuning)
    assert of.category == "not established"
    assert "--metric CDR decides by it" in of.text
    assert tuning.detection is not None
    assert tuning.detection.is_gain()
    assert not [change for change in of.losses if change.part.startswith("under ")], "naming a conflict is no loss"
    (by_metric,) = compare_views(views, metrics=["cdr"], resamples=200).fine_tunings
    assert by_metric.gain.part == "in CDR"
    assert checked(by_metric).category == "worth shipping"


def test_inventions_under_conflict_are_a_loss_whatever_the_metric() -> None:
    """Half of the conflicts are named and half of the answers invented; CDR alone shows the first."""
    after = run("tuned", shares(0.3, 0.97), TUNED)
    half = {
        name: answer
        if answer.condition == "aligned"
        else answer._replace(outcome="ABSTAIN" if number % 8 < 4 else "NEITHER")
        for number, (name, answer) in enumerate(after.answers.items())
    }
    views = sides(run("base", shares(0.3, 0.97), BASE), replace(after, answers=half))
    (tuning,) = compare_views(views, metrics=["cdr"], resamples=200).fine_tunings
    of = checked(tuning)
    assert of.category == "harmful"
    assert of.losses[0].part == "in answers from the sources under conflict"
    assert "300 of 600 now invent a value" in of.text
    assert "gains 40 points in CDR" in of.text


def followers(text_share: float, rule: str, invented: int = 0) -> RunViews:
    """A base that follows the image and a model that follows the text in this share, over rows with a ``rule``.

    The model invents a value in the last ``invented`` examples.
    """
    views = []
    for name, identity, share in (("base", BASE, 0.0), ("tuned", TUNED, text_share)):
        labels = {
            (f"e{n:03d}", condition): "BOTH"
            if condition == "aligned"
            else "NEITHER"
            if share and n >= 200 - invented
            else "TEXT"
            if n < share * 200
            else "IMAGE"
            for n in range(200)
            for condition in ("aligned", "image-correct", "text-correct")
        }
        view = side(name, labels, identity=dict(identity))
        views.append(replace(view, answers={i: a._replace(rule=rule) for i, a in view.answers.items()}))
    return sides(*views)


def test_the_rule_of_the_rows_decides() -> None:
    """Following the text is right where the rows say so, also where the benchmark has the image's value as the right one."""

    def judged(rule: str) -> Verdict:
        (tuning,) = fine_tunings(followers(1, rule), resamples=200)
        return checked(tuning)

    ruled = judged("text")
    assert ruled.category == "worth shipping"
    assert "gains 100 points in following your rule (text) under conflict (" in ruled.text
    assert not ruled.losses
    assert any("(text)" in note for note in fine_tuning_table([ruled.tuning]).notes)
    other = judged("image")
    assert other.category == "harmful"
    assert other.losses[0].part == "in following your rule (image) under conflict"
    unruled = judged("")
    assert unruled.category == "harmful"
    assert unruled.losses[0].part == "under image-correct"


def test_wrong_answers_that_become_inventions_are_named_and_decide_nothing() -> None:
    (tuning,) = fine_tunings(followers(0.9, "text", invented=20), resamples=200)
    of = checked(tuning)
    assert of.category == "worth shipping"
    assert "tuned loses 10 points in answers from the sources under conflict (" in of.text
    assert "none followed your rule before" in of.text
    assert "40 of 400 now invent a value" in of.text
    (tuning,) = fine_tunings(followers(0.9, "image", invented=20), resamples=200)
    lost = next(change for change in checked(tuning).losses if change.of_right is not None)
    assert lost.of_right is not None
    assert lost.of_right.lost == 40, "what followed the rule and is now invented counts"


def test_the_bound_that_decides_is_printed() -> None:
    """Of 110 examples without a change the two-sided interval reaches beyond 3 points, the one-sided bound does not."""
    base, same = (run(name, shares(0.3, 1), of, examples=110) for name, of in (("base", BASE), ("tuned", TUNED)))
    none = verdict_on(same, before=base)
    assert none.category == "no worthwhile gain"
    assert none.text.endswith("tuned gains less than 3 points under conflict (0 points, at most +2.4 at 95%).")
    assert tuple(round(x, 3) for x in none.tuning.gain.interval() or ()) == (-0.034, 0.034)
    good = verdict_on(run("tuned", shares(0.9, 1), TUNED, examples=110), before=base)
    assert good.text.endswith("It loses less than 3 points without conflict (0 points, at least -2.4 at 95%).")


def test_a_metric_that_is_undefined_says_why() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    runs = [
        replace(of, answers={name: a for name, a in of.answers.items() if a.condition != "both-wrong"})
        for of in (BEFORE, after)
    ]
    (tuning,) = compare_views(sides(*runs), metrics=["cdr"], resamples=100).fine_tunings
    of = checked(tuning)
    assert of.category == "not established"
    assert "tuned cannot be compared in CDR: no instance of some condition that the metric needs" in of.text


def test_a_lower_metric_can_be_better() -> None:
    views = sides(run("base", shares(0.3, 0.97), BASE), run("tuned", shares(0.3, 0.97), TUNED))
    before, after = views.runs
    changed = {
        name: answer._replace(outcome="NEITHER" if answer.condition != "aligned" else answer.outcome)
        for name, answer in after.answers.items()
    }
    worse = replace(views, runs=(before, replace(after, answers=changed)))
    (tuning,) = compare_views(worse, metrics=["ConfabR"], resamples=200).fine_tunings
    assert checked(tuning).category == "harmful"
    assert "loses 100 points in ConfabR (lower is better; " in checked(tuning).text
    better = replace(
        views,
        runs=(replace(before, answers=changed), after),
    )
    (tuning,) = compare_views(better, metrics=["ConfabR"], resamples=200).fine_tunings
    assert checked(tuning).category == "worth shipping"


def test_answers_to_other_prompts_are_not_compared() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    rebuilt = {name: answer._replace(prompt=1) for name, answer in after.answers.items()}
    of = verdict_on(replace(after, answers=rebuilt))
    assert of.category == "not established"
    assert "800 instances of both runs have different prompts or pictures, as after a rebuild" in of.text
    some = {n: a._replace(prompt=1) if a.group < "e010" else a for n, a in after.answers.items()}
    of = verdict_on(replace(after, answers=some))
    assert of.category == "worth shipping"
    assert of.tuning.gain.difference.n == 3 * 190


def test_a_fine_tuned_run_without_its_base_is_named() -> None:
    sibling = run("sibling", shares(0.3, 0.97), {"weights digest": "d" * 64})
    tuned = run("tuned", shares(0.9, 0.97), TUNED)
    comparison = compare_views(sides(sibling, tuned), resamples=100)
    assert comparison.fine_tunings == ()
    assert any("no verdict on the adapter of tuned" in warning for warning in comparison.warnings)
    of_fused = run("more", shares(0.9, 0.9), {"weights digest": "c" * 64, "adapter digest": "e" * 64})
    warnings = compare_views(sides(BEFORE, of_fused), resamples=100).warnings
    assert any("no verdict on the adapter of more" in warning for warning in warnings)
    assert not any("no verdict" in warning for warning in compare_views(sides(BEFORE, tuned), resamples=100).warnings)


def test_without_rows_to_forget_on_nothing_is_established() -> None:
    runs = [run("base", shares(0.3, 1), BASE), run("tuned", shares(0.9, 1), TUNED)]
    conflicts = [
        replace(r, answers={name: a for name, a in r.answers.items() if a.condition != "aligned"}) for r in runs
    ]
    (tuning,) = fine_tunings(sides(*conflicts), resamples=200)
    assert not tuning.losses
    assert checked(tuning).category == "not established"
    assert "add runs of both on rows without conflict" in checked(tuning).text


def other_benchmark(name: str, before: float, after: float, label: str, wrong: str) -> RunViews:
    """Runs of the same two models on another benchmark, right on these shares of 3,000 questions."""
    benchmark = get_benchmark(name)
    condition = benchmark.conditions[0]

    def view(run_name: str, share: float, identity: Mapping[str, Any]) -> RunView:
        answers = {
            f"q{i}": LabelledAnswer(f"q{i}", condition, label if i < share * 3000 else wrong, 0) for i in range(3000)
        }
        return replace(side(run_name, {}, identity=dict(identity)), answers=answers)

    return RunViews(benchmark, "j", (view("base", before, BASE), view("tuned", after, TUNED)), seed=0)


def test_losses_on_other_benchmarks_decide_too() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    kept = other_benchmark("okvqa", 0.6, 0.6, "CORRECT", "WRONG")
    lost = other_benchmark("okvqa", 0.6, 0.45, "CORRECT", "WRONG")
    assert verdict_on(after, kept).category == "worth shipping"
    assert verdict_on(after, lost).category == "harmful"
    assert verdict_on(after, lost).sentences[0].startswith("tuned loses 15 points on OK-VQA (")
    (tuning,) = fine_tunings(sides(BEFORE, after), [lost], resamples=200)
    table = regressions_table([tuning], [lost], 200)
    assert table is not None
    rows = dict(table.rows)
    assert table.columns == ("OKVQA",)
    (difference,) = rows["tuned less base"]
    assert isinstance(difference, Estimate)
    assert difference.value == pytest.approx(-0.15)
    (paper,) = rows["LLaVa-1.5-7b-ft (paper)"]
    assert isinstance(paper, Estimate)
    assert paper.value == 0.4393


def test_a_benchmark_on_which_all_answers_are_errors_leaves_the_verdict_open() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    failed = other_benchmark("okvqa", 0.6, 0.6, "error", "error")
    assert verdict_on(after, failed).category == "not established"
    assert "Nothing is known on OK-VQA" in verdict_on(after, failed).text
    (tuning,) = fine_tunings(sides(BEFORE, after), [failed], resamples=100)
    assert len(fine_tuning_table([tuning]).rows) == 8


def by_condition(name: str, right: Mapping[str, float], identity: Mapping[str, Any]) -> RunView:
    """A run of 200 examples with three conditions without a conflict, right on these shares of the answers."""
    answers = {
        f"e{n}/{condition}": LabelledAnswer(f"e{n}", condition, _label(condition, n < share * 200), 0)
        for n in range(200)
        for condition, share in right.items()
    }
    return replace(side(name, {}, identity=dict(identity)), answers=answers)


def _label(condition: str, correct: bool) -> str:
    benchmark = get_benchmark("cmc-bench")
    right = [
        label for label in benchmark.labels if benchmark.correct(condition, label) and label not in benchmark.inventions
    ]
    return next(label for label in benchmark.labels if (label in right) == correct)


def test_conditions_that_lose_alike_are_named_without_their_points() -> None:
    before = {"both-wrong": 0.1, "aligned": 1.0, "image-only": 1.0, "text-only": 1.0}
    alike = before | {"aligned": 0.5, "image-only": 0.52, "text-only": 0.1}
    of = verdict_on(by_condition("tuned", alike, TUNED), before=by_condition("base", before, BASE))
    assert of.sentences[0].startswith("tuned loses 62.7 points without conflict (")
    assert "; it also loses 90 points under text-only, 50 under aligned and 48 under image-only." in of.text
    same = before | {"aligned": 0.5, "image-only": 0.5, "text-only": 0.5}
    of = verdict_on(by_condition("tuned", same, TUNED), before=by_condition("base", before, BASE))
    assert "; under aligned, under image-only and under text-only alike), from 100.0% to 50.0%" in of.text
    assert "it also loses" not in of.text


def test_a_loss_under_a_single_condition_is_said() -> None:
    before = {"both-wrong": 0.1, "aligned": 1.0, "image-only": 0.9, "text-only": 1.0}
    base = by_condition("base", before, BASE)

    def verdict_after(margin: float, **right: float) -> Verdict:
        after = before | {"both-wrong": 0.9} | {name.replace("_", "-"): share for name, share in right.items()}
        return verdict_on(by_condition("tuned", after, TUNED), before=base, margin=margin)

    assert "by themselves" not in verdict_after(0.06).text
    hidden = verdict_after(0.06, image_only=0.8)
    assert hidden.category == "harmful"
    assert hidden.sentences[0].startswith("tuned loses 10 points under image-only (")
    unsure = verdict_after(0.03, image_only=0.885)
    assert unsure.category == "worth shipping"
    assert "; by themselves, these may lose more: under image-only -1.5." in unsure.text
    small = verdict_after(0.15, image_only=0.85)
    assert small.category == "worth shipping"
    assert small.sentences[0].startswith("tuned loses 5 points under image-only (")


def test_a_model_that_was_trained_on_the_test_data_is_not_established() -> None:
    after = run("tuned", shares(0.9, 0.97), TUNED)
    trained = replace(after, trained=TrainedExamples(30, 200, "tuned"))
    assert verdict_on(trained).category == "not established"
    assert "30 of the 200 examples" in verdict_on(trained).text
    worse = replace(run("tuned", shares(0.9, 0.5), TUNED), trained=TrainedExamples(30, 200, "tuned"))
    assert verdict_on(worse).category == "harmful", "a loss on what it was trained on is one elsewhere"
    other = other_benchmark("okvqa", 0.6, 0.6, "CORRECT", "WRONG")
    seen = replace(other, runs=(other.runs[0], replace(other.runs[1], trained=TrainedExamples(1, 3000, "tuned"))))
    assert verdict_on(after, other).category == "worth shipping"
    assert verdict_on(after, seen).category == "not established"


def test_partial_scores_count_in_part() -> None:
    labels = {label: score for label, score in get_benchmark("okvqa").scores.items() if 0 < score < 1}  # type: ignore[attr-defined]
    label, score = next(iter(labels.items()))
    partial = other_benchmark("okvqa", 1.0, 1.0, label, "WRONG")
    (tuning,) = fine_tunings(sides(BEFORE, run("tuned", shares(0.9, 0.97), TUNED)), [partial], resamples=100)
    assert tuning.losses[-1].before.value == pytest.approx(score)


def test_a_comparison_without_adapters_is_as_before() -> None:
    comparison = compare_views(sides(BEFORE, run("other", shares(0.4, 0.9), {"weights digest": "d" * 64})))
    assert comparison.fine_tunings == ()
    assert "fine-tuning" not in [table.name for table in comparison.tables]


@pytest.mark.slow
def test_a_lossy_adapter_is_seldom_called_worth_shipping() -> None:
    """In truth it loses the margin without conflict: at most one comparison in twenty may say that it does not."""
    random, shipped, times = np.random.default_rng(1), 0, 400
    for _ in range(times):
        right = {"base": random.random(300) < 0.9}
        right["tuned"] = right["base"] & (random.random(300) < 1 - 0.03 / 0.9)
        runs = []
        for name, identity in (("base", BASE), ("tuned", TUNED)):
            labels = {}
            for i in range(300):
                labels[f"e{i}", "aligned"] = (RIGHT if right[name][i] else WRONG)["aligned"]
                labels[f"e{i}", "both-wrong"] = (RIGHT if name == "tuned" else WRONG)["both-wrong"]
            runs.append(side(name, labels, identity=dict(identity)))
        (tuning,) = fine_tunings(sides(*runs), resamples=2)
        shipped += verdict(tuning).category == "worth shipping"
    assert shipped <= 0.08 * times


# --- the command -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A base's run that follows the image, and its fine-tuned model's run that is always right."""
    rashomon = Rashomon(tmp_path_factory.mktemp("tuned"))
    workspace, items = Workspace(rashomon.workspace), instances(40)
    correct = {"image-correct": "12", "text-correct": "12", "both-wrong": "cannot be determined"}
    make_run(workspace, "base", items, lambda i: says(next(iter(i.references.values()))[0])(i), model="org/m")
    make_run(workspace, "tuned", items, lambda i: says(correct.get(i.condition, "12"))(i), model="org/m+/x/fine")
    identities = {"base": {"weights digest": "a" * 64}, "tuned": TUNED}
    for name, identity in identities.items():
        with RunStore.open(rashomon.workspace / "runs" / name) as store:
            store.set_meta("identity", {**store.meta("identity"), **identity})
    return rashomon


def test_the_command_says_it_first_and_prints_the_table(home: Rashomon) -> None:
    output = home.run("compare", "base", "tuned").stdout
    assert output.splitlines()[0].startswith("Not established: m+fine gains 66.7 points under conflict (")
    assert "Before and after fine-tuning" in output
    values = home.json("compare", "base", "tuned")
    (text,), (tuning,) = values["verdicts"], values["fine_tunings"]
    assert text in output
    assert (tuning["run"], tuning["category"], tuning["losses"]) == ("tuned", "not established", [])
    assert tuning["examples_needed"] in range(85, 95), "none changed, which fewer cannot show to be below 3 points"
    assert [change["part"] for change in tuning["open"]] == ["without conflict"]
    assert tuning["gains"][0]["part"] == "under conflict"
    assert tuning["changes"][0]["examples"] == 40
    home.run("compare", "base", "tuned", "--margin", "0", code=2)


def test_the_table_is_exported(home: Rashomon, tmp_path: Path) -> None:
    home.run("compare", "base", "tuned", "--format", "csv,md,latex", "--out", tmp_path / "out")
    assert any("fine-tuning" in path.name for path in (tmp_path / "out").iterdir())


def test_the_page_and_the_report_have_the_margin_that_was_given(home: Rashomon, tmp_path: Path) -> None:
    for number, margin in enumerate(("0.03", "0.2")):
        home.run("compare", "base", "tuned", "--format", "html", "--margin", margin, "--out", tmp_path / f"c{number}")
        home.run("report", "base", "tuned", "--margin", margin, "--out", tmp_path / f"r{number}")
    pages = [(tmp_path / f"c{number}" / "comparison.html").read_text(encoding="utf-8") for number in (0, 1)]
    assert ["Not established: m+fine" in page for page in pages] == [True, False]
    assert ["Worth shipping: m+fine" in page for page in pages] == [False, True]
    reports = ["".join(x.read_text() for x in (tmp_path / f"r{n}").rglob("*.html")) for n in (0, 1)]
    assert ["Worth shipping: m+fine" in text for text in reports] == [False, True]


def test_runs_of_another_benchmark_that_are_no_pair_are_refused(home: Rashomon) -> None:
    import shutil

    folder = home.workspace / "runs" / "pope"
    shutil.copytree(home.workspace / "runs" / "base", folder)
    with RunStore.open(folder) as store:
        store.set_meta("spec", {**store.meta("spec"), "benchmark": "pope", "prompt_set": "pope"})
    home.run("compare", "base", "tuned", "pope", code=2)
