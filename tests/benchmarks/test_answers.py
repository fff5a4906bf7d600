"""Counting of answers by kind and by example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.answers import AnswerKind, Answers
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import DOCUMENT, Generation, Instance, Media, Part, Record, Text
from tests.support.labelled import answers_of, labelled

A, B = "a@1", "b@1"


def some_answers() -> tuple[list[Record], Answers]:
    records = [
        labelled({A: "IMAGE", B: "TEXT"}, id="x1", group="x"),
        labelled({A: "IMAGE", B: "TEXT"}, id="y1", group="y"),
        labelled({A: "TEXT"}, id="y2", group="y", condition="both-wrong"),
        labelled({A: "unparsed"}, id="z1", group="z", answer=" "),
        labelled({A: "IMAGE", B: "TEXT"}, id="x2", group="x"),
    ]
    return records, answers_of(records)


def test_records_that_tables_cannot_tell_apart_are_of_one_kind() -> None:
    records, answers = some_answers()
    assert len(answers.kinds) == 3
    assert answers.count(lambda kind: kind.condition) == {"aligned": 4, "both-wrong": 1}
    assert answers.count(lambda kind: kind.outcome(B)) == {"labelled": 3, "pending": 2}
    assert answers.judges == {A, B}
    for record, number in zip(records, answers.kind, strict=True):
        kind = answers.kinds[number]
        assert {kind.outcome(judge) for judge in (A, B)} == {record.outcome(judge) for judge in (A, B)}
        assert kind.condition == record.instance.condition


def test_cells_count_by_example_in_order_of_the_first_counted_answer() -> None:
    def cell(kind: AnswerKind) -> tuple[int, int] | None:
        label = kind.label(A) if kind.outcome(A) == "labelled" else ""
        return (0, ("IMAGE", "TEXT").index(label)) if label else None

    _, answers = some_answers()
    assert answers.cells((1, 2), cell).tolist() == [[[2, 0]], [[1, 1]]]
    assert answers.cells((2,), lambda kind: (0,) if kind.is_empty else None).tolist() == [[1, 0]]
    assert answers.cells((2,), lambda kind: None).shape == (0, 2)


def test_kinds_change_for_chosen_records_only() -> None:
    _, answers = some_answers()
    changed = answers.derive_at([1, 4], lambda kind: AnswerKind(kind.instance, "error"))
    assert changed.mask(lambda kind: kind.finish_reason == "error").tolist() == [False, True, False, False, True]
    assert not answers.mask(lambda kind: kind.finish_reason == "error").any()


def test_a_weight_counts_as_so_many_records() -> None:
    def place(kind: AnswerKind) -> tuple[int]:
        return (int(kind.condition == "both-wrong"),)

    _, answers = some_answers()
    weighted = replace(answers, weight=np.array([0.5, 2.0, 3.0, 0.0, 0.25]))
    assert weighted.cells((2,), place).tolist() == [[0.75, 0], [2, 3], [0, 0]]
    assert weighted.at(np.array([4, 1])).cells((2,), place).tolist() == [[0.25, 0], [2, 0]]


# --- pages -----------------------------------------------------------------------------------------


def shows(group: str, condition: str, *pictures: int, strata: Mapping[str, str] | None = None) -> Record:
    """An answer to a question that shows these pictures; its condition may be an id's, such as image-only/wrong."""
    parts: tuple[Part, ...] = (Text("How many?"), *(Media(f"{number:064x}", ".png") for number in pictures))
    name, _, cell = group.partition("~")
    instance_id = f"{name}/{condition}" + (f"~{cell}" if cell else "")
    instance = Instance(instance_id, group, condition.partition("/")[0], "How many?", parts, {}, strata or {})
    return Record(instance, (Generation(f"{instance_id}#0", "12", "stop"),))


def clusters_of(name: str, *records: Record) -> tuple[list[int], list[list[int]]]:
    """Return the cluster of each answer, and those of the other pages that it shows."""
    clusters = Answers.of(records, get_benchmark(name)).clusters
    return clusters.own.tolist(), [sorted(set(row) - {-1}) for row in clusters.shown.tolist()]


def test_a_borrowed_picture_of_cmc_bench_is_shown_and_not_its_own() -> None:
    """The examples a and b borrow each other's picture; c borrows that of a."""
    own, shown = clusters_of(
        "cmc-bench",
        shows("a", "aligned", 1),
        shows("a", "text-correct", 2),
        shows("b", "image-correct", 2),
        shows("b", "both-wrong", 1),
        shows("c", "aligned", 3),
        shows("c", "image-only/wrong", 1),
        shows("c", "image-only/right", 3),
        shows("c", "text-only/wrong"),
    )
    assert own == [0, 0, 1, 1, 2, 2, 2, 2]
    assert shown == [[], [1], [], [0], [], [0], [], []]


