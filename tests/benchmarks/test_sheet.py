"""Tables that a benchmark declares, counted and explained by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.answers import AnswerKind, Answers
from benchmarks.sheet import INTERVALS, NO_WIDTH, Column, Grid, Layout, Row, Sheets, missing_notes
from benchmarks.stats.intervals import ratio
from benchmarks.vocabulary import Estimate, Record, Table, Verdict
from tests.support.labelled import labelled
from tests.support.toy import Toy

JUDGE = "even@1"


def places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    if kind.condition in Toy.conditions:
        yield from ((Toy.conditions.index(kind.condition), Toy.labels.index(label)) for label in labels)


GRID = Grid((len(Toy.conditions), len(Toy.labels)), places)
YES = Column(lambda counts: ratio(counts[..., 0], counts.sum(-1)))
BY_CONDITION = Layout(
    "yes",
    "Shares of yes",
    GRID,
    {"yes": YES},
    lambda answers: [Row(f" / {name}", place) for place, name in enumerate(Toy.conditions)],
)


class Strict(Toy):
    """Counts an answer with nothing to label as a no."""

    unparsed_label = "NO"


def answer(outcome: str | Verdict, group: str, condition: str = "plain", **more: object) -> Record:
    return labelled({JUDGE: outcome}, id=f"{group}/{condition}", group=group, condition=condition, **more)  # type: ignore[arg-type]


def table(*records: Record, benchmark: Toy | None = None, layout: Layout = BY_CONDITION) -> Table:
    benchmark = benchmark or Toy()
    return Sheets(benchmark, {"m": Answers.of(records, benchmark)}, JUDGE, 200, 0).table(layout)


def cell(of: Table, row: str) -> Estimate:
    (value,) = dict(of.rows)[row]
    assert isinstance(value, Estimate)
    return value


EVERY = [
    answer("YES", "a"),
    answer("NO", "b"),
    answer("YES", "c"),
    answer("unparsed", "d"),
    answer("undecided", "e"),
    answer("judge-failed", "f"),
    labelled({}, id="g/plain", group="g", condition="plain", error=True),
    replace(labelled({}, id="h/plain", group="h", condition="plain"), generations=()),
]


def test_a_share_is_over_the_answers_that_count_and_says_which_do_not() -> None:
    shown = table(*EVERY)
    share = cell(shown, "m / plain")
    assert share.value == pytest.approx(2 / 3)
    assert (share.n, share.missing) == (3, 5)
    assert shown.notes == (
        "Left out of all answers: without an answer (1), undecided by the judge (1), not labelled by the judge (1), "
        "in error (1), pending (1).",
        INTERVALS,
    )


def test_an_empty_answer_counts_where_the_benchmark_declares_it() -> None:
    shown = table(*EVERY, benchmark=Strict())
    share = cell(shown, "m / plain")
    assert (share.value, share.n, share.missing) == (0.5, 4, 4)
    assert "Counted as NO: without an answer (1)." in shown.notes


def test_all_answers_missing_give_no_value_and_a_reason() -> None:
    shown = table(*EVERY[3:])
    share = cell(shown, "m / plain")
    assert (share.value, share.n, share.missing) == (None, 0, 5)
    assert share.reason == "no labelled answer"
    assert cell(shown, "m / twisted") == Estimate(None, reason="no labelled answer")


def test_a_part_with_one_answer_has_an_interval_of_no_width_and_says_so() -> None:
    shown = table(answer("YES", "a"), answer("NO", "b", "twisted"))
    share = cell(shown, "m / plain")
    assert (share.value, share.low, share.high, share.n) == (1, 1, 1, 1)
    assert NO_WIDTH in shown.notes
    assert NO_WIDTH not in table(answer("YES", "a"), answer("NO", "b")).notes


def test_no_run_gives_a_table_without_rows() -> None:
    shown = Sheets(Toy(), {}, JUDGE, 200, 0).table(BY_CONDITION)
    assert (shown.rows, shown.columns) == ((), ("yes",))


def test_conditions_that_a_benchmark_does_not_have_are_in_no_cell() -> None:
    share = cell(table(answer("YES", "a"), answer("NO", "b", "unheard of")), "m / plain")
    assert (share.value, share.n) == (1, 1)


def test_a_label_that_a_benchmark_does_not_have_is_an_error_and_not_a_wrong_answer() -> None:
    with pytest.raises(ValueError, match="not in"):
        table(answer(Verdict(JUDGE, "labelled", "MAYBE"), "a"))


def test_examples_are_drawn_with_all_their_answers() -> None:
    agreeing = [answer(label, str(n), c) for n, label in enumerate(["YES", "NO"] * 8) for c in Toy.conditions]
    both = Layout(
        "both", "Both", GRID, {"yes": Column(lambda counts: ratio(counts[..., 0].sum(-1), counts.sum((-1, -2))))}
    )
    apart = [replace(r, instance=replace(r.instance, group=r.instance.id)) for r in agreeing]
    together, separate = (cell(table(*records, layout=both), "m") for records in (agreeing, apart))
    assert together.value == separate.value == 0.5
    assert together.low is not None
    assert separate.low is not None
    assert together.low < separate.low


def test_a_layout_with_spread_has_deviations() -> None:
    share = cell(table(*EVERY, layout=replace(BY_CONDITION, spread=True)), "m / plain")
    assert share.sd == pytest.approx(np.sqrt(2 / 9 / 3), rel=0.2)


def test_numbers_of_several_runs_stand_in_one_note() -> None:
    runs = {"a": Answers.of(EVERY, Toy()), "b": Answers.of(EVERY[:4], Toy())}
    (note,) = missing_notes(Toy(), runs, JUDGE)
    assert "without an answer (1 of each run)" in note
    assert "in error (a: 1)" in note
