"""What became of answers: losses and gains are counted apart, and changes of side are neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from app.compare.comparison_headline import headlines
from app.compare.comparison_tables import Comparison, compare_views
from app.compare.differences.label_flips import flipped_table
from app.compare.differences.lost_and_gained import (
    CHANGED,
    GAINED,
    LOST,
    Transitions,
    transitions_headline,
    transitions_table,
)
from app.compare.runs.packed_answers import LabelledAnswer, PackedAnswers
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.answer_behaviour import ACTS, act_of
from benchmarks.answers import AnswerKind, InstanceKind
from benchmarks.registry import get_benchmark
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Table, Verdict, VerdictStatus
from tests.support.compared_runs import side, sides

CMC = get_benchmark("cmc-bench")
BFLOAT, FOUR_BIT = "m-bf16", "m-4bit"


def runs(*rows: tuple[str, str, str], names: tuple[str, str] = (BFLOAT, FOUR_BIT)) -> RunViews:
    """Two runs over own rows; each row is a condition and what both made of it, every one of another page."""
    labels = [{(f"e{number}", row[0]): row[run] for number, row in enumerate(rows)} for run in (1, 2)]
    return sides(*(replace(side(name, of), own_rows_only=True) for name, of in zip(names, labels, strict=True)))


def alone(*rows: tuple[str, str, str]) -> RunViews:
    """Two runs over a source alone, each row being the source's modality and what both made of it."""
    answers = (
        {
            f"e{n}/{row[0]}": LabelledAnswer(f"e{n}", f"{row[0] or 'image'}-only", row[run], 0, row[0])
            for n, row in enumerate(rows)
        }
        for run in (1, 2)
    )
    return sides(*(replace(side(name, {}), answers=of) for name, of in zip((BFLOAT, FOUR_BIT), answers, strict=True)))


def on_pages(run: RunView, size: int) -> RunView:
    """Return a run whose answers are ``size`` to a page."""
    answers = enumerate(run.answers.items())
    return replace(run, answers={name: answer._replace(group=f"page {n // size}") for n, (name, answer) in answers})


def pair_of(views: RunViews) -> RunPair:
    first, second = views.runs
    return RunPair(first, second, views.label_metrics, 50, 0)


def numbers(views: RunViews) -> Mapping[str, int]:
    return {name: int(mask.sum()) for name, mask in Transitions.of(pair_of(views), views.benchmark).effects.items()}


def compared(views: RunViews) -> Comparison:
    return compare_views(views, resamples=50)


def table_of(views: RunViews) -> Table:
    table = transitions_table([pair_of(views)], views)
    assert table is not None
    return table


def test_an_answer_lost_and_an_invention_that_the_metric_rewards_are_two_losses() -> None:
    views = runs(
        ("aligned", "BOTH", "NEITHER"),
        ("both-wrong", "IMAGE", "NEITHER"),
        *[("aligned", "BOTH", "BOTH")] * 4,
    )
    assert numbers(views) == {LOST: 2, GAINED: 0, CHANGED: 0}
    first, second, *_ = headlines(compared(views))
    assert first.startswith("m-bf16 answers 6 prompts from the sources: ")
    assert " m-4bit loses 2 of these 6 (33.3%, " in first
    assert "gains" not in first, "there is nothing that it could gain"
    assert "points" not in first
    assert second.startswith("By benchmark accuracy (where both sources are wrong, it counts even an invented ")
    assert ": 0 points (" in second


def test_losses_and_gains_are_never_netted() -> None:
    views = runs(("aligned", "BOTH", "NEITHER"), ("aligned", "NEITHER", "IMAGE"), ("both-wrong", "unparsed", "TEXT"))
    assert numbers(views) == {LOST: 1, GAINED: 2, CHANGED: 0}
    first, *_ = headlines(compared(views))
    assert "m-bf16 answers 1 prompt from the sources: " in first
    assert "m-4bit loses 1 of these 1 (" in first
    assert "Of those that m-bf16 answers otherwise, it gains 2 of these 2 (" in first