@pytest.mark.parametrize("view", ["text-correct", "both-wrong", "image-only/wrong"])
def test_a_borrowed_picture_is_not_its_own_in_a_varied_build_either(view: str) -> None:
    own, shown = clusters_of(
        "cmc-bench", shows("a~cell-0", "aligned", 1), shows("b~cell-0", "aligned", 2), shows("b~cell-1", view, 1)
    )
    assert own == [0, 1, 1]
    assert shown == [[], [], [0]]


def test_a_picture_that_only_borrowers_show_connects_them() -> None:
    own, shown = clusters_of(
        "cmc-bench", shows("a", "both-wrong", 9), shows("b", "both-wrong", 9), shows("c", "both-wrong", 8)
    )
    assert own == [0, 1, 2]
    assert shown == [[3], [3], []]


def test_examples_of_one_picture_are_one_cluster_of_clash() -> None:
    own, shown = clusters_of("clash", shows("a", "conflict", 1), shows("b", "conflict", 2), shows("c", "conflict", 1))
    assert own == [0, 1, 0]
    assert shown == [[], [], []]


def test_the_facts_of_an_entity_are_one_cluster_of_mmkc_bench() -> None:
    """Entities of two data sets with one name are two; the pictures differ by fact, and are not looked at."""

    def fact(group: str, dataset: str, entity: str, picture: int) -> Record:
        return shows(group, "original-mc", picture, strata={"dataset": dataset, "instance": entity, "type": group[:2]})

    own, shown = clusters_of(
        "mmkc-bench",
        fact("PT-x", "EK", "x", 1),
        fact("PL-x", "EK", "x", 2),
        fact("PL-y", "EK", "y", 2),
        fact("ER-x", "ER", "x", 1),
    )
    assert own == [0, 0, 1, 2]
    assert shown == [[], [], [], []]


@pytest.mark.parametrize(
    ("name", "condition"), [("cmc-bench", "aligned"), ("clash", "conflict"), ("retrieval", "aligned")]
)
def test_examples_of_a_document_are_one_cluster(name: str, condition: str) -> None:
    def of_document(group: str, document: str, picture: int) -> Record:
        return shows(group, condition, picture, strata={DOCUMENT: document} if document else {})

    own, _ = clusters_of(
        name,
        of_document("a", "report", 1),
        of_document("b", "report", 2),
        of_document("c", "", 3),
        of_document("d", "", 2),
    )
    assert own == [0, 0, 1, 0], "d has the picture of b"


def test_a_borrowed_picture_joins_neither_documents_nor_their_examples() -> None:
    own, shown = clusters_of(
        "cmc-bench",
        shows("a", "aligned", 1, strata={DOCUMENT: "x"}),
        shows("b", "aligned", 2, strata={DOCUMENT: "x"}),
        shows("c", "aligned", 3, strata={DOCUMENT: "y"}),
        shows("c", "text-correct", 2, strata={DOCUMENT: "y"}),
    )
    assert own == [0, 0, 1, 1]
    assert shown == [[], [], [], [0]]


def test_repeated_examples_of_a_varied_build_are_one_cluster() -> None:
    own, _ = clusters_of(
        "clash", shows("a~cell-0", "conflict", 1), shows("b~cell-0", "conflict", 2), shows("a~cell-1", "conflict", 3)
    )
    assert own == [0, 1, 0]


def test_counts_are_by_cluster_or_by_example() -> None:
    records = [
        replace(record, instance=replace(record.instance, strata={DOCUMENT: document}))
        for record, document in zip(some_answers()[0], "dedzd", strict=True)
    ]
    answers = answers_of(records)

    def places(kind: AnswerKind) -> list[tuple[int]]:
        return [(0,)] if kind.outcome(A) == "labelled" else []

    assert answers.clusters.own.tolist() == [0, 0, 0, 1, 0], "y has a record of document d, and x and y are one"
    assert answers.counts((1,), places).tolist() == [[4]]
    assert answers.counts((1,), places, every_example=True).tolist() == [[4], [0]]
    assert answers.counts((1,), places, by_example=True).tolist() == [[2], [2]]
    assert answers.counts((1,), places, every_example=True, by_example=True).tolist() == [[2], [2], [0]]
    assert answers.cluster_of_examples().tolist() == [0, 0, 1]
    assert answers.where(lambda kind: kind.is_empty).clusters.count == 1


def test_a_mean_score_has_an_interval_over_clusters() -> None:
    records = [labelled({A: "IMAGE" if n % 4 < 2 else "TEXT"}, id=f"{n}", group=f"{n // 4}") for n in range(40)]

    def score(kind: AnswerKind) -> float | None:
        return float(kind.label(A) == "IMAGE") if kind.outcome(A) == "labelled" else None

    apart = [replace(r, instance=replace(r.instance, strata={DOCUMENT: r.verdicts[A].label or ""})) for r in records]
    (mean, total), (few, same) = (answers_of(of).mean_score(score) for of in (records, apart))
    assert (mean.value, mean.n, total) == (few.value, few.n, same) == (0.5, 40, 20)
    assert mean.low is not None
    assert 0.3 < mean.low < 0.5
    assert few.low is None, "both documents share every example, so they are one cluster"
    assert answers_of(records).mean_score(lambda kind: None)[0].value is None
