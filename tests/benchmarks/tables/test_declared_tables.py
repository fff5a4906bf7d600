"""Tables that a benchmark declares, counted and explained by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.answers import AnswerKind, Answers
from benchmarks.stats.intervals import DIFFERENCE, INTERVALS, ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheets
from benchmarks.tables.missing_labels import missing_notes
from benchmarks.vocabulary import DOCUMENT, Estimate, Record, Table, Verdict
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


def test_a_part_with_one_answer_has_no_interval_and_one_with_equal_answers_has_a_width() -> None:
    shown = table(answer("YES", "a"), answer("NO", "b", "twisted"), answer("NO", "c", "twisted"))
    alone, alike = cell(shown, "m / plain"), cell(shown, "m / twisted")
    assert (alone.value, alone.low, alone.high, alone.n) == (1, None, None, 1)
    assert (alike.value, alike.low, alike.n) == (0, 0, 2)
    assert alike.high is not None
    assert alike.high > 0.9, "two examples say little"


def test_examples_of_one_document_count_together() -> None:
    """As many answers on as many examples, once of their own documents and once of two."""

    def shown(documents: int, count: int = 16) -> Estimate:
        records = [
            answer("YES" if n % documents % 2 else "NO", str(n), strata={DOCUMENT: str(n % documents)})
            for n in range(count)
        ]
        return cell(table(*records), "m / plain")

    apart, shared, one = shown(16), shown(4), shown(2, 16)
    assert apart.value == shared.value == one.value == 0.5
    assert apart.n == shared.n == one.n == 16
    assert apart.low is not None
    assert shared.low is not None
    assert one.low is not None
    assert one.low < shared.low < apart.low
    assert shown(1).low is None


def test_counts_by_example_add_up_to_the_sheet() -> None:
    records = [
        *(
            answer("YES" if n % 3 else "NO", str(n), c, strata={DOCUMENT: str(n % 4)})
            for n in range(12)
            for c in Toy.conditions
        ),
        answer("unparsed", "none", strata={DOCUMENT: "1"}),
    ]
    sheets = Sheets(Toy(), {"m": Answers.of(records, Toy())}, JUDGE, 200, 0)
    counts, cluster = sheets.by_example("m", GRID)
    assert counts.shape == (13, 2, 2)
    assert counts.sum((1, 2)).tolist() == [2] * 12 + [0]
    assert cluster.tolist() == [*[0, 1, 2, 3] * 3, 1]
    whole, again = sheets.sheet("m", GRID), sheets.of_examples(counts, cluster)
    assert again.totals.tolist() == whole.totals.tolist()
    assert again.counts.tolist() == whole.counts.tolist()
    ((one,), (other,)) = (sheet.cells([YES], 0) for sheet in (again, whole))
    assert one == replace(other, missing=0)
    assert other.missing == 1


def test_a_column_has_the_interval_of_its_range() -> None:
    """The same values as a share, as a difference, and as anything else."""
    sheets = Sheets(
        Toy(), {"m": Answers.of([answer(v, str(n)) for n, v in enumerate(["YES", "NO"] * 8)], Toy())}, JUDGE, 200, 0
    )
    share, difference, other = sheets.sheet("m", GRID).cells(
        [replace(YES, within=within) for within in (YES.within, DIFFERENCE, None)], 0
    )
    assert share.value == difference.value == other.value == 0.5
    assert len({share.low, difference.low, other.low}) == 3


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
