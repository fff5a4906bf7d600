"""Agreement between judges, against published examples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.errors import SpecError
from benchmarks.stats.intervals import cohen_kappa
from benchmarks.vocabulary import Cell, Estimate, Record, Table
from judges.agreement_tables import agreement_sentence, agreement_tables
from judges.judge_agreement import (
    count_label_pairs,
    fleiss_from_sums,
    fleiss_sums,
    label_kappa,
    positive_agreement,
    raw_agreement,
)
from tests.support.labelled import LABELS, answers_of, labelled

A, B, C = "match@1", "openai:gpt-5@cmc-1", "human:ann@1"

# Fleiss (1971), Table 1: how many of six psychiatrists gave each of 30 patients which of five diagnoses.
FLEISS_1971 = [
    (0, 0, 0, 6, 0), (0, 3, 0, 0, 3), (0, 1, 4, 0, 1), (0, 0, 0, 0, 6), (0, 3, 0, 3, 0), (2, 0, 4, 0, 0),
    (0, 0, 4, 0, 2), (2, 0, 3, 1, 0), (2, 0, 0, 4, 0), (0, 0, 0, 0, 6), (1, 0, 0, 5, 0), (1, 1, 0, 4, 0),
    (0, 3, 3, 0, 0), (1, 0, 0, 5, 0), (0, 2, 0, 3, 1), (0, 0, 5, 0, 1), (3, 0, 0, 1, 2), (5, 1, 0, 0, 0),
    (0, 2, 0, 4, 0), (1, 0, 2, 0, 3), (0, 0, 0, 0, 6), (0, 1, 0, 5, 0), (0, 2, 0, 1, 3), (2, 0, 0, 4, 0),
    (1, 0, 0, 4, 1), (0, 5, 0, 1, 0), (4, 0, 0, 0, 2), (0, 2, 0, 4, 0), (1, 0, 5, 0, 0), (0, 0, 0, 0, 6),
]  # fmt: skip


def _records(
    table: Sequence[Sequence[int]], labels: Sequence[str] = LABELS, condition: str = "aligned"
) -> list[Record]:
    """Return one record per answer, such that judge A's labels against B's are this table."""
    return [
        labelled({A: labels[i], B: labels[j]}, id=f"{condition}-{i}-{j}-{k}", condition=condition)
        for i, row in enumerate(table)
        for j, count in enumerate(row)
        for k in range(count)
    ]


def _tables(records: Sequence[Record], judges: Sequence[str] = (A, B), resamples: int = 200) -> dict[str, Table]:
    conditions = ("aligned", "both-wrong")
    tables = agreement_tables({"run": answers_of(records)}, judges, LABELS, conditions, resamples=resamples, seed=0)
    return {table.name: table for table in tables}


def _row(table: Table, label: str) -> dict[str, Cell]:
    return dict(zip(table.columns, dict(table.rows)[label], strict=True))


def _estimate(cell: Cell) -> Estimate:
    assert isinstance(cell, Estimate)
    return cell


def fleiss_kappa(counts: NDArray[np.float64]) -> float:
    """Return Fleiss' kappa of the numbers of judges per answer and label, shape (answers, labels)."""
    return float(fleiss_from_sums(fleiss_sums(counts).sum(0), int(counts[0].sum()))[1])


@pytest.mark.parametrize(
    ("table", "agreement", "kappa"),
    [
        # Cohen (1960): 200 patients, two psychologists. The same table is Cohen's (1968) first example.
        ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.70, 0.492),
        # Wikipedia, Cohen's kappa: 50 grant applications, two readers.
        ([[20, 5], [10, 15]], 0.70, 0.40),
        # Landis and Koch (1977): multiple sclerosis, two neurologists; patients of Winnipeg and of New Orleans.
        ([[38, 5, 0, 1], [33, 11, 3, 0], [10, 14, 5, 6], [3, 7, 3, 10]], 0.430, 0.208),
        ([[5, 3, 0, 0], [3, 11, 4, 0], [2, 13, 3, 4], [1, 2, 4, 14]], 0.478, 0.297),
    ],
)
def test_cohens_kappa_matches_published_value(table: list[list[int]], agreement: float, kappa: float) -> None:
    records = _records(table)
    row = _row(_tables(records)["agreement"], f"run / {A}, {B} / all")
    assert row["answers"] == sum(map(sum, table))
    assert _estimate(row["agreement"]).value == pytest.approx(agreement, abs=5e-4)
    assert _estimate(row["kappa"]).value == pytest.approx(kappa, abs=5e-4)
    counts = count_label_pairs(answers_of(records), A, B, LABELS).counts.sum(0)
    assert counts[: len(table), : len(table)].tolist() == table