def test_another_side_under_conflict_is_neither_and_is_named_with_its_direction() -> None:
    conflict = ("image-correct", "IMAGE", "TEXT"), ("text-correct", "IMAGE", "TEXT"), ("both-wrong", "ABSTAIN", "BOTH")
    views = runs(*conflict, ("aligned", "IMAGE", "TEXT"))
    assert numbers(views) == {LOST: 0, GAINED: 0, CHANGED: 3}
    first, *_ = headlines(compared(views))
    assert "m-4bit loses none of these 4 (at most " in first
    assert " Under conflict, changed but not lost: 3 (2 image to text, 1 flags to both)." in first


@pytest.mark.parametrize(
    ("source", "was", "now", "effect"),
    [
        ("image", "IMAGE", "TEXT", LOST),
        ("image", "TEXT", "IMAGE", GAINED),
        ("image", "IMAGE", "ABSTAIN", LOST),
        ("text", "TEXT", "unparsed", LOST),
        ("text", "IMAGE", "NEITHER", ""),
        ("", "IMAGE", "NEITHER", ""),  # a wrong source alone answers another question
    ],
)
def test_a_source_alone_is_read_or_not(source: str, was: str, now: str, effect: str) -> None:
    views = alone((source, was, now))
    assert Transitions.of(pair_of(views), views.benchmark).effect_names() == [effect]
    if not source:
        assert "Left out: 1 answers" in table_of(views).notes[-1]


def test_a_loss_under_the_same_label_is_found_and_listed() -> None:
    views = runs(("both-wrong", "NEITHER", "NEITHER"), ("aligned", "BOTH", "BOTH"), ("aligned", "BOTH", "BOTH"))
    first, second = views.runs
    right = {name: answer._replace(gives_right=answer.outcome == "NEITHER") for name, answer in first.answers.items()}
    cut = {name: answer._replace(cut_off=name == "e1/aligned") for name, answer in second.answers.items()}
    views = replace(views, runs=(replace(first, answers=right), replace(second, answers=cut)))
    assert numbers(views)[LOST] == 2
    flipped = flipped_table([pair_of(views)], benchmark=views.benchmark)
    effect = flipped.columns.index("effect")
    assert [(name, cells[effect]) for name, cells in flipped.rows] == [("e0/both-wrong", LOST), ("e1/aligned", LOST)]
    assert [label for label, _ in table_of(views).rows] == ["m-4bit / sources agree: both", "m-4bit / conflict: right"]


def test_the_table_counts_each_shared_answer_once() -> None:
    conditions, outcomes = ("aligned", "both-wrong"), ("IMAGE", "ABSTAIN", "NEITHER", "unparsed", "undecided", "error")
    views = runs(*product(conditions, outcomes, outcomes))
    table = table_of(views)
    columns = {name: place for place, name in enumerate(table.columns)}
    acts = [place for name, place in columns.items() if name in (*ACTS, "unknown")]
    assert "text" not in columns, "an act of no answer has no column"
    for _, cells in table.rows:
        assert sum(int(str(cells[place])) for place in acts) == cells[columns["all"]]
    total = {name: sum(int(str(cells[place])) for _, cells in table.rows) for name, place in columns.items()}
    assert total["all"] == 2 * len(outcomes) ** 2
    assert total["unknown"] == 2 * 2 * len(outcomes)
    assert (total[LOST], total[GAINED], total[CHANGED]) == (3 + 2 * 2, 3 + 2 * 2, 2)


