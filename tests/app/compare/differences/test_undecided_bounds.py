"""Comparisons while answers are undecided: bounds, and decisions that hold whatever the answers turn out to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from app.compare.decision.target_metric import target_metric
from app.compare.decision.target_shares import target_shares
from app.compare.differences.metric_differences import differences_table
from app.compare.differences.undecided_bounds import bounds_table, difference_bounds, undecided_of
from app.compare.recommend.recommendation import recommend_views
from app.compare.recommend.recommended_runs import decide
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunView
from benchmarks.vocabulary import Estimate, Generation, Instance, Record
from tests.support.compared_runs import CONDITIONS, RIGHT, WRONG, side, sides

UNDECIDED = "undecided"


def run(
    name: str, labels: Mapping[tuple[str, str], str], texts: Mapping[tuple[str, str], str] | None = None
) -> RunView:
    """Return a run with these outcomes; its answers are its own unless ``texts`` says otherwise."""
    keys = list(labels)

    def read(positions: Sequence[int]) -> Iterator[Record]:
        for position in positions:
            example, condition = keys[position]
            text = (texts or {}).get(keys[position], f"{name} {position}")
            answer = Generation("1", text, "stop", (1,), 1, 1, 0.0, 0.0, None)
            yield Record(Instance(f"{example}/{condition}", example, condition, "?", ()), (answer,))

    return replace(side(name, labels), read=read)


def outcomes(examples: int, *, undecided: int = 0, wrong: int = 0) -> dict[tuple[str, str], str]:
    """Return the outcomes of examples under each condition: the first undecided, the next wrong, all others right."""
    return {
        (f"e{number:03d}", condition): UNDECIDED
        if number < undecided
        else WRONG[condition]
        if number < undecided + wrong
        else RIGHT[condition]
        for number in range(examples)
        for condition in CONDITIONS
    }


def pair(first: RunView, second: RunView) -> RunPair:
    return RunPair(first, second, sides(first).label_metrics, 200, 0)


def ends(first: RunView, second: RunView, name: str = "MFR") -> tuple[float | None, float | None]:
    both = pair(first, second)
    undecided = undecided_of(both)
    assert undecided is not None
    bounds = difference_bounds(both, both.label_metrics.of[name], undecided)
    return bounds[0].difference.value, bounds[1].difference.value


def test_there_are_no_bounds_where_all_is_decided() -> None:
    both = pair(run("a", outcomes(4)), run("b", outcomes(4)))
    assert undecided_of(both) is None
    assert bounds_table([both], ["MFR"]) is None


def test_undecided_answers_bound_a_difference_from_both_sides() -> None:
    first, second = run("a", outcomes(10, undecided=2)), run("b", outcomes(10))
    assert ends(first, second) == pytest.approx((0.0, 0.2))
    assert ends(second, first) == pytest.approx((-0.2, 0.0))


def test_equal_answers_cancel_and_others_do_not() -> None:
    labels = outcomes(10, undecided=3)
    texts = {key: f"text {number}" for number, key in enumerate(labels)}
    assert ends(run("a", labels, texts), run("b", labels, texts)) == pytest.approx((0.0, 0.0))
    assert ends(run("a", labels), run("b", labels)) == pytest.approx((-0.3, 0.3))


def test_bounds_hold_where_equal_answers_move_both_denominators() -> None:
    """MPB is a share of IMAGE and TEXT alone: labelling some of the equal answers can be more extreme than all or none."""

    def labels(image: int, text: int) -> dict[tuple[str, str], str]:
        every = ["IMAGE"] * image + ["TEXT"] * text + ["NEITHER"] * (10 - image - text) + [UNDECIDED] * 20
        return {(f"e{n:03d}", condition): label for condition in CONDITIONS for n, label in enumerate(every)}

    texts = {key: str(key) for key in labels(0, 0)}
    least, greatest = ends(run("a", labels(5, 5), texts), run("b", labels(0, 1), texts), "MPB Img")
    some = 6 / 7 - 11 / 16  # six of the twenty are IMAGE in each condition, the others NEITHER
    assert least is not None
    assert greatest is not None
    assert least <= some <= greatest


def test_the_table_has_each_bound_with_its_interval_and_the_count() -> None:
    both = pair(run("a", outcomes(12, undecided=2)), run("b", outcomes(12, wrong=1)))
    table = bounds_table([both], ["MFR", "CDR"])
    assert table is not None
    rows = dict(table.rows)
    count, least, greatest = rows["b / MFR"]
    assert count == 8
    assert isinstance(least, Estimate)
    assert isinstance(greatest, Estimate)
    assert None not in (least.value, least.low, greatest.value, greatest.high)
    assert least.low <= least.value <= greatest.value <= greatest.high  # type: ignore[operator]
    decided = dict(differences_table([both], ["MFR"]).rows)["b / MFR"][2]
    assert isinstance(decided, Estimate)
    assert decided.n == 30


def test_a_run_holds_only_if_it_does_whatever_the_undecided_turn_out_to_be() -> None:
    complete, half = run("complete", outcomes(200)), run("half", outcomes(200, undecided=40))
    views = sides(complete, half)
    shares = target_shares(views, target_metric(views, None))
    assert shares.every is not None
    assert shares.every.counts == [0, 160]
    assert decide(shares, 0.03).holds == (0,)
    everything = sides(complete, run("other", outcomes(200)))
    assert decide(target_shares(everything, target_metric(everything, None)), 0.03).holds == (0, 1)


def test_equal_undecided_answers_stop_no_decision() -> None:
    labels = outcomes(200, undecided=40)
    texts = {key: f"text {number}" for number, key in enumerate(labels)}
    views = sides(run("a", labels, texts), run("b", labels, texts))
    assert decide(target_shares(views, target_metric(views, None)), 0.03).holds == (0, 1)


def test_a_recommendation_says_how_many_answers_are_undecided() -> None:
    views = sides(run("complete", outcomes(200)), run("half", outcomes(200, undecided=40)))
    assert any("160 of half" in caveat for caveat in recommend_views(views).caveats)