def test_fleiss_kappa_matches_published_value() -> None:
    assert fleiss_kappa(np.array(FLEISS_1971, float)) == pytest.approx(0.430, abs=5e-4)


def test_kappa_interval_is_the_large_sample_interval() -> None:
    # statsmodels 0.15 gives 0.392 to 0.591 for Cohen's table (Fleiss, Cohen and Everitt 1969).
    records = _records([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    kappa = _estimate(_row(_tables(records, resamples=4000)["agreement"], f"run / {A}, {B} / all")["kappa"])
    assert kappa.low == pytest.approx(0.392, abs=0.01)
    assert kappa.high == pytest.approx(0.591, abs=0.01)


def test_label_by_label() -> None:
    # scikit-learn 1.9: f1_score and cohen_kappa_score of each label of Cohen's table.
    table = _tables(_records([[88, 14, 18], [10, 40, 10], [2, 6, 12]]))["agreement-labels"]
    for label, positive, kappa in (("IMAGE", 0.8, 0.56), ("TEXT", 2 / 3, 0.52381), ("BOTH", 0.4, 0.30769)):
        row = _row(table, f"run / {A}, {B} / {label}")
        assert _estimate(row["positive agreement"]).value == pytest.approx(positive, abs=1e-5)
        assert _estimate(row["kappa"]).value == pytest.approx(kappa, abs=1e-5)
    row = _row(table, f"run / {A}, {B} / ABSTAIN")
    assert _estimate(row["kappa"]).reason == "neither judge gives this label"
    assert _estimate(row["positive agreement"]).value is None


def test_agreement_is_counted_by_condition_and_overall() -> None:
    records = [
        *_records([[4, 1]]),
        *_records([[0, 5]], condition="both-wrong"),
        *_records([[9]], condition="image-only"),
    ]
    table = _tables(records)["agreement"]
    assert [label.rpartition(" / ")[2] for label, _ in table.rows] == ["all", "aligned", "both-wrong"]
    answers = [_row(table, label)["answers"] for label, _ in table.rows]
    values = [_estimate(_row(table, label)["agreement"]).value for label, _ in table.rows]
    assert answers == [10, 5, 5]
    assert values == [0.4, 0.8, 0.0]


def test_undefined_is_na_with_a_reason() -> None:
    apart = [labelled({A: "IMAGE"}, id="1"), labelled({B: "IMAGE"}, id="2")]
    row = _row(_tables(apart)["agreement"], f"run / {A}, {B} / all")
    assert row["answers"] == 0
    assert _estimate(row["kappa"]) == Estimate(None, reason="no answer is labelled by both")
    estimate = _row(_tables(_records([[7]]))["agreement"], f"run / {A}, {B} / all")
    assert _estimate(estimate["agreement"]).value == 1
    assert _estimate(estimate["kappa"]).value is None
    assert "one and the same label" in _estimate(estimate["kappa"]).reason
    rows = _tables(apart, (A, B, C))["fleiss"]
    assert _estimate(_row(rows, "run / all")["kappa"]).reason == "no answer is labelled by all of them"


def test_full_agreement_on_few_answers_keeps_an_interval() -> None:
    row = _row(_tables(_records([[6, 0], [0, 4]]))["agreement"], f"run / {A}, {B} / all")
    agreed, kappa = _estimate(row["agreement"]), _estimate(row["kappa"])
    assert (agreed.value, agreed.high, kappa.value) == (1, 1, 1)
    # Wilson's interval of 10 of 10 (Newcombe 1998), with Student's quantile of 9 degrees of freedom.
    assert agreed.low == pytest.approx(10 / (10 + 2.2622**2), abs=1e-4)
    assert kappa.low is not None
    assert 0 < kappa.low < 0.5, "only four answers have the rarer label"
    assert kappa.high == 1


def test_answers_of_one_cluster_have_no_intervals() -> None:
    records = [replace(r, instance=replace(r.instance, group="one")) for r in _records([[6, 3], [0, 4]])]
    row = _row(_tables(records)["agreement"], f"run / {A}, {B} / all")
    for name, value in (("agreement", 10 / 13), ("kappa", 48 / 87)):
        cell = _estimate(row[name])
        assert cell.value == pytest.approx(value)
        assert (cell.low, cell.high) == (None, None)


def test_unlabelled_answers_are_excluded_and_counted_by_judge() -> None:
    records = [
        *_records([[3, 1], [0, 2]]),
        labelled({A: "unparsed", B: "unparsed"}, id="u"),
        labelled({A: "IMAGE", B: "judge-failed"}, id="f"),
        labelled({A: "undecided", B: "IMAGE"}, id="d"),
        labelled({A: "MAYBE", B: "IMAGE"}, id="m"),
        labelled({A: "IMAGE"}, id="not judged by B"),
        labelled({A: "IMAGE", B: "IMAGE"}, id="e", error=True),
    ]
    row = _row(_tables(records)["agreement"], f"run / {A}, {B} / all")
    assert row["answers"] == 6
    assert row["first left out"] == "1 not a label of this benchmark, 1 undecided, 1 unparsed"
    assert row["second left out"] == "1 judge-failed, 1 unparsed"


def test_conditions_of_an_example_are_one_cluster() -> None:
    """Ten copies of an example say no more than it does: the interval is as wide as if each example were one answer."""

    def width(copies: int) -> float:
        records = [
            labelled({A: "IMAGE", B: "IMAGE" if example % 4 else "TEXT"}, id=f"{example}-{copy}", group=str(example))
            for example in range(40)
            for copy in range(copies)
        ]
        agreed = _estimate(_row(_tables(records, resamples=2000)["agreement"], f"run / {A}, {B} / all")["agreement"])
        assert agreed.low is not None
        assert agreed.high is not None
        return agreed.high - agreed.low

    assert width(10) == pytest.approx(width(1), abs=0.03)


def test_agreement_of_three_judges() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (50, 3))
    labels[:30] = labels[:30, :1]
    records = [
        labelled({judge: LABELS[code] for judge, code in zip((A, B, C), row, strict=True)}, id=str(i))
        for i, row in enumerate(labels)
    ]
    records.append(labelled({A: "IMAGE", B: "IMAGE"}, id="not by all"))
    tables = _tables(records, (A, B, C))
    row = _row(tables["fleiss"], "run / all")
    by_hand = fleiss_kappa(np.stack([np.bincount(record, minlength=3) for record in labels]).astype(float))
    values = _estimate(row["kappa"])
    assert row["answers"] == 50
    assert values.value == pytest.approx(by_hand)
    assert values.low is not None
    assert values.high is not None
    assert values.low < by_hand < values.high
    assert len(tables["confusion"].rows) == 3 * len(LABELS)
    assert "fleiss" not in _tables(records)


def test_agreement_is_between_different_judges() -> None:
    for judges in ((A,), (A, A), ()):
        with pytest.raises(SpecError, match="two or more"):
            _tables([], judges)


def test_note_under_a_table_names_the_best_reference() -> None:
    records = _records([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    sentence = agreement_sentence(answers_of(records), A, [C, B])
    assert sentence.startswith(f"{A} agrees with {B} on 70.0% (6")
    assert " of 200 answers, Cohen's kappa 0.49 (0." in sentence
    assert sentence.endswith(".")
    people = [labelled({A: "IMAGE", C: "IMAGE"}, id="p"), labelled({A: "judge-failed", C: "TEXT"}, id="q")]
    with_people = agreement_sentence(answers_of([*records, *people]), A, [C, B])
    assert with_people.startswith(f"{A} agrees with {C} on 100.0% of 1 answer, "), "one cluster has no interval"
    assert "kappa is undefined" in with_people
    assert f"{A} gave 1 more no label" in with_people


def test_note_says_if_agreement_is_unknown() -> None:
    unknown = f"How {A} agrees with people or with an API judge is unknown for this run."
    for records in ([], _records([[3]])):
        assert agreement_sentence(answers_of(records), A, [C]) == unknown
        assert agreement_sentence(answers_of(records), A, [A]) == unknown


_TABLE = st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=3, max_size=3)


@given(_TABLE)
def test_agreement_is_symmetric(cells: list[list[int]]) -> None:
    table = np.array(cells, float)
    for measure in (raw_agreement, cohen_kappa, positive_agreement, label_kappa):
        values = measure(table)
        np.testing.assert_allclose(values, measure(table.T), equal_nan=True)
        assert np.nan_to_num(values).max() <= 1


@given(_TABLE)
def test_kappa_of_two_labels_is_the_overall_kappa(cells: list[list[int]]) -> None:
    table = np.array(cells, float)[:2, :2]
    kappa = cohen_kappa(table)
    np.testing.assert_allclose(label_kappa(table), [kappa, kappa], equal_nan=True, atol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_cohen_and_fleiss_agree_for_equal_marginals(labels: list[tuple[int, int]]) -> None:
    """Fleiss' chance agreement equals Cohen's if both judges give each label equally often."""
    both_ways = [*labels, *((b, a) for a, b in labels)]
    table = np.zeros((3, 3))
    np.add.at(table, tuple(np.array(both_ways).T), 1)
    counts = np.stack([np.bincount(record, minlength=3) for record in both_ways]).astype(float)
    np.testing.assert_allclose(cohen_kappa(table), fleiss_kappa(counts), equal_nan=True, atol=1e-12)


@pytest.mark.slow
def test_ten_thousand_answers_take_seconds() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, (10_000, 3))
    records = [
        labelled(dict(zip((A, B, C), (LABELS[c] for c in row), strict=True)), id=str(i), group=str(i // 4))
        for i, row in enumerate(labels)
    ]
    start = time.process_time()
    _tables(records, (A, B, C), resamples=1000)
    assert time.process_time() - start < 10


# Five judges of open answers of CLASH, of which three compare strings by one rule; and what three methods say of them.
STRICT, RELAXED, PUBLISHED = "strict@1", "relaxed@1", "published@1"
FIRST_MODEL, SECOND_MODEL = "gemini-2.5-pro@published", "gpt-5@published"


def _by_three_methods(**copies: str) -> list[Record]:
    """Return answers labelled by string matching and two models; ``copies`` are further judges with the labels of others."""
    labels = np.random.default_rng(1).integers(0, 3, (60, 3))
    labels[:40] = labels[:40, :1]
    records = []
    for i, row in enumerate(labels):
        by_judge = {judge: LABELS[code] for judge, code in zip((STRICT, FIRST_MODEL, SECOND_MODEL), row, strict=True)}
        records.append(labelled(by_judge | {copy: by_judge[of] for copy, of in copies.items()}, id=str(i)))
    return records


@pytest.mark.parametrize(
    "copies",
    [
        {RELAXED: STRICT, PUBLISHED: STRICT},
        {"strict@0": STRICT},
        {f"first({STRICT}, {SECOND_MODEL})": STRICT, f"majority({STRICT}, {FIRST_MODEL})": STRICT},
        {f"all({FIRST_MODEL}, {SECOND_MODEL})": FIRST_MODEL},
    ],
    ids=["one rule", "an earlier version", "panels beside members", "a panel of other judges"],
)
def test_kappa_of_all_judges_counts_each_method_once(copies: dict[str, str]) -> None:
    three = (STRICT, FIRST_MODEL, SECOND_MODEL)
    alone = _row(_tables(_by_three_methods(), three)["fleiss"], "run / all")
    tables = _tables(_by_three_methods(**copies), sorted((*three, *copies)))
    row = _row(tables["fleiss"], "run / all")
    assert _estimate(row["kappa"]).value == _estimate(alone["kappa"]).value
    assert _estimate(row["agreement"]).value == _estimate(alone["agreement"]).value
    note = " ".join(tables["fleiss"].notes)
    assert all(judge in note for judge in (*three, *copies))
    pairs = len(three) + len(copies)
    assert len(tables["agreement"].rows) == pairs * (pairs - 1) / 2


def test_the_newest_version_of_a_judge_counts() -> None:
    records = _by_three_methods(**{"match@9": SECOND_MODEL, "match@10": FIRST_MODEL})
    counted = _row(_tables(records, (STRICT, SECOND_MODEL, "match@10"))["fleiss"], "run / all")
    row = _row(_tables(records, (STRICT, SECOND_MODEL, "match@10", "match@9"))["fleiss"], "run / all")
    assert row == counted


def test_fewer_than_three_methods_have_no_kappa_of_all_judges() -> None:
    records = _by_three_methods(**{RELAXED: STRICT, PUBLISHED: STRICT})
    tables = _tables(records, (STRICT, RELAXED, PUBLISHED, FIRST_MODEL))
    assert "fleiss" not in tables
    note = " ".join(tables["agreement"].notes)
    assert RELAXED in note
    assert PUBLISHED in note