def test_what_a_packed_answer_does_is_what_the_scorecard_says() -> None:
    judge = "match@4"
    statuses: tuple[VerdictStatus, ...] = ("labelled", "unparsed", "undecided", "judge-failed")
    labels, behaviours = (*CMC.labels,), (None, "right", "invents", "off-topic")
    expected, answers = list[str](), dict[str, LabelledAnswer]()
    for status, label, behaviour, cut_off in product((*statuses, None), labels, behaviours, (False, True)):
        verdicts = {}
        if status is not None:
            verdicts[judge] = Verdict(judge, status, label if status == "labelled" else None, behaviour=behaviour)
        kind = AnswerKind(InstanceKind("aligned"), "length" if cut_off else "stop", verdicts=verdicts)
        expected.append(act_of(kind, judge))
        name = label if status == "labelled" else status or "pending"
        flags = (bool(verdicts) and behaviour == "right", bool(verdicts) and behaviour == "off-topic")
        answers[str(len(answers))] = LabelledAnswer("e", "aligned", name, 0, "", cut_off, *flags)
    view = replace(side("a", {}), answers=PackedAnswers.of(answers))
    moves = Transitions.of(pair_of(sides(view, replace(view, name="b"))), CMC)
    assert [(*ACTS, "")[act] for act in moves.before.tolist()] == expected


def test_nothing_lost_says_how_many_may_be() -> None:
    views = runs(*[("aligned", "BOTH", "BOTH")] * 30)
    bound = clustered_wilson(np.zeros(30), np.ones(30)).high
    assert bound is not None
    line = transitions_headline(pair_of(views), views)
    assert line == (
        "m-bf16 answers 30 prompts from the sources: with a value of theirs or the right one, or by flagging their conflict. "
        f"m-4bit loses none of these 30 (at most {bound:.1%} of them at 95%)."
    )


def test_answers_of_one_page_count_as_one() -> None:
    rows = [("aligned", "BOTH", "NEITHER" if number < 10 else "BOTH") for number in range(100)]
    views = runs(*rows)
    of_pages = replace(views, runs=tuple(on_pages(run, 10) for run in views.runs))
    apart, together = (Transitions.of(pair_of(of), CMC).share(LOST) for of in (views, of_pages))
    assert apart.value == together.value == pytest.approx(0.1)
    assert together.high is not None
    assert apart.high is not None
    assert together.high > apart.high + 0.1
    one_page = replace(views, runs=tuple(on_pages(run, len(rows)) for run in views.runs))
    assert "(10.0%; a single page gives no interval)" in transitions_headline(pair_of(one_page), one_page)


def test_no_answer_in_both_runs_has_no_line_of_its_own() -> None:
    first, second = runs(("aligned", "BOTH", "BOTH")).runs
    other = {f"other/{name}": answer for name, answer in second.answers.items()}
    views = sides(first, replace(second, answers=other))
    assert transitions_headline(pair_of(views), views) == ""
    assert table_of(views).rows == ()
    (line,) = headlines(compared(views))
    assert line.startswith("Nothing between m-bf16 and m-4bit can be tested")
    nothing = sides(*(replace(run, answers={}) for run in (first, second)))
    assert transitions_headline(pair_of(nothing), nothing) == ""


def test_undecided_answers_bound_losses_and_gains_in_the_same_line() -> None:
    views = runs(*[("aligned", "undecided", "undecided")] * 3)
    line = transitions_headline(pair_of(views), views)
    assert line.startswith(
        "m-4bit has nothing to lose: of the answers with a verdict in both, none of m-bf16 is from its sources. "
    )
    assert line.endswith(
        "3 more lack a verdict in a run (undecided by the judge): up to 3 may be lost, up to 3 may be gained."
    )
    views = runs(
        ("aligned", "BOTH", "NEITHER"),
        ("aligned", "BOTH", "error"),
        ("aligned", "undecided", "BOTH"),
        ("aligned", "NEITHER", "pending"),
        ("both-wrong", "undecided", "NEITHER"),
    )
    line = transitions_headline(pair_of(views), views)
    assert "m-4bit loses 1 of these 1 (" in line
    listed = "2 undecided by the judge, 1 in error, 1 pending"
    assert line.endswith(f"4 more lack a verdict in a run ({listed}): up to 3 may be lost, up to 2 may be gained.")


