"""An examination's result: its intervals cover what is true, the order's effect is found, and the first line is a sentence."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import pytest

from benchmarks.cmc_bench.cmc_constants import LABELS
from benchmarks.rubric import is_drawn_reversed
from benchmarks.vocabulary import Verdict, VerdictStatus
from judges.examination.examination_result import Examination, Usage
from judges.examination.labelled_answers import LabelledAnswer, hostile_answers, labelled_set

ANSWERS, HOSTILE = labelled_set(), hostile_answers()
JUDGE = "openai:gpt@cmc-bench-2"


def labelled(label: str) -> Verdict:
    return Verdict(JUDGE, "labelled", label)


def examination(
    verdicts: Sequence[Verdict], swapped: Sequence[Verdict] | None = None, hostile: Sequence[Verdict] = ()
) -> Examination:
    answers = ANSWERS[: len(verdicts)]
    return Examination(JUDGE, answers, verdicts, swapped, HOSTILE[: len(hostile)], hostile)


def first_line(verdicts: Sequence[Verdict]) -> str:
    return next(iter(examination(verdicts).lines()))


def test_the_printed_interval_covers_the_true_agreement_in_19_of_20_cases() -> None:
    """500 judges that are right with probability .85 on each answer, whatever its label."""
    covered = 0
    for seed in range(500):
        rng = random.Random(seed)
        verdicts = [
            labelled(answer.label if rng.random() < 0.85 else rng.choice([x for x in LABELS if x != answer.label]))
            for answer in ANSWERS
        ]
        line = first_line(verdicts)
        match = re.search(r"agrees with \d+ of 440 labels \([\d.]+%, ([\d.]+) to ([\d.]+)\)\.$", line)
        assert match, line
        covered += float(match[1]) <= 85 <= float(match[2])
    assert 0.92 <= covered / 500 <= 0.98


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({"right": 20}, "agrees with 20 of 20 labels (100.0%, 83.9 to 100.0)."),
        (
            {"right": 17, "wrong": 1, "undecided": 2},
            "agrees with 17 of 18 labels that it gives (94.4%, 74.2 to 99.0) and leaves 2 of 20 answers undecided.",
        ),
        (
            {"right": 10, "undecided": 5, "unparsed": 3, "judge-failed": 2},
            "agrees with 10 of 10 labels that it gives (100.0%, 72.2 to 100.0), leaves 5 of 20 answers undecided, finds nothing "
            "to label in 3 of 20 answers and fails on 2 of 20 answers.",
        ),
        ({"judge-failed": 20}, "gives no label: it fails on 20 of 20 answers."),
    ],
)
def test_the_first_line_says_how_far_the_judge_agrees_and_what_it_leaves(counts: dict[str, int], line: str) -> None:
    outcomes = [outcome for outcome, count in counts.items() for _ in range(count)]
    verdicts = [_verdict(outcome, answer) for outcome, answer in zip(outcomes, ANSWERS, strict=False)]
    assert first_line(verdicts) == f"{JUDGE} {line}"


def _verdict(outcome: str, answer: LabelledAnswer) -> Verdict:
    if outcome in ("right", "wrong"):
        return labelled(answer.label if outcome == "right" else next(x for x in LABELS if x != answer.label))
    statuses: dict[str, VerdictStatus] = {x: x for x in ("undecided", "unparsed", "judge-failed")}
    return Verdict(JUDGE, statuses[outcome])


def in_orders(says: Callable[[LabelledAnswer, str], str]) -> Examination:
    """The judge says a label by an answer and the source that is listed first."""
    sources = ["text" if is_drawn_reversed(answer.id) else "image" for answer in ANSWERS]
    drawn = [labelled(says(answer, source)) for answer, source in zip(ANSWERS, sources, strict=True)]
    others = ["image" if source == "text" else "text" for source in sources]
    swapped = [labelled(says(answer, source)) for answer, source in zip(ANSWERS, others, strict=True)]
    return examination(drawn, swapped)


def test_a_judge_that_prefers_the_first_reference_is_found() -> None:
    def says(answer: LabelledAnswer, first: str) -> str:
        return first.upper() if answer.label in ("IMAGE", "TEXT") else answer.label

    result = in_orders(says)
    order = result.order
    assert order is not None
    one_sided = sum(answer.label in ("IMAGE", "TEXT") for answer in ANSWERS)
    assert (order.changed, order.to_first, order.to_second, order.preferred) == (one_sided, one_sided, 0, "first")
    assert order.image_first.value == pytest.approx(1 - sum(a.label == "TEXT" for a in ANSWERS) / len(ANSWERS))
    assert order.text_first.value == pytest.approx(1 - sum(a.label == "IMAGE" for a in ANSWERS) / len(ANSWERS))
    assert [*result.lines()][1].startswith(
        f"It prefers the reference that is listed first: swapping the two references changes {one_sided} of 440 labels"
    )


def test_a_judge_that_prefers_the_last_reference_is_found() -> None:
    order = in_orders(lambda answer, first: "TEXT" if first == "image" else "IMAGE").order
    assert order is not None
    assert order.preferred == "last"
    assert "the reference that is listed last" in str(order)


def test_changes_in_both_directions_are_no_preference() -> None:
    def says(answer: LabelledAnswer, first: str) -> str:
        number = int(answer.id[1:])
        if number % 10:
            return answer.label
        return first.upper() if number % 20 else {"image": "TEXT", "text": "IMAGE"}[first]

    order = in_orders(says).order
    assert order is not None
    assert order.changed == order.to_first + order.to_second > 20
    assert order.preferred == ""
    assert str(order).startswith("Swapping the two references changes ")


def test_a_judge_that_ignores_the_order_changes_nothing() -> None:
    order = in_orders(lambda answer, first: answer.label).order
    assert str(order) == "Swapping the two references changes none of 440 labels."


def test_a_judge_is_steered_by_the_label_that_an_answer_asks_for_alone() -> None:
    verdicts = [labelled(answer.label) for answer in HOSTILE]
    assert [*examination([labelled("IMAGE")], None, verdicts).lines()][1] == (
        f"None of {len(HOSTILE)} hostile answers steered it."
    )
    other = next(x for x in LABELS if x not in (HOSTILE[1].label, HOSTILE[1].steers_to))
    verdicts[:3] = labelled(HOSTILE[0].steers_to), labelled(other), Verdict(JUDGE, "undecided")
    result = examination([labelled("IMAGE")], None, verdicts)
    assert result.steered == [HOSTILE[0]]
    assert f"1 of {len(HOSTILE)} hostile answers steered it: {HOSTILE[0].id}." in [*result.lines()]


def test_tables_count_every_answer_once() -> None:
    rng = random.Random(1)
    verdicts = [_verdict(rng.choice(["right", "wrong", "undecided", "unparsed", "judge-failed"]), a) for a in ANSWERS]
    labels, forms, confusion = examination(verdicts).tables()
    for table in (labels, forms):
        assert sum(cells[0] for _, cells in table.rows if isinstance(cells[0], int)) == len(ANSWERS)
        assert sum(cells[1] for _, cells in table.rows if isinstance(cells[1], int)) == sum(
            verdict.status == "labelled" for verdict in verdicts
        )
    assert sum(cell for _, cells in confusion.rows for cell in cells if isinstance(cell, int)) == len(ANSWERS)
    assert confusion.columns[-3:] == ("undecided", "unparsed", "judge failed")


def test_the_cost_of_a_label_leaves_out_the_cache() -> None:
    half = Examination(JUDGE, ANSWERS[:1], [labelled("IMAGE")], None, [], [], Usage(100, 0, 50, 100, 25.0, 5000, 500))
    assert [*half.lines()][-1] == (
        "0.5 s, 100 prompt tokens and 10 completion tokens a label; 50 of 100 replies came from the cache."
    )
    cached = Examination(JUDGE, ANSWERS[:1], [labelled("IMAGE")], None, [], [], Usage(9, 0, 9, 9))
    assert [*cached.lines()][-1] == "All 9 replies came from the cache."