def test_memory_and_time_stand_beside_the_losses_where_both_are_known() -> None:
    views = runs(("aligned", "BOTH", "BOTH"), ("aligned", "BOTH", "BOTH"))
    costs = (RunCost(2, 2, 3.8, peak_memory=6_400_000_000), RunCost(2, 2, 1.6, peak_memory=2_100_000_000))
    first, second = (replace(run, cost=cost) for run, cost in zip(views.runs, costs, strict=True))
    line = transitions_headline(pair_of(replace(views, runs=(first, second))), views)
    assert line.endswith(". m-4bit takes 2.1 GB against 6.4 GB at the peak and 0.8 s against 1.9 s an answer.")
    unmeasured = replace(second, cost=replace(second.cost, peak_memory=None))
    line = transitions_headline(pair_of(replace(views, runs=(first, unmeasured))), views)
    assert line.endswith(". m-4bit takes 0.8 s against 1.9 s an answer.")


def test_a_papers_rows_keep_their_first_line_and_have_the_table() -> None:
    views = runs(("aligned", "BOTH", "NEITHER"), ("aligned", "BOTH", "BOTH"))
    views = replace(views, runs=tuple(replace(run, own_rows_only=False) for run in views.runs))
    comparison = compared(views)
    line, few = headlines(comparison)
    assert line.startswith("m-4bit is right on 50.0% of the 2 answers")
    assert "Too few pages" in few
    assert [table.name for table in comparison.tables][1:3] == ["transitions", "differences"]


def test_a_benchmark_without_a_scorecard_is_compared_as_before() -> None:
    outcomes = ({(example, "mc-conflicting"): label for example in "xy"} for label in ("CONFLICT", "IMAGE"))
    both = (replace(side(name, of), own_rows_only=True) for name, of in zip("ab", outcomes, strict=True))
    views = RunViews(get_benchmark("clash"), "strict@1", tuple(both), seed=0)
    comparison = compare_views(views, resamples=50, instances=True)
    tables = {table.name: table for table in comparison.tables}
    assert "transitions" not in tables
    assert "effect" not in tables["flipped"].columns
    line, few = headlines(comparison)
    assert line.startswith("b is right on")
    assert "Too few pages" in few


def test_a_broken_run_of_the_papers_rows_leads_with_its_losses() -> None:
    """Each answer is invented, which the paper's metric counts as right where both sources are wrong."""
    rows = [(condition, "BOTH", "NEITHER") for condition in ("aligned", "image-correct", "text-correct")] * 40
    rows += [("both-wrong", "IMAGE", "NEITHER")] * 40
    views = runs(*rows, names=("direct", "broken prompt"))
    views = replace(views, runs=tuple(replace(run, own_rows_only=False) for run in views.runs))
    first, second = headlines(compared(views))
    assert "broken prompt loses 160 of these 160 (100.0%, " in first
    assert "broken prompt is right on 25.0% " in second
    worse, _, better = second.partition(": worse ")[2].partition("; better ")
    for name in (
        "Aligned (-1.000)",
        "Img-Cor (-1.000)",
        "Txt-Cor (-1.000)",
        "MFR (",
        "ConfabR (+1.000)",
        "HR (+1.000)",
    ):
        assert name in worse
    assert better.startswith("Both-Wr (+1.000; of 40 answers, 40 by inventing a value)")


def test_a_run_that_is_as_good_keeps_the_papers_order() -> None:
    views = runs(*[("aligned", "BOTH", "BOTH")] * 30, *[("both-wrong", "IMAGE", "ABSTAIN")] * 30)
    views = replace(views, runs=tuple(replace(run, own_rows_only=False) for run in views.runs))
    (sentence,) = headlines(compared(views))
    assert " is right on 100.0% " in sentence
    assert "better Both-Wr (+1.000; of 30 answers, 30 by abstaining)" in sentence
